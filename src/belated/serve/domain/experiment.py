"""An experiment's state: its learner and its statistics, computed from its journal entries."""

import math
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, Self, final

import msgspec
from msgspec import UNSET

from belated.arrays import Floats
from belated.kernels import GRID
from belated.learner.changes import run_bound
from belated.learner.ftrl import FTRL
from belated.learner.mixing import Mix
from belated.learner.outcomes import OutcomeRange
from belated.replicated.shared_learner import SharedLearner
from belated.serve.domain.entries import Entry, EntryKind, Rest, rest_of
from belated.serve.domain.failures import Failure, failure_of, readable_settings
from belated.serve.domain.observations import EDGES as DELAYS
from belated.serve.domain.observations import Ages, Counts, History, bucket_of
from belated.serve.domain.operating import Edit, Operation, Operations, Policy, edited, mix_of
from belated.serve.domain.parts import PartSums
from belated.serve.domain.reporting import Comparison, Reporting
from belated.serve.domain.settings import ArmChange, Settings, stored_settings
from belated.serve.domain.timestamps import MICROSECONDS
from belated.verdicts import Evidence, MeanInterval, Verdict


class Era(msgspec.Struct):
    """The time between two changes of the arms."""

    seq: int  # the entry it began with
    arms: list[int]  # its arms, as indices into all arms
    decisions: int = 0  # drawn from these arms
    is_foreign: bool = False  # whether another release draws, so that differences are not counted


class Look(NamedTuple):
    """What the evidence says while the counts and the era are those of `mark`."""

    mark: tuple[int, ...]
    verdict: Verdict
    means: list[MeanInterval | None]  # by arm, None before its first outcome


CONFIDENCE = 0.95
KEPT = (  # after a failure
    *("settings", "seq", "created_at", "closed_at", "arms", "counts", "revision", "era", "operations", "values"),
    "failure",
)
MANY_ARMS = 50  # so many that a look takes long
CLOSE = 1e-9  # two releases may round a probability differently
DEAREST = 1 / (
    1 - float(GRID.max())
)  # a replaced outcome changes the bound at most by so much more than the measured cost


class Costs(NamedTuple):
    """What learning has cost against the best arm between each two changes of arms, as a sum of losses from 0 to 1."""

    known: float  # measured, from the decisions whose outcome is known
    open: float  # what the others could still add
    bound: float  # a limit for this run that holds at all times with 95% confidence
    proven: float  # a limit for the mean over runs. It may exceed what could be lost at all


@final
class Experiment:
    """The state of an experiment after some entry of the journal."""

    failure: Failure | None = None  # if it is set, only what is in KEPT is left

    def __init__(self, created: Entry) -> None:
        self.settings = stored_settings(created.body or b"")
        self.seq, self.created_at = created.seq, created.at
        self.closed_at: int | None = None
        self.arms = list(self.settings.arms)  # all that ever took part
        self.values = self.settings.declared_values  # of arms, if the experiment has any
        self.chosen, self.reports = [0] * len(self.arms), [0] * len(self.arms)  # decisions and true outcomes, by arm
        self.counts, self.ages = Counts(), Ages([], [], [])
        self.delays = [0] * len(DELAYS)
        default = self.settings.default
        # with a default outcome, silence is an answer
        self.reporting = Reporting.new(len(self.arms)) if default is None else None
        self.history = History(1, 1, [], [], [])
        self.past: list[Era] = []
        n_parts = len(self.settings.declared_parts)
        self.parts = PartSums.new(len(self.arms), n_parts) if n_parts else None
        self.evidence = Evidence.new(len(self.arms), None if default is None else self.outcomes.loss(default))
        self.stale = 0  # decisions that a server drew from older data, so that their distribution is not known
        self.last_expired = 0  # the newest decision whose wait has ended without a report
        self.revision = 0  # of the last event
        # what replaced outcomes and decisions that missed a change of arms add to the learner's certificates
        self.more_proven, self.more_measured = 0.0, 0.0
        self.operations = Operations(mixed_since=created.seq)
        self.operations.note(created)
        self.shared = SharedLearner(self.settings.build_learner(), created.seq)
        self._looked: Look | None = None
        self._shared_blocks = set[int]()  # blocks of the evidence that a copy has, too
        self._begin_era(created.seq, list(range(len(self.arms))))
        self._mix(created.seq)
        self.distribution()  # it fails now if it cannot decide

    def _begin_era(self, seq: int, arms: list[int]) -> None:
        self.era = Era(seq, arms)
        self._local = {arm: index for index, arm in enumerate(arms)}

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def learner(self) -> FTRL:
        return self.shared.learner

    @property
    def is_deciding(self) -> bool:
        """Whether it still makes decisions."""
        state = self.operations.state
        return self.failure is None and state != "paused" and (self.closed_at is None or state == "ended")

    @property
    def n_changes(self) -> int:
        """How often its arms have changed. Each change takes memory for all arms, until a failure drops it."""
        return 0 if self.failure is not None else len(self.past)

    def has_arm(self, arm: int) -> bool:
        """Whether this arm takes part now."""
        return arm in self.era.arms

    def distribution(self) -> Floats:
        """Return the probabilities of the present arms for the next decision."""
        return self.learner.distribution()

    def chances(self) -> dict[int, float]:
        """Return the probability of each arm in the next decision. None has one while it is paused."""
        match self.operations:
            case Operations(state="paused"):
                return {}
            case Operations(arm=int(arm)):
                return {arm: 1.0}
        return dict(zip(self.era.arms, self.distribution().tolist(), strict=True))

    def shares(self) -> list[float]:
        """Return the probabilities of the present arms as people should see them. After a pause, while there is one."""
        shown = self.operations.arm
        return self.distribution().tolist() if shown is None else [float(arm == shown) for arm in self.era.arms]

    def apply(self, entries: list[Entry]) -> None:
        """Apply decisions drawn from one distribution, or any other single entry."""
        kind = entries[0].kind
        if kind is EntryKind.DECIDED:
            self.apply_decisions(entries)
        elif kind < EntryKind.ARMS or kind in (EntryKind.REMOVED, EntryKind.PARTIAL):  # all outcomes
            self.apply_outcome(entries[0])
        elif kind is EntryKind.ARMS:
            self.change_arms(entries[0])
        elif kind is EntryKind.OPERATED:
            self.operate(entries[0])
        else:
            self.close(entries[0])

    def apply_decisions(self, entries: list[Entry]) -> None:
        """Apply decisions drawn from one distribution."""
        first, era = entries[0], self._era_of(entries[0])
        seen = first.seen or 0
        if Policy.is_aside(first):
            self.operations.aside.decisions += len(entries)
            self._count(entries)
            return
        freshness = self.shared.freshness(seen)
        if self.counts.decisions + 1 >= self.history.next and era is self.era and not freshness.is_more:
            self._remember(first)
        arms, seqs = [entry.arm or 0 for entry in entries], [entry.seq for entry in entries]
        probabilities, x = [entry.probability or 0.0 for entry in entries], None
        if era is self.era:
            local, rests = [self._local[arm] for arm in arms], list[Rest]()
            if first.drawn is not None and freshness.is_stale:
                rests = list(map(rest_of, entries))
            drawn, bold_advantages = rests[0].drawn if rests else None, [rest.bold_advantage for rest in rests]
            self.shared.enter(seqs, seen, local, probabilities, drawn, bold_advantages, freshness=freshness)
            is_mixed_anew = seen < self.operations.mixed_since
            self.more_proven += len(entries) if is_mixed_anew else 0  # docs/theory/mixing.md
            x = None if freshness.is_stale or is_mixed_anew else self.shared.in_force.tolist()
        else:  # its server did not know of the new arms, so each loses at most 1 and teaches nothing
            self.more_proven += len(entries)
            self.more_measured += len(entries)
        self._enter(seqs, arms, probabilities, x)
        for entry in entries:
            self.chosen[entry.arm or 0] += 1
            if self.reporting is not None:
                self.reporting.decide(entry.seq, entry.at, entry.arm or 0)
        era.decisions += len(entries)
        self.operations.decide(entries, self.settings.holdout or 0.0)
        self._count(entries)

    def _count(self, entries: list[Entry]) -> None:
        """Count decisions, whoever has made them. Last, so that a failure before has counted none of them."""
        for entry in entries:
            self.ages.opened(entry.at)
        self.counts.add(entries)

    def _enter(self, seqs: list[int], arms: list[int], probabilities: list[float], x: list[float] | None) -> None:
        """Add decisions to the evidence. `x` is their distribution, or None if they were drawn from older data.

        If the probabilities are not those of this release, another one has drawn. Whether a decision counts must not
        depend on its arm. So from then on none counts for differences until the arms change.
        """
        self._own_block()
        if x is None:
            self.stale += len(seqs)
        elif self.era.is_foreign or not all(map(self._is_own, arms, probabilities, repeat(x))):
            for seq, arm, probability in zip(seqs, arms, probabilities, strict=True):
                self.era.is_foreign = self.era.is_foreign or not self._is_own(arm, probability, x)
                self.evidence.decide(seq, arm, probability, None if self.era.is_foreign else x)
                self.stale += self.era.is_foreign
            return
        self.evidence.decide_batch(seqs, arms, probabilities, x)

    def _is_own(self, arm: int, probability: float, x: list[float]) -> bool:
        """Whether this release would have drawn the arm with this probability, up to rounding."""
        return math.isclose(probability, x[self._local[arm]], rel_tol=CLOSE)

    def _remember(self, entry: Entry) -> None:
        point: list[float | None] = [None] * len(self.arms)
        for arm, probability in zip(self.era.arms, self.distribution().tolist(), strict=True):
            point[arm] = probability
        self.history.add(self.counts.decisions + 1, entry.at, point)

    def apply_outcome(self, entry: Entry) -> None:
        """Apply an outcome. Parts of one teach nothing, because the others are still to come."""
        if self.parts is not None and not Policy.is_aside(entry):
            self.parts.report(entry)
        if entry.kind is EntryKind.PARTIAL:
            return
        outcomes, decided_at = self.outcomes, entry.decided_at or 0
        loss = None if entry.value is None else outcomes.loss(entry.value)
        before = None if entry.old is None else outcomes.loss(entry.old)
        if Policy.is_aside(entry):
            self.operations.set_aside(entry, loss, before)
            self._close_wait(entry)
            return
        if self._was_entered(entry):
            self._teach(entry, loss, before)
            self._charge(entry, loss, before)
        if loss is not None:
            drawn = entry.decision or 0, entry.arm or 0, entry.probability or 0.0
            self._own_block(entry.decision)
            if before is None:
                self.evidence.report(*drawn, loss)
            else:
                self.evidence.amend(*drawn, before, loss)
            self.operations.report(entry, self.settings.holdout or 0.0, loss, before)
        if entry.kind in (EntryKind.REPORTED, EntryKind.LATE):
            bucket = bucket_of(entry.at - decided_at)
            self.delays[bucket] += 1
            self.reports[entry.arm or 0] += 1
            if self.reporting is not None:
                ends = self.expires_at(decided_at)
                is_late = ends is not None and entry.at > ends
                self.reporting.report(entry.decision or 0, entry.arm or 0, bucket, is_late=is_late)
        self._close_wait(entry)

    def _close_wait(self, entry: Entry) -> None:
        """Count an outcome, and that its decision does not wait any more."""
        decided_at = entry.decided_at or 0
        if entry.kind is EntryKind.REPORTED or entry.kind is EntryKind.REMOVED:
            self.ages.closed(decided_at)
        elif entry.kind is EntryKind.EXPIRED:
            self.ages.closed(decided_at)
            self.last_expired = max(self.last_expired, entry.decision or 0)
        self.counts.add([entry])

    def _was_entered(self, entry: Entry) -> bool:
        """Whether the learner knows the decision of this outcome. If not, its server had missed a change of arms."""
        return self._era_of(entry) is self._era_at(entry.decision or 0)

    def _teach(self, entry: Entry, loss: float | None, before: float | None) -> None:
        """Tell the learner. Outcomes from before a change of arms still teach the arms that stay."""
        decision, arm = entry.decision or 0, self._local.get(entry.arm or 0)
        if entry.kind in (EntryKind.LATE, EntryKind.AMENDED):
            if arm is not None:  # a retired arm has nothing left to amend
                self.shared.amend(entry.seq, decision, arm, entry.probability or 0.0, before, loss or 0.0)
        elif loss is None:
            self.shared.give_up(entry.seq, decision)
        else:
            self.shared.tell(entry.seq, decision, loss)

    def _charge(self, entry: Entry, loss: float | None, before: float | None) -> None:
        """Add what a replaced outcome costs the certificates at most, by the proof in docs/theory/service.md."""
        if loss is None or before is None:
            return
        cost = 1 + max(0.0, before - loss) / (entry.probability or 1.0)
        self.more_proven += cost
        if self._era_of(entry) is not self.era:  # the learner has amended its present estimates by itself
            self.more_measured += cost

    @cached_property
    def outcomes(self) -> OutcomeRange:
        """The range of its outcomes."""
        return self.settings.outcome.build()

    def _era_of(self, entry: Entry) -> Era:
        """Return the era that the decision's server knew of."""
        # old outcomes do not have `seen`
        return self._era_at((entry.decision or 0) if entry.seen is None else entry.seen)

    def _era_at(self, seq: int) -> Era:
        """Return the era of this entry."""
        if seq >= self.era.seq:
            return self.era
        return self.past[bisect_right(self.past, seq, key=lambda era: era.seq) - 1]

    def change_arms(self, entry: Entry) -> None:
        """Begin a new era. The learner goes on with the arms that stay."""
        change = msgspec.json.decode(entry.body or b"", type=ArmChange)
        numbers = {name: arm for arm, name in enumerate(self.arms)}
        retired = {numbers[name] for name in change.retire}
        for name in change.add:
            if name not in numbers:
                numbers[name] = len(self.arms)
                self.arms.append(name)
                self.chosen.append(0)
                self.reports.append(0)
                for one in (self.reporting, self.parts):
                    if one is not None:
                        one.add_arm()
        added = [numbers[name] for name in change.add]
        before, after = self.era.arms, sorted([arm for arm in self.era.arms if arm not in retired] + added)
        local = {arm: index for index, arm in enumerate(after)}
        moved = {index: local[arm] for index, arm in enumerate(before) if arm in local}
        if change.values is not UNSET:
            self.values = {**self.values, **change.values}
        self.shared.change_arms(entry.seq, len(after), moved, self._mix_of(after))
        self.past.append(self.era)
        self._begin_era(entry.seq, after)
        self.evidence.change_arms(after, len(self.arms))
        self.history.next = self.counts.decisions + 1
        self.distribution()  # it fails now if it cannot decide between these arms
        self._revise(entry)

    def _revise(self, entry: Entry) -> None:
        """Note an event that was applied."""
        self.operations.note(entry)
        self.revision += 1

    def _mix_of(self, arms: list[int]) -> Mix:
        return mix_of(self.settings, [self.arms[arm] for arm in arms])

    def _mix(self, seq: int) -> None:
        """Draw with the present floor and holdout from this entry on."""
        mix = self._mix_of(self.era.arms)
        self.shared.set_mix(seq, mix)
        self.operations.mixed_since = seq
        self.operations.hold_out(seq, mix.holdout, self.evidence.assumed)

    def operate(self, entry: Entry) -> None:
        """Pause, resume, freeze, unfreeze, end or edit the experiment."""
        operation, operations = msgspec.json.decode(entry.body or b"", type=Operation), self.operations
        if operation.event == "edited":
            self._edit(entry.seq, operation)
        else:
            operations.apply(operation, self.arms)
        if operation.event == "ended" and self.closed_at is None:
            self.closed_at = entry.at
        self._revise(entry)

    def _edit(self, seq: int, operation: Operation) -> None:
        """Change settings. The new wait is that of all open decisions."""
        before, operations = self.settings, self.operations
        operations.original = operations.original or before
        self.settings = after = edited(before, operation.settings or Edit())
        if after.default_outcome != before.default_outcome and after.default_outcome is not None:
            self.evidence.assumed = self.outcomes.loss(after.default_outcome)
            self.reporting = None
            if after.is_provisional:
                self.shared.assume(seq, self.evidence.assumed)
        mixed = ("floor", "holdout", "control")
        if any((getattr(before, name) or None) != (getattr(after, name) or None) for name in mixed):
            groups, since = operations.groups, operations.grouped_since
            self._mix(seq)
            if before.holdout == after.holdout and before.control == after.control:  # the groups are the same
                operations.groups, operations.grouped_since = groups, since

    def close(self, entry: Entry) -> None:
        """Close the experiment. It still takes reports."""
        self.closed_at = entry.at
        self._revise(entry)

    # -- failures -----------------------------------------------------------------------------------------------------

    @classmethod
    def stillborn(cls, created: Entry) -> Self:
        """Return the failed experiment of an entry from which none can be built. A StoreError if it has no name."""
        experiment = cls.__new__(cls)
        experiment.settings = readable_settings(created)
        experiment.seq, experiment.created_at, experiment.closed_at = created.seq, created.at, None
        experiment.arms, experiment.counts, experiment.revision = list(experiment.settings.arms), Counts(), 0
        experiment.era = Era(created.seq, list(range(len(experiment.arms))))
        experiment.operations = Operations()
        experiment.values = experiment.settings.declared_values
        experiment.failure = failure_of([created])
        return experiment

    def fail(self, entries: list[Entry]) -> None:
        """Mark the experiment as failed by entries that cannot be applied, and drop all that they may have changed."""
        self.failure = failure_of(entries)
        before = self.operations
        self.operations = Operations(before.state, before.arm, original=before.original)
        for name in vars(self).keys() - set(KEPT):
            delattr(self, name)
        self.note(entries)

    def note(self, entries: list[Entry]) -> None:
        """Count entries of one kind after a failure. Decisions can still be listed, so the names of arms are kept."""
        self.counts.add(entries)
        entry, active = entries[0], self.era.arms
        if entry.kind is EntryKind.CLOSED:
            self.closed_at = entry.at
        elif entry.kind is EntryKind.ARMS:
            with suppress(msgspec.MsgspecError):
                change = msgspec.json.decode(entry.body or b"", type=ArmChange)
                self.arms += [name for name in change.add if name not in self.arms]
                names = {self.arms[arm] for arm in active}.difference(change.retire).union(change.add)
                active = [arm for arm, name in enumerate(self.arms) if name in names]
        self.revision += entry.kind in (EntryKind.ARMS, EntryKind.CLOSED, EntryKind.OPERATED)
        self.era = Era(self.seq, active)

    def costs(self) -> Costs:
        """Return what learning has cost so far, for any delays (docs/theory/any-delays.md and service.md)."""
        return self.costs_later()()

    def costs_later(self) -> Callable[[], Costs]:
        """Return a function that computes the costs so far. With many arms it takes long, and needs no lock."""
        most, more, proven = float(self.learned), self.more_measured, self.proven()
        found, bets = self.shared.measured(), self.shared.bets()

        def costs() -> Costs:
            total = max(0.0, found.known + found.open + more)
            known = min(max(0.0, found.known + more), total)
            bound = min(most, run_bound(bets, CONFIDENCE) + more * DEAREST)
            return Costs(known, total - known, bound, proven)

        return costs

    @property
    def learned(self) -> int:
        """Decisions that the experiment learns from."""
        return self.counts.decisions - self.operations.aside.decisions

    @property
    def waiting(self) -> int:
        """Open decisions that the experiment learns from. They take memory."""
        return self.counts.outstanding - self.operations.aside.open

    def proven(self) -> float:
        """Return the limit for the mean cost over runs."""
        return self.learner.certificate("any") + self.more_proven

    def _mark(self) -> tuple[int, ...]:
        return *msgspec.structs.astuple(self.counts), self.era.seq

    @property
    def is_looked_at(self) -> bool:
        """Whether nothing has changed since the last look."""
        return self._looked is not None and self._looked.mark == self._mark()

    def look(self) -> Look:
        """Return what the evidence says. It is kept until something changes, because with many arms it takes long."""
        looked, mark = self._looked, self._mark()  # read once, because a view may remember a look meanwhile
        if looked is None or looked.mark != mark:
            self._looked = looked = Look(mark, self.evidence.verdict(), self.evidence.means())
        return looked

    def share_evidence(self) -> Evidence:
        """Return a copy of the evidence. It shares the blocks, and each is copied before it changes."""
        self._shared_blocks = set(range(len(self.evidence.blocks)))
        return self.evidence.copy()

    def _own_block(self, decision: int | None = None) -> None:
        """Make sure that nobody else has the block of a decision, or the last one, because it is about to change."""
        if self._shared_blocks:
            place = self.evidence.n_blocks_until(decision) - 1
            if place in self._shared_blocks:
                self._shared_blocks.remove(place)
                self.evidence.blocks[place] = self.evidence.blocks[place].copy()

    def remember(self, look: Look) -> None:
        """Keep what a copy of this experiment has found. It is used only while nothing has changed since."""
        self._looked = look

    def best(self) -> int | None:
        """Return the arm to show if the experiment ends now, or None if nothing is known."""
        return self.era.arms[0] if len(self.era.arms) == 1 else self.look().verdict.leader

    def best_lately(self) -> int | None:
        """Return the arm to show, by a look that may miss some outcomes if there are many arms.

        Then a look takes long. So a new one is made after as many new outcomes as there are arms.
        """
        if (looked := self._looked) is not None and looked.mark[-1] == self.era.seq:
            n_new = sum(self._mark()) - sum(looked.mark)
            if n_new < len(self.arms) >= MANY_ARMS:
                return looked.verdict.leader
        return self.best()

    def offered(self) -> list[int]:
        """Return for each arm how many decisions it took part in."""
        counts = [0] * len(self.arms)
        for era in (*self.past, self.era):
            for arm in era.arms:
                counts[arm] += era.decisions
        return counts

    def comparisons(self, now: int) -> list[Comparison]:
        """Compare how often the arms report, or return nothing if there is a default outcome."""
        return [] if self.reporting is None else self.reporting.compare(now, self.settings.reward_wait)

    def expires_at(self, decided_at: int) -> int | None:
        """Return when the wait for this decision's outcome ends."""
        wait = self.settings.reward_wait
        return None if wait is None else decided_at + round(wait * MICROSECONDS)

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        derived = ("shared", "_local", "_looked", "_shared_blocks", "outcomes")
        plain = {name: value for name, value in vars(self).items() if name not in derived}
        if not self.values:
            del plain["values"]  # the same state as in an older release
        if plain.get("parts") is None:
            plain.pop("parts", None)
        return plain if self.failure is not None else {**plain, "shared": self.shared.state()}

    @classmethod
    def restore(cls, state: dict[str, Any], *, is_base: bool = False) -> Self:
        """Build an experiment from a state that has been through `msgspec.to_builtins`."""
        experiment = cls.__new__(cls)
        types = {
            "settings": Settings,
            "counts": Counts,
            "ages": Ages,
            "history": History,
            "reporting": Reporting | None,
            "past": list[Era],
            "era": Era,
            "evidence": Evidence,
            "operations": Operations,
            "failure": Failure,
            "parts": PartSums,
        }
        state.setdefault("operations", {"mixed_since": state["seq"]})  # a base of an older release has none
        if aside := state["operations"].get("aside"):
            aside.setdefault("ended", aside["known"])  # as far as an older release has counted them
        for name, value in state.items():
            setattr(experiment, name, msgspec.convert(value, types[name]) if name in types else value)
        experiment.values = state.get("values", {})
        experiment.parts = getattr(experiment, "parts", None)
        if experiment.failure is not None:
            if is_base:  # the entries are gone, so no release can apply them again
                experiment.failure = Failure(experiment.failure.what, experiment.failure.entry)
            experiment.failure.check_release()
            return experiment
        experiment.shared = SharedLearner.restore(state["shared"])
        experiment._local, experiment._looked = {arm: index for index, arm in enumerate(experiment.era.arms)}, None
        experiment._shared_blocks = set()
        return experiment
