"""Decisions are drawn from older states. Copies agree, and the certificate follows its definition."""

import math
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from belated import FTRL, Decision, OutcomeRange
from belated.errors import InvalidInput
from belated.replicated.lag import Drawn, rates_of
from belated.replicated.shared_learner import Freshness, SharedLearner, WaitingRounds
from belated.tunings import Advanced, Means, Shadow, Simple, Tuning
from tests.support.catalogue import TUNINGS
from tests.support.oracles import (
    Log,
    literal_certificate,
    literal_step,
    record_batch,
    slow_argmin,
    uncapped_certificate,
)


class Event(NamedTuple):
    """A decision, or with `decision` set the loss of one."""

    seq: int
    seen: int = 0
    arm: int = 0
    probability: float = 0.0
    drawn: Drawn | None = None
    bold_advantage: float = 0.0
    decision: int = 0
    loss: float | None = 0.0  # None if it was given up


def fold(shared: SharedLearner, events: list[Event]) -> None:
    for event in events:
        if event.decision and event.loss is None:
            shared.give_up(event.seq, event.decision)
        elif event.decision:
            shared.tell(event.seq, event.decision, event.loss or 0.0)
        else:
            given = [event.arm], [event.probability], event.drawn, [event.bold_advantage]
            shared.enter([event.seq], event.seen, *given)


class Replica:
    """A copy that has folded the journal up to some entry, and draws from that state."""

    def __init__(self, k: int, tuning: Tuning) -> None:
        self.shared, self.seen = SharedLearner(FTRL(k, tuning, seed=0), 0), 0

    def catch_up(self, journal: list[Event], until: int) -> None:
        fold(self.shared, [event for event in journal if self.seen < event.seq <= until])
        self.seen = max(self.seen, until)


class Story(NamedTuple):
    """The journal of a game, and the copies that have folded all of it."""

    journal: list[Event]
    copies: list[SharedLearner]


def story(generator: np.random.Generator, k: int, tuning: Tuning, *, replicas: int, lag: int, n: int = 60) -> Story:
    """Play with replicas that wake in random order, lag by up to `lag` events, and write groups of decisions."""
    journal: list[Event] = []
    copies = [Replica(k, tuning) for _ in range(replicas)]
    waiting: list[int] = []
    while sum(not event.decision for event in journal) < n:
        last = len(journal)
        if waiting and generator.random() < 0.5:
            for _ in range(int(generator.integers(1, 4))):
                if waiting:
                    decision = waiting.pop(int(generator.integers(len(waiting))) if generator.random() < 0.3 else 0)
                    loss = None if generator.random() < 0.05 else float(generator.random())
                    journal.append(Event(len(journal) + 1, decision=decision, loss=loss))
            continue
        copy = copies[int(generator.integers(replicas))]
        copy.catch_up(journal, last - int(generator.integers(lag + 1)))
        x, bold_advantages, drawn = copy.shared.draw_context()
        for _ in range(int(generator.choice([1, 1, 3]))):
            arm = int(generator.choice(k, p=x))
            journal.append(Event(len(journal) + 1, copy.seen, arm, float(x[arm]), drawn, float(bold_advantages[arm])))
            waiting.append(len(journal))
    for copy in copies:
        copy.catch_up(journal, len(journal))
    return Story(journal, [copy.shared for copy in copies])


class Literal(NamedTuple):
    """The rounds in the order of what they had seen."""

    number: dict[int, int]  # of each round, by the seq of its decision
    log: list[Log]
    closed: frozenset[int]
    falls: float  # the sum of all falls of beta


def in_order(k: int, tuning: Tuning, journal: list[Event]) -> Literal:
    decisions = sorted((event for event in journal if not event.decision), key=lambda event: (event.seen, event.seq))
    number = {event.seq: t for t, event in enumerate(decisions, 1)}
    told = {event.seq: number[event.decision] for event in journal if event.decision and event.loss is not None}
    closed = frozenset(number[event.decision] for event in journal if event.decision and event.loss is None)
    log = []
    for event in decisions:
        assert event.drawn is not None
        known = frozenset(t for seq, t in told.items() if seq <= event.seen)
        log.append(Log(*rates_of(event.drawn, tuning, k), known))
    falls = sum(max(0.0, before.beta - after.beta) for before, after in pairwise(log))
    assert all(before.alpha <= after.alpha for before, after in pairwise(log))
    return Literal(number, log, closed, falls)


def literal(k: int, tuning: Tuning, journal: list[Event]) -> float:
    """The certificate by its definition, plus the price of each fall of beta."""
    _, log, closed, falls = in_order(k, tuning, journal)
    return literal_certificate(k, log, closed) + falls * math.log(k)


def literal_without(k: int, tuning: Tuning, journal: list[Event], left_out: frozenset[int]) -> float:
    """The bound for a given set S of decisions. Each costs 1, misses nothing and is not missed."""
    number, log, closed, falls = in_order(k, tuning, journal)
    set_s = closed | {number[seq] for seq in left_out}
    bound = 2 * log[-1].alpha * (math.sqrt(k) - 1) + (log[-1].beta + falls) * math.log(k) + len(set_s)
    for s, own in enumerate(log, 1):
        if s not in set_s:
            missing = [t for t in range(s + 1, len(log) + 1) if t not in set_s and s not in log[t - 1].known]
            bound += k / (own.alpha * math.sqrt(k) + 2 * own.beta)
            bound += sum(literal_step(k, log[t - 1].alpha, log[t - 1].beta) for t in missing)
    return bound


class Whole(NamedTuple):
    """A journal folded event by event."""

    certificate: float
    capped: frozenset[int]  # the seqs of decisions whose charge reached 1 while they waited


def whole(k: int, tuning: Tuning, journal: list[Event]) -> Whole:
    shared, capped = SharedLearner(FTRL(k, tuning, seed=0), 0), set[int]()
    for event in journal:
        fold(shared, [event])
        clock = shared.learner._state.clock[0]
        rows = shared.learner._state.ledger[: clock["rows"]]
        waits = (rows["probability"] > 0) | (rows["probability"] == -clock["solves"])
        capped |= set(rows["round"][waits & (rows["round"] <= clock["capped"])].tolist())
    seqs = [event.seq for event in journal if not event.decision]
    learner = shared.learner
    certificate = uncapped_certificate(learner)
    return Whole(certificate, frozenset(seqs[round - 1] for round in capped))


def test_the_certificate_is_not_below_what_is_proven_in_a_few_stories() -> None:
    """tests/system/replicated has more stories, tunings and lags."""
    assert_never_below_what_is_proven(Advanced(), 3, 12, stories=6)


def assert_never_below_what_is_proven(tuning: Tuning, replicas: int, lag: int, stories: int = 40) -> None:
    generator = np.random.default_rng([replicas, lag])
    for _ in range(stories):
        k = int(generator.choice([2, 5, 40]))
        journal = story(generator, k, tuning, replicas=replicas, lag=lag).journal
        folded = whole(k, tuning, journal)
        assert folded.certificate > literal_without(k, tuning, journal, folded.capped) * (1 - 1e-11)


@pytest.mark.parametrize("tuning", [Advanced()], ids=repr)
@pytest.mark.parametrize("replicas", [1])
def test_without_lag_the_certificate_is_its_definition(tuning: Tuning, replicas: int) -> None:
    ratios = above_its_definition(tuning, games=40, replicas=replicas, lag=0)
    assert ratios == pytest.approx([1.0] * 40, rel=1e-11)


def above_its_definition(tuning: Tuning, *, games: int, replicas: int, lag: int, n: int = 60) -> list[float]:
    generator = np.random.default_rng([replicas, lag])
    ratios = []
    for _ in range(games):
        k = int(generator.choice([2, 5, 40]))
        played = story(generator, k, tuning, replicas=replicas, lag=lag, n=n)
        learner = played.copies[0].learner
        exact = literal(k, tuning, played.journal)
        ratios.append(uncapped_certificate(learner) / exact)
    return ratios


@pytest.mark.parametrize("tuning", [Simple(), Advanced()], ids=repr)
@pytest.mark.parametrize("reported", [0, 30, 300])
def test_one_who_was_away_for_long_pays_for_it(tuning: Tuning, reported: int) -> None:
    """300 rounds pass before a replica writes 40 that it drew at the very start."""
    away = Replica(2, tuning)
    drawn, journal = away.shared.draw_context().drawn, list[Event]()
    for seq in range(1, 301):
        away.catch_up(journal, seq - 1)
        journal.append(Event(seq, seq - 1, seq % 2, 0.5, away.shared.draw_context().drawn))
    journal += [Event(300 + seq, decision=seq, loss=0.5) for seq in range(1, reported + 1)]
    journal += [Event(300 + reported + number, 0, 0, 0.5, drawn) for number in range(1, 41)]
    folded = whole(2, tuning, journal)
    assert folded.certificate > literal_without(2, tuning, journal, folded.capped) * (1 - 1e-11)


def test_rates_never_fall_below_those_of_any_round_that_was_entered() -> None:
    shared = SharedLearner(FTRL(3, Simple(), seed=0), 0)
    shared.enter(range(1, 101), 0, [0] * 100, [1 / 3] * 100, None)
    shared.enter([101], 100, [0], [1 / 3], None)
    drawn = shared.draw_context().drawn
    for seq in range(102, 203):
        shared.tell(seq, seq - 101, 0.5)
    shared.enter([203], 202, [0], [1 / 3], None)  # by a copy that knows everything, so with lower rates
    shared.enter([204], 101, [0], [1 / 3], drawn)
    shared.enter([205], 204, [0], [1 / 3], None)
    status = shared.learner.status
    assert (status.alpha, status.beta) >= rates_of(drawn, Simple(), 3)
    assert status.beta >= rates_of(drawn, Simple(), 3)[1]


@pytest.mark.parametrize("tuning", [Means(scale=1e5), Shadow(scale=1e5), Advanced(scale=1e5), Simple(scale=1e5)])
def test_a_steep_fall_of_beta_survives_a_snapshot(tuning: Tuning) -> None:
    """Otherwise no snapshot could be used, and every start would read the whole journal."""
    shared = SharedLearner(FTRL(3, tuning, seed=0), last=0)
    shared.enter([1], 0, [0], [1 / 3], None)
    older = shared.draw_context()
    shared.tell(2, decision=1, loss=0.5)
    shared.enter([3], 1, [0], [float(older.x[0])], older.drawn, [0.0])
    state = shared.state()
    assert SharedLearner.restore(state).state() == state


def test_open_rounds_pay_for_the_lowest_beta_since_the_draw() -> None:
    """They pay as much as the overtaken round owes for later draws, at the lowest possible rates."""
    shared = SharedLearner(FTRL(2, Simple(), seed=0), 0)
    shared.enter([1, 2, 3], 0, [0, 1, 0], [0.5] * 3, None)
    drawn = shared.draw_context().drawn
    for seq in (4, 5, 6):
        shared.tell(seq, seq - 3, 0.5)
    lowest = rates_of(shared.draw_context().drawn, Simple(), 2)
    shared.enter([7], 6, [0], [0.5], None)
    before = float(shared.learner._state.clock["drift"][0])
    shared.enter([8], 3, [0], [0.5], drawn)
    paid, lag = float(shared.learner._state.clock["drift"][0]) - before, shared._lag
    assert lag is not None
    assert paid == pytest.approx(literal_step(2, *lowest))
    assert paid > literal_step(2, lag.alpha, lag.beta)


def test_a_fall_of_beta_is_charged_once() -> None:
    """docs/theory/certificate.md, "Replicas". The charge of the first stale decision has dip ln k on top."""
    shared = SharedLearner(FTRL(2, Simple(), seed=0), 0)
    shared.enter([1, 2, 3], 0, [0, 1, 0], [0.5] * 3, None)
    drawn = shared.draw_context().drawn
    for seq in (4, 5, 6):
        shared.tell(seq, seq - 3, 0.5)
    shared.enter([7], 6, [0], [0.5], None)
    charges, clock = list[float](), shared.learner._state.clock
    for seq in (8, 9):
        before = {name: float(clock[name][0]) for name in ("charge", "charged", "drift")}
        shared.enter([seq], 3, [0], [0.5], drawn)
        lag, cost = shared._lag, float(clock["drift"][0]) - before["drift"]
        assert lag is not None
        assert (lag.dip > 0, lag.missed) == (True, 3)
        now, then = (
            min(1.0, 2 / (alpha * math.sqrt(2) + 2 * beta))
            for alpha, beta in ((clock["alpha"][0], clock["beta"][0]), (lag.alpha, lag.beta))
        )
        capped = before["charged"] + 1 - float(clock["charged"][0])
        regular = lag.missed * cost + max(0.0, then - now) + capped
        charges.append(float(clock["charge"][0]) - before["charge"] - regular)
    assert lag is not None
    assert charges == pytest.approx([lag.dip * math.log(2), 0.0], abs=1e-12)


def state(shared: SharedLearner) -> bytes:
    return msgspec.msgpack.encode(shared.state())


def test_copies_agree_in_a_few_stories() -> None:
    """tests/system/replicated has more stories and every tuning."""
    assert_copies_agree("shadow", stories=3)


def assert_copies_agree(name: str, stories: int = 20) -> None:
    generator = np.random.default_rng(len(name))
    for _ in range(stories):
        k = int(generator.choice([2, 5, 40]))
        played = story(generator, k, TUNINGS[name], replicas=3, lag=12)
        anew = SharedLearner(FTRL(k, TUNINGS[name], seed=0), 0)
        for start in range(0, len(played.journal), 7):  # with a stop and a start in between
            fold(anew, played.journal[start : start + 7])
            anew = SharedLearner.restore(msgspec.msgpack.decode(state(anew)), TUNINGS[name])
        assert {state(copy) for copy in (*played.copies, anew)} == {state(anew)}
        assert len(anew._waiting) == anew.learner.outstanding


def grouped(journal: list[Event], shared: SharedLearner) -> None:
    """As `fold`, but decisions drawn together are entered together."""
    group: list[Event] = []
    for event in [*journal, Event(0, decision=1)]:
        if group and (event.decision or event.seen != group[0].seen):
            seqs, arms = [one.seq for one in group], [one.arm for one in group]
            probabilities, bold_advantages = [one.probability for one in group], [one.bold_advantage for one in group]
            shared.enter(seqs, group[0].seen, arms, probabilities, group[0].drawn, bold_advantages)
            group = []
        if event.decision and event.seq:
            fold(shared, [event])
        elif event.seq:
            group.append(event)


def test_half_a_group_and_then_the_rest_makes_no_difference() -> None:
    generator = np.random.default_rng(3)
    for _ in range(40):
        played = story(generator, 3, Shadow(), replicas=3, lag=10)
        together = SharedLearner(FTRL(3, Shadow(), seed=0), 0)
        grouped(played.journal, together)
        assert state(together) == state(played.copies[0])


def test_one_copy_that_is_never_behind_is_the_learner_itself() -> None:
    """Sharing does not change the ask and tell of a single learner, bit for bit."""
    generator = np.random.default_rng(4)
    played = story(generator, 4, Shadow(), replicas=1, lag=0, n=300)
    plain, rounds = FTRL(4, Shadow(), seed=0), dict[int, int]()
    index = 0
    while index < len(played.journal):
        event = played.journal[index]
        if event.decision and event.loss is None:
            plain.give_up(rounds[event.decision])
        elif event.decision:
            plain.tell(rounds[event.decision], event.loss or 0.0)
        else:
            group = [one for one in played.journal[index : index + 3] if not one.decision and one.seen == event.seen]
            made = record_batch(plain, [one.arm for one in group], [one.probability for one in group])
            rounds |= {one.seq: decision.round for one, decision in zip(group, made, strict=True)}
            index += len(group) - 1
        index += 1
    assert plain.snapshot() == played.copies[0].learner.snapshot()


def literal_savings(k: int, tuning: Tuning, journal: list[Event]) -> float:
    """In docs/theory/shadow.md, y and z of a round follow from the reports and rates that its copy had when it drew."""
    decisions = {event.seq: event for event in journal if not event.decision}
    reports = [event for event in journal if event.decision and event.loss is not None]
    suffered = savings = 0.0
    for earlier, report in enumerate(reports):
        own, loss = decisions[report.decision], report.loss or 0.0
        losses = np.zeros(k)
        for known in reports:
            if known.seq <= own.seen:
                losses[decisions[known.decision].arm] += (known.loss or 0.0) / decisions[known.decision].probability
        assert own.drawn is not None
        alpha, beta = rates_of(own.drawn, tuning, k)
        bold, careful = slow_argmin(losses, alpha, 0.0), slow_argmin(losses, alpha, beta)
        mean = suffered / max(1, earlier)
        savings += (loss - mean) * (bold[own.arm] - careful[own.arm]) / own.probability
        suffered += loss
    return savings


def test_a_shadow_compares_what_the_copies_had_when_they_drew() -> None:
    """Comparing what the fold has when it reads the entry would compare two learners without lag."""
    generator = np.random.default_rng(5)
    for lag in (0, 8, 30):
        played = story(generator, 3, Shadow(), replicas=3, lag=lag)
        savings = float(played.copies[0].learner._state.clock["shadow"]["savings"][0])
        assert savings == pytest.approx(literal_savings(3, Shadow(), played.journal), rel=1e-7)


def test_bold_advantages_are_those_of_the_shadow() -> None:
    assert not SharedLearner(FTRL(3, Simple(), seed=0), 0).draw_context().bold_advantages.any()
    learner = FTRL(3, Shadow(), seed=0)
    learner.ask(20)
    learner.tell(1, 1.0)
    before = learner.snapshot()
    x, bold_advantages, drawn = SharedLearner(learner, 0).draw_context()
    alpha, beta = rates_of(drawn, Shadow(), 3)
    estimates = learner.status.estimated_losses
    bold, careful = (slow_argmin(estimates, alpha, rate) for rate in (0.0, beta))
    np.testing.assert_array_equal(x, learner.distribution())
    np.testing.assert_allclose(bold_advantages, (bold - careful) / x, rtol=1e-9)
    assert learner.snapshot() == before


@pytest.mark.parametrize("bold_advantages", [[0.5], [0.5, math.nan], [[0.5, 0.5]]])
def test_bold_advantages_that_do_not_fit_are_refused(bold_advantages: list[float]) -> None:
    shared = SharedLearner(FTRL(2, Shadow(), seed=0), 9)
    before = state(shared)
    with pytest.raises(InvalidInput, match="each decision needs a finite bold advantage"):
        shared.enter([10, 11], 5, [0, 1], [0.5, 0.5], shared.draw_context().drawn, bold_advantages)
    assert state(shared) == before


def test_more_of_a_stale_draw_needs_one_before() -> None:
    shared = SharedLearner(FTRL(2, Shadow(), seed=0), 9)
    before = state(shared)
    with pytest.raises(InvalidInput, match=r"Ask `freshness\(5\)`"):
        shared.enter([10], 5, [0], [0.5], None, [0.0], freshness=Freshness.MORE_STALE)
    assert state(shared) == before


def lossy(suffered: float) -> FTRL:
    """A learner that has suffered this much loss, with some open rounds."""
    learner = FTRL(2, Shadow(), seed=0)
    for _ in range(1000):
        learner.tell(learner.ask().round, 0.5)
    snapshot = learner.snapshot()
    snapshot["clock"]["suffered"], snapshot["estimated_losses"] = suffered, [0.0, 50_000.0]
    learner = FTRL.restore(snapshot)
    record_batch(learner, [1] * 6, [0.5] * 6)
    return learner


def test_an_alarm_of_the_solve_before_they_are_entered_is_paid_for_too() -> None:
    def raises(learner: FTRL) -> bool:
        copy = FTRL.restore(learner.snapshot())
        copy.ask()
        return bool(copy._state.clock["shadow"]["alarm"][0])

    low, high = 0.0, 1000.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if raises(lossy(middle)) else (middle, high)
    learner = lossy(low)
    shared = SharedLearner(learner, 9)
    drawn = shared.draw_context().drawn
    for _ in range(30):  # late outcomes replace their default
        learner.amend(Decision(1, 1, 0.5), 0.0, 1.0)
    assert not learner._state.clock["shadow"]["alarm"][0]
    shared.enter([10], 5, [1], [0.5], drawn)
    assert shared._lag is not None
    assert shared._lag.surcharge == 1
    assert learner._state.clock["shadow"]["alarm"][0]


def test_a_distribution_that_serves_several_draws_cannot_be_shared() -> None:
    with pytest.raises(InvalidInput, match="refresh must be 1, got 3"):
        SharedLearner(FTRL(2, seed=0, refresh=3), 0)


def test_names_and_ranges_stay_outside_a_shared_learner() -> None:
    named: Any = FTRL(["a", "b"], seed=0)
    for learner in (named, FTRL(2, seed=0, outcomes=OutcomeRange(0, 5))):
        with pytest.raises(InvalidInput, match="numbered arms and losses from 0 to 1"):
            SharedLearner(learner, 0)


def test_an_alarm_is_paid_for_by_those_who_had_not_heard_it() -> None:
    shared = SharedLearner(FTRL(2, Shadow(), seed=0), 0)
    before = shared.draw_context().drawn
    shared.enter([1], 0, [0], [0.5], before)
    shared.enter([2], 1, [0], [0.5], None)
    quiet = SharedLearner.restore(msgspec.msgpack.decode(state(shared)))
    shared.learner._state.clock["shadow"]["alarm"] = 1
    for copy in (shared, quiet):
        copy.enter([3, 4], 0, [0, 1], [0.5, 0.5], before)
    difference = shared.learner._state.clock["charge"][0] - quiet.learner._state.clock["charge"][0]
    assert difference == pytest.approx(2.0)


@pytest.mark.parametrize(
    "wrong",
    [Drawn(9, 0, 0, 0, 0), Drawn(0, 0, 0, 99, 0), Drawn(0, 0, 0, -1, 0), Drawn(1, 0, 1, 0, 0), None],
)
def test_what_was_never_a_state_of_it_is_refused_and_nothing_changes(wrong: Drawn | None) -> None:
    shared = SharedLearner(FTRL(2, seed=0), 0)
    shared.enter([1], 0, [0], [0.5], None)
    shared.tell(2, 1, 1.0)
    shared.enter([3], 2, [0], [0.5], None)
    before = state(shared)
    with pytest.raises(InvalidInput, match=r"earlier state|unknown state"):
        shared.enter([4], 1, [0], [0.5], wrong)
    with pytest.raises(InvalidInput, match="is not waiting"):
        shared.tell(4, 1, 1.0)
    assert state(shared) == before


def test_waiting_are_found_while_they_wait() -> None:
    generator = np.random.default_rng(6)
    waiting, model = WaitingRounds(), dict[int, int]()
    seq = 0
    for round in range(1, 3000):
        seq += int(generator.integers(1, 5))
        waiting.add([seq], round)
        model[seq] = round
        for _ in range(2):
            asked = int(generator.integers(1, seq + 3))
            assert waiting.take(asked) == model.pop(asked, 0)
        if round % 500 == 0:
            waiting = WaitingRounds(*waiting.state())
        assert len(waiting) == len(model)


def test_entering_nothing_changes_nothing() -> None:
    shared = SharedLearner(FTRL(2, seed=0), 0)
    before = state(shared)
    shared.enter([], 0, [], [], None)
    assert state(shared) == before
