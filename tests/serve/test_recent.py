"""An early report needs no look-up, and is judged as if it had one."""

import numpy as np
import pytest

from belated.serve.domain.entries import Drawings, Entry, EntryKind, with_seq
from belated.serve.engine import recent
from belated.serve.engine.recent import RecentDecisions
from belated.testing.entries import decided, outcome
from tests.support.engines import Clock, Driven, counts


def numbered(first: int, last: int) -> list[Entry]:
    return [with_seq(decided(1, seq), seq) for seq in range(first, last + 1)]


def test_only_the_newest_open_decisions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 100)
    monkeypatch.setattr(recent, "PART", 10)
    kept = RecentDecisions()
    for first in range(1, 1000, 7):
        kept.take(numbered(first, first + 6))
        assert kept.get(first + 6) == numbered(first + 6, first + 6)[0]
        assert len(kept) <= 100
    assert [seq for seq in range(1, 1010) if kept.get(seq)] == list(range(911, 1002))
    kept.take([outcome(1000), outcome(960), outcome(5), decided(1, 1)])
    assert [kept.get(seq) for seq in (1000, 960, 5)] == [None] * 3


def test_decisions_that_have_ended_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary is the model. Whatever ends, in whatever order, at most half of the rows are of ended decisions."""
    monkeypatch.setattr(recent, "PART", 50)
    generator, kept, model = np.random.default_rng(1), RecentDecisions(), dict[int, Entry]()
    for first in range(1, 2000, 20):
        new = [with_seq(drawn_at_random(generator), seq) for seq in range(first, first + 20)]
        model |= {entry.seq: entry for entry in new}
        ended = generator.choice(list(model), min(len(model), int(generator.integers(40))), replace=False).tolist()
        kept.take([*new, *map(outcome, ended), *map(outcome, ended[:3])])
        for seq in ended:
            del model[seq]
        assert len(kept) <= 2 * len(model)
        assert all(kept.get(seq) == model.get(seq) for seq in range(first + 30))
    kept.take(map(outcome, model))
    assert len(kept) == 0


def drawn_at_random(generator: np.random.Generator) -> Entry:
    """A decision whose numbers are as large as they can be."""
    at, experiment, round, seen, nonce = generator.integers(1, 2**62, 5).tolist()
    return Entry(at, EntryKind.DECIDED, experiment, 0, round, 999, float(generator.random()), -nonce, seen)


def test_older_decisions_are_added_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 30)
    monkeypatch.setattr(recent, "PART", 5)
    kept = RecentDecisions()
    kept.take(numbered(100, 109))
    assert kept.add_older(Drawings.of(reversed(numbered(80, 89))))
    assert kept.add_older(Drawings.of([]))
    assert kept.add_older(Drawings.of(numbered(60, 69)))
    assert not kept.add_older(Drawings.of(numbered(50, 50)))
    assert [seq for seq in range(40, 120) if kept.get(seq)] == [*range(60, 70), *range(80, 90), *range(100, 110)]
    kept.take([outcome(85), *numbered(110, 114)])  # the oldest make room for a new block
    assert [kept.get(seq) is None for seq in (69, 84, 85, 86, 111)] == [True, False, True, False, False]


def test_of_a_store_that_is_near_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "PART", 10)
    kept = RecentDecisions(is_far=False)
    kept.take(numbered(1, 25))
    kept.take([outcome(12), outcome(23), outcome(3)])
    assert [seq for seq in range(1, 30) if kept.get(seq)] == [11, *range(13, 23), 24, 25]
    assert len(kept) == 13
    kept.take([with_seq(Entry(1, EntryKind.BASE, 0, seen=21), 26)])
    assert [seq for seq in range(1, 30) if kept.get(seq)] == [22, 24, 25]


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
