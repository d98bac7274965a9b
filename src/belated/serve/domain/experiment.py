"""An experiment's state: its learner and its statistics, computed from its journal entries."""

from bisect import bisect_right
from functools import cached_property
from typing import Any, Self, final

import msgspec

from belated.arrays import Floats
from belated.learner.ftrl import FTRL
from belated.learner.outcomes import OutcomeRange
from belated.replicated.shared_learner import SharedLearner
from belated.serve.domain.entries import Entry, EntryKind, Rest, rest_of
from belated.serve.domain.observations import EDGES as DELAYS
from belated.serve.domain.observations import (
    ENOUGH_REPORTS,
    Ages,
    Earnings,
    History,
    LossEstimate,
    Sums,
    bucket_of,
    estimate,
    new_earnings,
)
from belated.serve.domain.reporting import Comparison, Reporting
from belated.serve.domain.settings import ArmChange, Settings, stored_settings
from belated.serve.domain.timestamps import MICROSECONDS


class Era(msgspec.Struct):
    """The time between two changes of the arms."""

    seq: int  # the entry it began with
    arms: list[int]  # its arms, as indices into all arms
    earnings: Earnings


class Counts(msgspec.Struct):
    """How many outcomes of each kind there were. An expired one may also be counted as late."""

    decisions: int = 0
    reported: int = 0
    expired: int = 0
    late: int = 0
    amended: int = 0

    @property
    def outstanding(self) -> int:
        return self.decisions - self.reported - self.expired


@final
class Experiment:
    """The state of an experiment after some entry of the journal."""

    def __init__(self, created: Entry) -> None:
        self.settings = stored_settings(created.body or b"")
        self.seq, self.created_at = created.seq, created.at
        self.closed_at: int | None = None
        self.arms = list(self.settings.arms)  # all that ever took part
        self.chosen, self.reports = [0] * len(self.arms), [0] * len(self.arms)  # decisions and true outcomes, by arm
        self.counts, self.ages = Counts(), Ages([], [])
        self.delays = [0] * len(DELAYS)
        # with a default outcome, silence is an answer
        self.reporting = Reporting.new(len(self.arms)) if self.settings.default_outcome is None else None
        self.history = History(1, 1, [], [], [])
        self.past: list[Era] = []
        self.last_expired = 0  # the newest decision whose wait has ended without a report
        self.revision = 0  # of the last event
        # what replaced outcomes and decisions that missed a change of arms add to the learner's certificates
        self.more_proven, self.more_measured = 0.0, 0.0
        self.shared = SharedLearner(self.settings.build_learner(), created.seq)
        self._begin_era(created.seq, list(range(len(self.arms))))

    def _begin_era(self, seq: int, arms: list[int]) -> None:
        self.era = Era(seq, arms, new_earnings(len(arms)))
        self._local = {arm: index for index, arm in enumerate(arms)}

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def learner(self) -> FTRL:
        return self.shared.learner

    def distribution(self) -> Floats:
        """Return the probabilities of the present arms for the next decision."""
        return self.learner.distribution()

    def apply_decisions(self, entries: list[Entry]) -> None:
        """Apply decisions drawn from one distribution."""
        first, era = entries[0], self._era_of(entries[0])
        seen = first.seen or 0
        freshness = self.shared.freshness(seen)
        if self.counts.decisions + 1 >= self.history.next and era is self.era and not freshness.is_more:
            self._remember(first)
        arms = [self._index_in(era, entry.arm or 0) for entry in entries]
        probabilities = [entry.probability or 0.0 for entry in entries]
        if era is self.era:
            seqs, rests = [entry.seq for entry in entries], list[Rest]()
            if first.drawn is not None and freshness.is_stale:
                rests = list(map(rest_of, entries))
            drawn, bold_advantages = rests[0].drawn if rests else None, [rest.bold_advantage for rest in rests]
            self.shared.enter(seqs, seen, arms, probabilities, drawn, bold_advantages, freshness=freshness)
        else:  # its server did not know of the new arms, so each loses at most 1 and teaches nothing
            self.more_proven += len(entries)
            self.more_measured += len(entries)
        for entry, arm, probability in zip(entries, arms, probabilities, strict=True):
            self.chosen[entry.arm or 0] += 1
            if self._assumed is not None:
                era.earnings.add(arm, self._assumed, probability)
            if self.reporting is not None:
                self.reporting.decide(entry.seq, entry.at, entry.arm or 0)
            self.ages.opened(entry.at)
        self.counts.decisions += len(entries)

    def _index_in(self, era: Era, arm: int) -> int:
        """Return the index of an arm among the arms of an era."""
        return self._local[arm] if era is self.era else era.arms.index(arm)

    def _remember(self, entry: Entry) -> None:
        point: list[float | None] = [None] * len(self.arms)
        for arm, probability in zip(self.era.arms, self.distribution().tolist(), strict=True):
            point[arm] = probability
        self.history.add(self.counts.decisions + 1, entry.at, point)

    def apply_outcome(self, entry: Entry) -> None:
        """Apply an outcome."""
        outcomes, decided_at = self.outcomes, entry.decided_at or 0
        loss = None if entry.value is None else outcomes.loss(entry.value)
        before = None if entry.old is None else outcomes.loss(entry.old)
        if self._was_entered(entry):
            self._teach(entry, loss, before)
            self._charge(entry, loss, before)
        self._observe(entry, loss, before)
        if entry.kind in (EntryKind.REPORTED, EntryKind.LATE):
            bucket = bucket_of(entry.at - decided_at)
            self.delays[bucket] += 1
            self.reports[entry.arm or 0] += 1
            if self.reporting is not None:
                ends = self.expires_at(decided_at)
                is_late = ends is not None and entry.at > ends
                self.reporting.report(entry.decision or 0, entry.arm or 0, bucket, is_late=is_late)
        match entry.kind:
            case EntryKind.REPORTED:
                self.counts.reported += 1
                self.ages.closed(decided_at)
            case EntryKind.EXPIRED:
                self.counts.expired += 1
                self.ages.closed(decided_at)
                self.last_expired = max(self.last_expired, entry.decision or 0)
            case EntryKind.LATE:
                self.counts.late += 1
            case _:
                self.counts.amended += 1

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

    @cached_property
    def _assumed(self) -> float | None:
        """The loss to assume for a decision without an outcome."""
        default = self.settings.default_outcome
        return None if default is None else self.outcomes.loss(default)

    def _observe(self, entry: Entry, loss: float | None, before: float | None) -> None:
        """Add the outcome to the statistics of its era's arms."""
        if before is None:
            before = self._assumed
        if loss is None or loss == before:
            return
        era, probability = self._era_of(entry), entry.probability or 0.0
        arm = self._index_in(era, entry.arm or 0)
        if before is None:
            era.earnings.add(arm, loss, probability)
        else:
            era.earnings.amend(arm, before, loss, probability)

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
        retired = {self.arms.index(name) for name in change.retire}
        for name in change.add:
            if name not in self.arms:
                self.arms.append(name)
                self.chosen.append(0)
                self.reports.append(0)
                if self.reporting is not None:
                    self.reporting.add_arm()
        added = [self.arms.index(name) for name in change.add]
        before, after = self.era.arms, sorted([arm for arm in self.era.arms if arm not in retired] + added)
        moved = {index: after.index(arm) for index, arm in enumerate(before) if arm in after}
        self.shared.change_arms(entry.seq, len(after), moved)
        self.past.append(self.era)
        self._begin_era(entry.seq, after)
        self.history.next = self.counts.decisions + 1
        self.revision += 1

    def close(self, entry: Entry) -> None:
        """Close the experiment. It still takes reports."""
        self.closed_at = entry.at
        self.revision += 1

    def certificates(self) -> tuple[float, float]:
        """Return the regret bound that is proven and the one that this run's data shows, in losses over all eras."""
        most, own = float(self.counts.decisions), self.learner.certificate()
        proven = min(
            max(most, own), own + self.more_proven
        )  # after an alarm the learner's own may exceed the trivial one
        measured = self.learner.measured_certificate() + self.more_measured
        return proven, min(most, max(0.0, measured))

    def estimates(self) -> list[LossEstimate | None]:
        """Estimate each arm's mean loss over all its eras, or None while it has few reports."""
        sums: list[list[Sums]] = [[] for _ in self.arms]
        for era in (*self.past, self.era):
            for index, arm in enumerate(era.arms):
                sums[arm].append(era.earnings.sums(index))
        return [estimate(sums[arm]) if n >= ENOUGH_REPORTS else None for arm, n in enumerate(self.reports)]

    def comparisons(self, now: int) -> list[Comparison]:
        """Compare how often the arms report, or return nothing if there is a default outcome."""
        return [] if self.reporting is None else self.reporting.compare(now, self.settings.reward_wait)

    def expires_at(self, decided_at: int) -> int | None:
        """Return when the wait for this decision's outcome ends."""
        wait = self.settings.reward_wait
        return None if wait is None else decided_at + round(wait * MICROSECONDS)

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        derived = ("shared", "_local", "_assumed", "outcomes")
        plain = {name: value for name, value in vars(self).items() if name not in derived}
        return {**plain, "shared": self.shared.state()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
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
        }
        for name, value in state.items():
            setattr(experiment, name, msgspec.convert(value, types[name]) if name in types else value)
        experiment.shared = SharedLearner.restore(state["shared"])
        experiment._local = {arm: index for index, arm in enumerate(experiment.era.arms)}
        return experiment
