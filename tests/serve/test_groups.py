"""Requests that are committed together. Each gets the answer it would get alone."""

from typing import Any

import pytest

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import Settings
from belated.serve.engine.requests import Answers, Ask, Close, Create, Tell
from belated.serve.store.journal import Journal, entries
from belated.serve.store.verify import verify
from tests.support.engines import Driven


@pytest.fixture
def driven(driven: Driven) -> Driven:
    driven.create()
    return driven


def ids_of(result: Any) -> list[str]:
    assert isinstance(result, Answers)
    return [one.id for one in result.decisions]


def assert_sound(driven: Driven) -> None:
    driven.engine.snapshot()
    assert verify(driven.engine.journal).problems == []


class Calls:
    """Counts the calls of a journal's methods that look something up or write."""

    def __init__(self, driven: Driven) -> None:
        self.made: list[str] = []
        for name in ("named", "requested", "find", "append"):
            self._watch(driven.engine.journal, name)

    def _watch(self, journal: Journal, name: str) -> None:
        called = getattr(journal, name)

        def count(*arguments: Any) -> Any:
            self.made.append(name)
            return called(*arguments)

        setattr(journal, name, count)

    def take(self) -> list[str]:
        made, self.made = self.made, []
        return made


def test_a_whole_group_costs_one_look_up_of_each_kind(driven: Driven) -> None:
    """A database may be milliseconds away. New keys cost none, because a used one is a conflict."""
    old = driven.decide(size=40)
    driven.restart()
    calls = Calls(driven)
    first = driven.engine.process([Ask("layout", 1, f"key {number}") for number in range(40)])
    assert calls.take() == ["append"]
    driven.engine.process([Tell([OutcomeReport(one.id, "reward", 1.0)]) for one in old])
    assert calls.take() == ["find", "append"]
    fresh = [one.decisions[0] for one in first if isinstance(one, Answers)]
    driven.engine.process([Tell([OutcomeReport(one.id, "reward", 1.0)]) for one in fresh])
    assert calls.take() == ["append"]  # open decisions that this server has seen lately need no look-up
    driven.engine.process([Tell([OutcomeReport(one.id, "reward", 1.0)]) for one in fresh])
    assert calls.take() == ["find"]
    mixed = [Ask("layout", 1, f"key {number}") for number in range(39, 60)]
    again = driven.engine.process(mixed)
    assert calls.take() == ["append", "requested", "append"]
    assert ids_of(again[0]) == ids_of(first[39])
    repeated = driven.engine.process(mixed)
    assert calls.take() == ["requested"]
    assert list(map(ids_of, repeated)) == list(map(ids_of, again))
    driven.engine.process([Ask("layout", 1, f"new {number}") for number in range(40)])
    assert calls.take() == ["requested", "append"]
    driven.engine.process([Ask("layout", 1, f"newer {number}") for number in range(40)])
    assert calls.take() == ["append"]
    driven.engine.process([Ask(f"nobody's {number}") for number in range(40)])
    assert calls.take() == ["named"]
    driven.close()
    calls.take()
    closed = driven.engine.process([*mixed, Ask("layout", 1, "never used")])
    assert calls.take() == ["requested"]
    assert list(map(ids_of, closed[:-1])) == list(map(ids_of, again))
    assert isinstance(closed[-1], Refusal)
    assert_sound(driven)


def test_one_key_twice_in_a_group_has_one_effect(driven: Driven) -> None:
    first, again, other, size, plain = driven.engine.process(
        [
            Ask("layout", 2, "k"),
            Ask("layout", 2, "k"),
            Ask("layout", 1, "l"),
            Ask("layout", 3, "k"),
            Ask("layout"),
        ]
    )
    assert ids_of(first) == ids_of(again)
    assert isinstance(first, Answers)
    assert isinstance(again, Answers)
    assert (first.replayed, again.replayed) == (False, True)
    assert isinstance(size, Refusal)
    assert size.kind == "invalid"
    assert len({*ids_of(first), *ids_of(other), *ids_of(plain)}) == 4
    assert [found.decision.round for found in driven.decisions()] == [1, 2, 3, 4]
    assert_sound(driven)


def test_experiments_mixed_in_a_group_stay_apart(driven: Driven) -> None:
    driven.create("other", ("x", "y"))
    names = ["layout", "other", "layout", "other", "layout"]
    results = driven.engine.process([Ask(name, 1, "k" if index < 2 else None) for index, name in enumerate(names)])
    for name, result in zip(names, results, strict=True):
        assert isinstance(result, Answers)
        assert [(one.experiment.name, one.arm in driven[name].arms) for one in result.decisions] == [(name, True)]
    rounds = {name: [found.decision.round for found in driven.decisions(name)] for name in ("layout", "other")}
    assert rounds == {"layout": [1, 2, 3], "other": [1, 2]}
    assert_sound(driven)


def test_what_is_drawn_together_knows_nothing_of_what_is_reported_with_it(driven: Driven) -> None:
    known = driven.decide(size=20)
    before = driven["layout"].distribution().tolist()
    items = [OutcomeReport(one.id, "reward", 0.0) for one in known]
    statuses, drawn = driven.engine.process([Tell(items), Ask("layout", 50)])
    assert statuses == [ReportStatus("applied", 0)] * 20
    assert isinstance(drawn, Answers)
    assert {one.probability for one in drawn.decisions} <= set(before)
    assert driven["layout"].distribution().tolist() != before
    kinds = [entry.kind for entry in entries(driven.engine.journal, 21)]
    assert kinds == [EntryKind.DECIDED] * 50 + [EntryKind.REPORTED] * 20
    assert_sound(driven)


def test_reports_of_one_decision_in_several_requests(driven: Driven) -> None:
    [decision] = driven.decide()
    reports = [
        Tell([OutcomeReport(decision.id, "reward", value, amend)])
        for value, amend in ((1, False), (1, False), (0, True))
    ]
    assert driven.engine.process(reports) == [[("applied", 0)], [("duplicate", 0)], [("amended", 1)]]
    assert driven["layout"].counts.amended == driven["layout"].counts.reported == 1
    assert_sound(driven)


def test_experiments_are_made_and_closed_in_the_order_of_the_group(driven: Driven) -> None:
    early, made, drawn, _, late = driven.engine.process(
        [Ask("new"), Create(Settings("new", ["a"])), Ask("new"), Close("new"), Ask("new")]
    )
    assert isinstance(early, Refusal)
    assert early.kind == "not_found"
    assert made == (driven["new"], True)
    assert len(ids_of(drawn)) == 1
    assert isinstance(late, Refusal)
    assert late.kind == "conflict"
    assert_sound(driven)


def test_a_key_is_honoured_after_the_experiment_closed(driven: Driven) -> None:
    """A retry must get the answer that was lost."""
    first = driven.decide(key="k")
    driven.close()
    assert driven.decide(key="k") == first
    assert driven.do(Ask("layout", 1, "l")).kind == "conflict"


def test_arms_are_drawn_as_often_as_their_probabilities_say(driven: Driven) -> None:
    for _ in range(40):
        [decision] = driven.decide()
        driven.tell(decision, {"a": 1.0, "b": 0.5, "c": 0.0}[decision.arm])
    x = driven["layout"].distribution().tolist()
    assert max(x) > 2 * min(x)
    drawn = [one.arm for one in driven.decide(size=10_000)]
    for arm, probability in zip("abc", x, strict=True):
        error = (probability * (1 - probability) / 10_000) ** 0.5
        assert abs(drawn.count(arm) / 10_000 - probability) < 4 * error
