"""Many roaming clients at once, and what must be true of a service afterwards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from threading import Event, Semaphore
from typing import NamedTuple

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.store.journal import Journal, entries
from belated.serve.store.postgres.journal import PostgresJournal
from belated.serve.store.verify import verify
from tests.support.clients.memory import Document, together
from tests.support.clients.roaming import EXPERIMENTS, HASTY, PATIENT, RoamingClient, compare, everything
from tests.support.postgres import connect
from tests.support.power import seeded
from tests.support.service import Served
from tests.support.waiting import until

ANSWER_TIMEOUT = 30.0  # seconds


class Crowd(NamedTuple):
    """Several clients, with a count of all their answers."""

    clients: list[RoamingClient]
    answers: Semaphore
    random: Random

    def wait(self, least: int, most: int) -> bool:
        """Wait for some more answers, and then for a random moment. False if none come."""
        answers = self.random.randint(least, most)
        are_answered = all(self.answers.acquire(timeout=ANSWER_TIMEOUT) for _ in range(answers))
        Event().wait(self.random.uniform(0, 0.02))
        return are_answered

    def forget(self) -> None:
        """Reset the count of answers."""
        while self.answers.acquire(blocking=False):
            pass


def gather(served: Served, size: int, seed: int = 0) -> Crowd:
    """Create two experiments, one with a short wait, and clients for them. Another seed makes other clients."""
    for settings in (PATIENT, HASTY):
        assert served.post("/v1/experiments", settings).status_code == 201
    answers = Semaphore(0)
    clients = [RoamingClient(f"client-{number}", seeded(1000 * seed + number), answers) for number in range(size)]
    return Crowd(clients, answers, seeded(1000 * seed + size))


def check_answers(url: str, clients: Sequence[RoamingClient], *, is_alone: bool = True) -> None:
    """Check that the service shows each acknowledged decision and report unchanged and once.

    Only a server that `is_alone` numbers all decisions. Each server counts what it has folded.
    """
    found = {name: everything(url, name) for name in EXPERIMENTS}
    for decisions in found.values():
        assert not is_alone or [one["round"] for one in decisions] == list(range(1, len(decisions) + 1))
    by_id = {one["decision_id"]: one for decisions in found.values() for one in decisions}
    memory = together(client.memory for client in clients)
    for client in clients:
        for decision in client.memory.decisions:
            compare(decision, memory, by_id[decision["decision_id"]])
    assert max(memory.first.values()) == 1


def check_statuses(url: str) -> None:
    """Check that all kinds of outcomes have occurred."""
    for experiment in EXPERIMENTS:
        statuses = {one["status"] for decision in everything(url, experiment) for one in decision["outcomes"]}
        expired = {"expired", "late"} if experiment == "hasty" else set()
        assert statuses == {"reported", "amended"} | expired


def check_store(journal: Journal, clients: Sequence[RoamingClient]) -> None:
    """Check the store. Each key has all requested decisions, or possibly none if the client gave up."""
    verdict = verify(journal)
    assert (verdict.problems, verdict.unchecked) == ([], 0)
    names = {one.seq: name for name in EXPERIMENTS for one in journal.read(0, 2) if name in str(one.body)}
    made = Counter(
        (names[one.experiment], one.request or "") for one in entries(journal) if one.kind is EntryKind.DECIDED
    )
    memory = together(client.memory for client in clients)  # one key never has two answers
    assert all(size == memory.asked[key] for key, size in made.items())
    assert memory.got.keys() <= made.keys()


# -- several servers of one store ------------------------------------------------------------------------------------


@contextmanager
def started(url: str, folder: Path, number: int) -> Iterator[list[Served]]:
    """Start this many servers on one store."""
    folders = [folder / f"replica-{index}" for index in range(number)]
    for one in folders:
        one.mkdir()
    with ExitStack() as stack:
        with ThreadPoolExecutor(number) as pool:
            made = list(pool.map(lambda one: Served(one, "--store", url), folders))
        for served in made:
            stack.enter_context(served)
        yield made


def document(served: Served, name: str) -> Document:
    """The part of an experiment's document that is the same at any time and on any server.

    Whether an arm reports less often is judged by the age of its decisions, so it changes with the time of the look.
    """
    found: Document = served.get(f"/v1/experiments/{name}").raise_for_status().json()
    return {key: value for key, value in found.items() if key not in ("store", "ages", "reporting")}


def settle(replicas: Sequence[Served], url: str, names: Sequence[str]) -> int:
    """Wait until no decision can expire and all servers have caught up. Returns the last entry number."""

    def is_settled() -> bool:
        last = journal.last()
        waits = [served.get(f"/v1/experiments/{name}").json() for served in replicas for name in names]
        stores = [served.get("/v1/store").json() for served in replicas]
        are_level = all((one["entries"], one["lag_entries"], one["lag_seconds"]) == (last, 0, 0) for one in stores)
        return (
            are_level and not any(one["outstanding"] for one in waits if one["reward_wait"]) and last == journal.last()
        )

    with closing(PostgresJournal(url)) as journal:
        until(is_settled)
        return journal.last()


def check_folds(replicas: Sequence[Served], url: str, names: Sequence[str]) -> None:
    """Check that all servers show the same, and that their state is the fold of the journal, bit for bit."""
    last = settle(replicas, url, names)
    for name in names:
        first, *others = [document(served, name) for served in replicas]
        for other in others:
            assert {key for key in first if other[key] != first[key]} == set()
    fold = Fold()
    with closing(PostgresJournal(url)) as journal, closing(connect(url)) as connection:
        for entry in entries(journal):
            fold.apply([entry])
        for served in replicas:
            connection.execute("DELETE FROM saved_snapshots")
            assert served.stop() == 0
            assert journal.snapshots() == [fold.snapshot()]
        assert fold.seq == last == journal.last()
