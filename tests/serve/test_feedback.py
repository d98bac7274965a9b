"""Reports that are applied, duplicate, conflicting, unknown, expired, late or amended. Each has one exact effect."""

from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from belated.serve.domain import ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import OutcomeChoice
from belated.serve.engine import drawing
from belated.serve.engine.requests import Tell
from tests.support.engines import LOSSES, Clock, Driven, counts, last_entry, state
from tests.support.means import known

WAIT = 60.0


def test_the_first_report_is_applied(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    driven.clock.advance(2.5)
    assert driven.tell(decision, 0.25) == "applied"
    entry = last_entry(driven)
    assert (entry.kind, entry.value, entry.old, entry.revision) == (EntryKind.REPORTED, 0.25, None, 0)
    assert entry.at - entry.decided_at == 2_500_000
    assert counts(driven) == {"decisions": 1, "reported": 1}
    assert known(driven["layout"])[decision.arm] == (1, 0.75, 0)
    arm = driven["layout"].arms.index(decision.arm)
    estimate = 0.5 + (0.75 - 0.5) / decision.probability  # the first centre is half the range
    assert driven["layout"].learner.status.estimated_losses[arm] == pytest.approx(estimate)


def test_the_same_again_is_a_duplicate_and_changes_nothing(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    driven.tell(decision, 0.25)
    before = state(driven)
    for amend in (False, True):
        assert driven.tell(decision, 0.25, amend=amend) == "duplicate"
    assert state(driven) == before


def test_another_value_is_a_conflict_unless_it_is_an_amendment(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    driven.tell(decision, 0.25)
    before = state(driven)
    assert driven.tell(decision, 0.5) == "conflict"
    assert state(driven) == before
    assert driven.tell(decision, 0.5, amend=True) == "amended"
    entry = last_entry(driven)
    assert (entry.kind, entry.value, entry.old, entry.revision) == (EntryKind.AMENDED, 0.5, 0.25, 1)
    assert driven.tell(decision, 0.5) == "duplicate"
    assert driven.tell(decision, 0.25) == "conflict"
    assert driven.tell(decision, 1.0, amend=True) == "amended"
    assert last_entry(driven).revision == 2
    assert counts(driven) == {"decisions": 1, "reported": 1, "amended": 2}
    assert known(driven["layout"]) == {name: (name == decision.arm, 0.0, 0) for name in "abc"}


def test_an_amendment_of_nothing_is_a_first_report(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    assert driven.tell(decision, 0.5, amend=True) == "applied"


def test_a_delayed_copy_of_an_amendment_changes_nothing(driven: Driven) -> None:
    """Whether it names the revision that it replaces, or not."""
    driven.create()
    [decision] = driven.decide()
    plain = OutcomeReport(decision.id, "reward", 0.5, amend=True)
    first, second, third = (
        OutcomeReport(decision.id, "reward", value, amend=True, revision=revision)
        for revision, value in enumerate((0.5, 0.75, 1.0))
    )
    assert driven.tell(decision, 0.25) == "applied"
    assert driven.tell_all([first, first, plain]) == ["amended", "duplicate", "duplicate"]
    assert driven.tell_all([second]) == ["amended"]
    before = state(driven)
    assert driven.tell_all([first, plain, second]) == ["superseded", "conflict", "duplicate"]
    driven.restart()
    assert driven.tell_all([first, plain, second]) == ["superseded", "conflict", "duplicate"]
    assert state(driven) == before
    assert driven.tell_all([third, second, first]) == ["amended", "superseded", "superseded"]
    back = OutcomeReport(decision.id, "reward", 0.5, amend=True, revision=3)
    assert (
        driven.tell_all([back, second, third, first, plain])
        == ["amended", "superseded", "superseded"] + ["duplicate"] * 2
    )
    assert [one.value for one in driven.engine.journal.history(2)] == [0.25, 0.5, 0.75, 1.0, 0.5]


def test_one_of_two_amenders_comes_first_and_the_other_is_told(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    [decision] = driven.decide()
    driven.clock.advance(WAIT)
    driven.engine.expire()
    told, mine, yours = driven.do(
        Tell(
            [
                OutcomeReport(decision.id, "reward", 0.25, amend=True, revision=0),
                OutcomeReport(decision.id, "reward", 0.5, amend=True, revision=1),
                OutcomeReport(decision.id, "reward", 0.75, amend=True, revision=1),
            ]
        )
    )
    assert (told, mine, yours) == (("late", 1), ("amended", 2), ("superseded", 2))
    [early] = driven.do(Tell([OutcomeReport(decision.id, "reward", 0.75, amend=True, revision=3)]))
    assert (early.kind, early.revision) == ("conflict", 2)
    assert "has the revision 2, not yet 3" in early.detail


def test_a_refused_amendment_says_the_revision_to_send(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    driven.tell(decision, 0.25)
    [plain] = driven.do(Tell([OutcomeReport(decision.id, "reward", 0.5)]))
    assert (plain.kind, plain.revision) == ("conflict", 0)
    assert plain.detail.endswith('Send "amend": true and "revision": 0 to correct it.')
    driven.tell(decision, 0.5, amend=True)
    [again] = driven.do(Tell([OutcomeReport(decision.id, "reward", 0.75, amend=True)]))
    assert (again.kind, again.revision) == ("conflict", 1)
    assert again.detail.endswith('was amended before, to 0.5. Send "revision": 1 to amend it again.')


def test_a_batch_is_judged_in_its_order(driven: Driven) -> None:
    driven.create()
    one, two = driven.decide(size=2)
    items = [
        OutcomeReport(one.id, "reward", 0.25),
        OutcomeReport(one.id, "reward", 0.25),
        OutcomeReport(two.id, "reward", 1.0),
        OutcomeReport(one.id, "reward", 0.5),
        OutcomeReport(one.id, "reward", 0.5, amend=True),
        OutcomeReport(one.id, "reward", 0.5),
        OutcomeReport("nonsense", "reward", 0.5),
        OutcomeReport(one.id, "loss", 0.5),
        OutcomeReport(one.id, "reward", 0.75, amend=True),
        OutcomeReport(one.id, "reward", 0.75, amend=True, revision=0),
        OutcomeReport(one.id, "reward", 0.0, amend=True, revision=1),
    ]
    expected = [
        "applied",
        "duplicate",
        "applied",
        "conflict",
        "amended",
        "duplicate",
        "not_found",
        "invalid",
        "conflict",
        "superseded",
        "amended",
    ]
    assert driven.tell_all(items) == expected
    assert [found.outcome and found.outcome.value for found in driven.decisions()] == [0.0, 1.0]
    assert [entry.value for entry in driven.engine.journal.history(driven.decisions()[0].decision.seq)] == [
        0.25,
        0.5,
        0.0,
    ]
    assert counts(driven) == {"decisions": 2, "reported": 2, "amended": 2}


def test_an_unknown_decision_is_not_found(driven: Driven) -> None:
    driven.create()
    [decision] = driven.decide()
    wanted = ids.decode(decision.id)
    assert wanted is not None
    at = decision.at
    wrong = [
        "",
        "nonsense",
        "1",
        decision.id[:-1],
        decision.id + "0",
        decision.id.replace("-8", "-4", 1),
        decision.id.replace("-8", "-7", 1),
        "00000000-0000-0000-0000-000000000000",
        ids.encode(at, wanted.seq, wanted.nonce ^ 1),
        ids.encode(at, wanted.seq, wanted.nonce ^ 1 << 63),
        ids.encode(at, wanted.seq, wanted.nonce % 2**34),
        ids.encode(at, wanted.seq + 1, wanted.nonce),
        ids.encode(at, 1, wanted.nonce),  # the experiment's own entry
        ids.encode(at, 2**58 - 1, wanted.nonce),
    ]
    before = state(driven)
    assert [driven.tell(id, 1.0) for id in wrong] == ["not_found"] * len(wrong)
    assert state(driven) == before
    assert driven.tell(decision.id.upper(), 1.0) == "applied"  # a UUID may have capital letters


def test_a_decision_of_an_older_release_keeps_its_id(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "nonces", lambda size: [2**34 - 1, 0][:size])
    driven.create()
    first, second = driven.decide(size=2)
    assert [UUID(one.id).version for one in (first, second)] == [7, 7]
    assert int(first.id.replace("-", "")[:12], 16) == first.at // 1000
    driven.restart()
    assert ids.decode(first.id) == (first.at // 1000, 2, 2**34 - 1)
    wrong = [ids.encode(first.at + 1000, 2, 2**34 - 1), ids.encode(first.at, 2, 2**34 - 2)]
    assert [driven.tell(id, 1.0) for id in [*wrong, first.id, second.id]] == ["not_found"] * 2 + ["applied"] * 2


def test_an_outcome_is_no_decision(driven: Driven) -> None:
    """The outcome's entry repeats the nonce, but only the decision has the id."""
    driven.create()
    [decision] = driven.decide()
    driven.tell(decision, 1.0)
    entry = last_entry(driven)
    assert driven.tell(ids.encode(entry.at, entry.seq, entry.nonce), 0.0) == "not_found"


def test_a_report_of_another_experiment_than_the_keys_is_not_found(driven: Driven) -> None:
    driven.create()
    driven.create("other")
    item = OutcomeReport(driven.decide()[0].id, "reward", 1.0)
    assert driven.tell_all([item], only="other") == ["not_found"]
    assert driven.tell_all([item], only="layout") == ["applied"]


@pytest.mark.parametrize("value", [-0.001, 1.001, 1e300, float("nan"), float("inf"), -float("inf")])
def test_a_value_out_of_range_is_refused(driven: Driven, value: float) -> None:
    driven.create()
    [decision] = driven.decide()
    assert driven.tell(decision, value) == "invalid"
    assert counts(driven) == {"decisions": 1}


def test_the_word_must_be_that_of_the_experiment(driven: Driven) -> None:
    driven.create("rewarded")
    driven.create("lossy", outcome=OutcomeChoice(-5, 5, "lower"))
    [one], [two] = driven.decide("rewarded"), driven.decide("lossy")
    assert driven.tell(one, 0.5, word="loss") == driven.tell(two, 0.5, word="reward") == "invalid"
    assert driven.tell(one, 0.5) == driven.tell(two, -5, word="loss") == "applied"
    assert known(driven["lossy"])[two.arm] == (1, 0.0, 0)


def test_a_zero_has_no_sign(driven: Driven) -> None:
    """The state now must be the state after a restart."""
    driven.create(outcome=LOSSES)
    [decision] = driven.decide()
    assert driven.tell(decision, -0.0, word="loss") == "applied"
    assert str(last_entry(driven).value) == "0.0"
    assert str(known(driven["layout"])[decision.arm].losses) == "0.0"


# -- what a report may cross ----------------------------------------------------------------------------------------


def test_feedback_counts_after_the_experiment_closed(driven: Driven) -> None:
    driven.create(reward_wait=WAIT, default_outcome=0.0)
    one, two = driven.decide(size=2)
    driven.close()
    assert driven.tell(one, 0.5) == "applied"
    assert driven["layout"].learner.status.estimated_losses.any()
    driven.clock.advance(WAIT)
    driven.engine.expire()
    assert driven.tell(two, 1.0) == "late"
    assert counts(driven) == {"decisions": 2, "reported": 1, "expired": 1, "late": 1}


def test_feedback_of_a_retired_arm_counts(driven: Driven) -> None:
    driven.create(reward_wait=WAIT)
    decisions = driven.decide(size=40)
    driven.change(retire=("b",))
    of_b = [one for one in decisions if one.arm == "b"]
    assert driven.tell(of_b[0], 0.25) == "applied"
    assert driven["layout"].evidence.known == [0, 1, 0]
    assert driven["layout"].evidence.totals == [0.0, 0.75, 0.0]
    assert driven["layout"].reports[1] == 1
    driven.clock.advance(WAIT)
    driven.engine.expire()
    assert driven.tell(of_b[1], 0.25) == "late"
    assert driven.tell(of_b[1], 0.5, amend=True) == "amended"
    assert driven["layout"].reports[1] == 2
    assert driven["layout"].counts.outstanding == 0


def test_two_experiments_do_not_touch_each_other(tmp_path: Path) -> None:
    """Each experiment is what it would be alone, even if one batch has both."""
    clocks, alone = Clock(), dict[str, Driven]()
    both = Driven(tmp_path, clock=clocks)
    settings: dict[str, Any] = {"one": {"reward_wait": WAIT}, "two": {"outcome": OutcomeChoice(0, 10, "lower")}}
    words = {"one": "reward", "two": "loss"}
    for name, chosen in settings.items():
        (tmp_path / name).mkdir()
        alone[name] = Driven(tmp_path / name, clock=clocks)
        for driven in (both, alone[name]):
            driven.create(name, **chosen)
    for step in range(20):
        together = []
        for name in settings:
            [mixed] = both.decide(name)
            index = both[name].arms.index(mixed.arm)
            alone[name]._generator = FixedDraw(alone[name], name, index)  # type: ignore[assignment]
            alone[name].engine.asking.generator = alone[name]._generator
            [single] = alone[name].decide(name)
            assert (single.arm, single.probability) == (mixed.arm, mixed.probability)
            if step % 3:
                together.append(OutcomeReport(mixed.id, words[name], step / 20))
                assert alone[name].tell(single, step / 20, word=words[name]) == "applied"
        assert both.tell_all(together) == ["applied"] * len(together)
        clocks.advance(10)
        for driven in (both, *alone.values()):
            driven.engine.expire()
    for name, driven in alone.items():
        assert both[name].learner.snapshot() == driven[name].learner.snapshot()
        assert both[name].counts == driven[name].counts
    assert both["one"].counts.expired > 0 == both["two"].counts.expired


class FixedDraw:
    """Draws the arm at an index, whatever the distribution."""

    def __init__(self, driven: Driven, name: str, index: int) -> None:
        self._sum = np.cumsum(np.append(0.0, driven[name].distribution()))
        self._middle = (self._sum[index] + self._sum[index + 1]) / 2

    def random(self, size: int) -> Any:
        return np.full(size, self._middle / self._sum[-1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("arms", [("a",), ("a", "b")])
def test_any_number_of_amendments_can_be_folded(tmp_path: Path, arms: tuple[str, ...], seed: int) -> None:
    """Rounding errors of the sums must not make the learner refuse a refund that is in the journal."""
    driven, generator = Driven(tmp_path), np.random.default_rng(seed)
    driven.create(arms=arms, outcome=OutcomeChoice(0, 1e6, "lower"))
    decisions = driven.decide(size=30)
    for one in decisions:
        driven.tell(one, round(10 ** generator.uniform(-2, 6), 2), word="loss")
    driven.tell(driven.decide()[0], 1e-11, word="loss")
    for one in decisions:
        assert driven.tell(one, 0.0, word="loss", amend=True) == "amended"
    driven.restart(snapshot=True)
    if len(arms) == 1:
        assert driven["layout"].learner.status.estimated_losses[0] == pytest.approx(0.0, abs=1e-9)
    else:
        assert [one.losses for one in known(driven["layout"]).values()] == pytest.approx([0.0, 0.0], abs=1e-9)
        assert sum(one.reports for one in known(driven["layout"]).values()) == 31


@pytest.mark.parametrize("is_changed", [False, True], ids=["same arms", "other arms"])
def test_what_is_proven_stays_true_when_outcomes_are_replaced(driven: Driven, is_changed: bool) -> None:
    """Every outcome is first assumed to be the same. The true ones come late, so nothing is learned in time."""
    driven.create(arms=("a", "b"), outcome=OutcomeChoice(better="lower"), reward_wait=1.0, default_outcome=0.5)
    decisions = []
    for _ in range(40):
        decisions += driven.decide(size=10)
        driven.clock.advance(1.0)
        driven.engine.expire()
    if is_changed:
        driven.change(add=("c",), retire=("b",))
    for one in decisions:
        assert driven.tell(one, float(one.arm == "b"), word="loss") == "late"
    regret = sum(one.arm == "b" for one in decisions)
    found = driven["layout"].costs()
    assert found.open == 0
    assert found.proven >= regret
    assert found.known >= regret


@pytest.mark.parametrize("default", [None, 0.5])
def test_a_replaced_outcome_adds_to_what_is_proven(driven: Driven, default: float | None) -> None:
    """It adds 1 + max(0, old - new) / probability in losses. A decision that was given up costs 1 already."""
    driven.create(outcome=LOSSES, reward_wait=WAIT, default_outcome=default)
    for _ in range(80):
        driven.tell_all([OutcomeReport(one.id, "loss", 0.5) for one in driven.decide(size=25)])
    one, two = driven.decide(size=2)
    driven.clock.advance(WAIT)
    while driven.engine.expire():
        pass
    driven.tell(one, 0.25, word="loss")
    driven.tell(two, 0.75, word="loss")
    expected = 0.0 if default is None else 2 + 0.25 / one.probability
    assert driven["layout"].more_proven == pytest.approx(expected)
    driven.tell(two, 0.5, word="loss", amend=True)
    expected += 1 + 0.25 / two.probability
    assert driven["layout"].more_proven == pytest.approx(expected)
    assert driven["layout"].more_measured == 0  # the learner has amended its own estimates
    driven.decide()
    proven = driven["layout"].costs().proven
    assert proven == pytest.approx(driven["layout"].learner.certificate("any") + expected)
    assert proven < driven["layout"].counts.decisions


def test_silence_is_not_success(driven: Driven) -> None:
    """Only successes are reported, and failures expire. Until then an open decision may be either."""
    driven.create(reward_wait=WAIT, default_outcome=0.0)
    generator = np.random.default_rng(99)
    for _ in range(20):
        for one in driven.decide(size=100):
            if generator.random() < 0.1:
                driven.tell(one, 1.0)
    before = [one for one in driven["layout"].evidence.means() if one is not None]
    assert all(one.low < 0.05 and one.high > 0.9 for one in before)
    driven.clock.advance(WAIT)
    while driven.engine.expire():
        pass
    after = [one for one in driven["layout"].evidence.means() if one is not None]
    assert len(before) == len(after) == 3
    assert all(one.low <= 0.9 <= one.high and one.open == 0 for one in after)
    assert min(one.high - one.low for one in after) < 0.25, "an arm that is chosen often has a narrow interval"


def test_time_goes_on_when_the_clock_is_set_back(driven: Driven) -> None:
    driven.create(reward_wait=10.0)
    driven.clock.advance(1e7)
    driven.decide()
    driven.clock.advance(-1e7)
    driven.engine.expire()
    driven.clock.advance(11.0)
    driven.engine.expire()
    assert driven["layout"].counts.expired == 1
