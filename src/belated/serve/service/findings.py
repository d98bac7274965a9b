"""Documents about what an experiment has found out: which arm is better, what to show, and what learning has cost."""

from collections.abc import Collection, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from belated.serve.domain.experiment import Costs, Experiment
from belated.serve.domain.operating import LEARNER
from belated.verdicts import Evidence, Verdict

LARGEST = 1e300  # finite, so that it survives JSON
ROUNDED = 12  # digits of a difference of means


class ArmComparison(msgspec.Struct):
    """How much worse an arm is than the leader, on average over the decisions so far, in the outcome's units."""

    name: str
    difference: Annotated[float, Meta(description="Above 0 if the leader is better.")]
    low: Annotated[
        float, Meta(description="With 95% confidence it is between low and high at all times. Each interval alone.")
    ]
    high: float
    sure: Annotated[float, Meta(description="How sure it is that the leader is better than this arm, from 0 to 1.")]
    swing: Annotated[float, Meta(description="By so much the open decisions can still move the difference.")]


ASSUMPTION: Final = (
    "Each decision was drawn by this service, and what was drawn was used. Reported outcomes are true. "
    "Later decisions do not change the outcome of an earlier one. "
    "Outcomes may come at any time or never, and the options may change with time."
)


class VerdictView(msgspec.Struct):
    """Which arm is better, and how sure that is. It holds whenever you look."""

    better: Annotated[str, Meta(description="The arm that is better than all others. null until decided.")] | None
    leader: Annotated[str, Meta(description="The arm that is ahead. null before the first outcome.")] | None
    sure: Annotated[
        float,
        Meta(
            description="1 - p, where p is an anytime-valid p-value. If another arm is always at least as good "
            "as the leader, it ever gets 0.97 or more with a chance of at most 0.03. "
            "It is not the chance that the leader is better."
        ),
    ]
    decided: Annotated[bool, Meta(description="Whether sure is at least 0.95.")]
    comparisons: Annotated[list[ArmComparison], Meta(description="The other arms of the document that can be chosen.")]
    open: Annotated[int, Meta(description="Decisions without an outcome. Each counts as the worst it may still be.")]
    left_out: Annotated[int, Meta(description="Decisions that the comparison does not use.")]
    stale: Annotated[int, Meta(description="Those of them that a server drew before it had read the newest entries.")]
    assumption: str


class ShowView(msgspec.Struct):
    """What to show after the experiment."""

    name: str
    decided: Annotated[bool, Meta(description="Whether it is known to be better. If not, it has the best mean so far.")]


class CostsView(msgspec.Struct):
    """What learning has cost in total, against always choosing the best arm, in the outcome's units."""

    known: Annotated[float, Meta(description="Measured from the decisions whose outcome is known.")]
    open: Annotated[float, Meta(description="What the open decisions could still add.")]
    bound: Annotated[
        float, Meta(description="With 95% confidence this run's cost is at most this, at all times, for any delays.")
    ]
    proven: Annotated[
        float,
        Meta(
            description="The mean of this number over runs is at least the mean cost, for any delays. It assumes that "
            "earlier choices do not change later outcomes. It says nothing while it is not below `most`."
        ),
    ]
    most: Annotated[float, Meta(description="What could be lost at all: decisions times range.")]


COUNTED: Final = "An open decision counts as the default outcome, if there is one. null before the first outcome."


class HoldoutView(msgspec.Struct):
    """What learning gains. The decisions of the learner against those that were drawn without learning."""

    share: float
    control: Annotated[str, Meta(description="The arm of the holdout. null if it draws from all alike.")] | None
    decisions: Annotated[int, Meta(description="Of both groups, since the holdout was set.")]
    open: Annotated[int, Meta(description="Those of them without an outcome. Each counts at its worst.")]
    learner: Annotated[float, Meta(description=f"The average outcome of the learner. {COUNTED}")] | None
    held_out: Annotated[float, Meta(description=f"The average outcome of the holdout. {COUNTED}")] | None
    gain: (
        Annotated[float, Meta(description=f"How much better a decision of the learner is on average. {COUNTED}")] | None
    )
    low: Annotated[float, Meta(description="With 95% confidence the gain is between low and high at all times.")] | None
    high: float | None


def holdout_view(experiment: Experiment) -> HoldoutView | None:
    """Describe what learning gains (docs/theory/mixing.md)."""
    settings, groups = experiment.settings, experiment.operations.groups
    if groups is None:
        return None
    verdict, outcome, default = groups.verdict(), experiment.outcomes, settings.default
    losses = mean_losses(groups, None if default is None else outcome.loss(default))
    means = [None if loss is None else outcome.value(loss) for loss in losses]
    gain: tuple[float | None, ...] = (None, None, None)
    if verdict.leader is not None and verdict.comparisons:
        gain = gain_of(verdict, None if default is None else losses, span_of(experiment))
    counts = groups.decisions, verdict.open
    return HoldoutView(settings.holdout or 0.0, settings.control or None, *counts, *means, *gain)


def mean_losses(groups: Evidence, assumed: float | None) -> list[float | None]:
    """Return the mean loss of each group. An open decision counts as the assumed loss, if there is one."""
    if groups.reports == 0:
        return [None] * groups.n_arms
    waiting = [0] * groups.n_arms if assumed is None else groups.open_by_arm()
    sums = zip(groups.totals, groups.known, waiting, strict=True)
    return [(total + (assumed or 0.0) * n) / (known + n) if known + n else None for total, known, n in sums]


def gain_of(verdict: Verdict, losses: list[float | None] | None, span: float) -> tuple[float, float, float]:
    """Return the gain of learning and its interval, from these mean losses or from the outcomes that are known."""
    one, sign = verdict.comparisons[0], 1 if verdict.leader == LEARNER else -1
    low, high = sorted((sign * one.low, sign * one.high))
    gain = sign * one.difference
    learner, held_out = (None, None) if losses is None else losses
    if learner is not None and held_out is not None:
        gain = min(max(held_out - learner, low), high)
    return (round(gain, ROUNDED) + 0.0) * span, low * span, high * span  # neither -0.0 nor an error of rounding


def span_of(experiment: Experiment) -> float:
    """Return the length of the range of outcomes."""
    return experiment.outcomes.highest - experiment.outcomes.lowest


def comparison_views(experiment: Experiment, shown: Collection[int]) -> list[ArmComparison]:
    """Compare those of these arms that can be chosen with the leader."""
    names, span = experiment.arms, span_of(experiment)
    return [
        ArmComparison(
            names[one.arm], one.difference * span, one.low * span, one.high * span, one.sure, one.swing * span
        )
        for one in experiment.look().verdict.comparisons
        if one.arm in shown
    ]


def verdict_view(experiment: Experiment, shown: Sequence[int]) -> VerdictView:
    """Describe which arm is better, and how these arms compare with the leader."""
    found, names = experiment.look().verdict, experiment.arms
    comparisons = comparison_views(experiment, set(shown))
    leader = None if found.leader is None else names[found.leader]
    better = leader if found.is_decided else None
    counted = comparisons, found.open, found.left_out, experiment.stale
    return VerdictView(better, leader, found.sure, found.is_decided, *counted, ASSUMPTION)


def no_verdict(experiment: Experiment) -> VerdictView:
    """Describe that nothing is known, because the experiment has failed."""
    counts = experiment.counts
    return VerdictView(None, None, 0.0, False, [], counts.outstanding, counts.decisions, 0, ASSUMPTION)  # noqa: FBT003


def largest_costs(experiment: Experiment) -> CostsView:
    """Describe what an experiment that has failed may have cost. No more is known than that all may be lost."""
    most = experiment.counts.decisions * span_of(experiment)
    return CostsView(0.0, most, most, most, most)


def show_view(experiment: Experiment) -> ShowView | None:
    """Describe what to show after the experiment."""
    best, operations = experiment.best(), experiment.operations
    if operations.state == "ended" and operations.arm not in (None, best):
        return ShowView(experiment.arms[operations.arm or 0], decided=False)
    if experiment.closed_at is None or best is None:
        return None
    return ShowView(experiment.arms[best], experiment.look().verdict.is_decided)


def costs_view(experiment: Experiment, costs: Costs) -> CostsView:
    """Describe what learning has cost."""
    known, n_open, bound, proven = costs
    span, most = span_of(experiment), experiment.learned
    return CostsView(known * span, n_open * span, bound * span, min(proven * span, LARGEST), most * span)
