"""Arms come and go on a running learner. Nothing that was learned or that still waits is lost."""

import json
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, Decision, kernels
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.kernels.means import COUNT, MISSING, SUM
from belated.learner.changes import HEAD_START
from belated.tunings import Advanced, Means, Shadow, Simple, Tuning
from tests.learner.test_certificate import run
from tests.learner.test_interruptions import interrupted_anywhere
from tests.support.catalogue import TUNINGS, Own
from tests.support.oracles import Known, literal_measured, uncapped_certificate

EVERY = pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
KINDS = pytest.mark.parametrize("tuning", [Means(), Shadow(), Advanced(), Simple()], ids=repr)


def means_of(learner: FTRL[Any]) -> NDArray[np.float64]:
    """Counts, sums, recent counts and sums, and missing reports of the arms."""
    return np.array(learner._state.policies[kernels.ON_MEANS, COUNT : MISSING + 1])


def played(arms: Any = 3, tuning: Tuning | None = None, rounds: int = 30, **settings: Any) -> tuple[Any, list[Any]]:
    """A learner and its decisions. Every third one waits."""
    learner: Any = FTRL(arms, tuning, seed=4, **settings)
    decisions = [learner.ask() for _ in range(rounds)]
    for decision in decisions:
        if decision.round % 3:
            learner.tell(decision, decision.round % 7 / 7)
    return learner, decisions


@EVERY
def test_arms_come_and_go_by_name(tuning: Tuning) -> None:
    learner = FTRL(["blue", "green"], tuning, seed=1)
    learner.ask(20)
    assert learner.change_arms(add=["red", "black"], retire=["blue"]) == ("green", "red", "black")
    assert learner.status.arms == ("green", "red", "black")
    assert learner.n_arms == 3
    assert {decision.arm for decision in learner.ask(200)} == {"green", "red", "black"}
    assert learner.change_arms(retire=["red"]) == ("green", "black")
    assert {learner.ask().arm for _ in range(100)} == {"green", "black"}
    assert "arms=['green', 'black']" in repr(learner)


@EVERY
def test_arms_come_and_go_by_number_and_a_number_never_comes_back(tuning: Tuning) -> None:
    learner = FTRL(3, tuning, seed=1)
    learner.ask(20)
    assert learner.change_arms(add=2, retire=[0]) == (1, 2, 3, 4)
    assert {decision.arm for decision in learner.ask(300)} == {1, 2, 3, 4}
    assert learner.change_arms(retire=[4]) == (1, 2, 3)
    assert learner.change_arms(add=1) == (1, 2, 3, 5)
    own = tuning if isinstance(tuning, Own) else None
    learner = FTRL.restore(json.loads(json.dumps(learner.snapshot())), own)
    assert learner.change_arms(retire=[5], add=1) == (1, 2, 3, 6)
    assert {learner.ask().arm for _ in range(200)} == {1, 2, 3, 6}
    assert "arms=[1, 2, 3, 6]" in repr(learner)


def test_a_number_does_not_come_back_when_the_rest_looks_untouched() -> None:
    learner = FTRL(2, seed=1)
    assert learner.change_arms(add=1) == (0, 1, 2)
    assert learner.change_arms(retire=[2]) == (0, 1)
    learner = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    assert learner.change_arms(add=1) == (0, 1, 3)


@KINDS
def test_rounds_keep_counting(tuning: Tuning) -> None:
    learner, rounds = FTRL(3, tuning, seed=1, refresh=4), []
    for _ in range(5):
        rounds += [learner.ask().round, *(decision.round for decision in learner.ask(6))]
        rounds.append(learner.record(learner.status.arms[0], 0.5).round)  # type: ignore[arg-type]
        learner.change_arms(add=1)
        assert learner.round == len(rounds)
    assert rounds == list(range(1, 41))
    assert learner.outstanding == 40


@KINDS
def test_decisions_from_before_a_change_can_be_told_given_up_and_amended(tuning: Tuning) -> None:
    learner, decisions = played(["a", "b", "c"], tuning)
    waiting = decisions[2::3]
    learner.change_arms(add=["d"])
    learner.ask(5)
    learner.change_arms(retire=["d"])
    assert learner.outstanding == 10 + 5
    learner.tell(waiting[0], 0.5)
    learner.tell(waiting[1].round, reward=0.5)
    learner.give_up(waiting[2])
    learner.give_up(waiting[3].round)
    assert learner.outstanding == 6 + 5
    learner.amend(waiting[0], 0.5, 0.7)
    learner.amend(waiting[2], None, 0.2)
    learner.amend(decisions[0], 1 / 7, 0.9)
    with pytest.raises(InvalidInput, match="round 15 cannot be amended: it still waits for its report; use tell"):
        learner.amend(waiting[4], 0.5, 0.7)
    assert learner.outstanding == 6 + 5


@KINDS
def test_duplicate_and_unknown_rounds_are_refused_across_stretches(tuning: Tuning) -> None:
    learner, decisions = played(3, tuning)
    learner.change_arms(retire=[1])
    later = learner.ask(4)
    learner.change_arms(add=1)
    learner.tell(decisions[2], 0.5)
    learner.give_up(later[0])
    before = json.dumps(learner.snapshot())
    for told in (decisions[0], decisions[2], later[0], later[0].round):
        for repeat in (learner.give_up, lambda one: learner.tell(one, 0.5)):
            with pytest.raises(DuplicateReport):
                repeat(told)
    for unknown in (0, -3, 35, 10**9):
        for ask_about in (learner.give_up, lambda one: learner.tell(one, 0.5)):
            with pytest.raises((UnknownRound, InvalidInput)):
                ask_about(unknown)
    with pytest.raises(UnknownRound):
        learner.tell(35, 0.5)  # the next round, which nobody has asked for
    with pytest.raises(UnknownRound):
        learner.amend(Decision(35, 0, 0.5), 0.5, 0.6)
    assert json.dumps(learner.snapshot()) == before


@KINDS
def test_a_report_of_a_retired_arm_is_accepted_and_teaches_nothing(tuning: Tuning) -> None:
    learner, decisions = played(["a", "b", "c"], tuning)
    learner.change_arms(retire=["b"])
    learner.ask(3)
    before, policies = learner.snapshot(), learner._state.policies.copy()
    of_b = [decision for decision in decisions if decision.arm == "b"]
    open_b = [decision for decision in of_b if decision.round % 3 == 0]
    told_b = next(decision for decision in of_b if decision.round % 3)
    assert len(open_b) >= 2
    learner.tell(open_b[0], 1.0)
    learner.give_up(open_b[1])
    learner.amend(open_b[1], None, 1.0)
    learner.amend(told_b, told_b.round % 7 / 7, 1.0)
    np.testing.assert_array_equal(learner._state.policies, policies)
    assert learner.outstanding == 10 + 3 - 2
    after = learner.snapshot()
    assert {name for name in after if after[name] != before[name]} == {"stretch"}


def test_a_name_that_comes_back_is_a_new_arm() -> None:
    """Its mean is not that of the old one, so amendments of old decisions do not change it."""
    learner, decisions = played(["a", "b", "c"])
    told = next(one for one in decisions if one.arm == "a" and one.round % 3)
    waiting = [one for one in decisions if one.arm == "a" and one.round % 3 == 0]
    assert len(waiting) >= 2
    learner.change_arms(retire=["a"])
    learner.ask(2)
    learner.change_arms(add=["a"])
    for _ in range(5):
        learner.tell(learner.record("a", 0.5), 0.5)
    before = means_of(learner)
    assert before[:2, -1].tolist() == [5.0, 2.5]
    learner = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    learner.amend(told, told.round % 7 / 7, 1.0)
    learner.tell(waiting[0], 1.0)
    learner.give_up(waiting[1])
    learner.amend(waiting[1], None, 1.0)
    np.testing.assert_array_equal(means_of(learner), before)


def test_amendments_reach_the_mean_of_an_arm_that_stays_through_several_changes() -> None:
    learner, decisions = played(["a", "b", "c"])
    learner.change_arms(add=["d"])
    learner.change_arms(retire=["b"])
    learner = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    told = next(one for one in decisions if one.arm == "c" and one.round % 3)
    before = means_of(learner)
    learner.amend(told, told.round % 7 / 7, 1.0)
    gained = means_of(learner)[1] - before[1]
    assert gained.tolist() == [0.0, pytest.approx(1 - told.round % 7 / 7), 0.0]


def test_an_arm_that_never_was_is_still_refused_in_the_present_stretch() -> None:
    learner, _ = played(["a", "b"])
    learner.change_arms(retire=["b"], add=["c"])
    decision: Any = learner.ask()
    learner.tell(decision, 0.5)
    for arm in ("b", "x"):
        with pytest.raises(InvalidInput, match=r"the arm of a decision must be one of \['a', 'c'\], got"):
            learner.amend(decision._replace(arm=arm), 0.5, 0.6)
        with pytest.raises(InvalidInput, match=r"the arm of a decision must be one of \['a', 'c'\], got"):
            learner.record(arm, 0.5)


@pytest.mark.parametrize(("arms", "never"), [(3, [9, -1, True, None, "0", 1.0]), (["a", "b"], [0, None, ["a"]])])
def test_what_was_never_an_arm_is_refused_in_an_earlier_stretch(arms: Any, never: list[Any]) -> None:
    learner, decisions = played(arms)
    learner.change_arms(retire=[learner.status.arms[0]])
    before = learner.snapshot()
    for arm in never:
        with pytest.raises(InvalidInput, match="the arm of a decision must be"):
            learner.amend(decisions[0]._replace(arm=arm), 1 / 7, 0.5)
    assert learner.snapshot() == before


def test_the_means_of_arms_that_stay_are_kept_exactly() -> None:
    learner, _ = played(["a", "b", "c", "d"], rounds=200)
    before = means_of(learner)
    assert before[: SUM - COUNT + 1].all()
    learner.change_arms(retire=["b"], add=["e", "f"])
    np.testing.assert_array_equal(means_of(learner)[:, :3], before[:, [0, 2, 3]])
    assert not means_of(learner)[:, 3:].any()  # new arms know nothing
    learner.change_arms(retire=["a"])
    np.testing.assert_array_equal(means_of(learner)[:, :2], before[:, [2, 3]])


def test_reports_of_earlier_decisions_teach_the_means_exactly() -> None:
    """Counts and sums are those of a learner whose arms never changed."""
    (learner, decisions), (plain, twins) = played(4), played(4)
    assert decisions == twins
    learner.change_arms(retire=[1])
    for decision in decisions[2::3]:
        learner.tell(decision, 0.25)
        plain.tell(decision, 0.25)
    learner.amend(decisions[5], 0.25, 1.0)
    plain.amend(decisions[5], 0.25, 1.0)
    staying = [0, 2, 3]
    np.testing.assert_allclose(means_of(learner)[:2], means_of(plain)[:2, staying], rtol=1e-12)
    np.testing.assert_array_equal(means_of(learner)[-1], means_of(plain)[-1, staying])
    assert not means_of(learner)[-1].any()  # nothing is missing


def test_what_was_learned_decides_after_a_change() -> None:
    """A bad arm stays unlikely, and a new one is tried."""
    learner: Any = FTRL(["good", "bad"], seed=1)
    for _ in range(300):
        decision = learner.ask()
        learner.tell(decision, 0.2 if decision.arm == "good" else 0.8)
    learner.change_arms(add=["new"])
    good, bad, new = learner.distribution()
    assert bad < 0.1
    assert new > 0.2
    assert good > 0.2


@EVERY
def test_plain_estimates_keep_a_head_start(tuning: Tuning) -> None:
    """An arm begins as far behind the best as its estimate was, at most HEAD_START. New arms begin level."""
    if isinstance(tuning, Means):
        return
    learner, _ = played(4, tuning, rounds=200)
    losses = learner.status.estimated_losses[[0, 2, 3]]
    learner.change_arms(retire=[1], add=1)
    expected = np.append(np.minimum(HEAD_START, losses - losses.min()), 0.0)
    np.testing.assert_array_equal(learner.status.estimated_losses, expected)
    assert learner._state.stretch.head_start == expected.max() > 0


@EVERY
def test_the_certificate_is_the_sum_over_the_stretches(tuning: Tuning) -> None:
    """Without an alarm it depends on delays only. So every stretch is compared with a learner that plays it alone."""
    generator = np.random.default_rng(5)
    for _ in range(8):
        learner, total, rounds = FTRL(3, tuning, seed=1), 0.0, 0
        for k in (3, 5, 4):
            delays = generator.integers(0, 9, int(generator.integers(1, 60)))
            alone = FTRL(k, tuning, seed=1)
            head_start, offset = learner._state.stretch.head_start, learner.round
            run(alone, delays)
            late = play_stretch(learner, delays)
            rounds += delays.size
            shown = min(delays.size, uncapped_certificate(alone) + head_start)
            assert learner.certificate() == pytest.approx(min(rounds, total + shown), rel=1e-9)
            total += shown
            assert learner.certificate() <= rounds == learner.round == offset + delays.size
            learner.change_arms(**({"add": 2} if k == 3 else {"retire": learner.status.arms[:1]}))
            assert learner.certificate() == pytest.approx(min(rounds, total), rel=1e-9)
            for round in late:
                learner.tell(round, 0.7)  # a report of an ended stretch changes no certificate
            assert learner.certificate() == pytest.approx(min(rounds, total), rel=1e-9)


def play_stretch(learner: FTRL, delays: NDArray[np.int64]) -> list[int]:
    """Play these rounds with losses of 0.7. Returns the rounds that have not been reported by their end."""
    due: dict[int, list[int]] = {}
    for t, delay in enumerate(delays.tolist()):
        due.setdefault(t + delay, []).append(learner.ask().round)
        for round in due.pop(t, []):
            learner.tell(round, 0.7)
    return [round for rounds in due.values() for round in rounds]


@KINDS
def test_the_measured_certificate_is_the_sum_over_the_stretches(tuning: Tuning) -> None:
    """An ended stretch counts with what it has shown then, at least 0."""
    learner, generator, total = FTRL(3, tuning, seed=2), np.random.default_rng(3), 0.0
    for k in (3, 4, 5):
        start = learner.status.estimated_losses if learner.round else np.zeros(k)
        behind = start if not isinstance(tuning, Means) else np.zeros(k)
        shown = measured_literally(learner, behind, generator, isinstance(tuning, Means))
        assert learner.measured_certificate() == pytest.approx(total + shown + behind.max(), rel=1e-9)
        total += max(0.0, shown + behind.max())
        learner.change_arms(add=1)
        assert learner.measured_certificate() == pytest.approx(total, rel=1e-9)


def measured_literally(
    learner: FTRL, behind: NDArray[np.float64], generator: np.random.Generator, is_centred: bool
) -> float:
    """Play 80 rounds of a stretch. Returns what they show by the definition of the measured certificate."""
    rounds: list[Known] = []
    for _ in range(80):
        told = [known.loss for known in rounds if known.loss is not None]
        centre = (sum(told) / len(told) if told else 0.5) if is_centred else 0.0
        decision = learner.ask()
        loss = float(generator.random()) if generator.random() < 0.7 else None
        if loss is not None:
            learner.tell(decision, loss)
        rounds.append(Known(decision.arm, decision.probability, centre, loss))
    return literal_measured(behind, rounds, on_means=is_centred)


@EVERY
def test_one_arm_becomes_several_and_back(tuning: Tuning) -> None:
    learner = FTRL(1, tuning, seed=1)
    early = learner.ask(5)
    assert learner.change_arms(add=2) == (0, 1, 2)
    assert learner.certificate() == 0.0  # one arm has no regret
    for decision in early:
        learner.tell(decision, 0.5)
    middle = [learner.ask() for _ in range(60)]
    for decision in middle[::2]:
        learner.tell(decision, 0.2 if decision.arm == 2 else 0.9)
    assert learner.distribution().sum() == pytest.approx(1.0)
    certificate = learner.certificate()
    assert learner.change_arms(retire=[0, 1]) == (2,)
    assert {decision[1:] for decision in learner.ask(4)} == {(2, 1.0)}
    assert learner.certificate() == certificate > 0
    for decision in middle[1::4]:
        learner.tell(decision, 0.5)
    assert learner.change_arms(add=1) == (2, 3)
    for decision in middle[3::4]:
        learner.tell(decision, 0.5)
    assert learner.outstanding == 4
    assert {learner.ask().arm for _ in range(100)} == {2, 3}
    own = tuning if isinstance(tuning, Own) else None
    assert FTRL.restore(learner.snapshot(), own).ask() == learner.ask()


def test_open_decisions_of_a_single_arm_are_missing_once_there_are_several() -> None:
    learner = FTRL(1, seed=1)
    early = learner.ask(5)
    learner.tell(early[0], 0.5)
    learner.change_arms(add=2)
    assert means_of(learner)[-1].tolist() == [4.0, 0.0, 0.0]
    for decision in early[1:]:
        learner.tell(decision, 0.5)
    assert means_of(learner)[:2].tolist() == [[4.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    assert not means_of(learner)[-1].any()


@KINDS
@pytest.mark.parametrize(
    ("arms", "change", "reason"),
    [
        (3, {"retire": [0, 1, 2]}, r"all the arms \[0, 1, 2\], but at least one must stay. Add one, or"),
        (["a", "b"], {"retire": ["b", "a"]}, r"all the arms \['a', 'b'\], but at least one must stay"),
        (3, {"retire": [3]}, r"retire: 3 is not one of the arms \[0, 1, 2\]"),
        (3, {"retire": [True]}, "retire: True is not one of the arms"),
        (3, {"retire": ["0"]}, "retire: '0' is not one of the arms"),
        (["a", "b"], {"retire": ["c"]}, r"retire: 'c' is not one of the arms \['a', 'b'\]"),
        (["a", "b"], {"retire": "a"}, "retire must be a list of arms, got 'a'"),
        (["a", "b"], {"add": "c"}, "add must be a list of arms, got 'c'"),
        (["a", "b"], {"add": 1}, "add must be a list of arms, got 1"),
        (["a", "b"], {"add": ["a"]}, "arms must have different names, got 'a' twice"),
        (["a", "b"], {"add": ["c", "c"]}, "arms must have different names, got 'c' twice"),
        (["a", "b"], {"add": ["b"], "retire": ["b"]}, "'b' cannot be retired and added at once"),
        (["a", "b"], {"add": [""]}, "the name of an arm must be a string that is not empty"),
        (3, {"add": -1}, "add must be a whole number"),
        (3, {"add": 1.5}, "add must be a whole number"),
        (3, {"add": True}, "add must be a whole number"),
        (3, {"add": ["new"]}, "add must be a whole number"),
    ],
)
def test_an_impossible_change_is_refused_and_changes_nothing(
    arms: Any, change: Any, reason: str, tuning: Tuning
) -> None:
    learner, _ = played(arms, tuning)
    before = json.dumps(learner.snapshot())
    with pytest.raises(InvalidInput, match=reason):
        learner.change_arms(**change)
    assert json.dumps(learner.snapshot()) == before


def test_all_arms_may_be_replaced() -> None:
    learner, decisions = played(["a", "b"])
    assert learner.change_arms(add=["c", "d"], retire=["a", "b"]) == ("c", "d")
    assert not means_of(learner).any()
    for decision in decisions[2::3]:
        learner.tell(decision, 0.5)
    assert not means_of(learner).any()
    assert learner.ask().arm in ("c", "d")


def test_no_change_is_no_new_stretch() -> None:
    learner, _ = played(3)
    before = json.dumps(learner.snapshot())
    assert learner.change_arms() == learner.change_arms(add=0, retire=[]) == (0, 1, 2)
    assert json.dumps(learner.snapshot()) == before


CLONES: dict[str, Callable[[Any], Any]] = {
    "snapshot": lambda learner: FTRL.restore(json.loads(json.dumps(learner.snapshot()))),
    "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),  # noqa: S301
}


@KINDS
@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize("arms", [4, ["a", "b", "c", "d"]], ids=["numbers", "names"])
def test_a_copy_with_open_earlier_decisions_continues_bit_for_bit(arms: Any, clone: str, tuning: Tuning) -> None:
    whole, decisions = played(arms, tuning, rounds=60)
    broken, _ = played(arms, tuning, rounds=60)
    added: Any = ["e", "f"] if isinstance(arms, list) else 2
    waiting = decisions[2::3]
    for step in range(6):
        broken = CLONES[clone](broken)
        for learner in (whole, broken):
            learner.tell(waiting[step], 0.9)
            learner.give_up(waiting[step + 6])
            learner.amend(waiting[step], 0.9, 0.4)
            if step in (1, 3):
                learner.change_arms(add=added if step == 1 else (), retire=[learner.status.arms[step - 1]])
        first, second = ([learner.ask() for _ in range(9)] for learner in (whole, broken))
        assert first == second
        for learner in (whole, broken):
            for decision in first[::2]:
                learner.tell(decision, 0.3)
        assert broken.snapshot() == whole.snapshot()
        assert broken.certificate() == whole.certificate()
        assert broken.measured_certificate() == whole.measured_certificate()


def test_threads_that_ask_while_another_changes_arms_lose_no_decision() -> None:
    learner: Any = FTRL(["a", "b", "c"], seed=1)
    is_done = threading.Event()

    def work() -> list[Decision[str]]:
        mine: list[Decision[str]] = []
        while not is_done.is_set():
            mine.extend([learner.ask(), *learner.ask(2)])
            learner.tell(mine[-2], 0.5)
            assert mine[-1].round <= learner.round
            status = learner.status
            assert len(status.estimated_losses) == len(status.arms)
            assert 0 <= learner.outstanding <= learner.round
            learner.distribution(), learner.certificate(), repr(learner)
        return mine

    def change() -> None:
        for step in range(60):
            learner.change_arms(add=[f"new {step}", f"and {step}"])
            stays = 1 if step % 3 == 0 else 2  # a single arm has no means
            learner.change_arms(retire=list(learner.status.arms[:-stays]))
        is_done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet in odd places
    with ThreadPoolExecutor(4) as pool:
        workers, changing = [pool.submit(work) for _ in range(3)], pool.submit(change)
        changing.add_done_callback(lambda _: is_done.set())
    sys.setswitchinterval(interval)
    changing.result()
    seen = [worker.result() for worker in workers]
    decisions = [decision for mine in seen for decision in mine]
    assert sorted(decision.round for decision in decisions) == list(range(1, len(decisions) + 1))
    assert learner.round == len(decisions)
    told = {decision.round for mine in seen for decision in mine[1::3]}
    for decision in decisions:
        if decision.round not in told:
            learner.tell(decision, 0.5)
    assert learner.outstanding == 0
    FTRL.restore(learner.snapshot())


ACTIONS: dict[str, Callable[[Any, Any], object]] = {  # with a learner and one of its open decisions
    "change": lambda learner, _: learner.change_arms(add=["d", "e"], retire=["b"]),
    "change to one arm": lambda learner, _: learner.change_arms(retire=["b", "c"]),
    "tell": lambda learner, decision: learner.tell(decision, 0.75),
    "give up": lambda learner, decision: learner.give_up(decision),
    "amend": lambda learner, decision: learner.amend(decision._replace(round=1), 1 / 7, 0.9),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("tuning", [Means(), Shadow()], ids=repr)
def test_an_interrupt_anywhere_leaves_the_old_or_the_new_learner(action: str, tuning: Tuning) -> None:
    """tests/system/learner interrupts a change at every step."""
    assert_an_interrupt_leaves_the_old_or_the_new_learner(action, tuning, every=5 if "change" in action else 1)


def assert_an_interrupt_leaves_the_old_or_the_new_learner(action: str, tuning: Tuning, every: int) -> None:
    """The decision was made before the arms changed once already."""
    if action == "amend" and not isinstance(tuning, Means):
        return  # plain estimates have forgotten earlier reports
    learner, decisions = played(["a", "b", "c", "x"], tuning)
    learner.change_arms(retire=["x"])
    learner.ask(3)
    data, waiting = learner.snapshot(), next(one for one in decisions[2::3] if one.arm == "a")

    def prepare() -> Any:
        return FTRL.restore(data)

    def act(one: Any) -> object:
        return ACTIONS[action](one, waiting)

    changed = prepare()
    act(changed)
    outcomes = [json.dumps(data), json.dumps(changed.snapshot())]
    assert outcomes[0] != outcomes[1]
    seen = [outcomes.index(json.dumps(one.snapshot())) for one in interrupted_anywhere(prepare, act, every)]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}
