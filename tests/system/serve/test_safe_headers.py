"""Browsers are told to show nothing of the service in a frame of another site, and to guess no media types."""

from collections.abc import Iterator

import pytest

from tests.support.service import Served

PAGES = ["/", "/docs", "/experiments/layout", "/static/style.css", "/static/experiment.js"]
OTHERS = ["/healthz", "/v1/experiments", "/v1/experiments/layout/export.csv", "/openapi.json", "/metrics"]
PROBLEMS = ["/nothing", "/static/nothing", "/v1/experiments/nobody", "/v1/experiments?limit=0"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        server.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green"]})
        yield server


@pytest.mark.parametrize("path", [*PAGES, *OTHERS, *PROBLEMS])
def test_every_answer_is_safe_in_a_browser(served: Served, path: str) -> None:
    answer = served.get(path)
    assert (answer.status_code == 200) == (path not in PROBLEMS)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["frame-ancestors"] == "'none'"
    assert policy["default-src"] == ("'self'" if path in PAGES else "'none'")
    assert "script-src" not in policy  # so no inline script
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    if path in PAGES:
        assert (answer.headers["X-Frame-Options"], answer.headers["Referrer-Policy"]) == ("DENY", "no-referrer")


@pytest.mark.parametrize("path", ["/", "/static/style.css"])
@pytest.mark.parametrize("ranges", ["bytes=5-1", "bytes=999999999-", "nonsense", "bytes=0-1,5-6"])
def test_a_page_is_always_whole(served: Served, path: str, ranges: str) -> None:
    """The answer to a wrong range had none of these headers."""
    answer = served.get(path, Range=ranges)
    assert (answer.status_code, answer.content) == (200, served.get(path).content)
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
