"""Documents are made one at a time, shared by those who wait, and leave time to others."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from belated.serve.service.viewing import REST, ViewThread


@pytest.fixture
def views() -> Iterator[ViewThread]:
    made = ViewThread()
    yield made
    made.close()


def test_who_waits_for_the_same_document_shares_it(views: ViewThread) -> None:
    begun, go, made = threading.Event(), threading.Event(), list[int]()

    def make() -> int:
        begun.set()
        go.wait(10)
        made.append(len(made))
        return made[-1]

    async def ask() -> list[int]:
        first = asyncio.create_task(views.make("layout", make))
        await asyncio.to_thread(begun.wait, 10)
        later = [asyncio.create_task(views.make("layout", make)) for _ in range(5)]
        other = asyncio.create_task(views.make("other", make))
        await asyncio.sleep(0)
        go.set()
        return list(await asyncio.gather(first, *later, other))

    assert asyncio.run(ask()) == [0, 1, 1, 1, 1, 1, 2], (
        "a document that was begun before may lack what was written since"
    )


def test_who_leaves_takes_nothing_from_the_others(views: ViewThread) -> None:
    async def ask() -> str:
        busy = asyncio.create_task(views.make("busy", lambda: time.sleep(0.05)))
        leaving, staying = (asyncio.create_task(views.make("layout", lambda: "made")) for _ in range(2))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await busy
        return await staying

    assert asyncio.run(ask()) == "made"


def test_an_error_reaches_its_callers_only(views: ViewThread) -> None:
    async def ask() -> Any:
        with pytest.raises(ZeroDivisionError):
            await views.make("layout", lambda: 1 // 0)
        return await views.make("layout", lambda: "made")

    assert asyncio.run(ask()) == "made"


def test_a_costly_document_is_followed_by_a_rest(views: ViewThread) -> None:
    """However often somebody asks, most of the time is left for decisions."""

    def costly() -> float:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return time.monotonic()

    async def ask() -> float:
        ended = await views.make("layout", costly)
        return await views.make("layout", time.monotonic) - ended

    assert asyncio.run(ask()) > REST * 0.019
