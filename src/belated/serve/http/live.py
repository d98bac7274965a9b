"""Live views as server-sent events. Each event is a document, sent when something has changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from belated.serve.http.calls import Answer, Call, experiment_of
from belated.serve.http.documents import MAX_PAGE
from belated.serve.http.experiments import experiment_page

PAUSE: Final = 0.2  # seconds between two looks for changes
APART: Final = 1.0  # seconds between two events, at least
AGEING: Final = 5.0  # seconds after which an event is sent without changes, because open decisions grow older
STREAM: Final = "text/event-stream"


async def events(call: Call, document: Callable[[], Any]) -> AsyncIterator[bytes]:
    """Yield a document now and after each change of the journal, the store or the lag, until the service stops."""
    seen, sent_at = None, 0.0
    while not call.service.is_stopping:
        now = call.service.change_mark()
        waited = time.monotonic() - sent_at
        if seen is None or (now != seen and waited >= APART) or waited >= AGEING:
            seen, sent_at = now, time.monotonic()
            yield b"data: " + msgspec.json.encode(document()) + b"\n\n"
        await asyncio.sleep(PAUSE)


async def watch(call: Call) -> Answer:
    """Stream an experiment's document."""
    call.query()
    name = (await experiment_of(call)).name
    return Answer(200, events(call, lambda: call.service.experiment_view(name)), media=STREAM)


async def watch_all(call: Call) -> Answer:
    """Stream the list of experiments."""
    call.query()
    only = call.grant.experiment
    return Answer(200, events(call, lambda: experiment_page(call.service, 0, MAX_PAGE, only)), media=STREAM)
