"""Requests that need an entry which is written, but hidden by an open transaction. They wait here, and nobody else."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar, final

from belated.serve.engine.requests import Hidden, Result

T = TypeVar("T")


class Parked(NamedTuple, Generic[T]):
    """A request, what it waits for, and until when."""

    waiting: T
    hidden: Hidden
    until: float


@final
class Parking(Generic[T]):
    """The requests that wait."""

    def __init__(self) -> None:
        self._parked: list[Parked[T]] = []

    def keep(self, group: Sequence[T], results: Sequence[Result], until: float) -> tuple[list[T], list[Result]]:
        """Keep the requests whose result is Hidden. Return the others with their results."""
        answered: tuple[list[T], list[Result]] = [], []
        for waiting, result in zip(group, results, strict=True):
            if isinstance(result, Hidden):
                self._parked.append(Parked(waiting, result, until))
            else:
                answered[0].append(waiting)
                answered[1].append(result)
        return answered

    def take(self, seq: int, now: float) -> tuple[list[Parked[T]], list[Parked[T]]]:
        """Remove and return the requests whose entry can be read, and those that have waited long enough."""
        readable = [one for one in self._parked if one.hidden.seq <= seq]
        over = [one for one in self._parked if one.hidden.seq > seq and one.until <= now]
        if readable or over:
            self._parked = [one for one in self._parked if one.hidden.seq > seq and one.until > now]
        return readable, over
