"""Faults on purpose in the service. Each is one that somebody could write, and the simulation must find it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import msgspec

from belated.errors import SnapshotError, StoreUnreachable
from belated.serve.domain.entries import Entry, EntryKind, with_seq
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold, restore
from belated.serve.domain.history import Place
from belated.serve.domain.operating import Operation, Operations, Policy
from belated.serve.engine import applied as applied_module
from belated.serve.engine import asking as asking_module
from belated.serve.engine import drawing, feedback
from belated.serve.engine import expiry as expiry_module
from belated.serve.engine import telling as telling_module
from belated.serve.engine.administration import find
from belated.serve.engine.applied import Applied
from belated.serve.engine.asking import Asking
from belated.serve.engine.clock import Moment, Timekeeper
from belated.serve.engine.engine import Engine
from belated.serve.store import loading
from belated.serve.store.journal import NO_MARK, PAGE, Journal
from tests.simulation.database import Database
from tests.simulation.journal import SimulatedJournal

Mutant = Callable[[], AbstractContextManager[object]]
MUTANTS: Final[dict[str, Mutant]] = {}


def mutant(patches: Callable[[], Iterator[Any]]) -> Mutant:
    """Register a mutant, a function that yields its patches."""

    @contextmanager
    def applied() -> Iterator[None]:
        made = list(patches())
        for one in made:
            one.start()
        try:
            yield
        finally:
            for one in made:
                one.stop()

    MUTANTS[patches.__name__] = applied
    return applied


def numbered(applied: Applied, entries: Sequence[Entry]) -> list[Entry]:
    """The entries with the numbers that they would get if nobody else wrote."""
    return [with_seq(entry, seq) for seq, entry in enumerate(entries, applied.fold.seq + 1)]


@mutant
def the_state_changes_before_the_disk() -> Iterator[Any]:
    def append(self: Applied, entries: Sequence[Entry], _also: Sequence[Place] = ()) -> list[Entry]:
        written = numbered(self, entries)
        self.fold.apply(written)
        self.journal.append(entries)
        return written

    yield patch.object(Applied, "append", append)


@mutant
def a_lost_answer_is_taken_for_success() -> Iterator[Any]:
    original = Applied.append

    def append(self: Applied, entries: Sequence[Entry], _also: Sequence[Place] = ()) -> list[Entry]:
        try:
            return original(self, entries)
        except StoreUnreachable:
            return numbered(self, entries)

    yield patch.object(Applied, "append", append)


@mutant
def own_entries_are_applied_over_those_of_others() -> Iterator[Any]:
    def append(self: Applied, entries: Sequence[Entry], _also: Sequence[Place] = ()) -> list[Entry]:
        if not entries:
            return []
        seqs = self.journal.append(entries)
        written = [with_seq(entry, seq) for entry, seq in zip(entries, seqs, strict=True)]
        if seqs[0] > self.fold.seq:
            self.fold.apply(written)
        return written

    yield patch.object(Applied, "append", append)


@mutant
def keys_are_not_looked_up() -> Iterator[Any]:
    yield patch.object(Asking, "_earlier", lambda _self, _requests: {})


@mutant
def subjects_are_not_written() -> Iterator[Any]:
    original = drawing.draw

    def draw(experiment: Experiment, asked: Any, entries: list[Entry], *rest: Any) -> Any:
        before = len(entries)
        drawn = original(experiment, asked, entries, *rest)
        entries[before:] = [msgspec.structs.replace(one, alias=None) for one in entries[before:]]
        return drawn

    yield patch.object(asking_module, "draw", draw)


@mutant
def a_subject_is_decided_anew_without_a_reason() -> Iterator[Any]:
    yield patch.object(Asking, "_is_kept", lambda _self, _experiment, _made: False)


@mutant
def keys_are_not_written() -> Iterator[Any]:
    original = drawing.draw

    def draw(experiment: Experiment, asked: Any, entries: list[Entry], *rest: Any) -> Any:
        before = len(entries)
        drawn = original(experiment, asked, entries, *rest)
        entries[before:] = [msgspec.structs.replace(one, request=None, position=None) for one in entries[before:]]
        return drawn

    yield patch.object(asking_module, "draw", draw)


@mutant
def seen_is_one_too_low() -> Iterator[Any]:
    yield patch.object(asking_module, "draw", shifted(-1))


@mutant
def seen_is_one_too_high() -> Iterator[Any]:
    yield patch.object(asking_module, "draw", shifted(1))


def shifted(by: int) -> Any:
    original = drawing.draw

    def draw(experiment: Experiment, asked: Any, entries: Any, at: int, seen: int, *others: Any) -> Any:
        return original(experiment, asked, entries, at, seen + by, *others)

    return draw


@mutant
def the_horizon_is_ignored() -> Iterator[Any]:
    yield patch.object(Database, "horizon", lambda self: self.drawn)


@mutant
def waits_end_without_a_revision() -> Iterator[Any]:
    original = feedback.new_outcome
    yield patch.object(expiry_module, "new_outcome", lambda *a: msgspec.structs.replace(original(*a), revision=None))


@mutant
def waits_end_one_second_early() -> Iterator[Any]:
    original = Timekeeper.earliest

    def earliest(self: Timekeeper) -> int | None:
        right = original(self)
        return None if right is None else right + 1_000_000

    yield patch.object(Timekeeper, "earliest", earliest)


@mutant
def decisions_that_seem_ahead_wait_by_a_clock_that_jumps() -> Iterator[Any]:
    original = Timekeeper.moment

    def moment(self: Timekeeper) -> Moment | None:
        right = original(self)
        return None if right is None else right._replace(steady=right.earliest)

    yield patch.object(Timekeeper, "moment", moment)


@mutant
def ends_of_waits_are_dated_by_the_earliest_clock() -> Iterator[Any]:
    original = Timekeeper.moment

    def moment(self: Timekeeper) -> Moment | None:
        right = original(self)
        return None if right is None else right._replace(now=right.earliest)

    yield patch.object(Timekeeper, "moment", moment)


@mutant
def a_snapshot_is_ahead_of_its_state() -> Iterator[Any]:
    def snapshot(self: Engine) -> None:
        made = self.fold.snapshot()
        self.journal.save(made._replace(seq=made.seq + 1))

    yield patch.object(Engine, "snapshot", snapshot)


@mutant
def a_start_skips_the_first_entry_after_the_snapshot() -> Iterator[Any]:
    def load(journal: Journal) -> Fold:
        fold = loading.newest(journal)
        after = fold.seq + 1 if fold.seq else 0
        fold.apply(journal.read(after, PAGE))
        return fold

    yield patch.object(applied_module, "load_to_serve", load)


@mutant
def a_start_forgets_late_reports() -> Iterator[Any]:
    original = Experiment.restore.__func__  # type: ignore[attr-defined]

    def restore(cls: type[Experiment], state: dict[str, Any], *, is_base: bool = False) -> Experiment:
        restored: Experiment = original(cls, state, is_base=is_base)
        restored.counts.late = 0
        return restored

    yield patch.object(Experiment, "restore", classmethod(restore))


@mutant
def a_decision_counts_twice() -> Iterator[Any]:
    original = Experiment.apply_decisions

    def apply(self: Experiment, entries: list[Entry]) -> None:
        original(self, entries)
        self.counts.decisions += len(entries) > 3

    yield patch.object(Experiment, "apply_decisions", apply)


@mutant
def a_repeated_report_is_an_amendment() -> Iterator[Any]:
    original = feedback.judge

    def judge(report: Any, found: Any, fold: Fold, at: int) -> Any:
        status, entry = original(report, found, fold, at)
        if status.status == "duplicate":
            entry = feedback.new_outcome(found.decision, found.outcome, EntryKind.AMENDED, at, report.value)
        return status, entry

    yield patch.object(telling_module, "judge", judge)


@mutant
def a_late_report_replaces_nothing() -> Iterator[Any]:
    original = feedback.new_outcome

    def new_outcome(*arguments: Any) -> Entry:
        return msgspec.structs.replace(original(*arguments), old=None)

    yield patch.object(feedback, "new_outcome", new_outcome)


@mutant
def a_copy_of_an_amendment_is_one_more() -> Iterator[Any]:
    yield patch.object(feedback, "_is_in_order", lambda _report, _outcome: True)


@mutant
def an_append_ignores_the_mark() -> Iterator[Any]:
    original = SimulatedJournal.append
    yield patch.object(SimulatedJournal, "append", lambda self, entries, _mark=NO_MARK: original(self, entries))


@mutant
def lost_history_is_not_looked_for() -> Iterator[Any]:
    yield patch.object(Applied, "confirm_history", lambda _self, **_: None)


@mutant
def a_snapshot_is_used_without_its_history() -> Iterator[Any]:
    def newest(journal: Journal, _drop: object = None) -> Fold:
        for snapshot in journal.snapshots():
            with suppress(SnapshotError):
                return restore(snapshot)
        return Fold()

    yield patch.object(loading, "newest", newest)


@mutant
def a_failure_of_an_experiment_is_everybodys() -> Iterator[Any]:
    original = Fold._change

    def change(self: Fold, experiment: Experiment, batch: list[Entry]) -> None:
        original(self, experiment, batch)
        for failed in self.failures:
            raise failed.error

    yield patch.object(Fold, "_change", change)


@mutant
def a_jump_of_the_clock_is_followed() -> Iterator[Any]:
    yield patch.object(Timekeeper, "__call__", lambda self: self._wall())


@mutant
def waits_end_by_the_clock_of_the_machine() -> Iterator[Any]:
    yield patch.object(Timekeeper, "earliest", lambda self: self._wall())


@mutant
def new_experiments_of_others_are_unknown() -> Iterator[Any]:
    yield patch.object(Applied, "meet", lambda _self, _name: None)


@mutant
def a_pause_is_forgotten() -> Iterator[Any]:
    apply = Operations.apply

    def forget(self: Operations, operation: Operation, arms: list[str]) -> None:
        if operation.event != "paused":
            apply(self, operation, arms)

    yield patch.object(Operations, "apply", forget)


@mutant
def frozen_decisions_have_no_mark() -> Iterator[Any]:
    yield patch.object(drawing, "Policy", SimpleNamespace(FROZEN=None, WINNER=None, HOLDOUT=Policy.HOLDOUT))


@mutant
def a_closed_experiment_decides() -> Iterator[Any]:
    yield patch.object(asking_module, "find_deciding", find)
