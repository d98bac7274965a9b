"""What a team does with a running experiment: pause, freeze, end and edit it, and hold a share of decisions out.

Each is an event of the journal. So all servers agree on it, also after a restart.
"""

from enum import IntEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated.errors import InvalidInput
from belated.learner.mixing import NO_CONTROL, Mix
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.settings import (
    ArmName,
    Control,
    DefaultOutcome,
    Description,
    Floor,
    Holdout,
    RewardWait,
    Settings,
)
from belated.verdicts import Evidence

State = Literal["running", "paused", "frozen", "ended"]
LEARNER, HELD_OUT = 0, 1  # the groups of the holdout
MOST_EVENTS: Final = 20  # in the document of an experiment
LONGEST_DETAILS: Final = 2_000  # bytes


class Policy(IntEnum):
    """Who has chosen the probabilities of a decision. Without a mark it was the learner."""

    HOLDOUT = 1  # the holdout, whose decisions teach as all others do
    FROZEN = 2  # nobody, because one option was shown to all
    WINNER = 3  # nobody, because the experiment had ended with a winner

    @staticmethod
    def is_aside(entry: Entry) -> bool:
        """Whether this decision, or that of this outcome, teaches nothing."""
        return entry.policy in (Policy.FROZEN, Policy.WINNER)


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings that change while the experiment runs. What is left out stays as it is."""

    reward_wait: RewardWait | UnsetType = UNSET
    default_outcome: DefaultOutcome | UnsetType = UNSET
    floor: Floor | UnsetType = UNSET
    holdout: Holdout | UnsetType = UNSET
    control: Control | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of an event that operates an experiment."""

    event: Literal["paused", "resumed", "frozen", "unfrozen", "ended", "edited"]
    arm: Annotated[ArmName, Meta(description="The option that is shown from now on.")] | None = None
    settings: Edit | UnsetType = UNSET


class Aside(msgspec.Struct):
    """Decisions that showed one option to all. They are counted, and teach nothing."""

    decisions: int = 0
    known: int = 0  # outcomes
    total: float = 0.0  # the sum of their losses


class Noted(msgspec.Struct, frozen=True):
    """Something that happened to an experiment, as its page shows it."""

    event: str
    at: int
    by: str  # the key behind it, if there was one
    details: str  # JSON, or {} if it is long


KINDS: Final = {EntryKind.CREATED: "created", EntryKind.ARMS: "arms", EntryKind.CLOSED: "closed"}


def noted(entry: Entry) -> Noted:
    """Return what an event says."""
    body = entry.body or b"{}"
    event = KINDS.get(entry.kind) or msgspec.json.decode(body, type=Operation).event
    is_short = len(body) <= LONGEST_DETAILS and entry.kind is not EntryKind.CREATED
    return Noted(event, entry.at, (entry.drawn or b"").decode(errors="replace"), body.decode() if is_short else "{}")


class Operations(msgspec.Struct):
    """How an experiment is operated after some entry of the journal."""

    state: State = "running"
    arm: int | None = None  # shown to all, while it is frozen and after its end. A pause does not forget it
    aside: Aside = msgspec.field(default_factory=Aside)
    mixed_since: int = 0  # decisions that have not seen this entry had another floor or holdout
    groups: Evidence | None = None  # the decisions of the learner and of the holdout
    grouped_since: int = 0  # those that have not seen this entry are not compared
    original: Settings | None = None  # as it was created, if that has changed
    events: list[Noted] = []  # the last ones

    def copy(self) -> "Operations":
        """Return a copy of all that may change."""
        groups = self.groups
        if groups is not None:
            groups = groups.copy()
            groups.blocks = [block.copy() for block in groups.blocks]
        return msgspec.structs.replace(self, aside=msgspec.structs.replace(self.aside), groups=groups)

    def note(self, entry: Entry) -> None:
        """Remember an event for the page."""
        self.events = [*self.events, noted(entry)][-MOST_EVENTS:]

    def apply(self, operation: Operation, arms: list[str]) -> None:
        """Pause, resume, freeze, unfreeze or end."""
        match operation.event:
            case "paused":
                self.state = "paused"
            case "resumed":
                self.state = "running" if self.arm is None else "frozen"
            case "unfrozen":
                self.state, self.arm = "running", None
            case "frozen" | "ended" as state:
                self.state, self.arm = state, arms.index(operation.arm or "")

    def hold_out(self, seq: int, share: float, assumed: float | None) -> None:
        """Compare the groups anew from this entry on."""
        self.groups, self.grouped_since = Evidence.new(2, assumed) if share else None, seq

    def is_grouped(self, seen: int) -> bool:
        """Whether a decision is compared that was drawn from the state after this entry."""
        return self.groups is not None and seen >= self.grouped_since

    def decide(self, entries: list[Entry], share: float) -> None:
        """Count decisions for their groups."""
        if self.groups is not None and self.is_grouped(entries[0].seen or 0):
            groups = [group_of(entry) for entry in entries]
            shares = [1 - share, share]
            self.groups.decide_batch([entry.seq for entry in entries], groups, [shares[g] for g in groups], shares)

    def report(self, outcome: Entry, share: float, loss: float, before: float | None) -> None:
        """Count the outcome of a decision for its group."""
        if self.groups is not None and self.is_grouped(outcome.seen or 0):
            group = group_of(outcome)
            drawn = outcome.decision or 0, group, share if group == HELD_OUT else 1 - share
            if before is None:
                self.groups.report(*drawn, loss)
            else:
                self.groups.amend(*drawn, before, loss)

    def set_aside(self, outcome: Entry, loss: float | None, before: float | None) -> None:
        """Count the outcome of a decision that teaches nothing."""
        if loss is not None:
            self.aside.known += before is None
            self.aside.total += loss - (before or 0.0)


def group_of(entry: Entry) -> int:
    """Return the group of a decision, or of that of an outcome."""
    return HELD_OUT if entry.policy == Policy.HOLDOUT else LEARNER


def edited(settings: Settings, edit: Edit) -> Settings:
    """Return the settings after a change."""
    given: dict[str, Any] = {
        name: value for name in Edit.__struct_fields__ if (value := getattr(edit, name)) is not UNSET
    }
    return msgspec.structs.replace(settings, **given)


def mix_of(settings: Settings, names: list[str]) -> Mix:
    """Return what is mixed into the distribution over the arms of these names."""
    control = settings.control
    index = names.index(control) if control in names else NO_CONTROL
    return Mix(settings.floor or 0.0, settings.holdout or 0.0, index)


def check_edit(settings: Settings, edit: Edit, names: list[str]) -> Settings:
    """Return the settings after a change, or raise InvalidInput. `names` are the arms that can be chosen."""
    if edit.default_outcome is None and settings.default_outcome is not None:
        raise InvalidInput(
            "default_outcome cannot be taken away while the experiment runs, because open decisions count as it. "
            "Give another outcome, or create a new experiment without one."
        )
    after = edited(settings, edit)
    after.check(names)
    return after
