"""What requests leave in the audit trail: each change, and how often which kind of request was refused."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import iso
from belated.serve.http import request_ids
from belated.serve.http.calls import Answer, Call
from belated.serve.http.documents import Resume
from belated.serve.service.trail import Kind, Record, change

READING: Final = ("GET", "HEAD")
METHODS: Final = (*READING, "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class AuditRecord(msgspec.Struct):
    """A change, or refusals of one kind that came within about a minute."""

    kind: Annotated[str, Meta(description="change or refusal.")]
    first: Annotated[str, Meta(description="When it was, or the first of them.")]
    last: str
    times: Annotated[int, Meta(description="How many there were.")]
    what: Annotated[str, Meta(description="The route, or the command.")]
    status: Annotated[int, Meta(description="Of the answer. 0 if refusals of several kinds are counted as one.")]
    by: Annotated[str, Meta(description="The label of the key, or its id. Empty if no known key was sent.")]
    key: Annotated[str, Meta(description="The id of the key.")]
    experiment: Annotated[str, Meta(description="Empty if the request is about none, or about an unknown one.")]
    request_id: Annotated[str, Meta(description="Of the last of them.")]


class AuditPage(msgspec.Struct):
    """A page of the audit trail, oldest first."""

    records: list[AuditRecord]
    next: str | None
    resume: Resume


def of_record(record: Record) -> AuditRecord:
    """Describe a record."""
    kind, first, last = "change" if record.is_change else "refusal", iso(record.first), iso(record.last)
    return AuditRecord(kind, first, last, *record[4:])


async def audit(call: Call) -> Answer:
    """Read who changed what, and who was refused. A key of one experiment sees what is about that."""
    after, limit = call.page()
    page = await call.service.audit(after, limit, call.grant.experiment)
    return Answer(200, AuditPage([of_record(one) for one in page.items], page.next, page.resume))


def what_of(call: Call, path: str) -> str:
    """Return what a request does. Strange methods count as one, because the caller chooses them."""
    method = call.scope["method"]
    return f"{method if method in METHODS else 'other'} {path}"


def record_of(call: Call, path: str, status: int) -> Record:
    """Return the record of a change."""
    kind = Kind(what_of(call, path), status, call.grant.by or "", call.grant.key, call.about)
    return change(kind, call.service.now(), request_ids.CURRENT.get())


async def note_change(call: Call, path: str, answer: Answer) -> None:
    """Write that a change was made, before it is answered. A service without keys has nobody to name."""
    if call.scope["method"] not in READING and call.grant.key and not call.noted:
        await call.service.note_change(record_of(call, path, answer.status))


def note_refusal(call: Call, path: str, status: int, refusal: Refusal | None) -> None:
    """Count a refused request. Only a service with keys does, and only names of experiments that exist are kept."""
    service = call.service
    if service.is_locked and 400 <= status < 500:
        by, key = (
            refusal.key if refusal is not None and refusal.key != ("", "") else (call.grant.by or "", call.grant.key)
        )
        about = call.about if call.about and service.knows(call.about) else ""
        service.refused.add(Kind(what_of(call, path), status, by, key, about), service.now(), request_ids.CURRENT.get())
