"""A learner on means equals its literal transcription in every stage, ignores what has not arrived, and is neutral."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, Decision, bounds, kernels, lab
from belated.errors import InvalidInput
from belated.kernels.means import COUNT, SUM
from belated.lab.games.compiled import CompiledMeans
from belated.tunings import Means, schedule
from tests.kernels.test_clock import random_delays
from tests.lab.test_problems import DELAYS, LOSSES
from tests.learner.test_shadow import QUICK
from tests.support.oracles import LiteralMeans, Replay, literal_step, play, uncapped_certificate

STAGES = ("means", "moving", "alarm")


class Case(NamedTuple):
    """A game for the transcription."""

    ends_in: str  # the stage
    n_rounds: int
    swap: int = 0  # the losses swap after this many rounds. 0 means coins.
    tuning: Means = Means()
    n_arms: int = 3
    batches: tuple[int, ...] = (1, 1, 1, 4)
    largest_delay: int = 20
    alarm: int = 10**9  # after so many rounds, decisions with a tiny probability come from elsewhere
    provisional: float | None = None
    amended: float = 0.05
    silent_after: int = 10**9  # after so many rounds the first arm reports no more
    refresh: int = 1


CASES = {
    "coins": Case("means", 250, refresh=4),
    "many arms": Case("means", 120, n_arms=30, batches=(1, 7)),
    "no delay": Case("means", 120, largest_delay=0, batches=(1,)),
    "provisional": Case("means", 250, provisional=0.9, largest_delay=60),
    "wave": Case("moving", 300, 30, Means(switch_threshold=1e6), refresh=5),
    "wave, quick to fear": Case("moving", 500, 30, Means(scale=1.0, switch_threshold=0.01), refresh=12),
    "silence": Case("means", 700, n_arms=2, batches=(1, 5), largest_delay=3, silent_after=200, refresh=3),
    "silence on the move": Case(
        "moving", 450, 30, n_arms=2, batches=(1,), largest_delay=3, silent_after=90, amended=0.0
    ),
    "alarm": Case("alarm", 150, tuning=Means(scale=1.0), alarm=40, refresh=5),
    "alarm on the move": Case("alarm", 250, 30, alarm=120, refresh=5),
    "alarm, provisional": Case("alarm", 150, tuning=Means(scale=1.0), alarm=40, provisional=0.1, refresh=5),
}
QUICK_CASES = ["coins", "provisional", "wave", "alarm on the move", "silence"]  # tests/system/learner has the others


class Game:
    """A learner and its transcription, which are told the same."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.generator = case, np.random.default_rng(seed)
        self.learner = FTRL(case.n_arms, case.tuning, seed=seed, refresh=case.refresh, provisional=case.provisional)
        self.oracle = LiteralMeans(case.n_arms, case.tuning, case.provisional)
        self.made: dict[int, Decision] = {}
        self.told: dict[int, float | None] = {}  # None: given up
        self.due: dict[int, list[int]] = {}
        self.plays: set[str] = set()
        self.has_been_silent = False  # the first arm, after it has reported

    def loss(self, decision: Decision) -> float:
        if self.case.swap:
            return float((decision.round // self.case.swap + decision.arm) % 2)
        return float(self.generator.random() < 0.3 + 0.1 * (decision.arm % 3))

    def decide(self) -> None:
        """Decide a batch, or enter a decision with a tiny probability. Compares every new distribution."""
        size, solves = int(self.generator.choice(self.case.batches)), int(self.learner._state.clock["solves"][0])
        x = self.learner.distribution()
        if self.learner.round >= self.case.alarm and self.oracle.stage != "alarm" and size == 1:
            decisions = [self.elsewhere()]
        else:
            decisions = self.learner.ask(size)
        if int(self.learner._state.clock["solves"][0]) > solves:
            self.compare(x)
        for decision in decisions:
            self.oracle.ask(decision)
            self.made[decision.round] = decision
            wait = int(self.generator.integers(0, self.case.largest_delay + 1))
            self.due.setdefault(decision.round + wait, []).append(decision.round)
        if int(self.learner._state.clock["solves"][0]) > solves:
            self.compare_certificates()

    def compare_certificates(self) -> None:
        """It is n in all runs with these delays or in none."""
        literal, n = self.oracle.certificate(), self.learner.round
        assert uncapped_certificate(self.learner) == pytest.approx(literal, rel=1e-9)
        is_trivial = self.oracle.without_alarm() >= n
        literal_any = pytest.approx(self.oracle.certificate_any(), rel=1e-7)
        assert self.learner.certificate("any") == literal_any
        if self.case.provisional is not None:
            assert self.learner.certificate() == literal_any
        else:
            assert self.learner.certificate() == (n if is_trivial else pytest.approx(literal, rel=1e-9))

    def elsewhere(self) -> Decision:
        """A decision that raises the alarm soon."""
        return self.learner.record(int(self.generator.integers(self.case.n_arms)), 0.001)

    def compare(self, x: NDArray[np.float64]) -> None:
        np.testing.assert_allclose(x, self.oracle.solve(), rtol=1e-7)
        status, past = self.learner.status, Replay(self.oracle)
        rates = (self.oracle.alpha, 0.0 if status.plays in ("bold", "means") else self.oracle.beta)
        assert (status.plays, status.alpha, status.beta) == (self.oracle.plays, *map(approx, rates))
        counts, sums = self.learner._state.policies[kernels.ON_MEANS, COUNT : SUM + 1]
        np.testing.assert_allclose(counts, [arm.count for arm in past.arms], rtol=1e-9)
        np.testing.assert_allclose(sums, [arm.sum for arm in past.arms], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(status.estimated_losses, past.estimates + past.centres, rtol=1e-9, atol=1e-9)
        self.plays.add(status.plays)
        first = past.arms[0]
        self.has_been_silent |= first.count > 0 and bool(first.is_silent(past.longest_delay))

    def report(self) -> None:
        """Tell what has arrived in a random order. Some rounds are lost, and some are given up."""
        arrived = [round for when in list(self.due) if when <= self.learner.round for round in self.due.pop(when)]
        for round in self.generator.permutation(arrived).tolist():
            fate = self.generator.random()
            if round > self.case.silent_after and self.made[round].arm == 0:
                continue
            if fate < 0.9:
                self.told[round] = loss = self.loss(self.made[round])
                self.learner.tell(round, loss)
                self.oracle.tell(round, loss)
                if self.generator.random() < 0.02:
                    self.compare_certificates()
            elif fate < 0.95:
                self.told[round] = None
                self.learner.give_up(round)
                self.oracle.give_up(round)

    def amend(self) -> None:
        """Correct a report, or bring that of a round that was given up."""
        round = int(self.generator.choice(list(self.told)))
        old, new = self.told[round], float(self.generator.integers(0, 5)) / 4
        self.learner.amend(self.made[round], old, new)
        self.oracle.amend(round, old, new)
        self.told[round] = new

    def play(self) -> None:
        while self.learner.round < self.case.n_rounds:
            self.decide()
            self.report()
            if self.told and self.generator.random() < self.case.amended:
                self.amend()


@pytest.mark.parametrize("is_late", [lambda _arm: True, lambda arm: arm == 2], ids=["all", "the best arm"])
@pytest.mark.parametrize("rates", [(0.02, 0.05, 0.1), (0.1, 0.12, 0.15)])
def test_reports_after_giving_up_raise_no_alarm(rates: tuple[float, ...], is_late: Callable[[int], bool]) -> None:
    """They are centred like others. If they are plain, and only the best arm is late, every such game has an alarm."""
    for seed in range(3):
        learner, chance = FTRL(3, seed=seed), np.random.default_rng([seed, 1])
        for _ in range(15_000):
            decision = learner.ask()
            loss = float(chance.random() > rates[decision.arm])
            if is_late(decision.arm):
                learner.give_up(decision)
                learner.amend(decision, None, loss)
            else:
                learner.tell(decision, loss)
        assert learner.status.plays == "means"
        assert learner.distribution()[2] > 0.5


def test_a_batch_of_reports_after_giving_up_is_no_silence() -> None:
    """They come sorted by arm, the best first. Each arm seems to be silent until its turn."""
    learner, chance, waiting = FTRL(3, seed=1), np.random.default_rng(2), list[Decision]()
    for t in range(30_000):
        waiting.append(learner.ask())
        learner.give_up(waiting[-1])
        if t % 3000 == 2999:
            for decision in sorted(waiting, key=lambda one: one.arm):
                learner.amend(decision, None, float(chance.random() > 0.7 - 0.2 * decision.arm))
            waiting = []
    assert learner.distribution()[0] > 0.9


@pytest.mark.parametrize("straggler", [False, True])
def test_a_favourite_that_stops_is_noticed_also_after_a_very_late_report(straggler: bool) -> None:
    learner, chance, draws = FTRL(3, seed=1), np.random.default_rng(2), list[int]()
    first = learner.ask()
    for t in range(24_000):
        decision = learner.ask()
        if t < 9000 or decision.arm:
            learner.tell(decision, float(chance.random() > 0.7 - 0.2 * decision.arm))
        if straggler and t == 5000:
            learner.tell(first, 0.0)
        draws.append(decision.arm)
    assert draws[8000:9000].count(0) > 900
    assert draws[-4000:].count(0) < 1600


@pytest.mark.parametrize("others", [1, 2])
@pytest.mark.parametrize("ends_with", ["tell", "amend", "earlier"])
def test_an_arm_is_silent_once_two_others_report(others: int, ends_with: str) -> None:
    """Its own reports come by each way that there is. They end its silence."""
    learner = FTRL(2, seed=1)
    for _ in range(50):
        learner.tell(learner.record(0, 0.5), 0.0)
        learner.tell(learner.record(1, 0.5), 0.9)
    kept = learner.record(0, 0.5)
    if ends_with == "amend":
        learner.give_up(kept)
    if ends_with == "earlier":
        learner.change_arms(add=1)
        learner.change_arms(retire=[2])
    learner.ask(400)
    learner.ask()
    for _ in range(others):
        learner.tell(learner.record(1, 0.5), 0.9)
    assert (learner.distribution()[0] > 0.6) == (others == 1)
    if ends_with == "amend":
        learner.amend(kept, None, 0.0)
    else:
        learner.tell(kept, 0.0)
    assert learner.distribution()[0] > 0.6


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", QUICK_CASES)
def test_it_equals_the_literal_transcription(name: str) -> None:
    """Every solve is computed from the list of events, with random batches, delays, orders, losses and amendments."""
    assert_it_equals_the_literal_transcription(name, seed=1)


def assert_it_equals_the_literal_transcription(name: str, seed: int) -> None:
    game = Game(CASES[name], seed)
    game.play()
    assert game.oracle.stage == CASES[name].ends_in
    assert game.learner._state.clock["means"]["stage"][0] == STAGES.index(game.oracle.stage)
    if name == "wave":
        assert game.plays == {"means", "bold"}
    elif name == "wave, quick to fear":
        assert game.plays == {"means", "bold", "careful"}
    elif name.startswith("silence"):
        assert game.has_been_silent
    elif name == "alarm on the move":
        assert game.plays >= {"means", "bold", "careful"}


def allowed(n_arms: int, n_rounds: int, backlog: int = 0) -> float:
    """10 sqrt(kt) + sqrt(D_t ln k) + k."""
    return 10 * math.sqrt(n_arms * n_rounds) + math.sqrt(backlog * math.log(n_arms)) + n_arms


@pytest.mark.parametrize("k", [2, 5, 1000])
@pytest.mark.parametrize("is_raised", [False, True])
def test_the_alarm_is_raised_just_where_it_is_said(k: int, is_raised: bool) -> None:
    """The first report has the centre 1/2. A loss of 0 with probability p makes a lead of 1 / 2p - 1/2."""
    learner = FTRL(k, Means(), seed=1)
    lead = allowed(k, 1) + (1e-9 if is_raised else -1e-9)
    learner.tell(learner.record(k - 1, 0.5 / (lead + 0.5)), 0.0)
    assert learner._state.clock["means"]["lead"][0] == pytest.approx(lead, rel=1e-12)
    assert learner.status.plays == "means"  # until the next solve
    learner.ask()
    assert learner.status.plays == ("careful" if is_raised else "means")


def test_the_alarm_allows_for_outstanding_rounds_and_for_every_report_in_turn() -> None:
    """Both reports come between two solves. The second takes the lead back, but the first has raised the alarm."""
    for excess, plays in ((-1e-6, "means"), (1e-6, "careful")):
        learner = FTRL(2, Means(), seed=1)
        learner.ask(3)
        lead = allowed(2, 5, backlog=0 + 1 + 2 + 3 + 4) + excess
        first, second = learner.record(0, 0.5 / (lead + 0.5)), learner.record(0, 0.5 / (lead + 0.5))
        learner.tell(first, 0.0)
        assert learner.certificate() <= 5
        learner.tell(second, 1.0)
        learner.ask()
        assert learner.status.plays == plays


def test_a_new_learner_plays_on_means() -> None:
    learner = FTRL(3, seed=1)
    assert (learner.status.plays, learner.status.alpha, learner.status.beta) == ("means", 0.0, 0.0)
    assert isinstance(learner.status.tuning, Means)
    assert learner.distribution() == pytest.approx(1 / 3)


def test_the_alarm_is_for_ever() -> None:
    learner = FTRL(2, Means(), seed=1)
    learner.tell(learner.record(0, 0.001), 0.0)
    for _ in range(200):
        decision = learner.ask()
        assert learner.status.plays == "careful"
        learner.tell(decision, 0.5)
    assert learner.status.alpha == pytest.approx(math.sqrt(200))  # of the last solve, counted from the alarm
    assert learner.status.beta == 0.0


def test_what_raises_the_alarm_is_forgotten_by_the_careful_policy() -> None:
    """It begins with the uniform distribution, and an open round from before the alarm teaches it nothing."""
    learner = FTRL(3, Means(), seed=1)
    early = learner.ask(4)
    learner.tell(learner.record(0, 0.001), 0.0)
    learner.ask()
    assert learner._state.policies[1, kernels.X] == pytest.approx(1 / 3)
    for decision in early:
        learner.tell(decision, 1.0)
    learner.amend(early[0], 1.0, 0.5)
    assert not learner._state.policies[:2, kernels.LOSSES].any()


class Played(NamedTuple):
    """A compiled game, and the learner that has played the same one by ask and tell."""

    game: CompiledMeans
    learner: FTRL
    decisions: list[Decision]


def play_both(
    tuning: Means, problem: lab.Problem, seed: int, *, alarm: int = 0, lost: float = 0.0, gives_up: bool = False
) -> Played:
    """Play a game in one block, or in two with an alarm between them.

    A share of the reports is lost. Then ask and tell never tell them, or give them up when they should come.
    """
    n, k, delays = problem.n_rounds, problem.n_arms, problem.draw_delays(seed)
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    is_lost = np.random.default_rng(seed).random((n, k)) < lost
    game, learner = CompiledMeans(tuning, problem, delays, seed), FTRL(k, tuning, seed=seed)
    if alarm:
        game.play(losses[:alarm], is_lost[:alarm])
        game.clock["means"]["is_over"] = 1
    game.play(losses[alarm:], is_lost[alarm:] if lost else None)
    due: dict[int, list[int]] = {}
    decisions: list[Decision] = []
    for t, delay in enumerate(delays.tolist(), 1):
        if t == alarm + 1 > 1:
            learner._state.clock["means"]["is_over"] = 1
        decisions.append(learner.ask())
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            arm = decisions[s - 1].arm
            if not is_lost[s - 1, arm]:
                learner.tell(s, float(losses[s - 1, arm]))
            elif gives_up:
                learner.give_up(s)
    return Played(game, learner, decisions)


def assert_same_game(played: Played) -> None:
    """Decisions, policies, and what is known about the world, bit for bit."""
    game, learner, decisions = played
    assert game.arms.tolist() == [decision.arm for decision in decisions]
    assert game.probabilities.tolist() == [decision.probability for decision in decisions]
    np.testing.assert_array_equal(game.policies[:, : kernels.OPEN], learner._state.policies[:, : kernels.OPEN])
    assert game.clock["shadow"].tolist() == learner._state.clock["shadow"].tolist()
    for name in set(kernels.MEANS.names or ()) - {"lost", "over_open", "over_round"}:  # for the certificates only
        assert game.clock["means"][name].tolist() == learner._state.clock["means"][name].tolist(), name


@pytest.mark.parametrize("delays", ["none", "geometric", "lost", "bursts", "unbalanced"])
@pytest.mark.parametrize("stage", STAGES)
def test_compiled_and_interpreted_agree_bit_for_bit_in_every_stage(stage: str, delays: str) -> None:
    losses = lab.Bernoulli(gap=0.2) if stage == "means" else lab.Wave(half_period=40)
    problem = lab.Problem(losses, DELAYS[delays], n_arms=4, n_rounds=900)
    played = play_both(Means(switch_threshold=0.2), problem, 3, alarm=500 if stage == "alarm" else 0)
    assert STAGES[int(played.game.clock["means"]["stage"][0])] == stage
    assert_same_game(played)


@pytest.mark.parametrize("k", [2, 70])
def test_compiled_and_interpreted_agree_when_reports_never_come(k: int) -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.2), lab.Geometric(20.0), n_arms=k, n_rounds=900 if k == 2 else 250)
    game, learner, decisions = play_both(Means(), problem, 4, lost=0.3)
    assert learner.status.plays == "means"  # a lost round counts in D_t for ever, which the other stages would see
    assert learner.outstanding > 0.25 * learner.round
    assert game.arms.tolist() == [decision.arm for decision in decisions]
    assert game.probabilities.tolist() == [decision.probability for decision in decisions]
    np.testing.assert_array_equal(game.policies[:, : kernels.OPEN], learner._state.policies[:, : kernels.OPEN])


def test_compiled_and_interpreted_agree_in_every_stage_when_lost_rounds_are_given_up() -> None:
    """A compiled game stops counting a lost round when its report should have come."""
    problem = lab.Problem(lab.Wave(half_period=40), lab.Geometric(20.0), n_arms=3, n_rounds=900)
    for alarm, stage in ((0, "moving"), (600, "alarm")):
        played = play_both(Means(switch_threshold=0.2), problem, 3, lost=0.2, alarm=alarm, gives_up=True)
        assert STAGES[int(played.game.clock["means"]["stage"][0])] == stage
        assert_same_game(played)


@pytest.mark.parametrize("delays", ["fixed", "geometric", "pareto", "lost", "bursts", "unbalanced"])
@pytest.mark.parametrize("stage", STAGES)
def test_it_cannot_see_what_has_not_arrived(delays: str, stage: str) -> None:
    """Two games that differ only in losses not reported before round 600 are the same game up to there."""
    k, n, t = 4, 1200, 600
    losses = lab.Bernoulli(gap=0.2) if stage == "means" else lab.Wave(half_period=30)
    problem = lab.Problem(losses, DELAYS[delays], k, n)
    waits = problem.draw_delays(5)
    matrix = np.vstack(list(problem.loss_blocks(5, waits)))
    unseen = np.arange(n) + waits >= t - 1  # its report comes at the end of round t - 1 (from 0) or later
    assert unseen[: t - 1].any()
    others = np.where(unseen[:, None], 1 - matrix, matrix)
    first, second = (half_played(problem, waits, one, t, stage) for one in (matrix, others))
    assert first.arms[:t].tolist() == second.arms[:t].tolist()
    for name in ("probabilities", "bold_advantages", "centres"):
        np.testing.assert_array_equal(getattr(first, name)[:t], getattr(second, name)[:t])
    first.play(matrix[t:])
    second.play(others[t:])
    assert first.arms.tolist() != second.arms.tolist()  # and later they made a difference


def half_played(
    problem: lab.Problem, waits: NDArray[np.int64], losses: NDArray[np.float64], t: int, stage: str
) -> CompiledMeans:
    game = CompiledMeans(Means(switch_threshold=0.1), problem, waits, 5)
    game.play(losses[: t // 2])
    if stage == "alarm":
        game.clock["means"]["is_over"] = 1
    game.play(losses[t // 2 : t])
    assert STAGES[int(game.clock["means"]["stage"][0])] == stage
    return game


def test_an_open_decision_does_not_depend_on_its_arm() -> None:
    """The proof needs it. Learners that have drawn different arms without reports have the same distribution."""
    learners = [FTRL(4, Means(), seed=seed) for seed in range(5)]
    for t in range(200):
        first, *others = learners
        for other in others:
            assert other.distribution().tolist() == first.distribution().tolist()
        for learner in learners:
            learner.ask()
            learner.tell(learner.record(t % 4, 0.25), float(t % 3 == 0))
    assert len({learner.ask(20)[0].arm for learner in learners}) > 1


def stage_of(losses: lab.Losses, delays: lab.Delays, seed: int, k: int = 4, n: int = 3000) -> str:
    """The stage in which a game ends."""
    problem = lab.Problem(losses, delays, k, n)
    waits = problem.draw_delays(seed)
    game = CompiledMeans(Means(), problem, waits, seed)
    for block in problem.loss_blocks(seed, waits):
        game.play(block)
    return STAGES[int(game.clock["means"]["stage"][0])]


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("losses", LOSSES)
def test_ordinary_problems_raise_no_alarm(losses: str, delays: str) -> None:
    assert stage_of(LOSSES[losses], DELAYS[delays], 1) != "alarm"


@pytest.mark.parametrize("k", [2, 10, 300, 3000])
def test_many_arms_raise_no_alarm(k: int) -> None:
    """One report of a rare arm weighs up to k."""
    for seed in range(4):
        for losses in (lab.Bernoulli(gap=0.3), lab.Bernoulli(gap=0.01)):
            assert stage_of(losses, lab.Geometric(20.0), seed, k, 600) != "alarm"


def test_still_worlds_are_played_on_means() -> None:
    """At most one game in twenty is handed over by chance."""
    worlds = [lab.Bernoulli(gap=0.2), lab.Bernoulli(gap=0.5), lab.Bernoulli(gap=0.0)]
    stages = [stage_of(losses, DELAYS[delays], seed) for losses in worlds for delays in DELAYS for seed in range(4)]
    assert stages.count("means") >= 0.95 * len(stages)


@pytest.mark.parametrize("delays", ["none", "fixed", "geometric", "bursts", "lost"])
def test_moving_worlds_are_handed_over(delays: str) -> None:
    for seed in range(3):
        for losses in (lab.Wave(half_period=60), lab.Wave(half_period=150), lab.Comeback(after=0.3)):
            assert stage_of(losses, DELAYS[delays], seed) == "moving"


@pytest.mark.parametrize("name", ["boldness", "scale", "switch_threshold"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "2", True])
def test_odd_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a positive finite number"):
        Means(**{name: value})  # type: ignore[arg-type]


def test_before_an_alarm_the_certificate_is_that_of_the_delays() -> None:
    """What is allowed, and 1 for each round that the last solve did not know. bounds.certificate says the same."""
    generator = np.random.default_rng(6)
    for _ in range(100):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        learner, n = FTRL(k, Means(), seed=1), delays.size
        play(learner, delays.tolist(), np.full((n, k), 0.5))
        known = np.count_nonzero(np.arange(1, n + 1) + delays < n)
        literal = allowed(k, n, learner.status.backlog) + n - known
        assert uncapped_certificate(learner) == pytest.approx(literal, rel=1e-11)
        assert learner.certificate() == min(n, uncapped_certificate(learner))
        assert bounds.certificate(k, delays, Means()) == pytest.approx(min(n, literal), rel=1e-11)
        assert bounds.certificate(k, delays) == bounds.certificate(k, delays, Means())


def test_between_the_report_that_raises_the_alarm_and_the_next_solve() -> None:
    """The lead counts once, and every round outside it costs 1."""
    learner = FTRL(2, Means(), seed=1, refresh=1000)
    early = [learner.ask() for _ in range(300)]
    for decision in early[:100]:
        learner.tell(decision, 0.5)
    learner.tell(learner.record(0, 0.0005), 0.0)  # it makes a lead of about 1 / 2p
    lead = float(learner._state.clock["means"]["lead"][0])
    assert lead == pytest.approx(999.5, rel=1e-9)
    assert uncapped_certificate(learner) == pytest.approx(lead + 301 - 101, rel=1e-11)
    learner.ask(50)
    for decision in early[100:]:
        learner.tell(decision, 0.5)  # too late for the lead
    assert uncapped_certificate(learner) == pytest.approx(lead + 351 - 101, rel=1e-11)


def worst_totals(k: int, delays: NDArray[np.int64], tuning: Means) -> list[float]:
    """The largest possible certificate without an alarm, and with one in every possible round. In quadratic time."""
    n, rates = delays.size, schedule(tuning, k, delays)
    arrives = np.arange(1, n + 1) + np.minimum(delays, n)
    totals: list[float] = [allowed(k, n, int(rates.backlog[-1])) + np.count_nonzero(arrives >= n)]
    for sigma in range(2, n + 1):
        before = sigma - 1
        step = max(float(k), 10 * math.sqrt(k * before))  # the rarest draw, by the floor
        outside = np.count_nonzero(arrives[:before] >= before)  # unknown to the last decision before the alarm
        careful = fresh_certificate(k, delays[before:], rates.backlog[before:] - rates.backlog[before], tuning)
        totals.append(allowed(k, before, int(rates.backlog[before - 1])) + step + outside + careful)
    return totals


def fresh_certificate(k: int, delays: NDArray[np.int64], backlog: NDArray[np.int64], tuning: Means) -> float:
    """The careful certificate of the rounds since an alarm, with D_t counted from there."""
    n = delays.size
    alpha, beta = np.sqrt(np.arange(1, n + 1)), tuning.scale * np.sqrt(backlog / math.log(k))
    drift = np.append(0.0, np.cumsum(np.minimum(1.0, np.vectorize(literal_step)(k, alpha, beta))))
    rounds = np.arange(1, n + 1)
    waiting = drift[np.minimum(rounds + np.minimum(delays, n), n)] - drift[rounds]
    charges = np.minimum(1.0, math.sqrt(k) / alpha + waiting)
    return float(2 * alpha[-1] * (math.sqrt(k) - 1) + beta[-1] * math.log(k) + charges.sum())


def long_delays(generator: np.random.Generator) -> NDArray[np.int64]:
    """Up to 300 rounds. Many of the kinds that make the worst case."""
    n = int(generator.integers(1, 301))
    match generator.integers(4):
        case 0:
            return np.full(n, int(generator.integers(0, n + 1)))
        case 1:
            size = int(generator.integers(1, n + 1))
            return size - 1 - np.arange(n) % size  # bursts
        case 2:
            return np.zeros(n, np.int64)
        case _:
            return np.resize(random_delays(generator), n)


def assert_the_worst_case_is_above_every_certificate(sequences: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for _ in range(sequences):
        k, delays = int(generator.integers(2, 51)), long_delays(generator)
        for tuning in (Means(), Means(scale=0.7)):
            assert max(worst_totals(k, delays, tuning)) <= bounds.means_worst_case(k, delays, tuning) + 1e-9


def test_the_worst_case_in_closed_form_is_above_every_certificate() -> None:
    """tests/system/learner tries more sequences."""
    assert_the_worst_case_is_above_every_certificate(sequences=30, seed=9)


@pytest.mark.parametrize(("delays", "losses"), QUICK)
def test_the_mean_certificates_are_at_least_the_mean_regret(losses: str, delays: str) -> None:
    assert_certificates_above_regret(losses, delays)


def assert_certificates_above_regret(losses: str, delays: str) -> None:
    """On average over the seeds. The measured one by more than three standard errors."""
    problem = lab.Problem(LOSSES[losses], DELAYS[delays], n_arms=4, n_rounds=600)
    seeds = 60 if losses == "comeback" else 6  # rare draws with a large weight decide its games
    certified = lab.certify(Means(), problem, range(seeds), checkpoints=[100])
    margin = certified.measured - certified.regret
    assert (margin.mean(axis=0) > 3 * margin.std(axis=0, ddof=1) / math.sqrt(seeds)).all()  # and not by chance
    assert (certified.proven.mean(axis=0) >= certified.regret.mean(axis=0)).all()


def test_an_arm_whose_rounds_are_all_given_up_is_average() -> None:
    """Nobody knows anything about it, so it is neither perfect nor bad."""
    for k in (2, 5):
        learner = FTRL(k, Means(), seed=2)
        for _ in range(2000):
            decision = learner.ask()
            if decision.arm == 0:
                learner.give_up(decision)
            else:
                learner.tell(decision, 0.5)
        assert learner.distribution()[0] == pytest.approx(1 / k, rel=0.1)
        assert learner.status.plays == "means"


@pytest.mark.parametrize("gives_up", [False, True])
def test_the_better_arm_wins_although_the_worse_one_loses_reports(gives_up: bool) -> None:
    """With plain estimates a lost report counts as a perfect one. On means it does not count."""
    generator = np.random.default_rng(3)
    learner = FTRL(2, Means(), seed=3)
    for _ in range(3000):
        decision = learner.ask()
        loss = float(generator.random() < (0.4 if decision.arm == 0 else 0.5))
        if decision.arm == 0 or generator.random() < 0.7:
            learner.tell(decision, loss)
        elif gives_up:
            learner.give_up(decision)
    assert learner.distribution()[0] > 0.9
    assert learner.status.plays == "means"


@pytest.mark.parametrize("k", [2, 4, 10])
def test_an_arm_that_never_reports_gets_no_more_than_its_share(k: int) -> None:
    generator = np.random.default_rng(k)
    learner = FTRL(k, Means(), seed=2)
    for _ in range(2000):
        decision = learner.ask()
        if decision.arm:
            learner.tell(decision, float(generator.random() < 0.3 + 0.4 * decision.arm / k))
    assert learner.distribution()[0] <= 1 / k + 0.1


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("is_best", [False, True])
@pytest.mark.parametrize("delay", [0, 50])
def test_an_arm_that_stops_reporting_loses_its_lead(k: int, is_best: bool, delay: int) -> None:
    """It has reported well for long, or with luck a few times. Once it reports again, its reports count again."""
    generator, learner, due = np.random.default_rng(90 + k), FTRL(k, Means(), seed=3), {}
    last = 600 if is_best else 4
    for t in range(8000):
        decision = learner.ask()
        due[t + delay] = decision
        arrived = due.pop(t, None)
        if arrived is not None and (arrived.arm or t < last + delay):
            rate = 0.5 + 0.1 * (arrived.arm > 1) if arrived.arm else 0.1
            learner.tell(arrived, float(generator.random() < rate))
    x = learner.distribution()
    assert x[0] <= 1 / k + 0.01
    assert x[1] >= x[0]
    if is_best:
        learner.tell(next(due[t] for t in sorted(due) if due[t].arm == 0) if delay else learner.record(0, 0.5), 0.0)
        assert learner.distribution()[0] > 0.5


@pytest.mark.parametrize("refresh", [1, 1000])
@pytest.mark.parametrize("size", [1, 700])
def test_late_and_bundled_reports_are_no_silence(refresh: int, size: int) -> None:
    """Nobody reports during an outage, and then all do. The best arm stays the favourite."""
    learner, generator = FTRL(3, Means(), seed=5, refresh=refresh), np.random.default_rng(50)
    waiting: list[Decision] = []
    for t in range(0, 12_000, size):
        waiting += learner.ask(size)
        if not 6000 <= t < 9000:
            for decision in waiting:
                learner.tell(decision, float(generator.random() < 0.2 + 0.2 * decision.arm))
            waiting = []
        if t >= 4000:
            assert learner.distribution()[0] > 0.7


def test_the_estimates_are_unbiased_though_an_arm_loses_reports_by_chance() -> None:
    """Which report is lost does not depend on the loss. So the mean of what is left is right."""
    generator = np.random.default_rng(4)
    learner = FTRL(2, Means(), seed=4)
    for _ in range(4000):
        decision = learner.record(int(generator.integers(2)), 0.5)
        if generator.random() < 0.5:
            learner.tell(decision, float(generator.random() < 0.3))
        else:
            learner.give_up(decision)
    counts, sums = learner._state.policies[kernels.ON_MEANS, COUNT : SUM + 1]
    assert (np.abs(sums / counts - 0.3) < 4.5 * math.sqrt(0.21 / 1000)).all()
