"""Keys: who may do what. A key is `blt_<id>_<secret>`; the store has its id and the hash of its secret."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, final, get_args

from belated.errors import InvalidInput
from belated.serve.domain import clock
from belated.serve.domain.refusals import Refusal, try_later
from belated.serve.store.journal import Journal, Key

Scope = Literal["decide", "report", "admin"]
FORM: Final = re.compile(r"(?i:bearer) +blt_([0-9a-f]{12})_([0-9a-f]{64})")
STALE: Final = 15.0  # seconds after which a list of keys that cannot be read anew is not believed any more
NOBODY: Final = Key("", hashlib.sha256(b"").digest(), "admin", None, 0)


class Grant(NamedTuple):
    """What a caller may do: everything, or one scope, perhaps of one experiment only."""

    scope: str = "admin"
    experiment: str | None = None


ANYONE: Final = Grant()


def digest(secret: str) -> bytes:
    """The secret has 256 random bits: a plain hash cannot be searched, and costs a caller no time."""
    return hashlib.sha256(secret.encode()).digest()


def create(journal: Journal, scope: str, experiment: str | None) -> str:
    """A new key, to be shown once."""
    if scope not in get_args(Scope):
        raise InvalidInput(f"a key's scope is one of {', '.join(get_args(Scope))}, got {scope!r}")
    key, text = new(scope, experiment)
    journal.add_key(key)
    return text


def new(scope: str, experiment: str | None) -> tuple[Key, str]:
    """A key as it is kept, and as it is used."""
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    return Key(id, digest(secret), scope, experiment, clock.now()), f"blt_{id}_{secret}"


@final
class Gate:
    """Lets requests in. Without any key in the store everybody may do everything; `serve` then stays on loopback."""

    def __init__(self, keys: list[Key], internal_keys: Sequence[Key] = ()) -> None:
        self._internal_keys = {key.id: key for key in internal_keys}  # for parts of the service itself
        self.is_locked = False  # once there was a key, revoked or not: nothing that happens to a store opens the door
        self.learn(keys)

    def learn(self, keys: list[Key]) -> None:
        """These are the keys now."""
        self._keys = {key.id: key for key in keys}
        self.is_locked = self.is_locked or bool(keys)
        self._learned_at = time.monotonic()

    def admit(self, authorization: str | None, needed: Scope) -> Grant:
        """What the caller may do, or a Refusal 401 or 403."""
        if not self.is_locked:
            return ANYONE
        if time.monotonic() - self._learned_at > STALE:
            raise try_later("the keys cannot be read, and one may have been revoked")
        match = FORM.fullmatch(authorization or "")
        id, secret = match.groups() if match else ("", "")
        key = self._keys.get(id) or self._internal_keys.get(id, NOBODY)
        is_known = hmac.compare_digest(key.digest, digest(secret)) and key is not NOBODY
        if not is_known or key.revoked_at is not None:
            hint = "send Authorization: Bearer KEY; `belated keys create` makes one"
            raise Refusal("unauthenticated", f"the key is missing, unknown or revoked: {hint}")
        if key.scope not in (needed, "admin"):
            raise Refusal("forbidden", f"this key may {key.scope}; this needs the scope {needed}")
        return Grant(key.scope, key.experiment)


def check_experiment(grant: Grant, name: str) -> None:
    """A key of one experiment opens no other; that others exist is not told."""
    if grant.experiment is not None and grant.experiment != name:
        raise Refusal("forbidden", f"this key is for the experiment {grant.experiment!r} only")


def check_unrestricted(grant: Grant) -> None:
    """Refuse a key of one experiment what concerns the whole service."""
    if grant.experiment is not None:
        raise Refusal("forbidden", f"this key is for the experiment {grant.experiment!r} only")
