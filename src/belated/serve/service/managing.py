"""Creates, rotates and revokes keys, for the API and the command line. A server does so in the writer's thread."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from belated.errors import InvalidInput
from belated.serve.domain.quotas import exhausted
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.service import keys
from belated.serve.store.journal import Journal, Record
from belated.serve.store.journal import Key as Key  # noqa: PLC0414  # for http

FIRST: Final = (
    "the first key of a service must have the scope admin and be for all experiments, "
    "or nobody could create another one over the API"
)


MOST_KEYS: Final = 10_000  # that work, so that a program that creates keys in a loop slows nobody down
KEYS_RETRY: Final = 3600  # seconds


class MadeKey(NamedTuple):
    """A key, and its text, which is shown only once."""

    key: Key
    text: str


class KeyWish(NamedTuple):
    """What a new key should be."""

    scopes: Sequence[str]
    label: str = ""
    experiment: str | None = None
    expires_in: float | None = None  # seconds
    max_open: int | None = None
    rate: float | None = None


def create(journal: Journal, wish: KeyWish, now: int, record: Record | None = None) -> MadeKey:
    """Create a key. Raises InvalidInput, or a Refusal if there are too many."""
    if not wish.scopes:
        raise InvalidInput("a key needs at least one scope")
    check_room(journal.keys(), now)
    scope = keys.with_limits("+".join(dict.fromkeys(wish.scopes)), wish.max_open, wish.rate, wish.expires_in)
    expires_at = None if wish.expires_in is None else now + round(wish.expires_in * MICROSECONDS)
    made = MadeKey(*keys.new(scope, wish.experiment, wish.label, expires_at, now))
    journal.add_key(made.key, None, naming(record, made.key))
    return made


def naming(record: Record | None, made: Key) -> Record | None:
    """Return a record that also says which key was made."""
    record = about(record, made)
    return None if record is None else record._replace(what=f"{record.what}, new key {made.id}")


def about(record: Record | None, key: Key) -> Record | None:
    """Return a record that is about the experiment of a key, if it is for one."""
    return None if record is None else record._replace(experiment=key.experiment or "")


def create_first(journal: Journal, wish: KeyWish, now: int, record: Record | None = None) -> MadeKey:
    """Create a key over the API. The first one must be able to create others."""
    if not journal.keys() and ("admin" not in wish.scopes or wish.experiment is not None):
        raise InvalidInput(FIRST)
    return create(journal, wish, now, record)


def rotate(
    journal: Journal, id: str, overlap: float, expires_in: float | None, now: int, record: Record | None = None
) -> MadeKey:
    """Create a key that may do the same as another one, which ends after `overlap` seconds. Raises a Refusal.

    Without `expires_in` the new key lives as long as the old one was meant to.
    """
    old = find(journal, id)
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
        raise Refusal("conflict", f"the key {id!r} is revoked or has expired. Create a new one.")
    check_room(journal.keys(), now)
    may, meant = keys.grant_of(old), keys.limits_of(old).get("lifetime")
    lifetime = expires_in if expires_in is not None or meant is None else float(meant)
    first = None if may.max_open is None and may.rate is None else may.owner  # so that both share the limits
    scope = keys.with_limits(may.scope, may.max_open, may.rate, lifetime, first)
    expires_at = None if lifetime is None else now + round(lifetime * MICROSECONDS)
    made = MadeKey(*keys.new(scope, old.experiment, old.label, expires_at, now))
    end = min(now + round(overlap * MICROSECONDS), old.expires_at or 2**62)
    ended = old._replace(scope=keys.expiring(old.scope), expires_at=end)
    journal.add_key(made.key, ended, naming(record, made.key))
    return made


def revoke(journal: Journal, id: str, now: int, record: Record | None = None) -> Key:
    """Revoke a key. Repeating it changes nothing. Raises a Refusal."""
    journal.revoke_key(id, now, about(record, find(journal, id)))
    return find(journal, id)


def check_room(known: Sequence[Key], now: int) -> None:
    """Raise a Refusal if so many keys work already. Every server reads all keys twice a second."""
    working = sum(one.revoked_at is None and (one.expires_at is None or one.expires_at > now) for one in known)
    if working >= MOST_KEYS:
        said = f"{working:,} keys work now, and {MOST_KEYS:,} may. Revoke some that nobody uses any more."
        raise exhausted("keys", said, KEYS_RETRY)


def find(journal: Journal, id: str) -> Key:
    """Return a key, or raise a Refusal."""
    known = journal.keys()
    for key in known:
        if key.id == id:
            return key
    raise Refusal("not_found", f"there is no key {id!r:.80}. The list of keys has all of them.")
