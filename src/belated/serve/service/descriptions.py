"""What is said of experiments and of the store. The API returns these documents and the dashboard draws them."""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated.serve.domain.observations import Counts
from belated.serve.domain.parts import Part
from belated.serve.domain.settings import OutcomeChoice, TuningChoice
from belated.serve.domain.several import Several
from belated.serve.service.findings import ArmComparison, CostsView, HoldoutView, ShowView, VerdictView


class PartMean(msgspec.Struct):
    """How often a part of the outcome was reported for an arm, and its average."""

    reports: int
    mean: Annotated[float, Meta(description="In the part's units. null before the first report.")] | None


class ArmView(msgspec.Struct):
    """An arm: how likely it is, how often it was chosen, and its mean outcome."""

    name: str
    active: bool
    probability: Annotated[float, Meta(description="Of the next decision. null for a retired arm.")] | None
    chosen: int
    share: (
        Annotated[float, Meta(description="chosen / decisions that it took part in. null before the first of them.")]
        | None
    )
    reports: Annotated[int, Meta(description="Outcomes that were reported, in time or late.")]
    open: Annotated[
        int, Meta(description="Decisions for it without an outcome. One that ended as the default has one.")
    ]
    mean: (
        Annotated[
            float,
            Meta(description="The average outcome of its decisions whose outcome is known. null if there is none."),
        ]
        | None
    )
    provisional_mean: (
        Annotated[float, Meta(description="The mean if its open decisions count as the default. null without one.")]
        | None
    )
    low: (
        Annotated[
            float,
            Meta(
                description="With 95% confidence the mean over all its decisions is between low and high at all times. "
                "Open decisions count as the worst outcome in low and as the best in high, or the reverse."
            ),
        ]
        | None
    )
    high: float | None
    parts: Annotated[dict[str, PartMean], Meta(description="Only if the outcome is made of parts.")] | UnsetType = UNSET


class Histogram(msgspec.Struct):
    """counts[i] lie between edges[i] and edges[i + 1] seconds. The last ones lie above the last edge."""

    edges: list[float]
    counts: list[int]


class RestView(msgspec.Struct):
    """The arms that are not in the document, summed up. `GET /v1/experiments/{name}/arms` has each of them."""

    arms: int
    active: Annotated[int, Meta(description="How many of them can be chosen.")]
    probability: Annotated[float, Meta(description="That the next decision chooses one of them.")]
    chosen: int
    reports: int
    open: int


class HistoryView(msgspec.Struct):
    """The arms' probabilities over time as probabilities[arm][point], null where an arm did not take part."""

    round: list[int]
    at: Annotated[list[float], Meta(description="Seconds since 1970.")]
    probabilities: Annotated[
        list[list[float | None] | None],
        Meta(description="In the order of `arms`. With more than 20 arms it is null for all but 20 of them."),
    ]
    others: Annotated[list[float], Meta(description="All other arms together. null if each has its own.")] | None


class ArmReporting(msgspec.Struct):
    """How often an arm reports, of its decisions that are old enough to be judged."""

    name: str
    decisions: int
    reports: int
    share: Annotated[float, Meta(description="reports / decisions. null without decisions.")] | None
    less: (
        Annotated[
            float,
            Meta(description="0.31 if it reports 31% less often than the others at the same times. Negative if more."),
        ]
        | None
    )
    warning: Annotated[bool, Meta(description="Whether it reports less often beyond chance.")]


class ReportingView(msgspec.Struct):
    """Whether the arms report equally often. If not, the estimates may be wrong."""

    warning: Annotated[bool, Meta(description="Whether some arm has a warning.")]
    judged_after: (
        Annotated[
            float,
            Meta(
                description="Seconds after which a missing report counts as missing. "
                "null before the first report if there is no wait."
            ),
        ]
        | None
    )
    arms: list[ArmReporting]


class StoreView(msgspec.Struct):
    """The health of the store."""

    kind: str
    writable: bool
    entries: int
    bytes: int
    last_commit_ms: float
    queue: int
    unsnapshotted: Annotated[int, Meta(description="Entries that a restart would have to apply.")]
    lag_entries: Annotated[int, Meta(description="At most this many entries are not applied on this server yet.")]
    lag_seconds: Annotated[float, Meta(description="Seconds since this server was last caught up.")]


class ArchiveView(msgspec.Struct):
    """What may have left the store. The numbers of an experiment still count it."""

    until: Annotated[str, Meta(description="Decisions made until then may have been archived or erased.")]
    missing: Annotated[int, Meta(description="Its first decisions that are not in the store any more.")]
    oldest: Annotated[str, Meta(description="When the oldest that is left was made. null if none is left.")] | None


class Event(msgspec.Struct):
    """Something that happened to the experiment itself."""

    event: Annotated[
        str, Meta(description="created, arms, paused, resumed, frozen, unfrozen, edited, ended or closed.")
    ]
    at: str
    by: Annotated[str, Meta(description="The label of the key that was used, or its id. null without keys.")] | None
    details: Annotated[dict[str, Any], Meta(description="What was sent.")]


class AsideView(msgspec.Struct):
    """Decisions that showed one arm to all, because the experiment was frozen or had ended. They teach nothing."""

    decisions: int
    known: Annotated[int, Meta(description="Those whose outcome is known.")]
    mean: Annotated[float, Meta(description="The average of these outcomes. null if there are none.")] | None


class ExperimentView(msgspec.Struct):
    """Everything about an experiment."""

    name: str
    description: str
    state: Annotated[
        Literal["running", "paused", "frozen", "ended", "closed", "failed"],
        Meta(description="Frozen and ended ones show the arm in `shown` to all. Paused and closed ones do not decide."),
    ]
    shown: Annotated[str, Meta(description="The arm that every decision shows.")] | None
    created_at: str
    closed_at: str | None
    failure: (
        Annotated[str, Meta(description="Why it has failed. It makes no decisions and takes no reports. Usually null.")]
        | None
    )
    arms: Annotated[
        list[ArmView],
        Meta(
            description="All arms that ever took part, up to 100. If there are more, these are the leader, the arm "
            "that is the hardest to tell from it, the likeliest, those that report less often, and then the best."
        ),
    ]
    rest: Annotated[RestView, Meta(description="null if `arms` has all.")] | None
    outcome: OutcomeChoice
    parts: Annotated[dict[str, Part], Meta(description="The parts of an outcome. Empty if it has none.")]
    tuning: TuningChoice
    reward_wait: float | None
    default_outcome: float | None
    values: Annotated[dict[str, Any], Meta(description="The value of each arm. Empty if the arms have none.")]
    provisional: Annotated[bool, Meta(description="Whether an open decision counts as the default outcome.")]
    several: Annotated[Several, Meta(description="How outcomes of a decision add up. null if there is one.")] | None
    floor: Annotated[float, Meta(description="The probability that every arm has at least.")]
    holdout: Annotated[HoldoutView, Meta(description="null without a holdout.")] | None
    aside: Annotated[AsideView, Meta(description="null if there are none.")] | None
    events: Annotated[list[Event], Meta(description="The last 20, newest first. Long details are left out.")]
    decisions: int
    outstanding: int
    reported: int
    expired: int
    late: int
    amended: int
    removed: Annotated[int, Meta(description="Decisions that were archived or erased before they had an outcome.")]
    share_never: (
        Annotated[
            float,
            Meta(
                description="The share of finished decisions without an outcome. null before the first, without a wait "
                "and with a default outcome, because then each has one."
            ),
        ]
        | None
    )
    verdict: VerdictView
    show: Annotated[ShowView, Meta(description="null while the experiment runs, or if no outcome is known.")] | None
    costs: CostsView
    delays: Histogram
    ages: Histogram
    history: HistoryView
    reporting: (
        Annotated[ReportingView, Meta(description="null with a default outcome, because then silence is an answer.")]
        | None
    )
    arm_changes: int
    store: StoreView
    archive: Annotated[ArchiveView, Meta(description="null if nothing was removed since it began.")] | None = None


class ArmDetails(ArmView, kw_only=True):
    """An arm in the list of all arms."""

    comparison: Annotated[ArmComparison, Meta(description="null for the leader and for retired arms.")] | None
    reporting: Annotated[ArmReporting, Meta(description="null with a default outcome.")] | None


class ExperimentSummary(msgspec.Struct):
    """An experiment in a list."""

    name: str
    created_at: str
    closed_at: str | None
    state: Literal["running", "paused", "frozen", "ended", "closed", "failed"]
    arms: int
    decisions: int
    outstanding: int
    failed: Annotated[bool, Meta(description="Whether it makes no decisions and takes no reports.")]


class ArmTotals(NamedTuple):
    """An arm's numbers for the metrics. Outcomes are in the experiment's units."""

    name: str
    chosen: int
    share: float | None  # of the decisions that it took part in
    probability: float | None  # of the next decision, None for a retired arm
    reports: int
    known: int  # decisions whose outcome is known, also as the default
    outcomes: float  # the sum of these outcomes


class ExperimentTotals(NamedTuple):
    """An experiment's numbers for the metrics."""

    name: str
    counts: Counts
    proven: float | None  # regret in losses, None if the experiment has failed
    reporting: ReportingView | None
    is_failed: bool = False  # and still open, so that somebody should look
    arms: list[ArmTotals] | None = None  # None if the experiment has failed
    is_closed: bool = False
