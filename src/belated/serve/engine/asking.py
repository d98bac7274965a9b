"""Answer requests for decisions: draw new ones, and give repeated requests what they got before."""

import logging
from collections.abc import Callable
from typing import final

import numpy as np

from belated.serve.domain import ids
from belated.serve.domain.entries import Entry
from belated.serve.domain.failures import undecided
from belated.serve.domain.messages import Decided
from belated.serve.domain.quotas import Room
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.administration import find, find_deciding
from belated.serve.engine.applied import Applied
from belated.serve.engine.drawing import DrawnBatch, draw
from belated.serve.engine.guarding import guarded
from belated.serve.engine.requests import Answers, Ask, Result
from belated.serve.store.journal import Requested

log = logging.getLogger("belated.engine")


@final
class Asking:
    """Makes decisions from the newest state that this server has applied."""

    def __init__(self, applied: Applied, now: Callable[[], int], generator: np.random.Generator, max_open: int) -> None:
        self._applied, self._fold = applied, applied.fold
        self._now, self.generator = now, generator
        self._max_open = max_open  # open decisions of an experiment
        self.expects_repeats = False  # whether the last group had an Idempotency-Key that was used before

    def draw(self, asked: list[tuple[int, Ask]], entries: list[Entry], results: list[Result]) -> list[DrawnBatch]:
        """Answer repeated requests from the journal, and append entries for the others."""
        waiting: dict[int, list[tuple[int, Ask]]] = {}
        keys: set[Requested] = set()
        room, ahead = Room(self._max_open), self._applied.ahead.count(self._fold.seq)
        full: list[tuple[int, Ask]] = []  # refused because too many decisions are open
        for index, request in self._new(asked, results):
            number, key = self._fold.by_name[request.name].seq, request.key
            if key is None or (number, key) not in keys:
                waits = self._fold.experiments[number].counts.outstanding + ahead[number]
                results[index] = room.enter(request.name, waits, request.size, request.max_open)
                if results[index] is not None:
                    full.append((index, request))
                    continue
                waiting.setdefault(number, []).append((index, request))
                keys.add((number, key or ""))
        self._answer_repeats(full, results)
        drawn, at = list[DrawnBatch](), self._now()
        for number, ones in waiting.items():
            experiment, before = self._fold.experiments[number], len(entries)
            try:
                drawn += draw(experiment, ones, entries, at, self._fold.seq, self.generator)
            except Exception as error:  # a failure of the learner, which is the experiment's own
                log.critical("an experiment cannot decide", exc_info=error, extra={"experiment": experiment.name})
                del entries[before:]
                for index, _ in ones:
                    results[index] = undecided(experiment.name)
        return drawn

    def _new(self, asked: list[tuple[int, Ask]], results: list[Result]) -> list[tuple[int, Ask]]:
        """Return the requests for new decisions, and answer the others.

        An experiment is looked at once for all requests that have nothing else to look at.
        """
        self._applied.look_for({request.name for _, request in asked})
        met, running = set[str](), set[str]()
        for index, request in asked:
            results[index] = None if request.name in met else guarded(self._introduce, request.name)
            if results[index] is None:
                met.add(request.name)
        known = [(index, request) for index, request in asked if results[index] is None]
        earlier = self._earlier([request for _, request in known])
        for index, request in known:
            if earlier or request.name not in running:
                results[index] = guarded(self._known, request, earlier)
                if results[index] is None:
                    running.add(request.name)
        return [(index, request) for index, request in known if results[index] is None]

    def _answer_repeats(self, refused: list[tuple[int, Ask]], results: list[Result]) -> None:
        """Answer refused requests whose key was used before, because that adds no decision."""
        keyed = [(index, one, (self._fold.by_name[one.name].seq, one.key)) for index, one in refused if one.key]
        if not keyed:
            return
        earlier = self._applied.journal.requested([key for _, _, key in keyed])
        for index, request, key in keyed:
            if key in earlier:
                results[index] = guarded(self._answer_again, request, earlier[key])

    def _introduce(self, name: str) -> None:
        """Raise a Refusal if there is no experiment of this name, or Hidden if this server cannot read of it yet."""
        self._applied.meet(name)
        find(self._fold, name)

    def _earlier(self, requests: list[Ask]) -> dict[Requested, list[Entry]]:
        """Return what earlier requests with the same keys got, where that has to be known before the append.

        A new key needs no look-up, because the append of a used one is a Conflict, after which all keys are looked up.
        They are also looked up beforehand while repeats come, and if the experiment makes no more decisions.
        """
        keyed = [(self._fold.by_name[one.name], one.key) for one in requests if one.key is not None]
        wanted = {(one.seq, key) for one, key in keyed if self.expects_repeats or not one.is_deciding}
        if not wanted:
            return {}
        found = self._applied.journal.requested(list(wanted))
        self.expects_repeats = self.expects_repeats and bool(found)
        return found

    def new_answers(self, written: list[Entry]) -> Answers:
        return Answers(list(map(self._decided, written)), replayed=False)

    def _known(self, request: Ask, earlier: dict[Requested, list[Entry]]) -> Answers | None:
        """Return what an earlier request with the same key got. Raises a Refusal if there can be no decision."""
        experiment = find(self._fold, request.name)
        if request.key is not None and (made := earlier.get((experiment.seq, request.key))):
            return self._answer_again(request, made)
        find_deciding(self._fold, request.name)
        return None

    def _answer_again(self, request: Ask, earlier: list[Entry]) -> Answers:
        if len(earlier) != request.size:
            used = f"the Idempotency-Key {request.key!r} was used for {len(earlier)} decisions, not {request.size}"
            raise Refusal("invalid", f"{used}. Use a new key.")
        known = len(self._fold.by_name[request.name].arms)
        if any((entry.arm or 0) >= known for entry in earlier):  # another server has added arms
            self._applied.reach(max(entry.seen or 0 for entry in earlier))
        return Answers([self._decided(entry) for entry in earlier], replayed=True)

    def replay_twins(
        self, asked: list[tuple[int, Ask]], drawn: list[DrawnBatch], written: list[Entry], results: list[Result]
    ) -> None:
        """Give requests whose key came twice in one group what the first one got."""
        twins = [(index, request) for index, request in asked if results[index] is None]
        if twins:
            requests = dict(asked)
            firsts = {index: (requests[index].name, requests[index].key) for index, _, _ in drawn}
            made = {firsts[index]: written[first : first + size] for index, first, size in drawn}
            for index, request in twins:
                if (first := made.get((request.name, request.key))) is None:
                    results[index] = undecided(request.name)  # as the first one
                else:
                    results[index] = guarded(self._answer_again, request, first)

    def _decided(self, entry: Entry) -> Decided:
        experiment = self._fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        arm = experiment.arms[entry.arm or 0]
        return Decided(id, experiment, arm, entry.probability or 0.0, entry.round or 0, entry.at)
