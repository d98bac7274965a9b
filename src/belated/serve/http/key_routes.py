"""Handlers that manage keys. Each is for a key that may do everything. Secrets are shown once, and never logged."""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.settings import Name
from belated.serve.domain.timestamps import iso, iso_or_none
from belated.serve.http.auditing import record_of
from belated.serve.http.calls import NOTHING, Answer, Call
from belated.serve.service import managing
from belated.serve.service.keys import MAX_LABEL, Scope, check_unrestricted, grant_of
from belated.serve.service.managing import Key

LONGEST: Final = 100 * 366 * 86_400.0
KEYS: Final = "/v1/keys"
KEY: Final = "/v1/keys/{key_id}"
Label = Annotated[str, Meta(max_length=MAX_LABEL, description="Whose key it is. Events and the audit trail name it.")]
Seconds = Annotated[float, Meta(gt=0, le=LONGEST)]


class KeyDocument(msgspec.Struct):
    """A key, without its secret."""

    id: Annotated[str, Meta(description="The key_id in the addresses that rotate and revoke it.")]
    label: str
    scopes: list[Scope]
    experiment: Annotated[str, Meta(description="The one experiment that it is for. null for all.")] | None
    created_at: str
    expires_at: str | None
    used_at: Annotated[str, Meta(description="When it was last used, to a minute or two. null if never.")] | None
    revoked_at: str | None
    max_open: Annotated[int, Meta(description="How many of its decisions may be open.")] | None
    rate: float | None


class CreatedKey(KeyDocument):
    """A new key."""

    key: Annotated[str, Meta(description="The key itself. It is shown only here.")]


class KeyList(msgspec.Struct):
    """All keys, oldest first."""

    keys: list[KeyDocument]


class NewKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a new key may do, and for how long."""

    label: Label = ""
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=5)]
    experiment: Name | None = None
    expires_in: Annotated[Seconds, Meta(description="Seconds until it expires. null for never.")] | None = None
    max_open: (
        Annotated[int, Meta(ge=1, description="How many of its decisions may be open, in all experiments together.")]
        | None
    ) = None
    rate: Annotated[float, Meta(ge=0.001)] | None = None


class Rotation(msgspec.Struct, forbid_unknown_fields=True):
    """How a key is replaced."""

    overlap: Annotated[float, Meta(ge=0, le=LONGEST, description="Seconds for which the old key still works.")] = 86_400
    expires_in: (
        Annotated[Seconds, Meta(description="Of the new key. Without it, it lives as long as the old one should have.")]
        | UnsetType
    ) = UNSET


NEW_KEY: Final = msgspec.json.Decoder(NewKey)
ROTATION: Final = msgspec.json.Decoder(Rotation)


def of_key(key: Key) -> KeyDocument:
    """Describe a key."""
    may = grant_of(key)
    times = iso(key.created_at), iso_or_none(key.expires_at), iso_or_none(key.used_at), iso_or_none(key.revoked_at)
    scopes: list[Scope] = may.scope.split("+")  # type: ignore[assignment]
    return KeyDocument(key.id, key.label, scopes, key.experiment, *times, may.max_open, may.rate)


def of_made(made: managing.MadeKey) -> CreatedKey:
    """Describe a new key, with its text."""
    return CreatedKey(**msgspec.structs.asdict(of_key(made.key)), key=made.text)


async def create_key(call: Call) -> Answer:
    """Create a key. Other servers of the store know it within a second."""
    check_unrestricted(call.grant)
    wanted = await call.read(NEW_KEY)
    wish = managing.KeyWish(**{name: getattr(wanted, name) for name in managing.KeyWish._fields})
    call.about, record = (
        wanted.experiment or "",
        record_of(call, KEYS, 201)._replace(experiment=wanted.experiment or ""),
    )
    made = await call.service.manage(lambda journal, now: managing.create_first(journal, wish, now, record))
    call.noted = True
    return Answer(201, of_made(made))


async def list_keys(call: Call) -> Answer:
    """List all keys, without their secrets, oldest first."""
    call.query()
    check_unrestricted(call.grant)
    known = await run_in_threadpool(call.service.keys)
    return Answer(200, KeyList([of_key(key) for key in known]))


async def rotate_key(call: Call) -> Answer:
    """Create a key that may do the same as another one. The other one ends after the overlap."""
    check_unrestricted(call.grant)
    wanted, id = await call.read(ROTATION), call.path["key_id"]
    expires_in = None if wanted.expires_in is UNSET else wanted.expires_in
    record = record_of(call, f"{KEYS}/{id}/rotate", 201)
    rotate = partial(managing.rotate, record=record)
    made = await call.service.manage(lambda journal, now: rotate(journal, id, wanted.overlap, expires_in, now))
    call.noted = True
    return Answer(201, of_made(made))


async def revoke_key(call: Call) -> Answer:
    """Revoke a key. Every server that reaches the store refuses it within a second. Repeating it changes nothing."""
    check_unrestricted(call.grant)
    await call.read(NOTHING)
    id = call.path["key_id"]
    record = record_of(call, f"{KEYS}/{id}/revoke", 200)
    key = await call.service.manage(lambda journal, now: managing.revoke(journal, id, now, record))
    call.noted = True
    return Answer(200, of_key(key))
