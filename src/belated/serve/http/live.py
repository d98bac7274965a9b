"""Live views as server-sent events. Each event is a document, sent when something has changed.

All who watch the same document share it. It is made in the thread for documents, and the more it costs, the rarer.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from functools import partial
from typing import Any, Final, NamedTuple, final
from weakref import WeakKeyDictionary

import msgspec

from belated.serve.domain.quotas import exhausted
from belated.serve.domain.refusals import Refusal
from belated.serve.http.calls import Answer, Call, experiment_of
from belated.serve.http.differences import difference
from belated.serve.http.documents import MAX_PAGE
from belated.serve.http.experiments import experiment_page
from belated.serve.service.service import Service

PAUSE: Final = 0.2  # seconds between two looks for changes
APART: Final = 1.0  # seconds between two events, at least
AGEING: Final = 5.0  # seconds after which an event is sent without changes, because open decisions grow older
SHARE: Final = 0.01  # of one processor, which a watched document may use, so that few decisions notice
MOST_WATCHING: Final = 200  # streams of a process, so that they do not take the connections of all others
WATCHING_RETRY: Final = 10  # seconds
LONGEST: Final = 10.0  # seconds between two events at most, if something has changed
STREAM: Final = "text/event-stream"
SCOPES: Final = "Belated-Scopes"  # the header of a stream that says what its key may do, so that a page offers no more


class Update(NamedTuple):
    """A document, and how it differs from the one before."""

    number: int
    plain: Any
    document: bytes
    patch: bytes  # of the document `number - 1`
    cost: float  # processor seconds


def update(before: Update | None, document: Callable[[], Any]) -> Update:
    """Make the next document. Call it in the thread for documents."""
    began, made = time.thread_time(), document()
    plain, number = msgspec.to_builtins(made), 0 if before is None else before.number + 1
    patch = msgspec.json.encode([] if before is None else difference(before.plain, plain))
    return Update(number, plain, msgspec.json.encode(made), patch, time.thread_time() - began)


@final
class Feed:
    """A document that is kept new while somebody watches it."""

    def __init__(self, service: Service, key: Hashable, document: Callable[[], Any]) -> None:
        self._service, self._key, self._document = service, key, document
        self._latest: Update | None = None
        self._news = asyncio.Event()  # a new one after each update
        self._task = asyncio.create_task(self._keep_new())
        self.n_watching = 0

    async def _keep_new(self) -> None:
        """Make a document now and after each change of the journal, the store or the lag, until the service stops."""
        seen, made_at, pause = None, 0.0, APART
        while not self._service.is_stopping:
            now, waited = self._service.change_mark(), time.monotonic() - made_at
            if seen is None or (waited >= pause and (now != seen or waited >= AGEING)):
                seen, made_at = now, time.monotonic()
                make = partial(update, self._latest, self._document)
                self._latest = await self._service.views.make(("feed", self._key), make)
                pause = max(APART, min(LONGEST, self._latest.cost / SHARE))
                self._news.set()
                self._news = asyncio.Event()
            await asyncio.sleep(PAUSE)

    async def follow(self) -> AsyncIterator[Update]:
        """Yield the present document and every later one. A slow reader misses some."""
        seen = -1
        self._task.add_done_callback(lambda _: self._news.set())
        while True:
            news, latest = self._news, self._latest
            if latest is not None and latest.number != seen:
                seen = latest.number
                yield latest
            elif self._task.done():
                return
            else:
                await news.wait()

    def stop(self) -> None:
        """Make no more documents."""
        self._task.cancel()


FEEDS: Final[WeakKeyDictionary[Service, dict[Hashable, Feed]]] = WeakKeyDictionary()


def events(service: Service, key: Hashable, document: Callable[[], Any], *, differences: bool) -> AsyncIterator[bytes]:
    """Return each document as an event, or the first one and then what has changed.

    Refuses it if there are too many streams. Counts this one now and not when it begins, or many could begin at once.
    """
    feeds = FEEDS.setdefault(service, {})
    if sum(feed.n_watching for feed in feeds.values()) >= MOST_WATCHING:
        said = f"this server has {MOST_WATCHING} live streams. Close some, or ask for the document now and then."
        raise exhausted("live streams", said, WATCHING_RETRY)
    feed = feeds[key] = feeds.get(key) or Feed(service, key, document)
    feed.n_watching += 1
    return followed(feeds, key, feed, differences=differences)


async def followed(
    feeds: dict[Hashable, Feed], key: Hashable, feed: Feed, *, differences: bool
) -> AsyncIterator[bytes]:
    """Yield the events of a feed. The last one who leaves ends it."""
    seen = -2
    try:
        async for latest in feed.follow():
            if not differences:
                yield b"data: " + latest.document + b"\n\n"
            elif latest.number == seen + 1:
                yield b"event: patch\ndata: " + latest.patch + b"\n\n"
            else:
                yield b"event: document\ndata: " + latest.document + b"\n\n"
            seen = latest.number
    finally:
        feed.n_watching -= 1
        if feed.n_watching == 0:
            feed.stop()
            del feeds[key]


def wants_differences(call: Call) -> bool:
    """Read the query of a stream."""
    asked = call.query("differences").get("differences", "false")
    if asked not in ("true", "false"):
        raise Refusal("invalid", f"differences must be true or false, got {asked!r:.80}")
    return asked == "true"


def scopes_of(call: Call) -> dict[str, str]:
    """Return the header that says what the caller may do. Without keys that is everything."""
    return {SCOPES: call.grant.scope.replace("+", " ")}


async def watch(call: Call) -> Answer:
    """Stream an experiment's document."""
    differences, service = wants_differences(call), call.service
    name = (await experiment_of(call)).name
    stream = events(service, name, lambda: service.experiment_view(name), differences=differences)
    return Answer(200, stream, scopes_of(call), STREAM)


async def watch_all(call: Call) -> Answer:
    """Stream the list of experiments."""
    differences, service, only = wants_differences(call), call.service, call.grant.experiment
    document = lambda: experiment_page(service, 0, MAX_PAGE, only)  # noqa: E731
    return Answer(200, events(service, (only,), document, differences=differences), scopes_of(call), STREAM)
