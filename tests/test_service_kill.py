"""kill -9 and SIGTERM at any moment, under concurrent clients: what was acknowledged is there, once."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, Semaphore
from typing import NamedTuple

import msgspec
from power import seeded
from service import Served
from traffic import EXPERIMENTS, HASTY, PATIENT, Visitor, compare, everything

from belated.serve import fold
from belated.serve.entries import Kind
from belated.serve.journal import entries
from belated.serve.sqlite import SQLiteJournal
from belated.serve.verify import verify

CLIENTS = 4
KILLS = 50
PATIENCE = 30.0  # seconds for an answer
KILLS_BETWEEN_STOPS = 10  # a stop saves a snapshot, from which later lives start


class Crowd(NamedTuple):
    """Visitors, and the answers that they get together."""

    visitors: list[Visitor]
    answers: Semaphore
    random: Random


def gather(served: Served, size: int) -> Crowd:
    """The experiments, one with a wait that ends meanwhile, and their visitors."""
    for settings in (PATIENT, HASTY):
        assert served.post("/v1/experiments", settings).status_code == 201
    answers = Semaphore(0)
    visitors = [Visitor(f"visitor-{number}", seeded(number), answers) for number in range(size)]
    return Crowd(visitors, answers, seeded(size))


def live(served: Served, crowd: Crowd, end: Callable[[], object]) -> None:
    """What is left of the service's life: what was acknowledged before is there; then it ends under load."""
    with ThreadPoolExecutor(len(crowd.visitors)) as pool:
        list(pool.map(lambda visitor: visitor.look_back(served.url), crowd.visitors))
        visits = [pool.submit(visitor.visit, served.url) for visitor in crowd.visitors]
        are_answered = all(crowd.answers.acquire(timeout=PATIENCE) for _ in range(crowd.random.randint(20, 150)))
        Event().wait(crowd.random.uniform(0, 0.02))  # not just after an answer: at any moment
        end()
        for visit in visits:
            visit.result()
    while crowd.answers.acquire(blocking=False):
        pass  # the next life counts anew
    assert are_answered


def check_answers(url: str, visitors: Sequence[Visitor]) -> None:
    """The service tells every acknowledged decision and report as it was acknowledged, and nothing twice."""
    found = {name: everything(url, name) for name in EXPERIMENTS}
    for decisions in found.values():
        assert [one["round"] for one in decisions] == list(range(1, len(decisions) + 1))
    by_id = {one["decision_id"]: one for decisions in found.values() for one in decisions}
    sent: dict[str, list[float]] = {}
    told: dict[str, list[float]] = {}
    for visitor in visitors:
        sent |= visitor.sent  # only common decisions are reported by more than one, and always the same
        told |= visitor.told
    for visitor in visitors:
        for decision in (one for answer in visitor.got.values() for one in answer):
            id = decision["decision_id"]
            compare(decision, sent.get(id, []), told.get(id, []), by_id[id])
    first = sum((visitor.first for visitor in visitors), Counter[str]())
    assert max(first.values()) == 1


def check_store(folder: Path, visitors: Sequence[Visitor]) -> None:
    """The stopped store is sound, and every key has its decisions: all that were asked for, or none if given up."""
    with closing(SQLiteJournal(folder / "belated.db")) as journal:
        assert verify(journal).problems == []
        names = {one.seq: name for name in EXPERIMENTS for one in journal.read(0, 2) if name in str(one.body)}
        made = Counter(
            (names[one.experiment], one.request or "") for one in entries(journal) if one.kind is Kind.DECIDED
        )
    asked = {key: size for visitor in visitors for key, size in visitor.asked.items()}
    got = {key: answer for visitor in visitors for key, answer in visitor.got.items()}
    assert all(size == asked[key] for key, size in made.items())
    assert got.keys() <= made.keys()
    for visitor in visitors:
        assert all(answer == got[key] for key, answer in visitor.got.items()), "one key, two answers"


def test_fifty_kills_lose_and_repeat_nothing(server: Served) -> None:
    crowd = gather(server, CLIENTS)
    for kill in range(1, KILLS + 1):
        live(server, crowd, server.kill)
        server.start()
        if kill % KILLS_BETWEEN_STOPS == 0:
            check_answers(server.url, crowd.visitors)
            live(server, crowd, server.stop)
            assert server.process.returncode == 0
            check_store(server.folder, crowd.visitors)
            server.start()
    for experiment in EXPERIMENTS:
        statuses = {one["status"] for decision in everything(server.url, experiment) for one in decision["outcomes"]}
        expired = {"expired", "late"} if experiment == "hasty" else set()
        assert statuses == {"reported", "amended"} | expired
    assert server.stop() == 0
    command = [sys.executable, "-m", "belated", "verify"]
    verified = subprocess.run(command, cwd=server.folder, capture_output=True, text=True, check=False)  # noqa: S603
    assert verified.returncode == 0, verified.stdout
    assert "the same, bit for bit" in verified.stdout


def test_a_stop_under_load_answers_what_it_accepted(server: Served) -> None:
    """Whoever got no answer was not heard: the store has the decisions that were answered, and no others."""
    crowd = gather(server, 8)
    for _ in range(3):
        live(server, crowd, server.stop)
        assert server.process.returncode == 0
        check_store(server.folder, crowd.visitors)
        with closing(SQLiteJournal(server.folder / "belated.db")) as journal:
            stopped = fold.load(journal).by_name
        got = {one["decision_id"] for visitor in crowd.visitors for answer in visitor.got.values() for one in answer}
        assert sum(one.counts.decisions for one in stopped.values()) == len(got)
        server.start()
        again = server.get("/v1/experiments/patient").json()
        counts = msgspec.structs.asdict(stopped["patient"].counts)
        assert {name: again[name] for name in counts} == counts
        check_answers(server.url, crowd.visitors)
