"""Many games in threads, which Ctrl-C stops."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from belated.arrays import Floats
from belated.progress import Progress

Name = TypeVar("Name")
Outcome = TypeVar("Outcome")


def watched(blocks: Iterator[Floats], progress: Progress, stop: threading.Event) -> Iterator[Floats]:
    """The same blocks. Counts their rounds, and raises KeyboardInterrupt once `stop` is set."""
    for block in blocks:
        if stop.is_set():
            raise KeyboardInterrupt
        yield block
        progress.advance(len(block))


def run_all(
    one: Callable[[Name], Outcome], games: Iterable[Name], workers: int, stop: threading.Event
) -> dict[Name, Outcome]:
    """Play all games. Returns a result for each, in order, or after Ctrl-C for those that are finished."""
    finished: dict[Name, Outcome] = {}
    with ThreadPoolExecutor(workers) as pool:
        futures = {name: pool.submit(one, name) for name in games}
        try:
            for name, future in futures.items():
                finished[name] = future.result()
        except BaseException as error:
            stop.set()
            pool.shutdown(cancel_futures=True)
            done = {name: future for name, future in futures.items() if future.done() and not future.cancelled()}
            finished |= {name: future.result() for name, future in done.items() if future.exception() is None}
            if not (isinstance(error, KeyboardInterrupt) and finished):
                raise
    return finished
