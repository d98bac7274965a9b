"""Live views: server-sent events, one document each, whenever something has changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from belated.serve.http.calls import Answer, Call, experiment_of
from belated.serve.http.experiments import experiment_page

PAUSE: Final = 0.2  # seconds between looks
APART: Final = 1.0  # seconds between two events
AGEING: Final = 5.0  # an event is due after so long even without news: what waits grows older
STREAM: Final = "text/event-stream"


async def events(call: Call, document: Callable[[], Any]) -> AsyncIterator[bytes]:
    """A document now, and again when there is news: of the journal, the store, or the lag; until the service stops."""
    seen, sent_at = None, 0.0
    while not call.service.is_stopping:
        now = call.service.change_mark()
        waited = time.monotonic() - sent_at
        if seen is None or (now != seen and waited >= APART) or waited >= AGEING:
            seen, sent_at = now, time.monotonic()
            yield b"data: " + msgspec.json.encode(document()) + b"\n\n"
        await asyncio.sleep(PAUSE)


async def watch(call: Call) -> Answer:
    """An experiment's document as a stream of events."""
    call.query()
    name = (await experiment_of(call)).name
    return Answer(200, events(call, lambda: call.service.experiment_view(name)), media=STREAM)


async def watch_all(call: Call) -> Answer:
    """The list of experiments as a stream of events."""
    call.query()
    return Answer(
        200, events(call, lambda: experiment_page(call.service, 0, 1000, call.grant.experiment)), media=STREAM
    )
