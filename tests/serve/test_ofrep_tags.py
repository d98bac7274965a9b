"""An entity tag of OFREP does not outlive the decisions that it stands for."""

import asyncio
from contextlib import closing
from pathlib import Path

from belated.serve.domain import ids, timestamps
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.service.service import Service
from belated.serve.store.journal import Removal
from belated.serve.store.removal import remove
from belated.serve.store.sqlite.journal import SQLiteJournal
from tests.support.in_process import Caller, visit
from tests.support.removals import based, removed

FLAGS = "/ofrep/v1/evaluate/flags"
WANTED = {"context": {"targetingKey": "ann", "flags": ["layout"]}}


def test_a_decision_that_was_erased_is_made_anew(tmp_path: Path) -> None:
    """Otherwise the app would go on with a decision that takes no outcome."""

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        first = await caller.post(FLAGS, WANTED)
        again = await caller.post(FLAGS, WANTED, **{"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304
        old = first.json()["flags"][0]["metadata"]["decision_id"]
        decision = ids.decode(old)
        assert decision is not None
        with closing(SQLiteJournal(tmp_path / "belated.db")) as other:
            removed(other, timestamps.now(), decisions=(decision.seq,))
        for _ in range(100):
            again = await caller.post(FLAGS, WANTED, **{"If-None-Match": first.headers["etag"]})
            if again.status_code == 200:
                break
            await asyncio.sleep(0.02)  # until the server has read of it
        new = again.json()["flags"][0]["metadata"]["decision_id"]
        assert new != old
        told = await caller.post(f"/v1/decisions/{new}/feedback", {"reward": 1})
        assert told.json()["status"] == "applied"

    visit(Service(Engine(SQLiteJournal(tmp_path / "belated.db", synchronous="OFF"))), work)


def test_a_tag_from_the_middle_of_a_removal_does_not_last(tmp_path: Path) -> None:
    """Decisions leave the store some seconds after the entry that allows it. Who asks meanwhile still gets them."""
    time = [timestamps.now()]

    async def work(caller: Caller) -> None:
        await caller.post("/v1/experiments", {"name": "layout", "arms": ["a", "b"]})
        first = await caller.post(FLAGS, WANTED)
        with closing(SQLiteJournal(tmp_path / "belated.db")) as other:
            base = based(other, time[0])
            while service.seq < base.entry:
                await asyncio.sleep(0.01)
            meanwhile = await caller.post(FLAGS, WANTED)
            remove(other, Removal(base.seq, decisions=(2,)))
        time[0] += 10 * MICROSECONDS
        after = await caller.post(FLAGS, WANTED, **{"If-None-Match": meanwhile.headers["etag"]})
        assert after.status_code == 200
        made = [one.json()["flags"][0]["metadata"]["decision_id"] for one in (first, meanwhile, after)]
        assert made[0] == made[1] != made[2]
        time[0] += 2 * 3600 * MICROSECONDS  # later than any removal takes
        last = await caller.post(FLAGS, WANTED)
        again = await caller.post(FLAGS, WANTED, **{"If-None-Match": last.headers["etag"]})
        assert again.status_code == 304  # as long as nothing changes

    journal = SQLiteJournal(tmp_path / "belated.db", synchronous="OFF")
    service = Service(Engine(journal, clock=lambda: time[0]))
    visit(service, work)
