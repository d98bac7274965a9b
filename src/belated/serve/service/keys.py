"""Keys decide who may do what. A key is `blt_<id>_<secret>`. The store has its id and the hash of its secret."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, final, get_args

from belated.errors import InvalidInput
from belated.serve.domain import timestamps
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal, try_later
from belated.serve.store.journal import Journal, Key

Scope = Literal["read", "metrics", "decide", "report", "admin"]  # not ask and tell, as stored keys have these words
FORM: Final = re.compile(r"blt_([0-9a-f]{12})_([0-9a-f]{64})")
MAX_LABEL: Final = 100
EXPIRING: Final = "expiring"  # a word in the stored scope of a key that expires. An older release then refuses the key
# seconds after which keys that cannot be read again are not trusted, because one may have been revoked meanwhile
KEYS_TIMEOUT: Final = 15.0
READING_TIMEOUT: Final = 3600.0  # the same for requests that only read. They are needed to understand an outage
NO_KEYS: Final = (
    "this service has no keys, so it does not check the one that you sent, and protects nothing. "
    "Send none, or create keys with `belated keys create`."
)
NOBODY: Final = Key("", hashlib.sha256(b"").digest(), "admin", None, 0)


class Grant(NamedTuple):
    """What a caller may do: everything or some scopes, in all experiments or in one. `key` is the id of its key."""

    scope: str = "admin"  # or several, as in decide+report
    experiment: str | None = None
    key: str = ""  # its id
    max_open: int | None = None  # of the decisions that it has asked for, if the key has its own limit
    rate: float | None = None  # decisions and reports a second, if the key has its own limit
    label: str = ""  # what its owner is called
    first: str = ""  # the id of the first of the keys that have replaced each other, if this was not the first

    @property
    def by(self) -> str | None:
        """Who did it, for events and the audit trail: the key's label, or its id. None if the service has no keys."""
        return self.label or self.key or None

    @property
    def limit(self) -> OpenLimit | None:
        """How many of its decisions may be open, or None if the key has no limit of its own."""
        return None if self.max_open is None else OpenLimit(self.owner, self.max_open)

    @property
    def owner(self) -> str:
        """Whose limits it shares: the id of the first of the keys that have replaced each other."""
        return self.first or self.key

    def may(self, needed: Scope) -> bool:
        """Whether it includes this scope."""
        return self.scope == needed or not {needed, "admin"}.isdisjoint(self.scope.split("+"))


ANYONE: Final = Grant()


def digest(secret: str) -> bytes:
    """Hash a secret. It has 256 random bits, so a fast hash is safe."""
    return hashlib.sha256(secret.encode()).digest()


def create(
    journal: Journal, scope: str, experiment: str | None, *, max_open: int | None = None, rate: float | None = None
) -> str:
    """Create a key and return its text, which is shown only once."""
    key, text = new(with_limits(scope, max_open, rate), experiment)
    journal.add_key(key)
    return text


def new(scope: str, experiment: str | None, label: str = "", expires_at: int | None = None) -> tuple[Key, str]:
    """Return a new key as the store keeps it, and its text as callers use it. Raises InvalidInput."""
    if len(label) > MAX_LABEL or not label.isprintable() or label != label.strip():
        raise InvalidInput(
            f"a label must have at most {MAX_LABEL} printable characters, without spaces around it, got {label!r:.80}"
        )
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    stored = scope if expires_at is None else expiring(scope)
    key = Key(id, digest(secret), stored, experiment, timestamps.now(), label=label, expires_at=expires_at)
    return key, f"blt_{id}_{secret}"


def check_scopes(scopes: Sequence[str]) -> None:
    """Raise InvalidInput if these are not scopes."""
    known = get_args(Scope)
    for scope in scopes:
        if scope not in known:
            raise InvalidInput(f"a key's scope must be one of {', '.join(known)}, got {scope!r}")


def expiring(scope: str) -> str:
    """Return the scope of a key that expires. An older release does not know such a scope, and refuses the key."""
    return scope if scope.startswith(EXPIRING) else f"{EXPIRING}+{scope}"


def with_limits(
    scope: str, max_open: int | None, rate: float | None, lifetime: float | None = None, first: str | None = None
) -> str:
    """Return the scope as the store keeps it, such as "decide max_open=1000 rate=50.0". Raises InvalidInput.

    An older release does not know such a scope. It refuses the key instead of ignoring the limits.
    `lifetime` is for the keys that will replace this one, and `first` the first of those that it replaces.
    """
    check_scopes(scope.split("+"))
    limits = {"max_open": max_open, "rate": None if rate is None else float(rate), "lifetime": lifetime}
    given = [f"{name}={value!r}" for name, value in limits.items() if value is not None]
    return " ".join([scope, *given, *([f"first={first}"] if first else [])])


def limits_of(key: Key) -> dict[str, str]:
    """Return what `with_limits` has added to the scope of a key."""
    return dict(limit.split("=", 1) for limit in key.scope.split()[1:])


@lru_cache(1024)
def grant_of(key: Key) -> Grant:
    """Return what the owner of a key may do."""
    scope, given = key.scope.split()[0], limits_of(key)
    max_open, rate = given.get("max_open"), given.get("rate")
    return Grant(
        scope.removeprefix(f"{EXPIRING}+"),
        key.experiment,
        key.id,
        None if max_open is None else int(max_open),
        None if rate is None else float(rate),
        key.label,
        given.get("first", ""),
    )


@final
class Gate:
    """Admits requests. If the store has no keys, everybody may do everything, and `serve` stays on loopback."""

    def __init__(
        self, keys: list[Key], internal_keys: Sequence[Key] = (), now: Callable[[], int] = timestamps.now
    ) -> None:
        self._internal_keys = {key.id: key for key in internal_keys}  # for parts of the service itself
        self._now, self._uses = now, dict[str, int]()
        self.is_locked = False  # stays True once there was a key, even if it was revoked
        self.learn(keys)

    def learn(self, keys: list[Key]) -> None:
        """Replace the list of keys."""
        self._keys = {key.id: key for key in keys}
        self.is_locked = self.is_locked or bool(keys)
        self._learned_at = time.monotonic()

    def take_uses(self) -> dict[str, int]:
        """Return when each key was last used since the last call, by its id."""
        taken, self._uses = self._uses, {}
        return taken

    def admit(self, text: str | None, needed: Scope, *, is_reading: bool = False) -> Grant:
        """Return what the caller with this key may do, or raise a Refusal. `is_reading` if the request changes nothing.

        If the keys cannot be read from the store, those that were valid at the last look may still read for an hour.
        """
        if text is None and not self.is_locked:
            return ANYONE
        match = FORM.fullmatch(text or "")
        id, secret = match.groups() if match else ("", "")
        key = self._keys.get(id) or self._internal_keys.get(id, NOBODY)
        is_known = hmac.compare_digest(key.digest, digest(secret)) and key is not NOBODY
        if not self.is_locked:
            if not is_known:
                raise Refusal("forbidden", NO_KEYS)
            return ANYONE
        grant = grant_of(key)
        try:
            self._check(key, is_known=is_known, is_formed=match is not None, is_reading=is_reading)
            if not grant.may(needed):
                had = grant.scope.replace("+", " and ")
                raise Refusal("forbidden", f"this needs a key with the scope {needed}, but the key has the scope {had}")
        except Refusal as refusal:
            refusal.key = (grant.by or "", key.id) if is_known else ("", "")
            raise
        if key.id in self._keys:
            self._uses[key.id] = timestamps.now()
        return grant

    def _check(self, key: Key, *, is_known: bool, is_formed: bool, is_reading: bool) -> None:
        """Raise a Refusal unless the key is valid now, as far as that is known."""
        age = time.monotonic() - self._learned_at
        if is_known and key.revoked_at is None:
            if key.expires_at is not None and self._now() >= key.expires_at:
                raise Refusal("unauthenticated", "the key has expired")
            if age > (READING_TIMEOUT if is_reading else KEYS_TIMEOUT):
                raise try_later("the keys cannot be read, so a revoked key might be accepted")
        elif age > KEYS_TIMEOUT and is_formed and not is_known:
            raise try_later("the keys cannot be read, so it is not known whether this one is new")
        else:
            raise Refusal("unauthenticated", "the key is missing, unknown or revoked")


def check_experiment(grant: Grant, name: str) -> None:
    """Refuse a key of another experiment. The answer does not tell which experiments exist."""
    if grant.experiment != name:
        check_unrestricted(grant)


def check_unrestricted(grant: Grant) -> None:
    """Refuse a key that is for one experiment only."""
    if grant.experiment is not None:
        raise Refusal("forbidden", f"this key is for the experiment {grant.experiment!r} only")
