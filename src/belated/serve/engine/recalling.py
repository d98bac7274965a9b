"""Recalls the open decisions after a start, in the background, if the store may be far away.

A report of a decision that is not recalled yet is looked up by the writer. So this only saves time.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import closing
from threading import Event, Thread
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Integers
from belated.errors import StoreError, StoreUnreachable
from belated.serve.domain.entries import Drawings
from belated.serve.domain.fold import Fold
from belated.serve.engine.engine import Engine
from belated.serve.engine.recent import MOST
from belated.serve.store.journal import Journal

AT_ONCE: Final = 10_000  # decisions in one query, so that few round trips are needed
NONE: Final = np.empty(0, np.int64)
RETRY_EVERY: Final = 1.0  # seconds between two tries to reach a lost store
log = logging.getLogger("belated.recalling")


def open_decisions(fold: Fold) -> Integers:
    """Return the numbers of the newest open decisions without any outcome, newest first.

    Where outcomes are made of parts, an open decision may have some of them. So it is looked up with each report.
    """
    plain = [one for one in fold.experiments.values() if one.failure is None and not one.settings.declared_parts]
    waiting = [one.shared.waiting() for one in plain]
    return np.sort(np.concatenate([*waiting, NONE]))[::-1][:MOST]


def are_open(found: Drawings, fold: Fold) -> NDArray[np.bool_]:
    """Whether no outcome was applied, for each decision."""
    open = np.zeros(len(found.seqs), bool)
    for number in np.unique(found.experiments).tolist():
        own, experiment = found.experiments == number, fold.experiments[number]
        if experiment.failure is None:
            open[own] = experiment.shared.are_waiting(found.seqs[own])
    return open


@final
class Recalling:
    """A thread that reads the decisions which were open at the start, newest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._is_stopping = engine, Event()
        self._wanted = open_decisions(engine.fold) if engine.journal.is_far else NONE
        self._thread = Thread(target=self._run, name="belated-recalling")

    def start(self) -> None:
        """Start to recall."""
        if len(self._wanted):
            self._thread.start()

    def stop(self) -> None:
        """Stop, whether all are recalled or not."""
        self._is_stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while len(self._wanted) and not self._is_stopping.is_set():
            try:
                self._recall()
            except StoreUnreachable:
                self._is_stopping.wait(RETRY_EVERY)
            except Exception as error:  # noqa: BLE001
                reason = f"{type(error).__name__}: {error}"
                log.warning("open decisions cannot be recalled, so reports are looked up", extra={"reason": reason})
                return

    def _recall(self) -> None:
        """Recall decisions over a new connection."""
        with closing(self._engine.journal.reader()) as journal:
            with self._engine.lock:  # anew, because a base may have come since the last connection
                mark = self._engine.fold.tail.short_mark()
            if not journal.confirms(mark):  # it may be another server after a failover
                raise StoreError("the history is another one")
            while len(self._wanted) and not self._is_stopping.is_set():
                started = time.thread_time()
                is_full = not self._add(journal, self._wanted[:AT_ONCE].tolist())
                self._wanted = NONE if is_full else self._wanted[AT_ONCE:]
                self._is_stopping.wait(time.thread_time() - started)  # leaves half of the processor to requests

    def _add(self, journal: Journal, seqs: Sequence[int]) -> bool:
        """Remember those that are still open. Returns False if there is no more room."""
        found = journal.drawings(seqs)
        with self._engine.lock:  # so that no outcome is applied between the look and the note
            return self._engine.recent.add_older(found.only(are_open(found, self._engine.fold)))
