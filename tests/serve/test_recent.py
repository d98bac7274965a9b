"""An early report needs no look-up, and is judged as if it had one."""

import pytest

from belated.serve.domain.entries import Entry, with_seq
from belated.serve.engine import recent
from belated.serve.engine.recent import RecentDecisions
from belated.testing.entries import decided, outcome
from tests.support.engines import Clock, Driven, counts


def numbered(first: int, last: int) -> list[Entry]:
    return [with_seq(decided(1, seq), seq) for seq in range(first, last + 1)]


def test_only_the_newest_open_decisions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 100)
    kept = RecentDecisions()
    for first in range(1, 1000, 7):
        kept.take(numbered(first, first + 6))
        assert kept.get(first + 6) == numbered(first + 6, first + 6)[0]
        assert len(kept._newer) + len(kept._older) <= 100
    assert [seq for seq in range(1, 1010) if kept.get(seq)] == list(range(951, 1002))
    kept.take([outcome(1000), outcome(960), outcome(5), decided(1, 1)])
    assert [kept.get(seq) for seq in (1000, 960, 5)] == [None] * 3


@pytest.mark.parametrize(("value", "status"), [(0.5, "duplicate"), (0.75, "conflict")])
def test_an_outcome_that_another_server_wrote_meanwhile_is_found(driven: Driven, value: float, status: str) -> None:
    """This server still takes the decision for open. The store refuses a second outcome, and then it looks."""
    driven.create(reward_wait=60.0)
    told, ended, mine = driven.decide(size=3)
    clock = Clock()
    other = Driven(driven.path.parent, clock=clock)
    assert other.tell(told, 0.5) == "applied"
    clock.advance(60)
    other.engine.expire()
    assert driven.tell(told, value) == status
    assert driven.tell(ended, value) == "late"
    assert driven.tell(mine, value) == "late"
    driven.engine.catch_up()
    assert counts(driven) == {"decisions": 3, "reported": 1, "expired": 2, "late": 2}
