"""Nothing that a request contains may stop the others in its group, or the server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from belated.errors import StoreError
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.history import Mark
from belated.serve.domain.ids import encode
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.operating import Edit, Operation
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, OutcomeChoice, Settings, TuningChoice
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Operate, Request, Tell
from belated.serve.service.views import view
from belated.serve.store.journal import NO_MARK, Rejected
from belated.serve.store.verify import verify
from tests.support.engines import NO_STORE, Driven, counts, state
from tests.support.memory_journal import MemoryJournal, MemoryStore

BAD, BAD_DECISION = "bad", 999_999  # a key and a decision that the journal of a test cannot take


class Picky(MemoryJournal):
    """A journal that rejects one key. It may break down in other ways, too."""

    def __init__(self, store: MemoryStore, error: Exception, method: str) -> None:
        super().__init__(store)
        self._error, self._method, self.appends = error, method, 0

    def append(self, entries: Sequence[Entry], mark: Mark = NO_MARK) -> list[int]:
        self.appends += 1
        if self._method == "append" and any(entry.request == BAD for entry in entries):
            raise self._error
        return super().append(entries, mark)

    def find(self, seqs: Sequence[int]) -> dict[int, Found]:
        if self._method == "find" and BAD_DECISION in seqs:
            raise self._error
        return super().find(seqs)


def picky(tmp_path: Path, error: Exception, method: str) -> Driven:
    store = MemoryStore()
    driven = Driven(tmp_path, opening=lambda: Picky(store, error, method))
    driven.create()
    return driven


@pytest.mark.parametrize(
    ("error", "method"),
    [(Rejected("no"), "append"), (ValueError("a bug"), "find"), (Rejected("no"), "find")],
)
def test_a_request_that_the_store_cannot_take_is_refused_alone(tmp_path: Path, error: Exception, method: str) -> None:
    driven = picky(tmp_path, error, method)
    [decision] = driven.decide()
    group: list[Request] = [Ask("layout", 2, f"key {number}") for number in range(20)]
    unknown = OutcomeReport(encode(decision.at, BAD_DECISION, 1), "reward", 1.0)
    bad = Ask("layout", 3, BAD) if method == "append" else Tell([unknown])
    group[7:7] = [bad, Tell([OutcomeReport(decision.id, "reward", 1.0)])]
    results = driven.engine.process(group)
    assert [one.kind for one in results if isinstance(one, Refusal)] == ["internal"]
    assert isinstance(results[7], Refusal)
    assert results[8] == [ReportStatus("applied", 0)]
    assert sum(isinstance(one, Answers) for one in results) == 20
    assert counts(driven) == {"decisions": 41, "reported": 1}
    journal = driven.engine.journal
    assert isinstance(journal, Picky)
    assert journal.appends <= 14, "the group is halved, not taken apart"
    assert verify(journal).problems == []


def test_an_append_that_fails_in_an_unknown_way_is_a_failure_of_the_store(tmp_path: Path) -> None:
    driven = picky(tmp_path, KeyError("a bug"), "append")
    with pytest.raises(StoreError, match="an append failed unexpectedly: KeyError"):
        driven.do(Ask("layout", 1, BAD))


@pytest.mark.parametrize("key", ["\ud800", "a\x00b"])
def test_text_that_a_file_cannot_hold_stops_nothing(driven: Driven, key: str) -> None:
    driven.create()
    results = driven.engine.process([Ask("layout", 1, "a"), Ask("layout", 1, key), Ask("layout", 1, "b")])
    assert [isinstance(one, Answers) for one in results[::2]] == [True, True]
    assert isinstance(driven.do(Ask("layout")), Answers)


@pytest.mark.parametrize(("field", "value"), [("nonce", 2**63), ("nonce", "text"), ("request", "\ud800")])
def test_a_value_that_a_file_cannot_hold_is_rejected_and_nothing_is_written(
    driven: Driven, field: str, value: Any
) -> None:
    driven.create()
    before, journal = state(driven), driven.engine.journal
    good = Entry(1, EntryKind.DECIDED, 1, round=1, arm=0, probability=0.5, nonce=1, seen=1)
    with pytest.raises(Rejected):
        journal.append([good, msgspec.structs.replace(good, **{field: value})])
    assert state(driven) == before
    assert isinstance(driven.do(Ask("layout")), Answers)


# -- any request -----------------------------------------------------------------------------------------------------

texts = st.text(st.characters(), max_size=5) | st.sampled_from(["layout", "odd", "a", "b", "\ud800", "\x00", "=1", "'"])
events = st.sampled_from(["paused", "resumed", "frozen", "unfrozen", "ended", "edited"])
numbers = st.floats() | st.sampled_from([0.0, 1.0, -0.0, 5e-324, 1e308, 1e100, -1e100, 1e-15, 1e6])
names = st.sampled_from(["layout", "odd"]) | texts
arms = st.lists(texts, max_size=4)
shares = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 0.1, 1 / 3, 0.5, UNSET]) | numbers
known_ids: list[str] = []
ids = st.deferred(lambda: st.sampled_from(known_ids or ["x"])) | texts
words, revisions = st.sampled_from(["reward", "loss"]) | texts, st.none() | st.integers(0, 2)
more = st.booleans(), revisions, st.none() | texts
reports = st.builds(OutcomeReport, ids, words, numbers, *more) | st.builds(
    OutcomeReport, st.just(""), words, numbers, *more, names, texts
)
choices = st.builds(
    TuningChoice,
    st.sampled_from(["means", "shadow", "advanced", "simple", "tsallis", "adaptive_exp3", "exp3", "none"]),
    *[numbers | st.just(UNSET)] * 4,
)
outcomes = st.builds(OutcomeChoice, numbers, numbers, st.sampled_from(["higher", "lower", "sideways"]))
wanted = st.builds(
    Settings, names, arms, outcomes, choices, st.none() | numbers, st.none() | numbers, st.booleans() | st.just(UNSET),
    several=st.sampled_from(["first", "last", "sum", "mean", UNSET]), floor=shares, holdout=shares,
    control=st.none() | texts | st.just(UNSET),
)  # fmt: skip
edits = st.builds(
    Edit,
    *[st.none() | numbers | st.just(UNSET)] * 2,
    *[shares] * 2,
    st.none() | texts | st.just(UNSET),
    texts | st.just(UNSET),
)
anything = st.builds(
    Operate, names.filter(lambda name: name != "layout"), st.builds(Operation, events, st.none() | texts, edits)
)
harmless = st.builds(Operation, st.sampled_from(["edited", "frozen", "unfrozen", "resumed"]), st.none() | texts, edits)
requests = st.one_of(
    st.builds(Ask, names, st.integers(1, 20), st.none() | texts),
    st.builds(Ask, names, st.just(1), subject=texts),
    st.builds(Operate, st.just("layout"), harmless),
    anything,
    st.builds(Tell, st.lists(reports, max_size=4), st.none() | names),
    st.builds(Create, wanted),
    st.builds(ChangeArms, names, st.builds(ArmChange, arms, arms)),
    st.builds(Close, names.filter(lambda name: name != "layout")),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=st.lists(st.lists(requests, max_size=6), min_size=1, max_size=6))
def test_no_group_of_requests_stops_an_experiment(tmp_path_factory: Any, groups: list[list[Request]]) -> None:
    """The requests are wilder than the API lets through, but the engine does not depend on that."""
    driven = Driven(tmp_path_factory.mktemp("any"))
    driven.create()
    driven.create("odd", ("a", "b", "c"), outcome=OutcomeChoice(-1, 1, "lower"), reward_wait=1.0, default_outcome=1.0)
    for group in groups:
        known_ids[:] = [
            one.id for name in ("layout", "odd") if driven[name].is_deciding for one in driven.decide(name, 2)
        ]
        results = driven.engine.process([*group, Ask("layout", 2)])
        assert isinstance(results[-1], Answers)
        assert not [one for one in results if isinstance(one, Refusal) and one.kind == "failed"]
        driven.clock.advance(0.4)
        driven.engine.expire()
        for one in list(driven.engine.fold.experiments.values()):
            assert view(one, NO_STORE, driven.clock.now).failure is None
    driven.engine.snapshot()
    assert verify(driven.engine.journal).problems == []
    driven.engine.journal.close()
