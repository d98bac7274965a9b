"""One server loses its connection to the database. It refuses requests while the others continue.

When it is back, every request that was sent has had exactly one effect.
"""

import logging
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any, Final, NamedTuple

import httpx
import pytest

from tests.support.clients.crowd import started
from tests.support.clients.steady import (
    DECISIONS,
    NAME,
    Asker,
    Call,
    asking,
    check,
    metrics,
    report_of,
    wait_for_answers,
)
from tests.support.postgres import PASSWORD
from tests.support.power import seeded
from tests.support.service import Served
from tests.support.sites import WAYS, Site
from tests.support.waiting import until

pytestmark = pytest.mark.long

NOTICED: Final = 7.5  # seconds until a disconnected server must refuse new requests and those it had accepted
PROMPT: Final = 1.0  # seconds for each later refusal, and for a health check at any time
PAUSE: Final = 2.0  # seconds that the other servers may stall
CUT: Final = 5.0  # seconds for which it must keep refusing, longer than one attempt to connect
BACK: Final = 10.0  # seconds to recover by itself
GRACE: Final = 20.0  # seconds to stop
log = logging.getLogger(__name__)  # pytest --log-cli-level=info shows the measurements


@pytest.fixture(params=WAYS.values(), ids=list(WAYS), scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with request.param() as made:
        yield made


class Servers(NamedTuple):
    """One server far from the database and two near it. The far one reaches it at `store`, the others at `url`."""

    site: Site
    url: str
    store: str
    far: Served
    near: list[Served]

    @property
    def all(self) -> list[Served]:
        return [self.far, *self.near]


@pytest.fixture
def servers(site: Site, tmp_path: Path) -> Iterator[Servers]:
    with site.cluster.database() as made:
        name, folder = made.rpartition("/")[2], tmp_path / "far"
        folder.mkdir()
        with started(site.near(name), tmp_path, 2) as near, site.serve_far(folder, site.far(name)) as far:
            assert far.post("/v1/experiments", {"name": NAME, "arms": ["a", "b", "c"]}).status_code == 201
            yield Servers(site, site.near(name), site.far(name), far, near)
            site.heal()


def is_ready(served: Served) -> bool:
    return served.get("/readyz").status_code == 200


# -- requests that need the store ------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A request. It is a GET if it has no body."""

    path: str
    body: dict[str, Any] | None = None


def needs_store(id: str) -> list[Asked]:
    """Every request that needs the store, given the id of a decision."""
    path, unknown = f"/v1/experiments/{NAME}", "/v1/experiments/unknown"
    lists = [f"{path}/{what}" for what in ("decisions", "feedback", "events", "export.csv", "export.parquet")]
    return [
        *map(Asked, [f"/v1/decisions/{id}", unknown, f"{unknown}/live", *lists]),
        Asked(DECISIONS, {}),
        Asked(f"{DECISIONS}/batch", {"size": 3}),
        Asked(f"/v1/decisions/{id}/feedback", {"reward": 1}),
        Asked("/v1/feedback", {"reports": [{"decision_id": id, "reward": 1}]}),
        Asked("/v1/experiments", {"name": "new", "arms": ["a"]}),
        Asked(f"{path}/arms", {"add": ["new"]}),
        Asked(f"{path}/close", {}),
    ]


def refusal(http: httpx.Client, asked: Asked) -> float:
    """Check that the request is refused with 503. Returns how many seconds that took."""
    began = time.monotonic()
    response = http.request("GET" if asked.body is None else "POST", asked.path, json=asked.body)
    assert response.status_code == 503, response.text
    assert "postgresql" not in response.text, "callers must not learn where the store is"
    assert response.headers["Retry-After"]
    assert PASSWORD not in response.text
    return time.monotonic() - began


@contextmanager
def watched(served: Served) -> Iterator[Future[float]]:
    """Poll the health check meanwhile. The result is its longest response time in seconds."""
    over = Event()

    def watch() -> float:
        longest = 0.0
        with served.client() as http:
            while not over.wait(0.02):
                began = time.monotonic()
                assert http.get("/healthz").status_code == 200
                assert http.get(f"/v1/experiments/{NAME}").status_code == 200
                longest = max(longest, time.monotonic() - began)
        return longest

    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(watch)
        finally:
            over.set()


def refuse_for(served: Served, seconds: float, id: str) -> float:
    """Check that every request is refused for this many seconds. Returns the longest time that a refusal took."""
    longest, end = 0.0, time.monotonic() + seconds
    with served.client() as http:
        while time.monotonic() < end:
            longest = max(longest, *(refusal(http, asked) for asked in needs_store(id)))
            assert http.get("/readyz").status_code == 503
    return longest


# -- a cut -----------------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """How a disconnected server behaved, in seconds."""

    first_refusal: float
    not_ready: float
    in_flight: float  # longest wait of a request that it had accepted
    reading: float  # longest wait of a request that only reads
    refusing: float  # longest wait of a later request


def cut_off(servers: Servers, askers: list[Asker]) -> Cut:
    """Cut the connection under load, and wait until every client has been refused."""
    far = servers.far
    with ThreadPoolExecutor(20) as pool, asking(askers):
        wait_for_answers(askers)
        id = askers[0].memory.decisions[0]["decision_id"]
        with far.client() as http:
            servers.site.cut()
            began = time.monotonic()
            reads = [pool.submit(refusal, http, asked) for asked in needs_store(id) if asked.body is None]
            not_ready = until(lambda: not is_ready(far), NOTICED)
            until(lambda: all(asker.answers[-1].status == 503 for asker in askers), NOTICED)
            reading = max(read.result() for read in reads)
    refusing = refuse_for(far, CUT, id)
    after = [one for asker in askers for one in asker.answers if one.at > began]
    first = min(one.at for one in after if one.status == 503) - began
    assert not [one for one in after if one.status != 503 and one.at > began + first]
    return Cut(first, not_ready, max(one.at - one.sent_at for one in after), reading, refusing)


def test_who_is_cut_off_refuses_and_the_others_go_on(servers: Servers) -> None:
    far = servers.far
    at_far = [Asker(f"far-{number}", far) for number in range(4)]
    at_near = [Asker(f"near-{number}", served) for number, served in enumerate(servers.near)]
    with watched(far) as alive, asking(at_near):
        began = time.monotonic()
        seen = cut_off(servers, at_far)
        assert [asker for asker in at_far if not asker.unknown] == []
        calls = [call for asker in at_far[:2] for call in asker.retry(servers.near[0])]
        assert (metrics(far)["belated_store_writable"], metrics(far)["belated_lag_seconds"] > CUT) == (0, True)
        servers.site.heal()
        back = until(lambda: is_ready(far), BACK)
        gaps = [b.at - a.at for asker in at_near for a, b in pairwise(asker.since(began))]
    log.info("%s", seen)
    log.info("alive within %.3f s; others held up for %.3f s; back after %.2f s", alive.result(), max(gaps), back)
    assert max(seen) < NOTICED
    assert seen.refusing < PROMPT
    assert alive.result() < PROMPT
    assert max(gaps) < PAUSE
    for asker in at_far[2:]:  # these retry after the cut, when requests sent before it may still arrive
        calls += asker.retry(servers.near[1])
    with far.client() as http:
        assert all(at_far[0].send(http, call) is not None for call in calls), "it knows what others have done"
    with asking(at_far):
        wait_for_answers(at_far)
    assert not [asker for asker in at_near if asker.unknown]
    check(servers.all, servers.url, [*at_far, *at_near])


def test_a_loose_contact_does_no_harm(servers: Servers) -> None:
    """Short and long cuts. Most of them end before anything notices."""
    random = seeded(1)
    askers = [Asker(f"far-{number}", servers.far) for number in range(3)]
    askers += [Asker("near", servers.near[0])]
    with asking(askers):
        for _ in range(6):
            wait_for_answers(askers, 3)
            servers.site.cut()
            Event().wait(random.choice((0.05, 0.5, 1.5, 4.0)))
            servers.site.heal()
    until(lambda: is_ready(servers.far), BACK)
    for asker in askers:
        asker.retry(servers.far)
    check(servers.all, servers.url, askers)


def give_up_a_start(served: Served) -> None:
    """Check that a start fails in time, with one line that says why. A supervisor would retry."""
    began, size, usual = time.monotonic(), len(served.log()), served.ready_after
    assert served.launch() == ""
    assert served.ended() == 2
    took, said = time.monotonic() - began, served.log()[size:]
    log.info("a start was given up after %.2f s", took)
    assert took < 2 * usual + GRACE
    assert said.splitlines()[-1].startswith("error: the store postgresql://")
    assert "Traceback" not in said


def test_who_is_cut_off_stops_in_time_and_does_not_start(servers: Servers) -> None:
    far, asker = servers.far, Asker("far", servers.far)
    for is_noticed in (False, True):
        with asking([asker]):
            wait_for_answers([asker])
        servers.site.cut()
        if is_noticed:
            until(lambda: not is_ready(far), NOTICED)
        began = time.monotonic()
        assert far.stop() == 1, "it cannot be sure of what it has written last"
        stopped = time.monotonic() - began
        assert "the store cannot be reached, so requests are refused" in far.log()
        assert '"stopped"' in far.log()[-1000:]
        log.info("stopped after %.2f s", stopped)
        assert stopped < GRACE
        if is_noticed:
            give_up_a_start(far)
        servers.site.heal()
        far.start()
    check(servers.all, servers.url, [asker])
    assert PASSWORD not in far.log()


@pytest.mark.parametrize("site", [WAYS["relay"]], indirect=True)
def test_what_was_sent_into_the_cut_comes_late_and_has_no_second_effect(servers: Servers) -> None:
    """The cut delays an append. Meanwhile another server writes the same, and then the append arrives."""
    site, asker = servers.site, Asker("far", servers.far)
    assert site.cut_at is not None
    with servers.far.client() as far, servers.near[0].client() as near:
        decision = asker.send(far, Call(DECISIONS, {}, "early"))  # prepares the statement of the next append
        assert decision is not None
        report = report_of(decision, 3)
        for call, mark in (
            (Call(DECISIONS, {}, "a key of its own"), b"a key of its own"),
            (report, struct.pack(">d", report.body["reward"])),
        ):
            site.cut_at(mark, 1)
            assert asker.send(far, call) is None
            assert asker.send(near, call) is not None
            site.heal()
            until(lambda: is_ready(servers.far), BACK)
            assert asker.send(far, call) is not None
    check(servers.all, servers.url, [asker])


# -- an abandoned transaction ----------------------------------------------------------------------------------------

LEAVES_ONE = """
import sys
from belated.serve.store.postgres.connection import Link
with Link(sys.argv[1]).using("read") as connection:
    connection.execute("BEGIN")
    connection.execute("SELECT pg_current_xact_id()")
    print("begun", flush=True)
    sys.stdin.read()
"""  # like a server that loses its connection while it saves a snapshot


@pytest.mark.parametrize("site", [way for name, way in WAYS.items() if name == "namespaces"], indirect=True)
def test_a_transaction_of_who_is_cut_off_holds_up_nobody_for_long(servers: Servers) -> None:
    """Needs namespaces, because only there the database can notice that the client is gone."""
    asker, [one, two] = Asker("near", servers.near[0]), servers.near
    command = [*servers.site.inside, sys.executable, "-c", LEAVES_ONE, servers.store]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as left:  # noqa: S603
        assert left.stdout is not None
        assert left.stdout.readline() == "begun\n"
        with asking([asker]):
            until(lambda: metrics(two)["belated_lag_seconds"] > 0.5)
        servers.site.cut()
        took = until(lambda: metrics(one)["belated_lag_entries"] == 0 == metrics(two)["belated_lag_entries"], BACK)
        log.info("a transaction that was left behind was ended after %.2f s", took)
        servers.site.heal()
        left.kill()
    until(lambda: is_ready(servers.far), BACK)
    check(servers.all, servers.url, [asker])
