"""Answer requests for decisions: draw new ones, and give repeated requests what they got before."""

import logging
from collections.abc import Callable
from typing import final

import numpy as np

from belated.serve.domain import aliases, ids
from belated.serve.domain.entries import Entry
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.failures import undecided
from belated.serve.domain.messages import Decided
from belated.serve.domain.operating import Policy
from belated.serve.domain.quotas import Room
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.administration import find, find_deciding
from belated.serve.engine.applied import Applied
from belated.serve.engine.drawing import DrawnBatch, Turn, draw
from belated.serve.engine.guarding import guarded
from belated.serve.engine.requests import Answers, Ask, Result
from belated.serve.store.journal import Aliased, Requested

log = logging.getLogger("belated.engine")
Earlier = dict[Requested | Aliased, list[Entry]]  # decisions by the key or the subject that they were asked with


@final
class Asking:
    """Makes decisions from the newest state that this server has applied."""

    def __init__(self, applied: Applied, now: Callable[[], int], generator: np.random.Generator, max_open: int) -> None:
        self._applied, self._fold = applied, applied.fold
        self._now, self.generator = now, generator
        self._max_open = max_open  # open decisions of an experiment
        # whether the last group had an Idempotency-Key that was used before, or a subject that was decided before
        self.expects_repeats = self.expects_subjects = False

    def draw(self, asked: list[tuple[int, Ask]], entries: list[Entry], results: list[Result]) -> list[DrawnBatch]:
        """Answer repeated requests from the journal, and append entries for the others."""
        waiting: dict[int, list[tuple[int, Ask]]] = {}
        names: set[Requested | Aliased] = set()
        turns: dict[int, Turn] = {}
        room = Room(self._max_open, self._fold.owned.open, self._applied.ahead.count(self._fold.seq))
        full: list[tuple[int, Ask]] = []  # refused because too many decisions are open
        for index, request in self._new(asked, results, turns):
            experiment, name = self._fold.by_name[request.name], self._name(request)
            number = experiment.seq
            if name is None or name not in names:
                results[index] = room.enter(experiment, request.size, request.limit)
                if results[index] is not None:
                    full.append((index, request))
                    continue
                waiting.setdefault(number, []).append((index, request))
                if name is not None:
                    names.add(name)
        self._answer_repeats(full, results)
        drawn, at = list[DrawnBatch](), self._now()
        for number, ones in waiting.items():
            experiment, before = self._fold.experiments[number], len(entries)
            try:
                drawn += draw(experiment, ones, entries, at, self._fold.seq, self.generator, turns)
            except Exception as error:  # a failure of the learner, which is the experiment's own
                log.critical("an experiment cannot decide", exc_info=error, extra={"experiment": experiment.name})
                del entries[before:]
                for index, _ in ones:
                    results[index] = undecided(experiment.name)
        return drawn

    def _name(self, request: Ask) -> Requested | Aliased | None:
        """Return what names the request, so that it is answered once. The experiment must be known."""
        if request.subject is not None:
            return self._subject(request)
        return None if request.key is None else (self._fold.by_name[request.name].seq, request.key)

    def _subject(self, request: Ask) -> Aliased:
        return self._fold.by_name[request.name].seq, aliases.of_subject(request.name, request.subject or "")

    def _new(
        self, asked: list[tuple[int, Ask]], results: list[Result], turns: dict[int, Turn]
    ) -> list[tuple[int, Ask]]:
        """Return the requests for new decisions, and answer the others. Adds the turns of those with a subject.

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
            if results[index] is None and request.subject is not None:
                turns[index] = self._turn(request, earlier)
        return [(index, request) for index, request in known if results[index] is None]

    def _turn(self, request: Ask, earlier: Earlier) -> Turn:
        """Return the turn of a subject that is decided for the first time, or anew because its arm was retired."""
        name = self._subject(request)
        before = earlier.get(name)
        return Turn(name[1], 0 if before is None else (before[0].position or 0) + 1)

    def _answer_repeats(self, refused: list[tuple[int, Ask]], results: list[Result]) -> None:
        """Answer refused requests whose key or subject came before, because that adds no decision."""
        if not refused:
            return
        earlier = self._earlier([request for _, request in refused], are_all_wanted=True)
        for index, request in refused:
            answer = guarded(self._known, request, earlier)
            results[index] = results[index] if answer is None else answer

    def _introduce(self, name: str) -> None:
        """Raise a Refusal if there is no experiment of this name, or Hidden if this server cannot read of it yet."""
        self._applied.meet(name)
        find(self._fold, name)

    def _earlier(self, requests: list[Ask], *, are_all_wanted: bool = False) -> Earlier:
        """Return what requests with the same keys or subjects got before, where that must be known before the append.

        A new key needs no look-up, because the append of a used one is a Conflict, after which all keys are looked up.
        They are also looked up beforehand while repeats come, and if the experiment makes no more decisions.
        The same goes for subjects. But if decisions may have been archived, all subjects are looked up. The first
        decision of one may be gone then, and a later one may not.
        """
        is_looking = are_all_wanted or self.expects_subjects or self._applied.recent.removed.until > 0
        sticky = (one for one in requests if one.subject is not None)
        subjects = [self._subject(one) for one in sticky if is_looking or not self._fold.by_name[one.name].is_deciding]
        keyed = [(self._fold.by_name[one.name], one.key) for one in requests if one.key is not None]
        is_looking = are_all_wanted or self.expects_repeats
        wanted = {(one.seq, key) for one, key in keyed if is_looking or not one.is_deciding}
        earlier: Earlier = {}
        if subjects:
            made = self._applied.journal.aliased(list(dict.fromkeys(subjects)))
            earlier.update({name: entries[-1:] for name, entries in made.items()})
            self.expects_subjects = self.expects_subjects and bool(made)
        if wanted:
            found = self._applied.journal.requested(list(wanted))
            self.expects_repeats = self.expects_repeats and bool(found)
            earlier.update(found.items())
        return earlier

    def expect(self) -> None:
        """Look up all keys and subjects of the next group, because an append was a Conflict."""
        self.expects_repeats = self.expects_subjects = True

    def new_answers(self, written: list[Entry]) -> Answers:
        return Answers(list(map(self._decided, written)), replayed=False)

    def _known(self, request: Ask, earlier: Earlier) -> Answers | None:
        """Return what an earlier request with the same name got. Raises a Refusal if there can be no decision.

        A subject whose decision is not what it should be shown now gets nothing here, so that it is decided anew.
        """
        experiment, name = find(self._fold, request.name), self._name(request)
        if name is not None and (made := earlier.get(name)):
            if request.subject is None:
                return self._answer_again(request, made)
            if self._is_kept(experiment, made):
                return Answers([self._decided(made[0])], replayed=True)
        find_deciding(self._fold, request.name)
        return None

    def _answer_again(self, request: Ask, earlier: list[Entry]) -> Answers:
        if len(earlier) != request.size:
            used = f"the Idempotency-Key {request.key!r} was used for {len(earlier)} decisions, not {request.size}"
            raise Refusal("invalid", f"{used}. Use a new key.")
        experiment = self._fold.by_name[request.name]
        if retired := self._retired(experiment, earlier):
            one = f"the Idempotency-Key {request.key!r} was used before, for a decision"
            raise Refusal(
                "conflict",
                f"{one} that chose {experiment.arms[retired[0].arm or 0]!r}. That arm was retired since. "
                "Use a new key to get a new decision.",
            )
        return Answers([self._decided(entry) for entry in earlier], replayed=True)

    def _is_kept(self, experiment: Experiment, made: list[Entry]) -> bool:
        """Whether a subject keeps its decision. Looks for what another server knew when it made that."""
        if not _is_shown(experiment, made[0]):
            self._applied.reach(made[0].seen or 0)
        return _is_shown(experiment, made[0])

    def _retired(self, experiment: Experiment, made: list[Entry]) -> list[Entry]:
        """Return the decisions whose arm takes no more part. Looks for arms that another server has added."""
        gone = [entry for entry in made if not experiment.has_arm(entry.arm or 0)]
        if gone:
            self._applied.reach(max(entry.seen or 0 for entry in gone))
        return [entry for entry in gone if not experiment.has_arm(entry.arm or 0)]

    def replay_twins(
        self, asked: list[tuple[int, Ask]], drawn: list[DrawnBatch], written: list[Entry], results: list[Result]
    ) -> None:
        """Give requests whose name came twice in one group what the first one got."""
        twins = [(index, request) for index, request in asked if results[index] is None]
        if twins:
            requests = dict(asked)
            made = {self._name(requests[index]): written[first : first + size] for index, first, size in drawn}
            for index, request in twins:
                if (first := made.get(self._name(request))) is None:
                    results[index] = undecided(request.name)  # as the first one
                else:
                    results[index] = guarded(self._answer_again, request, first)

    def _decided(self, entry: Entry) -> Decided:
        experiment = self._fold.experiments[entry.experiment]
        id = ids.encode(entry.at, entry.seq, entry.nonce or 0)
        arm = experiment.arms[entry.arm or 0]
        return Decided(id, experiment, arm, entry.probability or 0.0, entry.round or 0, entry.at)


def _is_shown(experiment: Experiment, decision: Entry) -> bool:
    """Whether the decision of a subject is still what it is shown."""
    operations = experiment.operations
    if experiment.closed_at is not None and operations.state != "ended":
        return False
    if operations.arm is not None:  # frozen, or ended with a winner
        return decision.arm == operations.arm
    is_unfrozen = decision.policy == Policy.FROZEN and operations.state != "paused"  # it teaches nothing
    return not is_unfrozen and experiment.has_arm(decision.arm or 0)
