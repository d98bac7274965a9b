"""An engine for tests, with a manual clock and a seeded generator."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from belated.serve.domain.entries import Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, OutcomeChoice, Settings
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.engine.feedback import look_up
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Hidden, Tell
from belated.serve.service.descriptions import StoreView
from belated.serve.store.journal import Journal
from belated.serve.store.sqlite.journal import SQLiteJournal

LOSSES = OutcomeChoice(better="lower")
NO_STORE = StoreView("", True, 0, 0, 0.0, 0, 0, 0, 0.0)  # noqa: FBT003


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * MICROSECONDS

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * MICROSECONDS)


class Driven:
    """An engine on a file, with its clock."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock | None = None,
        seed: int = 1,
        opening: Callable[[], Journal] | None = None,
    ) -> None:
        self.path, self.clock = folder / "belated.db", clock or Clock()
        self._generator, self._opening = np.random.default_rng(seed), opening or self._open
        self.start()

    def _open(self) -> Journal:
        return SQLiteJournal(self.path, synchronous="OFF")  # other tests check durability

    def start(self) -> None:
        """Open the store, for the first time or again."""
        self.engine = Engine(self._opening(), clock=self.clock, generator=self._generator)

    def restart(self, *, snapshot: bool = False) -> None:
        """Stop and start again, as a server does."""
        if snapshot:
            self.engine.snapshot()
        self.engine.journal.close()
        self.start()

    def do(self, request: Any) -> Any:
        """Process a request. If it needs a hidden entry, it tries once more, as if its wait were over."""
        [result] = self.engine.process([request])
        if isinstance(result, Hidden):
            self.engine.catch_up()
            [result] = self.engine.resume([(request, result)], may_wait=False)
        return result

    def create(self, name: str = "layout", arms: tuple[str, ...] = ("a", "b", "c"), **settings: Any) -> Experiment:
        result = self.do(Create(Settings(name, list(arms), **settings)))
        assert not isinstance(result, Refusal), result.detail
        return self[name]

    def __getitem__(self, name: str) -> Experiment:
        return self.engine.fold.by_name[name]

    def decide(
        self, name: str = "layout", size: int = 1, key: str | None = None, limit: OpenLimit | None = None
    ) -> list[Decided]:
        result = self.do(Ask(name, size, key, limit))
        assert isinstance(result, Answers), result
        return result.decisions

    def tell(self, decision: Decided | str, value: float, *, word: str = "reward", amend: bool = False) -> Any:
        """The status of a report, or the kind of its refusal. An amendment replaces the newest outcome."""
        id = decision if isinstance(decision, str) else decision.id
        return self.tell_all(informed([OutcomeReport(id, word, value, amend)], self.engine.journal))[0]

    def tell_all(self, items: list[OutcomeReport], only: str | None = None) -> list[Any]:
        """The same for many reports in one request. Amendments are sent as they are."""
        return [one.kind if isinstance(one, Refusal) else one.status for one in self.do(Tell(items, only))]

    def change(self, name: str = "layout", *, add: tuple[str, ...] = (), retire: tuple[str, ...] = ()) -> Any:
        return self.do(ChangeArms(name, ArmChange(list(add), list(retire))))

    def close(self, name: str = "layout") -> Any:
        return self.do(Close(name))

    def decisions(self, name: str = "layout") -> list[Found]:
        """All decisions of an experiment from the journal, each with its newest outcome."""
        return self.engine.journal.decisions(self[name].seq, 0, 10**6)


def informed(reports: Sequence[OutcomeReport], journal: Journal) -> list[OutcomeReport]:
    """Add the newest revision to amendments, as the Python client does."""
    found = look_up([one.decision_id for one in reports], journal)
    newest = [None if one is None or one.outcome is None else one.outcome.revision for one in found]
    return [
        msgspec.structs.replace(report, revision=revision) if report.amend and report.revision is None else report
        for report, revision in zip(reports, newest, strict=True)
    ]


def last_entry(driven: Driven) -> Any:
    """The newest entry of the journal."""
    return driven.engine.journal.read(driven.engine.journal.last() - 1, 1)[0]


def state(driven: Driven) -> tuple[int, bytes]:
    """Everything that may change, which is the length of the journal and the state it folds to."""
    return driven.engine.journal.last(), driven.engine.fold.snapshot().state


def counts(driven: Driven, name: str = "layout") -> dict[str, int]:
    """The counts of an experiment that are not zero."""
    return {key: n for key, n in msgspec.to_builtins(driven[name].counts).items() if n}
