"""How an experiment is operated after some entry, read off the journal without the code that it judges."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.timestamps import MICROSECONDS


class Operated(NamedTuple):
    """What the events of the journal say."""

    arms: tuple[str, ...] = ()  # all that ever took part
    is_paused: bool = False
    shown: str | None = None
    has_ended: bool = False
    is_closed: bool = False
    wait: int | None = None  # microseconds
    default: float | None = None
    has_parts: bool = False  # whether an outcome is made of parts, so that it ends with what is known of them

    @property
    def can_decide(self) -> bool:
        """Whether a decision may be drawn from this state."""
        return not self.is_paused and (self.has_ended or not self.is_closed)


def operated(events: Iterable[Entry], until: int) -> Operated:
    """Return what the events of an experiment up to an entry say."""
    now = Operated()
    for entry in events:
        if entry.seq <= until:
            now = _after(now, entry.kind, msgspec.json.decode(entry.body or b"{}"))
    return now


def _after(now: Operated, kind: EntryKind, body: Any) -> Operated:
    if kind is EntryKind.CREATED:
        return _with_settings(now._replace(arms=tuple(body["arms"])), body)
    if kind is EntryKind.ARMS:
        return now._replace(arms=(*now.arms, *(arm for arm in body["add"] if arm not in now.arms)))
    changes: dict[str, dict[str, Any]] = {
        "paused": {"is_paused": True},
        "resumed": {"is_paused": False},
        "frozen": {"is_paused": False, "shown": body.get("arm")},
        "unfrozen": {"shown": None},
        "ended": {"is_paused": False, "shown": body.get("arm"), "has_ended": True},
        "edited": {},
    }
    change = {"is_closed": True} if kind is EntryKind.CLOSED else changes[body["event"]]
    return _with_settings(now._replace(**change), body.get("settings", {}))


def _with_settings(now: Operated, settings: Any) -> Operated:
    wait, default = settings.get("reward_wait"), settings.get("default_outcome")
    return now._replace(
        wait=now.wait if wait is None else round(wait * MICROSECONDS),
        default=now.default if default is None else default,
        has_parts=now.has_parts or "parts" in settings,
    )
