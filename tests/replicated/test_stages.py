"""Copies of a learner on means agree in each of its stages, however they fold their journal."""

import math
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from belated import FTRL, Decision, kernels
from belated.kernels.means import SUM
from belated.learner import changes
from belated.learner.arms import Arms
from belated.replicated.lag import DrawContext
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import Means, Shadow, Tuning
from tests.support.oracles import slow_argmin

STAGES = ("means", "shadow", "careful")
WAVE = 40  # decisions with the same losses, which come in runs
STEPS = 300


class Open(NamedTuple):
    """A decision without a report."""

    seq: int
    arm: int  # of all arms there ever were
    probability: float


class Written(NamedTuple):
    """An event of the journal and what it does to a copy."""

    seq: int
    fold: Callable[[SharedLearner], None]


def stage_of(shared: SharedLearner) -> str:
    return STAGES[int(shared.learner._state.clock["means"]["stage"][0])]


def state(shared: SharedLearner) -> bytes:
    return msgspec.msgpack.encode(shared.state())


class World:
    """A journal, written by copies that lag behind it, while everything happens that can happen to a learner."""

    def __init__(self, seed: int, tuning: Tuning, *, stage: str, provisional: float | None = None) -> None:
        self.generator, self.stage = np.random.default_rng(seed), stage
        self._tuning, self._provisional = tuning, provisional
        self.copies = [self.blank() for _ in range(3)]
        self.journal: list[Written] = []
        self.open: list[Open] = []
        self.told: dict[Open, float | None] = {}  # by decision, its loss, or None if it was given up
        self.arms, self.born, self.changed, self.decided = [0, 1, 2], 3, 0, 0
        self.crossed = 0  # decisions that were entered in a later stage than they were drawn in
        self.sizes, self.can_come_back = [1, 1, 3], True

    def blank(self) -> SharedLearner:
        return SharedLearner(FTRL(3, self._tuning, seed=0, provisional=self._provisional), 0)

    def write(self, fold: Callable[[SharedLearner, int], None]) -> int:
        seq = len(self.journal) + 1
        self.journal.append(Written(seq, lambda shared: fold(shared, seq)))
        return seq

    def catch_up(self, shared: SharedLearner, seen: int, until: int) -> int:
        for event in self.journal[seen:until]:
            event.fold(shared)
        return max(seen, until)

    def live(self, steps: int, *, lag: int, alarm_at: int = 0, change: float = 0.02) -> None:
        seen = [0] * len(self.copies)
        for step in range(steps):
            number, last = int(self.generator.integers(len(self.copies))), len(self.journal)
            until = max(self.changed, last - int(self.generator.integers(lag + 1)))
            seen[number] = self.catch_up(self.copies[number], seen[number], until)
            if 0 < alarm_at <= step < alarm_at + 8:
                self.be_lucky(self.copies[number], seen[number])
            elif self.generator.random() < change:
                self.change_arms()
            elif self.open and self.generator.random() < 0.5:
                self.report()
            else:
                self.decide(self.copies[number], seen[number], int(self.generator.choice(self.sizes)))
        for number, copy in enumerate(self.copies):
            self.catch_up(copy, seen[number], len(self.journal))

    def decide(self, shared: SharedLearner, seen: int, size: int) -> None:
        context, before = shared.draw_context(), stage_of(shared)
        for _ in range(size):
            index = int(self.generator.choice(context.x.size, p=context.x / context.x.sum()))
            self.enter(context, seen, index, float(context.x[index]), before)

    def enter(self, context: DrawContext, seen: int, index: int, probability: float, before: str) -> None:
        given = seen, [index], [probability], context.drawn, [float(context.bold_advantages[index])]

        def fold(shared: SharedLearner, seq: int) -> None:
            shared.enter([seq], *given)
            self.crossed += shared is self.copies[0] and stage_of(shared) != before

        self.open.append(Open(self.write(fold), self.arms[index], probability))
        self.decided += 1

    def be_lucky(self, shared: SharedLearner, seen: int) -> None:
        """Draw an arm that is hardly ever drawn, and find it perfect. The alarm must think that it always was."""
        context = shared.draw_context()
        rarely = 0.1 / math.sqrt(context.x.size * (context.drawn.round + 1))  # the floor
        self.enter(context, seen, 1, rarely, stage_of(shared))
        self.tell(self.open.pop(), 0.0)

    def report(self) -> None:
        """Report the oldest decision or any, give one up, or correct what was said before."""
        kind, loss = self.generator.random(), self.loss()
        if kind < 0.1 and self.told:
            one = list(self.told)[int(self.generator.integers(len(self.told)))]
            self.amend(one, loss)
            return
        one = self.open.pop(0 if kind < 0.8 else int(self.generator.integers(len(self.open))))
        if kind < 0.2:
            self.told[one] = None
            self.write(lambda shared, seq: shared.give_up(seq, one.seq))
        else:
            self.tell(one, loss)

    def loss(self) -> float:
        if self.stage == "shadow":
            return float(self.decided // WAVE % 2)
        return float(self.generator.random())

    def tell(self, one: Open, loss: float) -> None:
        self.told[one] = loss
        self.write(lambda shared, seq: shared.tell(seq, one.seq, loss))

    def amend(self, one: Open, new: float) -> None:
        if one.arm in self.arms:
            index, old = self.arms.index(one.arm), self.told[one]
            self.write(lambda shared, seq: shared.amend(seq, one.seq, index, one.probability, old, new))
            self.told[one] = new

    def change_arms(self) -> None:
        """Retire an arm or add one, sometimes one that was there before."""
        now, staying = self.arms, list(self.arms)
        if len(now) > 2 and self.generator.random() < 0.5:
            staying.remove(int(self.generator.choice(now)))
        else:
            back = [arm for arm in range(self.born) if arm not in now and self.can_come_back]
            staying.append(back[0] if back and self.generator.random() < 0.5 else self.born)
            self.born = max(self.born, staying[-1] + 1)
        self.arms = sorted(staying)
        moved = {index: self.arms.index(arm) for index, arm in enumerate(now) if arm in self.arms}
        size = len(self.arms)
        self.changed = self.write(lambda shared, seq: shared.change_arms(seq, size, moved))


def lived(stage: str, seed: int, *, change: float = 0.0, provisional: float | None = None) -> World:
    world = World(seed, Means(), stage=stage, provisional=provisional)
    world.live(STEPS, lag=15, alarm_at=100 if stage == "careful" else 0, change=change)
    return world


@pytest.mark.parametrize("stage", STAGES)
def test_the_world_leads_to_its_stage_while_others_still_draw_from_the_one_before(stage: str) -> None:
    worlds = [lived(stage, seed) for seed in range(3)]
    assert [stage_of(world.copies[0]) for world in worlds] == [stage] * 3
    assert (sum(world.crossed for world in worlds) > 0) == (stage != "means")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("change", "provisional"), [(0.0, None), (0.04, None), (0.04, 1.0)])
def test_copies_agree_in_one_go_in_pieces_and_from_snapshots(
    stage: str, change: float, provisional: float | None
) -> None:
    world = lived(stage, 1, change=change, provisional=provisional)
    expected = state(world.copies[0])
    assert {state(copy) for copy in world.copies} == {expected}
    at_once, restored = world.blank(), world.blank()
    world.catch_up(at_once, 0, len(world.journal))
    assert state(at_once) == expected
    for event in world.journal:  # a stop and a start after every event
        event.fold(restored)
        before = state(restored)
        restored = SharedLearner.restore(msgspec.msgpack.decode(before))
        assert state(restored) == before
    assert state(restored) == expected
    assert np.isfinite(at_once.learner.distribution()).all()
    assert len(at_once._waiting) == at_once.learner.outstanding == len(world.open)


@pytest.mark.parametrize("stage", ["means", "shadow"])
def test_until_the_alarm_the_charges_are_those_of_the_shadow(stage: str) -> None:
    """So what the alarm allows follows from the proof for stale decisions of docs/theory/certificate.md."""
    world = lived(stage, 2)
    ours, theirs = world.copies[0], SharedLearner(FTRL(3, Shadow(), seed=0), 0)
    for event in world.journal:
        event.fold(theirs)
    clocks = [shared.learner._state.clock[0] for shared in (ours, theirs)]
    assert not clocks[1]["shadow"]["alarm"]
    names = ("round", "backlog", "counted", "drift", "charge", "charged", "base", "capped", "peak_uncharged")
    assert [clocks[0][name] for name in names] == [clocks[1][name] for name in names]


def test_bold_advantages_belong_to_the_stage_of_the_shadow() -> None:
    for stage in ("means", "careful"):
        assert np.abs(lived(stage, 3).copies[0].draw_context().bold_advantages).max() < 1e-12
    shared = lived("shadow", 3).copies[0]
    x, bold_advantages, drawn = shared.draw_context()
    means, policies = shared.learner._state.clock["means"][0], shared.learner._state.policies
    alpha = math.sqrt(drawn.round + 1 - means["start"])
    beta = Means().scale * math.sqrt((drawn.backlog + drawn.counted - means["start_backlog"]) / math.log(3))
    estimates = policies[0, 0] - min(0.0, policies[0, 0].min())
    bold, careful = (slow_argmin(estimates, alpha, rate) for rate in (0.0, beta))
    np.testing.assert_allclose(bold_advantages, (bold - careful) / x, rtol=1e-7, atol=1e-12)
    assert np.abs(bold_advantages).max() > 1e-3


def test_an_alarm_is_paid_for_by_those_who_had_not_heard_it() -> None:
    """Each decision drawn before it costs 1 more. Those drawn after it have the rates since then."""
    world = lived("means", 4)
    shared, last = world.copies[0], len(world.journal)
    before = shared.draw_context().drawn
    shared.enter([last + 1], last, [1], [1e-6], None)
    shared.tell(last + 2, last + 1, 0.0)
    shared.enter([last + 3], last + 2, [0], [0.5], None)
    assert stage_of(shared) == "careful"
    charge = shared.learner._state.clock["charge"][0]
    shared.enter([last + 4, last + 5], last, [0, 1], [0.5, 0.5], before, [0.0, 0.0])
    assert shared._lag is not None
    assert shared._lag.surcharge == 1
    assert shared.learner._state.clock["charge"][0] >= charge + 2
    drawn, start = shared.draw_context().drawn, int(shared.learner._state.clock["means"]["start"][0])
    shared.enter([last + 6], last + 5, [0], [0.5], None)
    shared.enter([last + 7], last + 6, [0], [0.5], None)
    shared.tell(last + 8, last + 6, 0.5)
    shared.enter([last + 9], last + 5, [0], [0.5], drawn, [0.0])
    assert shared._lag.surcharge == 0
    assert shared._lag.alpha == math.sqrt(drawn.round + 1 - start) < 3


def test_the_first_decision_of_a_stage_can_be_amended() -> None:
    """A correction joins the estimates of the stage only if the report did."""
    world = lived("shadow", 6)
    shared, last = world.copies[0], len(world.journal)
    shared.change_arms(last + 1, 3, {0: 0, 1: 1, 2: 2})
    shared.enter([last + 2], last + 1, [0], [0.5], None)
    shared.learner._state.clock["means"]["is_moving"] = 1  # the next solve begins the stage
    shared.enter([last + 3], last + 2, [0], [0.5], None)
    assert stage_of(shared) == "shadow"
    for number in (2, 3):
        shared.tell(last + 2 + number, last + number, 0.5)
    for decision, expected in ((last + 2, 0.0), (last + 3, 1.0)):
        before = shared.learner._state.policies[0, 0, 0]
        shared.amend(shared.last + 1, decision, 0, 0.5, 0.5, 1.0)
        assert shared.learner._state.policies[0, 0, 0] - before == expected


@pytest.mark.parametrize("old", [None, 0.25], ids=["given up", "reported"])
def test_an_arm_that_comes_back_has_no_past_to_amend(old: float | None) -> None:
    """Otherwise a correction would change the mean of decisions that it does not belong to."""
    shared = SharedLearner(FTRL(3, Means(), seed=0), 0)
    shared.enter([1, 2], 0, [0, 1], [0.5, 0.5], None)
    for seq, decision in ((3, 1), (4, 2)):
        shared.give_up(seq, decision) if old is None else shared.tell(seq, decision, old)
    shared.change_arms(5, 2, {0: 0, 2: 1})  # arm 1 leaves and comes back
    shared.change_arms(6, 3, {0: 0, 1: 2})
    shared.enter([7], 6, [1], [0.5], None)
    rows = shared.learner._state.policies[kernels.ON_MEANS]
    before = rows.copy()
    shared.amend(8, 2, 1, 0.5, old, 0.75)
    np.testing.assert_array_equal(rows, before)
    shared.amend(9, 1, 0, 0.5, old, 0.75)  # arm 0 was always there
    assert rows[SUM, 0] == before[SUM, 0] + 0.75 - (old or 0.0)
    shared.tell(10, 7, 0.5)
    SharedLearner.restore(shared.state())


class Plain:
    """A single learner that gets the same events as a shared one, by its own methods."""

    def __init__(self) -> None:
        self.learner, self._rounds = FTRL(3, Means(), seed=0), dict[int, int]()

    def enter(self, seqs: list[int], _seen: int, arms: list[int], probabilities: list[float], *_rest: object) -> None:
        self._rounds[seqs[0]] = self.learner.record(arms[0], probabilities[0]).round

    def tell(self, _seq: int, decision: int, loss: float) -> None:
        self.learner.tell(self._rounds[decision], loss)

    def give_up(self, _seq: int, decision: int) -> None:
        self.learner.give_up(self._rounds[decision])

    def amend(self, _seq: int, decision: int, arm: int, probability: float, old: float | None, new: float) -> None:
        self.learner.amend(Decision(self._rounds[decision], arm, probability), old, new)

    def change_arms(self, _seq: int, n_arms: int, moved: dict[int, int]) -> None:
        changes.change(self.learner._state, Arms(n_arms), moved)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("change", [0.0, 0.04])
def test_one_copy_that_is_never_behind_is_the_learner_itself(stage: str, change: float) -> None:
    """Sharing does not change what a learner does with the same decisions and reports, bit for bit."""
    world, plain = World(5, Means(), stage=stage), Plain()
    world.copies, world.sizes, world.can_come_back = [world.blank()], [1], False
    world.live(STEPS, lag=0, alarm_at=100 if stage == "careful" else 0, change=change)
    for event in world.journal:
        event.fold(plain)  # type: ignore[arg-type]
    assert change or stage_of(world.copies[0]) == stage
    assert world.copies[0].learner.snapshot() == plain.learner.snapshot()
