"""Entries for tests of a journal."""

import msgspec

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.store.journal import Journal


def created(name: str, at: int = 1) -> Entry:
    """An experiment begins."""
    return Entry(at, EntryKind.CREATED, 0, body=msgspec.json.encode({"name": name}))


def decided(experiment: int, round: int, *, at: int = 2, key: str | None = None, position: int | None = None) -> Entry:
    """An arm was drawn."""
    chosen = {"arm": 0, "probability": 0.5, "nonce": 7, "seen": 1}
    return Entry(at, EntryKind.DECIDED, experiment, round=round, request=key, position=position, **chosen)  # type: ignore[arg-type]


def outcome(decision: int, *, revision: int = 0, value: float | None = 1.0, at: int = 3) -> Entry:
    """The outcome of a decision."""
    kind = EntryKind.AMENDED if revision else EntryKind.REPORTED
    return Entry(at, kind, 1, round=1, arm=0, decision=decision, decided_at=2, revision=revision, value=value)


def event(experiment: int, revision: int | None, *, at: int = 4) -> Entry:
    """The arms of an experiment changed."""
    return Entry(at, EntryKind.ARMS, experiment, revision=revision, body=b"{}")


def filled(journal: Journal) -> None:
    """Write experiments 1 and 2, decisions 3, 5, 7 of the first and 4, 6 of the second, outcomes and an event."""
    journal.append([created("one"), created("two")])
    journal.append([decided(1 + number % 2, 1 + number // 2, at=10 + number) for number in range(5)])
    journal.append(
        [outcome(3), outcome(3, revision=1, value=0.0), outcome(5), Entry(9, EntryKind.CLOSED, 1, body=b"{}")]
    )
