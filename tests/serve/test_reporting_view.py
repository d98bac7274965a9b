"""The document, the metrics and the API description tell which option reports less often."""

from pathlib import Path

import pytest

from belated.serve.domain.fold import restore
from belated.serve.domain.messages import Decided
from belated.serve.domain.observations import EDGES
from belated.serve.domain.reporting import SEVERAL
from belated.serve.http.documents import id_of
from belated.serve.http.metrics import Metrics
from belated.serve.http.openapi import document
from belated.serve.http.routes import ROUTES
from belated.serve.service.service import Service
from belated.serve.service.views import reporting_view, totals, view
from belated.serve.store.verify import verify
from tests.support.engines import NO_STORE, Driven


def play(driven: Driven, silent: str = "b", decisions: int = 300) -> None:
    """All options but these report after a second."""
    for _ in range(decisions // 10):
        made = driven.decide(size=10)
        driven.clock.advance(1)
        for one in made:
            if one.arm not in silent:
                driven.tell(one, 0.5)


def test_a_silent_option_is_told_in_the_document_and_the_numbers(driven: Driven) -> None:
    driven.create()
    play(driven)
    driven.clock.advance(3600)
    experiment, now = driven["layout"], driven.clock()
    found = view(experiment, NO_STORE, now).reporting
    assert found is not None
    assert found.warning
    assert found.judged_after == SEVERAL * EDGES[5]
    assert [(one.name, one.warning) for one in found.arms] == [("a", False), ("b", True), ("c", False)]
    assert [one.decisions for one in found.arms] == experiment.chosen
    assert [one.share for one in found.arms] == [1.0, 0.0, 1.0]
    assert found.arms[1].less == 1.0
    assert totals(experiment, now).reporting == found


def test_two_silent_options_are_both_told(driven: Driven) -> None:
    driven.create(arms=("a", "b", "c", "d", "e"))
    play(driven, silent="bd", decisions=600)
    driven.clock.advance(3600)
    found = reporting_view(driven["layout"], driven.clock())
    assert found is not None
    assert [one.name for one in found.arms if one.warning] == ["b", "d"]


def test_a_closed_experiment_is_not_warned_of(driven: Driven) -> None:
    driven.create()
    play(driven)
    driven.clock.advance(3600)
    driven.close()
    found = reporting_view(driven["layout"], driven.clock())
    assert found is not None
    assert not found.warning
    assert [one.warning for one in found.arms] == [False] * 3
    assert found.arms[1].less == 1.0
    driven.engine.journal.close()
    service = Service.open(driven.path)
    text = Metrics(service).text()[0].decode()
    service.close()
    assert 'belated_reporting_warning{experiment="layout"} 0.0' in text


def test_the_metrics_and_the_api_description_have_it(driven: Driven) -> None:
    driven.create()
    play(driven)
    driven.create("sales", reward_wait=60.0, default_outcome=0.0)
    driven.engine.journal.close()
    service = Service.open(driven.path)
    text = Metrics(service).text()[0].decode()
    service.close()
    assert 'belated_reporting_warning{experiment="layout"} 1.0' in text
    assert 'belated_reporting_warning{experiment="sales"} 0.0' in text
    shares = {
        f'belated_reported_share{{arm="{arm}",experiment="layout"}} {share}'
        for arm, share in zip("abc", (1.0, 0.0, 1.0), strict=True)
    }
    assert shares == {line for line in text.splitlines() if line.startswith("belated_reported_share{")}
    schemas = document(ROUTES)["components"]["schemas"]
    assert "reporting" in schemas["ExperimentView"]["required"]
    assert set(schemas["ReportingView"]["properties"]) == {"warning", "judged_after", "arms"}


def test_a_young_decision_is_not_judged(driven: Driven) -> None:
    driven.create(reward_wait=3600.0)
    play(driven)
    for seconds, judged in ((0.0, 0), (3600.0 - 31, 0), (31.0, 300)):
        driven.clock.advance(seconds)
        found = reporting_view(driven["layout"], driven.clock())
        assert found is not None
        assert sum(one.decisions for one in found.arms) == judged
        assert found.warning == (judged == 300)


def test_late_reports_take_the_warning_away(driven: Driven) -> None:
    driven.create(reward_wait=60.0)
    play(driven)
    driven.clock.advance(100)
    driven.engine.expire()
    assert driven["layout"].comparisons(driven.clock())[1].is_warned
    for found in driven.decisions():
        if found.outcome is None or found.outcome.value is None:
            driven.tell(id_of(found.decision), 0.5)
    assert driven["layout"].counts.late > 0
    driven.clock.advance(10**6)
    assert [one.less for one in driven["layout"].comparisons(driven.clock())] == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("late", [32, 45, 59])
def test_an_option_that_is_slower_than_the_wait_is_cleared(driven: Driven, late: int) -> None:
    """The wait is 31 minutes. Its reports lie in the same class of delays, but come after it."""
    driven.create(reward_wait=31 * 60.0)
    waiting = list[tuple[int, Decided]]()
    for minute in range(300):
        while waiting and waiting[0][0] <= minute:
            driven.tell(waiting.pop(0)[1], 0.5)
        driven.engine.expire()
        for one in driven.decide(size=2):
            if one.arm == "b":
                waiting.append((minute + late, one))
            else:
                driven.tell(one, 0.5)
        driven.clock.advance(60)
    found = reporting_view(driven["layout"], driven.clock())
    assert found is not None
    assert found.judged_after == SEVERAL * 3600
    assert found.arms[0].decisions > 0
    assert not found.warning
    assert found.arms[1].less == pytest.approx(0)


def test_with_a_default_outcome_silence_is_an_answer(driven: Driven) -> None:
    driven.create(reward_wait=60.0, default_outcome=0.0)
    play(driven)
    driven.clock.advance(100)
    assert driven["layout"].reporting is None
    assert view(driven["layout"], NO_STORE, driven.clock()).reporting is None


def test_a_retired_option_is_not_warned_of_and_a_new_one_is_compared(driven: Driven) -> None:
    driven.create()
    play(driven)
    driven.change(add=("d",), retire=("b",))
    play(driven, silent="d")
    driven.clock.advance(3600)
    found = reporting_view(driven["layout"], driven.clock())
    assert found is not None
    assert [(one.name, one.warning) for one in found.arms if one.share == 0] == [("b", False), ("d", True)]


def test_the_counts_survive_a_snapshot(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    play(driven)
    now = driven.engine.fold.snapshot()
    assert restore(now).snapshot() == now
    before = driven["layout"].comparisons(driven.clock())
    driven.restart(snapshot=True)
    assert driven.engine.fold.restored
    play(driven, decisions=50)
    assert verify(driven.engine.journal).problems == []
    driven.restart()
    assert driven["layout"].comparisons(driven.clock())[0].decisions >= before[0].decisions
