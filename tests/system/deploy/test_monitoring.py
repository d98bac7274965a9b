"""The alerts and the dashboard name only metrics and labels that a real service has."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.machine import ROOT
from tests.support.promql import used
from tests.support.service import Served
from tests.support.waiting import until

RULES, BOARD = ROOT / "deploy/prometheus/belated.rules.yml", ROOT / "deploy/grafana/belated.json"
OF_PROMETHEUS = {"instance", "job"}  # labels that a scrape adds
Scrape = dict[str, list[dict[str, str]]]  # the labels of the samples of each metric


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrape]:
    """What a service tells after a little of everything, answered by one of two workers."""
    with Served(tmp_path_factory.mktemp("service"), "--workers", "2", "--max-open", "5") as served:
        settings = {"name": "layout", "arms": ["a", "b"], "reward_wait": 0.001}
        assert served.post("/v1/experiments", settings).status_code == 201
        made = served.post("/v1/experiments/layout/decisions").json()
        served.post(f"/v1/decisions/{made['decision_id']}/feedback", {"reward": 1})
        served.post("/v1/experiments", {"name": "waiting", "arms": ["a", "b"]})
        assert served.post("/v1/experiments/waiting/decisions/batch", {"size": 6}).status_code == 429
        assert served.get("/" + "x" * 10_000).status_code == 414
        wanted = (
            "belated_exhausted_total{",
            "belated_connections_refused_total{",
            "belated_reported_share{",
            "belated_workers 2.0",
        )
        texts = list[str]()

        def is_complete() -> bool:
            texts.append(served.get("/metrics").text)
            return all(one in texts[-1] for one in wanted)

        until(is_complete)  # a worker tells the other one what it has counted within a second
        found: Scrape = {"up": [{}]}
        for family in text_string_to_metric_families(texts[-1]):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample.labels)
        yield found


def problems(expression: str, scrape: Scrape) -> list[str]:
    """What an expression names that the service does not have."""
    names, found, known = used(expression), list[str](), set(OF_PROMETHEUS)
    for metric, matchers in names.selected:
        samples = scrape.get(metric, [])
        if not samples:
            found.append(f"no metric {metric}")
        labels = {name for sample in samples for name in sample} | OF_PROMETHEUS
        known |= labels
        for label, (mark, value) in matchers.items():
            if label not in labels:
                found.append(f"{metric} has no label {label}")
            elif mark == "=" and label not in OF_PROMETHEUS and value not in {one.get(label) for one in samples}:
                found.append(f"{metric} has no {label} {value}")
    return found + [f"no label {label} to group by" for label in names.grouped - known]


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def targets() -> list[tuple[str, str]]:
    """The expressions and the legends of the dashboard."""
    return [(one["expr"], one["legendFormat"]) for panel in panels() for one in panel["targets"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(BOARD.read_text())["panels"]
    return found


def test_every_alert_can_fire(scrape: Scrape) -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names) > 10
    for rule in alerts():
        assert problems(rule["expr"], scrape) == [], rule["alert"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("page", "ticket")
        left = used(rule["expr"])
        labels = {name for metric, _ in left.selected for sample in scrape[metric] for name in sample}
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert shown <= ((left.grouped or labels) | OF_PROMETHEUS), rule["alert"]


def test_every_panel_has_data(scrape: Scrape) -> None:
    assert len(panels()) > 10
    for expression, legend in targets():
        assert problems(expression, scrape) == [], expression
        grouped = used(expression).grouped
        assert set(re.findall(r"{{(\w+)}}", legend)) <= (grouped or OF_PROMETHEUS), legend
    variables = {one["name"]: one for one in json.loads(BOARD.read_text())["templating"]["list"]}
    asked = set(re.findall(r"\$(?!__)\{?(\w+)", json.dumps(panels())))
    assert asked == set(variables)
    assert problems("label_values(belated_decisions_total) by (experiment)", scrape) == []
    assert variables["experiment"]["query"]["query"] == "label_values(belated_decisions_total, experiment)"


def test_the_panels_lie_side_by_side() -> None:
    taken = set[tuple[int, int]]()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("belated_queues > 1", "no metric belated_queues"),
        ('belated_requests_total{code="200"}', "belated_requests_total has no label code"),
        ('belated_request_seconds_bucket{route="/v2"}', "belated_request_seconds_bucket has no route /v2"),
        ("sum by (arm) (belated_queue)", "no label arm to group by"),
    ],
)
def test_a_wrong_name_would_be_noticed(scrape: Scrape, expression: str, wrong: str) -> None:
    assert problems(expression, scrape) == [wrong]


def test_the_configuration_scrapes_with_a_key() -> None:
    config = yaml.safe_load((RULES.parent / "prometheus.yml").read_text())
    assert config["rule_files"] == [RULES.name]
    [job] = config["scrape_configs"]
    assert any(f'job="{job["job_name"]}"' in rule["expr"] for rule in alerts())
    assert job["authorization"]["credentials_file"]
    assert job.get("metrics_path", "/metrics") == "/metrics"
