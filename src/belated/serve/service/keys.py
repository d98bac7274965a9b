"""Keys decide who may do what. A key is `blt_<id>_<secret>`. The store has its id and the hash of its secret."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, final, get_args

from belated.errors import InvalidInput
from belated.serve.domain import timestamps
from belated.serve.domain.refusals import Refusal, try_later
from belated.serve.store.journal import Journal, Key

Scope = Literal["decide", "report", "admin"]  # not ask and tell, because stored keys have these words
FORM: Final = re.compile(r"blt_([0-9a-f]{12})_([0-9a-f]{64})")
# seconds after which keys that cannot be read again are not trusted, because one may have been revoked meanwhile
KEYS_TIMEOUT: Final = 15.0
READING_TIMEOUT: Final = 3600.0  # the same for requests that only read. They are needed to understand an outage
NOBODY: Final = Key("", hashlib.sha256(b"").digest(), "admin", None, 0)


class Grant(NamedTuple):
    """What a caller may do: everything or one scope, in all experiments or in one. `key` is the id of its key."""

    scope: str = "admin"
    experiment: str | None = None
    key: str = ""  # its id
    max_open: int | None = None  # open decisions of an experiment, if the key has its own limit
    rate: float | None = None  # decisions and reports a second, if the key has its own limit
    label: str = ""  # what its owner is called

    @property
    def by(self) -> str | None:
        """Who did it, for events and the audit trail: the key's label, or its id. None if the service has no keys."""
        return self.label or self.key or None


ANYONE: Final = Grant()


def digest(secret: str) -> bytes:
    """Hash a secret. It has 256 random bits, so a fast hash is safe."""
    return hashlib.sha256(secret.encode()).digest()


def create(
    journal: Journal, scope: str, experiment: str | None, *, max_open: int | None = None, rate: float | None = None
) -> str:
    """Create a key and return its text, which is shown only once."""
    if scope not in get_args(Scope):
        raise InvalidInput(f"a key's scope must be one of {', '.join(get_args(Scope))}, got {scope!r}")
    key, text = new(with_limits(scope, max_open, rate), experiment)
    journal.add_key(key)
    return text


def new(scope: str, experiment: str | None) -> tuple[Key, str]:
    """Return a new key as the store keeps it, and its text as callers use it."""
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    return Key(id, digest(secret), scope, experiment, timestamps.now()), f"blt_{id}_{secret}"


def with_limits(scope: str, max_open: int | None, rate: float | None) -> str:
    """Return the scope as the store keeps it, such as "decide max_open=1000 rate=50.0".

    An older release does not know such a scope. It refuses the key instead of ignoring the limits.
    """
    limits = {"max_open": max_open, "rate": None if rate is None else float(rate)}
    return " ".join([scope, *(f"{name}={value!r}" for name, value in limits.items() if value is not None)])


@lru_cache(1024)
def grant_of(key: Key) -> Grant:
    """Return what the owner of a key may do."""
    scope, *limits = key.scope.split()
    given = dict(limit.split("=", 1) for limit in limits)
    max_open, rate = given.get("max_open"), given.get("rate")
    return Grant(
        scope,
        key.experiment,
        key.id,
        None if max_open is None else int(max_open),
        None if rate is None else float(rate),
    )


@final
class Gate:
    """Admits requests. If the store has no keys, everybody may do everything, and `serve` stays on loopback."""

    def __init__(self, keys: list[Key], internal_keys: Sequence[Key] = ()) -> None:
        self._internal_keys = {key.id: key for key in internal_keys}  # for parts of the service itself
        self.is_locked = False  # stays True once there was a key, even if it was revoked
        self.learn(keys)

    def learn(self, keys: list[Key]) -> None:
        """Replace the list of keys."""
        self._keys = {key.id: key for key in keys}
        self.is_locked = self.is_locked or bool(keys)
        self._learned_at = time.monotonic()

    def admit(self, text: str | None, needed: Scope, *, is_reading: bool = False) -> Grant:
        """Return what the caller with this key may do, or raise a Refusal. `is_reading` if the request changes nothing.

        If the keys cannot be read from the store, those that were valid at the last look may still read for an hour.
        """
        if not self.is_locked:
            return ANYONE
        age = time.monotonic() - self._learned_at
        match = FORM.fullmatch(text or "")
        id, secret = match.groups() if match else ("", "")
        key = self._keys.get(id) or self._internal_keys.get(id, NOBODY)
        is_known = hmac.compare_digest(key.digest, digest(secret)) and key is not NOBODY
        if is_known and key.revoked_at is None:
            if age > (READING_TIMEOUT if is_reading else KEYS_TIMEOUT):
                raise try_later("the keys cannot be read, so a revoked key might be accepted")
        elif age > KEYS_TIMEOUT and match and not is_known:
            raise try_later("the keys cannot be read, so it is not known whether this one is new")
        else:
            raise Refusal("unauthenticated", "the key is missing, unknown or revoked")
        grant = grant_of(key)
        if grant.scope not in (needed, "admin"):
            raise Refusal(
                "forbidden", f"this needs a key with the scope {needed}, but the key has the scope {grant.scope}"
            )
        return grant


def check_experiment(grant: Grant, name: str) -> None:
    """Refuse a key of another experiment. The answer does not tell which experiments exist."""
    if grant.experiment != name:
        check_unrestricted(grant)


def check_unrestricted(grant: Grant) -> None:
    """Refuse a key that is for one experiment only."""
    if grant.experiment is not None:
        raise Refusal("forbidden", f"this key is for the experiment {grant.experiment!r} only")
