"""Faults in outcomes that are made of parts, which the simulation must find."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from belated.serve.domain import parts
from belated.serve.domain.entries import Entry
from belated.serve.domain.parts import Composed, PartSums
from belated.serve.engine import expiry, feedback

MUTANTS: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {}


def mutant(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Put a patch into the table of mutants, by its name."""

    @contextmanager
    def patched() -> Iterator[None]:
        for one in make():
            with one:
                yield

    MUTANTS[make.__name__] = patched
    return make


@mutant
def the_end_of_a_wait_forgets_parts() -> Iterator[Any]:
    ended = parts.ended
    yield patch.object(expiry, "ended", lambda declared, _outcome: ended(declared, None))


@mutant
def a_wait_does_not_end_after_the_first_part() -> Iterator[Any]:
    yield patch.object(expiry, "is_open", lambda found: found.outcome is None)


@mutant
def a_part_drives_out_the_others() -> Iterator[Any]:
    joined = parts.joined

    def alone(declared: Any, known: Composed, told: Any, revision: int) -> Composed:
        return joined(declared, known._replace(values=[None] * len(known.values)), told, revision)

    yield patch.object(feedback, "joined", alone)


@mutant
def a_late_part_is_told_as_one_in_time() -> Iterator[Any]:
    kind_after = feedback.kind_after
    yield patch.object(feedback, "kind_after", lambda outcome, **_: kind_after(outcome))


@mutant
def any_part_replaces_another_value() -> Iterator[Any]:
    yield patch.object(feedback, "_amends_parts", lambda *_: True)


@mutant
def an_amended_part_counts_twice() -> Iterator[Any]:
    report = PartSums.report

    def twice(self: PartSums, outcome: Entry) -> None:
        report(self, outcome)
        if outcome.parts is not None and parts.composed_of(outcome, 0).amended.count(parts.NEVER) == 0:
            report(self, outcome)

    yield patch.object(PartSums, "report", twice)
