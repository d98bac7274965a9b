"""A failure of one experiment is its own. It is marked, reported and refused, and all others go on."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from belated.errors import InvalidInput, SnapshotError, StoreError
from belated.replicated.shared_learner import SharedLearner
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold, restore
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings, TuningChoice
from belated.serve.engine import expiry
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Tell
from belated.serve.service.views import summary, totals, view
from belated.serve.store.verify import verify
from tests.support.engines import NO_STORE, Driven, counts, state
from tests.support.memory_journal import MemoryJournal, MemoryStore

SMALL = TuningChoice("adaptive_exp3", scale=5e-16)  # too small for two or three arms, but not for twenty
NAMES = [f"arm {number}" for number in range(20)]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def driven(tmp_path: Path, store: MemoryStore) -> Driven:
    driven = Driven(tmp_path, opening=lambda: MemoryJournal(store))
    driven.create("healthy")
    return driven


def write(driven: Driven, entry: Entry) -> None:
    """Write an entry as another server with an older release might."""
    driven.engine.journal.append([entry])
    driven.engine.catch_up()


def old_experiment(driven: Driven, tuning: TuningChoice = SMALL) -> Experiment:
    """An experiment that an older release has created, and whose arms it has retired."""
    body = msgspec.json.encode(Settings("old", NAMES, tuning=tuning))
    write(driven, Entry(driven.clock.now, EntryKind.CREATED, 0, revision=0, body=body))
    driven.decide("old", 5)
    change = msgspec.json.encode(ArmChange(["new"], NAMES[1:]))
    write(driven, Entry(driven.clock.now, EntryKind.ARMS, driven["old"].seq, revision=1, body=change))
    return driven["old"]


def kinds_of(results: Any) -> list[Any]:
    return [one.kind if isinstance(one, Refusal) else type(one).__name__ for one in results]


def failing(error: Exception, decision: int) -> Callable[..., Any]:
    """A step of an experiment that fails half-way at the outcome of this decision."""
    charge = Experiment._charge

    def fail(self: Experiment, entry: Entry, *rest: Any) -> None:
        if entry.decision == decision:
            raise error
        charge(self, entry, *rest)

    return fail


# -- tunings that cannot decide --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_arms", [1, 20, 1000])
@pytest.mark.parametrize("tuning", [SMALL, TuningChoice("exp3", eta=1e-16), TuningChoice("exp3", eta=5e-324)])
def test_a_tuning_must_be_able_to_decide_between_any_number_of_arms(n_arms: int, tuning: TuningChoice) -> None:
    with pytest.raises(InvalidInput, match=r"cannot decide between [23] arms"):
        Settings("x", [str(arm) for arm in range(n_arms)], tuning=tuning).check()


def test_a_change_after_which_an_old_experiment_could_not_decide_is_refused(driven: Driven) -> None:
    body = msgspec.json.encode(Settings("old", NAMES, tuning=SMALL))
    write(driven, Entry(driven.clock.now, EntryKind.CREATED, 0, revision=0, body=body))
    refused = driven.change("old", retire=tuple(NAMES[2:]))
    assert (refused.kind, "between 2 arms" in refused.detail) == ("invalid", True)
    assert not isinstance(driven.change("old", retire=tuple(NAMES[10:])), Refusal)
    assert len(driven.decide("old", 3)) == 3


def test_one_failed_experiment_leaves_the_others_alone(driven: Driven) -> None:
    old = old_experiment(driven)
    assert str(old.failure) == f"the change of arms at entry {driven.engine.fold.seq} cannot be applied"
    decided = [found.decision for found in driven.decisions("old")]
    results = driven.engine.process(
        [Ask("old"), Ask("healthy", 3), ChangeArms("old", ArmChange(["x"])), Ask("healthy")]
    )
    assert kinds_of(results) == ["failed", "Answers", "failed", "Answers"]
    assert isinstance(results[0], Refusal)
    assert "'old' has failed, because the change of arms at entry 8 cannot be applied" in results[0].detail
    assert len(decided) == 5


def test_reports_to_a_failed_experiment_are_refused_and_those_beside_them_count(driven: Driven) -> None:
    driven.create("layout")
    lost, kept = driven.decide("layout")[0], driven.decide("healthy")[0]
    write(driven, bad_decision(driven))
    [refused, status] = driven.do(Tell([OutcomeReport(one.id, "reward", 1.0) for one in (lost, kept)]))
    assert (refused.kind, status.status) == ("failed", "applied")
    assert "The report was not counted. Keep it" in refused.detail
    assert counts(driven, "healthy") == {"decisions": 1, "reported": 1}


def test_answers_that_were_given_are_given_again(driven: Driven) -> None:
    driven.create("layout")
    first = driven.decide("layout", 2, "key")
    write(driven, bad_decision(driven))
    assert driven["layout"].failure is not None
    assert driven.decide("layout", 2, "key") == first


def test_a_failed_experiment_can_be_closed_but_not_created_again(driven: Driven) -> None:
    old = old_experiment(driven)
    assert totals(old, driven.clock.now).is_failed
    assert not isinstance(driven.close("old"), Refusal)
    assert old.closed_at is not None
    assert not totals(old, driven.clock.now).is_failed
    assert driven.do(Create(Settings("old", ["a"]))).kind in ("conflict", "invalid")
    assert driven.do(Close("old"))[1] is False


def test_waits_of_a_failed_experiment_do_not_end(driven: Driven) -> None:
    driven.create("layout", reward_wait=10.0)
    driven.create("other", reward_wait=10.0)
    driven.decide("layout")
    driven.decide("other")
    write(driven, bad_decision(driven))
    driven.clock.advance(11)
    driven.engine.expire()
    assert (counts(driven, "layout"), counts(driven, "other")) == ({"decisions": 2}, {"decisions": 1, "expired": 1})


def test_waits_that_cannot_be_ended_hold_up_no_other_experiment(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first part of the search has worked, and the entry that ends a wait cannot be made."""
    driven.create("layout", reward_wait=10.0)
    driven.create("other", reward_wait=10.0)
    driven.decide("layout", 2)
    driven.decide("other", 2)
    driven.clock.advance(11)
    right = expiry.end_of

    def wrong(experiment: Experiment, *rest: Any) -> Entry:
        if experiment.name == "layout":
            raise ZeroDivisionError("a bug")
        return right(experiment, *rest)

    monkeypatch.setattr(expiry, "end_of", wrong)
    driven.engine.expire()
    assert (counts(driven, "layout"), counts(driven, "other")) == ({"decisions": 2}, {"decisions": 2, "expired": 2})
    monkeypatch.undo()
    driven.engine.expire()
    assert counts(driven, "layout") == {"decisions": 2, "expired": 2}


@pytest.mark.parametrize("error", [FloatingPointError("a bug"), AttributeError("a bug"), AssertionError()])
def test_a_snapshot_that_a_learner_cannot_restore_is_not_used(
    driven: Driven, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Otherwise no server could start, although the journal has everything."""
    driven.create("layout")
    driven.decide("layout", 3)
    before = state(driven)
    driven.engine.snapshot()

    def fail(_: Any) -> SharedLearner:
        raise error

    monkeypatch.setattr(SharedLearner, "restore", fail)
    driven.restart()
    assert (driven.engine.fold.restored, state(driven)) == (0, before)
    assert len(driven.decide("healthy")) == 1


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_a_failed_experiment_is_reported(driven: Driven) -> None:
    old = old_experiment(driven)
    document, now = view(old, NO_STORE, driven.clock.now), driven.clock.now
    assert document.failure == "The experiment has failed, because the change of arms at entry 8 cannot be applied."
    assert [arm.name for arm in document.arms if arm.active] == [NAMES[0], "new"]
    assert (document.decisions, document.outstanding, document.verdict.leader) == (5, 5, None)
    assert (document.costs.known, document.costs.open, document.costs.bound) == (0, 5, 5)
    assert (summary(old).failed, summary(driven["healthy"]).failed) == (True, False)
    assert [totals(one, now).is_failed for one in driven.engine.fold.experiments.values()] == [False, True]
    assert msgspec.json.encode(document)


def test_the_log_says_why_once(driven: Driven, caplog: pytest.LogCaptureFixture) -> None:
    old_experiment(driven)
    driven.restart()
    driven.engine.process([Ask("old"), Ask("old")])
    found = [one for one in caplog.records if one.message == "an experiment has failed, and the others go on"]
    assert [(one.experiment, one.levelname) for one in found] == [("old", "CRITICAL")] * 2  # type: ignore[attr-defined]
    assert "AdaptiveExp3" in caplog.text


def test_a_learner_that_fails_without_an_entry_refuses_only_its_own(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw or a look has failed. All entries can be applied, so the experiment has no mark, and still learns."""
    driven.create("layout")
    [decision] = driven.decide("layout")
    shared = driven["layout"].shared

    def fail(*_: Any) -> Any:
        raise FloatingPointError("not a number")

    monkeypatch.setattr(shared, "draw_context", fail)
    monkeypatch.setattr(driven["layout"], "proven", fail)
    group = [Ask("layout", 1, "k"), Ask("healthy", 2), Ask("layout", 1, "k"), Ask("layout")]
    results = driven.engine.process(group)
    assert kinds_of(results) == ["failed", "Answers", "failed", "failed"]
    assert driven.tell(decision, 1.0) == "applied"
    document = view(driven["layout"], NO_STORE, driven.clock.now)
    assert document.failure == "The experiment has failed, because its learner fails. The log has more."
    assert totals(driven["layout"], driven.clock.now).is_failed
    monkeypatch.undo()
    assert len(driven.decide("layout", 2, "k")) == 2


@pytest.mark.parametrize("x", [[np.nan, 0.5, 0.5], [0.0, 0.0, 0.0], [np.inf, 0.0, 0.0]])
def test_probabilities_that_are_none_are_not_written(
    driven: Driven, monkeypatch: pytest.MonkeyPatch, x: list[float]
) -> None:
    context = driven["healthy"].shared.draw_context()
    wrong = context._replace(x=np.array(x))
    monkeypatch.setattr(driven["healthy"].shared, "draw_context", lambda: wrong)
    before = driven.engine.journal.last()
    assert driven.do(Ask("healthy", 5)).kind == "failed"
    assert driven.engine.journal.last() == before


# -- the same on every server ----------------------------------------------------------------------------------------


def bad_decision(driven: Driven, name: str = "layout") -> Entry:
    """A decision that no learner can have made."""
    seq, at = driven[name].seq, driven.clock.now
    return Entry(at, EntryKind.DECIDED, seq, round=1, arm=0, probability=7.0, nonce=1, seen=driven.engine.fold.seq)


def folded(entries: list[Entry], *cuts: int) -> Fold:
    """Fold the entries in pieces."""
    fold, edges = Fold(), [0, *cuts, len(entries)]
    for start, stop in pairwise(edges):
        fold.apply(entries[start:stop])
    return fold


def test_the_mark_does_not_depend_on_where_a_page_ends(driven: Driven, store: MemoryStore) -> None:
    driven.create("layout", reward_wait=5.0, default_outcome=0.0)
    for _ in range(3):
        for one in driven.decide("layout", 2):
            driven.tell(one, 0.5)
        driven.decide("healthy")
    first = driven.engine.journal.last() + 1
    last = driven.decide("layout", 6)
    driven.decide("healthy")
    driven.tell(last[0], 1.0)
    driven.change("layout", add=("d",))
    broken = list(store.entries)
    broken[first + 2] = msgspec.structs.replace(broken[first + 2], probability=7.0)  # the fourth of six
    whole = folded(broken).snapshot()
    assert (
        str(restore(whole).by_name["layout"].failure)
        == f"the decisions drawn after entry {first - 1} cannot be applied"
    )
    for cut in range(len(broken)):
        assert folded(broken, cut).snapshot() == whole
        assert folded(broken, *range(cut, len(broken), 3)).snapshot() == whole
        again = restore(folded(broken[:cut]).snapshot())
        again.apply(broken[cut:])
        assert again.snapshot() == whole


@pytest.mark.parametrize("at", [0, 1, 5])
def test_servers_agree_after_a_failure_half_way(
    driven: Driven, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    driven.create("layout")
    decisions = driven.decide("layout", 6)
    other = Engine(MemoryJournal(store), clock=driven.clock)
    failed_at = driven.decisions("layout")[at].decision.seq
    monkeypatch.setattr(Experiment, "_charge", failing(ZeroDivisionError("a bug"), failed_at))
    statuses = driven.tell_all([OutcomeReport(one.id, "reward", 0.5) for one in decisions])
    assert statuses == ["applied"] * 6, "they were written before anybody knew"
    assert counts(driven, "layout") == {"decisions": 6, "reported": 6}, "counts come from the entries alone"
    now = driven.engine.fold.snapshot()
    other.catch_up()
    assert other.fold.snapshot() == now
    assert folded(store.entries).snapshot() == now
    driven.restart(snapshot=True)
    assert driven.engine.fold.restored == now.seq
    assert driven.engine.fold.snapshot() == now
    problems = verify(driven.engine.journal).problems
    reason = f"the outcome at entry {driven.engine.journal.history(failed_at)[0].seq} cannot be applied"
    assert problems == [f"the experiment 'layout' has failed: {reason}: ZeroDivisionError: a bug"]
    assert driven.do(Ask("layout")).kind == "failed"
    assert isinstance(driven.do(Ask("healthy")), Answers)


def test_a_failure_of_the_process_marks_no_experiment(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server may have memory left, so the two would disagree."""
    driven.create("layout")
    [decision] = driven.decide("layout")
    monkeypatch.setattr(Experiment, "_charge", failing(MemoryError(), driven.decisions("layout")[0].decision.seq))
    with pytest.raises(StoreError, match="MemoryError"):
        driven.tell(decision, 1.0)
    assert driven["layout"].failure is None


def test_another_release_tries_again(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    old_experiment(driven)
    snapshot = driven.engine.fold.snapshot()
    assert restore(snapshot).by_name["old"].failure is not None
    monkeypatch.setattr("belated.serve.domain.failures.__version__", "9.9")
    with pytest.raises(SnapshotError, match="failed in release"):
        restore(snapshot)
    monkeypatch.setattr("belated.proper.SMALLEST_RATE", 1e-300)  # the new release can do it
    driven.engine.journal.save(snapshot)
    found = verify(driven.engine.journal)
    assert (found.snapshots, found.problems) == (0, [])  # the old one is neither damaged nor compared
    driven.restart()
    assert len(driven.decide("old")) == 1


def test_settings_that_cannot_be_read_fail_only_their_experiment(driven: Driven) -> None:
    """A newer release has created an experiment that this one does not understand."""
    body = b'{"name": "new", "arms": ["a", "b"], "tuning": {"name": "unheard of"}}'
    write(driven, Entry(driven.clock.now, EntryKind.CREATED, 0, revision=0, body=body))
    assert str(driven["new"].failure) == "its creation at entry 2 cannot be applied"
    assert [arm.name for arm in view(driven["new"], NO_STORE, 0).arms] == ["a", "b"]
    assert kinds_of(driven.engine.process([Ask("new"), Ask("healthy")])) == ["failed", "Answers"]
    write(driven, msgspec.structs.replace(bad_decision(driven, "new"), probability=0.5))
    now = driven.engine.fold.snapshot()
    assert restore(now).snapshot() == now
    driven.restart()
    assert driven.engine.fold.snapshot() == now
