"""Clients that stay with one server, and retry what got no answer."""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event
from typing import Any, NamedTuple, final

import httpx

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.ids import decode
from belated.serve.store.journal import entries
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.clients.crowd import check_folds
from tests.support.clients.memory import Memory, together
from tests.support.service import Served
from tests.support.waiting import until

NAME = "cut"
DECISIONS = f"/v1/experiments/{NAME}/decisions"
PAUSE = 0.01  # seconds after a refusal


class Call(NamedTuple):
    """A request that may be sent again."""

    path: str
    body: dict[str, Any]
    key: str = ""


class Answered(NamedTuple):
    """When a request was sent and answered. Status 0 means no answer."""

    sent_at: float
    at: float
    status: int


@final
class Asker:
    """Asks for decisions and reports them, one after the other."""

    def __init__(self, name: str, served: Served) -> None:
        self._name, self.served, self._number = name, served, 0
        self.answers: list[Answered] = []
        self.memory = Memory()
        self.unknown: list[Call] = []  # requests without an answer, or with a refusal

    def ask(self, over: Event) -> None:
        """Ask and report until `over` is set."""
        with self.served.client() as http:
            while not over.is_set():
                self._number += 1
                call = Call(DECISIONS, {}, f"{self._name}-{self._number}")
                decision = self.send(http, call)
                if decision is None or self.send(http, report_of(decision, self._number)) is None:
                    over.wait(PAUSE)

    def send(self, http: httpx.Client, call: Call) -> dict[str, Any] | None:
        """Send a request. Returns the acknowledged document or None. A repeated request must get the same answer."""
        sent_at, status = time.monotonic(), 0
        headers = {"Idempotency-Key": call.key} if call.key else {}
        try:
            response = http.post(call.path, json=call.body, headers=headers)
            status = response.status_code
        except httpx.TransportError:
            pass
        self.answers.append(Answered(sent_at, time.monotonic(), status))
        if status in (0, 503):
            assert status == 0 or response.headers["Retry-After"]
            self.unknown.append(call)
            return None
        found: dict[str, Any] = response.raise_for_status().json()
        if call.key:
            self.memory.keep_decisions((NAME, call.key), [found])
        else:
            self.memory.keep_told(found["decision_id"], call.body["reward"])
        return found

    def retry(self, served: Served) -> list[Call]:
        """Send all unanswered requests again, to this server, and get an answer to each."""
        calls, self.unknown = self.unknown, []
        with served.client() as http:
            for call in calls:
                assert self.send(http, call) is not None
        return calls

    def since(self, began: float) -> list[Answered]:
        """The answers since that time."""
        return [one for one in self.answers if one.at > began]


def report_of(decision: dict[str, Any], number: int) -> Call:
    """A report whose reward depends only on the number, so that every retry sends the same."""
    return Call(f"/v1/decisions/{decision['decision_id']}/feedback", {"reward": number % 10 / 10})


@contextmanager
def asking(askers: Sequence[Asker]) -> Iterator[None]:
    """Run all clients at once. Raises their errors at the end."""
    over = Event()
    with ThreadPoolExecutor(len(askers)) as pool:
        asked = [pool.submit(asker.ask, over) for asker in askers]
        try:
            yield
        finally:
            over.set()
            for one in asked:
                one.result()


def wait_for_answers(askers: Sequence[Asker], number: int = 10) -> None:
    """Wait until each client has got this many more decisions."""
    before = [len(asker.memory.got) for asker in askers]
    until(lambda: all(len(asker.memory.got) >= n + number for asker, n in zip(askers, before, strict=True)))


def metrics(served: Served) -> dict[str, float]:
    """The metrics without labels, which describe the whole server."""
    lines = served.get("/metrics").raise_for_status().text.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if re.match(r"\w+ \S+$", line))}


def check(replicas: Sequence[Served], url: str, askers: Sequence[Asker]) -> None:
    """Check that nothing acknowledged is lost, every request had one effect, and all servers agree."""
    check_folds(replicas, url, [NAME])
    with closing(PostgresJournal(url)) as journal:
        verdict, found = verify(journal), list(entries(journal))
    assert (verdict.problems, verdict.unchecked) == ([], 0)
    made = [entry for entry in found if entry.kind is EntryKind.DECIDED]
    memory = together(asker.memory for asker in askers)
    got = {key: seq_of(one["decision_id"]) for (_, key), [one] in memory.got.items()}
    assert {entry.request: entry.seq for entry in made} == got
    assert len(made) == len(got)
    told = {seq_of(id): reward for id, [reward] in memory.told.items()}
    assert sorted((entry.decision, entry.value) for entry in found if entry.decision) == sorted(told.items())


def seq_of(id: str) -> int:
    """The number of a decision's entry in the journal."""
    decoded = decode(id)
    assert decoded is not None
    return decoded.seq
