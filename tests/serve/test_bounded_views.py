"""A document stays small, however many arms an experiment ever had, and says what the others are together."""

from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import MAX_ARMS, OutcomeChoice
from belated.serve.domain.still import still
from belated.serve.engine.requests import Ask
from belated.serve.service.descriptions import ExperimentView
from belated.serve.service.lists import MOST_BYTES
from belated.serve.service.selecting import MOST_ARMS, MOST_SERIES
from belated.serve.service.service import Service
from belated.serve.service.views import describe, view
from belated.serve.store.loading import load
from belated.verdicts import Evidence
from tests.support.engines import NO_STORE, Driven
from tests.support.in_process import Caller, visit

SUM: Any = {"several": "sum", "outcome": OutcomeChoice(0, 1e9)}
LARGEST = 512 * 1024  # bytes, as docs/service.md says


def document(driven: Driven) -> ExperimentView:
    return view(driven["layout"], NO_STORE, driven.clock())


def play(driven: Driven, turns: int, size: int, good: str = "", n_open: int = 1) -> None:
    """Report some outcomes. The good option is nearly always better."""
    generator = np.random.default_rng(3)
    for _ in range(turns):
        made = driven.decide(size=size)[n_open:]
        driven.clock.advance(1)
        values = [float(generator.random() < (0.9 if one.arm == good else 0.1)) for one in made]
        driven.tell_all([OutcomeReport(one.id, "reward", value) for one, value in zip(made, values, strict=True)])


@pytest.fixture
def crowd(driven: Driven) -> Driven:
    """An experiment with as many arms as possible, and names as long as possible."""
    driven.create(arms=tuple(f"{number:0>100}" for number in range(MAX_ARMS)))
    return driven


def test_a_document_of_a_thousand_arms_is_small(crowd: Driven) -> None:
    play(crowd, turns=450, size=10, good=f"{7:0>100}")
    assert len(crowd["layout"].history.rounds) > 200
    said = document(crowd)
    assert len(msgspec.json.encode(said)) < LARGEST
    assert len(said.arms) == MOST_ARMS
    assert len([one for one in said.history.probabilities if one is not None]) == MOST_SERIES


def test_a_document_after_five_hundred_changes_is_small(driven: Driven) -> None:
    names = count()
    driven.create(arms=tuple(f"{next(names):0>100}" for _ in range(3)))
    for _ in range(500):
        play(driven, turns=1, size=3)
        retired = driven["layout"].arms[driven["layout"].era.arms[0]]
        driven.change(add=(f"{next(names):0>100}",), retire=(retired,))
    said = document(driven)
    assert (said.arm_changes, len(driven["layout"].arms)) == (500, 503)
    assert len(msgspec.json.encode(said)) < LARGEST
    assert len(said.arms) == MOST_ARMS
    assert sum(arm.active for arm in said.arms) == 3, "those that can be chosen come first"


def test_the_rest_is_summed_up(crowd: Driven) -> None:
    play(crowd, turns=100, size=20)
    said, found = document(crowd), crowd["layout"]
    assert said.rest is not None
    assert (said.rest.arms, said.rest.active) == (MAX_ARMS - MOST_ARMS, MAX_ARMS - MOST_ARMS)
    whole = [arm.probability or 0.0 for arm in said.arms]
    assert sum(whole) + said.rest.probability == pytest.approx(1)
    assert sum(arm.chosen for arm in said.arms) + said.rest.chosen == found.counts.decisions == 2000
    assert sum(arm.reports for arm in said.arms) + said.rest.reports == found.counts.reported == 1900
    assert sum(arm.open for arm in said.arms) + said.rest.open == found.counts.outstanding == 100
    assert said.history.others is not None
    told = [one for one in said.history.probabilities if one is not None]
    for point, others in enumerate(said.history.others):
        assert sum(one[point] or 0.0 for one in told) + others == pytest.approx(1)


def test_what_matters_is_in_the_document(crowd: Driven) -> None:
    good = f"{77:0>100}"
    play(crowd, turns=300, size=20, good=good)
    said, verdict = document(crowd), crowd["layout"].look().verdict
    names = {arm.name for arm in said.arms}
    assert said.verdict.leader in names
    closest = min(verdict.comparisons, key=lambda one: (one.sure, one.low))
    assert crowd["layout"].arms[closest.arm] in names
    assert {one.name for one in said.verdict.comparisons} == names - {said.verdict.leader}
    assert said.reporting is not None
    assert [one.name for one in said.reporting.arms] == [arm.name for arm in said.arms]
    probabilities = sorted(crowd["layout"].distribution().tolist(), reverse=True)[:MOST_SERIES]
    drawn = [arm.probability for arm, one in zip(said.arms, said.history.probabilities, strict=True) if one is not None]
    assert sorted((p or 0.0 for p in drawn), reverse=True) == probabilities


@pytest.mark.parametrize("n_arms", [1, 2, MOST_SERIES, MOST_ARMS])
def test_small_experiments_have_all_arms_in_full(driven: Driven, n_arms: int) -> None:
    driven.create(arms=tuple(f"arm {number}" for number in range(n_arms)))
    play(driven, turns=5, size=20)
    said = document(driven)
    assert [arm.name for arm in said.arms] == driven["layout"].arms
    assert said.rest is None
    assert (said.history.others is None) == (n_arms <= MOST_SERIES)
    assert (None in said.history.probabilities) == (n_arms > MOST_SERIES)


def test_all_arms_can_be_listed(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(arms=tuple(f"arm {number}" for number in range(250)))
    play(driven, turns=40, size=10)
    driven.change(add=("new",), retire=("arm 3",))
    experiment, service = driven["layout"], Service(driven.engine)
    pages: list[Any] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = service.arms("layout", int(cursor), 100)
        pages.append(page.items)
        cursor = page.next
    service.close()
    assert [len(page) for page in pages] == [100, 100, 51]
    arms = [one for page in pages for one in page]
    assert [one.name for one in arms] == experiment.arms
    assert [one.chosen for one in arms] == experiment.chosen
    assert [one.active for one in arms] == [name != "arm 3" for name in experiment.arms]
    compared = {experiment.arms[one.arm]: one.sure for one in experiment.look().verdict.comparisons}
    assert {one.name: one.comparison.sure for one in arms if one.comparison is not None} == compared
    assert [one.reporting.name for one in arms] == experiment.arms


def test_a_copy_no_longer_changes(driven: Driven) -> None:
    """A view is made from it while the experiment goes on."""
    driven.create()
    late = driven.decide(size=20)
    play(driven, turns=40, size=5, good="b")
    now, copied = driven.clock(), still(driven["layout"])
    before = view(driven["layout"], NO_STORE, now)
    kept = msgspec.json.encode(msgspec.to_builtins(copied.experiment.evidence))
    play(driven, turns=3, size=5, good="b")
    for one in late:
        driven.tell(one, 1.0)
        driven.tell(one, 0.5, amend=True)
    driven.change(add=("d",), retire=("a",))
    play(driven, turns=40, size=5, good="d")
    driven.close()
    assert msgspec.json.encode(msgspec.to_builtins(copied.experiment.evidence)) == kept
    assert describe(copied, NO_STORE, now) == before


@pytest.mark.parametrize(("n_arms", "most"), [(3, 60), (300, 2)])
def test_callers_of_a_closed_experiment_do_not_look_each_time(
    driven: Driven, monkeypatch: pytest.MonkeyPatch, n_arms: int, most: int
) -> None:
    """They are told what to show. A look at many arms takes long, and every other request would wait for it."""
    driven.create(arms=tuple(f"arm {number}" for number in range(n_arms)))
    made = driven.decide(size=200)
    driven.tell(made.pop(), 1.0)
    driven.close()
    looks, verdict = list[int](), Evidence.verdict

    def counted(evidence: Evidence) -> Any:
        looks.append(1)
        return verdict(evidence)

    monkeypatch.setattr(Evidence, "verdict", counted)
    for one in made[:50]:
        refusal = driven.do(Ask("layout", 1))
        assert "From now on show" in refusal.detail
        driven.tell(one, 1.0)
    assert 1 <= len(looks) <= most


def test_copies_leave_the_state_as_the_journal_says(driven: Driven) -> None:
    """A copy shares what has not changed yet with the experiment, which must not show."""
    driven.create()
    made = []
    for turn in range(60):
        still(driven["layout"])
        made += driven.decide(size=3)
        still(driven["layout"])
        driven.tell(made.pop(turn // 2), turn % 2)
        if turn % 20 == 10:
            driven.tell(made[0], 0.5)
            driven.tell(made.pop(0), 0.25, amend=True)
            driven.change(add=(f"new {turn}",), retire=(driven["layout"].arms[driven["layout"].era.arms[0]],))
    assert load(driven.engine.journal).snapshot() == driven.engine.fold.snapshot()


# -- lists of what has no end ------------------------------------------------------------------------------------------


def test_a_decision_with_many_outcomes_is_read_in_pages(driven: Driven) -> None:
    """Several outcomes of a decision may add up, and an outcome may be amended, without end."""
    driven.create(**SUM)
    [one] = driven.decide()
    driven.tell_all([OutcomeReport(one.id, "reward", 1.0, report_id=str(number)) for number in range(2_500)])

    async def read(caller: Caller) -> None:
        path, values = f"/v1/decisions/{one.id}", list[float]()
        first = (await caller.get(path)).json()
        assert (len(first["outcomes"]), first["outcome"]["value"], first["next"]) == (100, 2_500.0, "100")
        cursor: str | None = "0"
        while cursor is not None:
            page = (await caller.get(f"{path}?limit=1000&cursor={cursor}")).json()
            values += [outcome["value"] for outcome in page["outcomes"]]
            cursor = page["next"]
        assert values == [float(number) for number in range(1, 2_501)]
        assert (await caller.get(f"{path}?limit=1001")).status_code == 422

    visit(Service(driven.engine), read)


def test_a_page_of_events_with_many_arms_is_small(crowd: Driven) -> None:
    names = list(crowd["layout"].arms[1:])
    for _ in range(15):
        crowd.change(retire=tuple(names))
        crowd.change(add=tuple(names))
    sizes = list[int]()

    async def read(caller: Caller) -> None:
        seen, cursor = list[str](), "0"
        while True:
            answer = await caller.get(f"/v1/experiments/layout/events?limit=1000&cursor={cursor}")
            page = answer.json()
            sizes.append(len(answer.content))
            seen += [one["event"] for one in page["events"]]
            if page["next"] is None:
                break
            cursor = page["next"]
        assert seen == ["created", *["arms"] * 30]
        assert (await caller.get(f"/v1/experiments/layout/events?cursor={page['resume']}")).json()["events"] == []

    visit(Service(crowd.engine), read)
    assert len(sizes) == 3
    assert max(sizes) < 1.2 * MOST_BYTES
