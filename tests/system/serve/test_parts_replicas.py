"""Parts of outcomes that come to several servers, on both stores, and at the same moment."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.fold import restore
from belated.serve.domain.messages import OutcomeReport
from belated.serve.store.copy import copy
from belated.serve.store.journal import Journal, entries
from belated.serve.store.loading import load
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import Driven, counts
from tests.system.serve.test_replicas import Fleet, blind_once, fleet, opening  # noqa: F401  # fixtures

PARTS = histories.PARTS
WHOLE = {"quality": 5.0, "cost": 0.0, "seconds": 0.0}


def tell(driven: Driven, id: str, **parts: float) -> str:
    return str(driven.tell_all([OutcomeReport(id, "parts", 0.0, parts=parts)])[0])


def test_parts_that_come_to_two_servers_at_the_same_moment(fleet: Fleet) -> None:  # noqa: F811
    one, two, three = fleet.all
    one.create(parts=PARTS, reward_wait=10.0)
    [decision] = one.decide()
    assert tell(one, decision.id, cost=0.0) == "partial"
    for server, part, status in ((two, "quality", "partial"), (three, "seconds", "applied")):
        looks = blind_once(server, "find", lambda found: {seq: it._replace(outcome=None) for seq, it in found.items()})
        assert tell(server, decision.id, **{part: WHOLE[part]}) == status
        assert looks[0] == 2, "the store refused it, and it was judged again"
    fleet.agree()
    assert counts(one) == {"decisions": 1, "reported": 1}
    assert one.decisions()[0].outcome.value == 1.0  # type: ignore[union-attr]


def test_a_part_and_the_end_of_the_wait_at_two_servers(fleet: Fleet) -> None:  # noqa: F811
    one, two, _ = fleet.all
    one.create(parts=PARTS, reward_wait=10.0)
    [decision] = one.decide()
    fleet.catch_up()
    fleet.clock.advance(11)
    assert tell(one, decision.id, cost=0.0) == "partial"
    looks = blind_once(two, "decisions", lambda page: [found._replace(outcome=None) for found in page])
    two.engine.expire()
    assert looks == [1]
    assert two.decisions()[0].outcome.kind is EntryKind.PARTIAL, "the store refused the end"  # type: ignore[union-attr]
    two.engine.catch_up()
    two.engine.expire()
    fleet.agree()
    assert counts(one) == {"decisions": 1, "expired": 1}
    assert tell(two, decision.id, quality=5.0, seconds=0.0) == "late"
    fleet.agree()
    assert one.decisions()[0].outcome.value == 1.0, "the part from before the end counts"  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(2))
def test_servers_agree_on_any_history_with_parts(
    tmp_path: Path,
    opening: Callable[[], Journal],  # noqa: F811
    seed: int,
) -> None:
    servers = Fleet(tmp_path, seed=seed, opening=opening)
    histories.begin(servers.all[0], has_parts=True)
    servers.catch_up()
    for _ in range(12):
        histories.live(servers.any(), servers.random, 15)
        if servers.random.random() < 0.5:
            servers.any().engine.catch_up()
    servers.agree()
    journal = servers.all[0].engine.journal
    assert EntryKind.PARTIAL in {entry.kind for entry in entries(journal)}
    snapshot = servers.all[0].engine.fold.snapshot()
    assert restore(snapshot).snapshot() == snapshot
    with closing(SQLiteJournal(tmp_path / "copy.db", synchronous="OFF")) as other:
        copy(journal, other)
        assert load(other).snapshot().state == snapshot.state
        assert verify(other).problems == []
