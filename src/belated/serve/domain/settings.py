"""The settings of an experiment: arms, outcome range, tuning, and how long to wait for outcomes."""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from belated import tunings
from belated.errors import ImproperRule, InvalidInput
from belated.learner.ftrl import FTRL
from belated.learner.outcomes import OutcomeRange
from belated.proper import proper_rates
from belated.serve.domain.outcome_ranges import check_default
from belated.serve.domain.parts import Part, Parts, assumed, check_parts
from belated.serve.domain.several import Several
from belated.serve.domain.values import Values, check_all, check_values

MAX_ARMS: Final = 1_000
MAX_NAME: Final = 100
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST_SHOWN: Final = 80  # characters of a setting in a message
LONGEST_WAIT: Final = 10 * 366 * 86_400.0  # ten years

Name = Annotated[
    str,
    Meta(
        pattern=f"^{NAME.pattern}$",
        max_length=MAX_NAME,
        description="Letters, digits, dots, dashes and underscores. It begins with a letter or digit.",
    ),
]
ArmName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, description="Any text without control characters.")]
Positive = Annotated[float, Meta(gt=0, le=1e6)]
LARGEST_SHARE: Final = 0.5  # of decisions that are not the learner's
RewardWait = (
    Annotated[
        float, Meta(ge=0.001, le=LONGEST_WAIT, description="Seconds to wait for an outcome. null waits for ever.")
    ]
    | None
)
DefaultOutcome = (
    Annotated[float, Meta(description="The outcome to assume when the wait ends. null assumes none.")] | None
)
Floor = Annotated[
    float,
    Meta(ge=0, le=LARGEST_SHARE, description="The probability that each arm has at least. At most 1 / arms."),
]
Holdout = Annotated[
    float,
    Meta(ge=0, le=LARGEST_SHARE, description="The share of decisions that is drawn without learning."),
]
Control = (
    Annotated[ArmName, Meta(description="The arm that the holdout always shows. null draws from all arms alike.")]
    | None
)
Description = Annotated[str, Meta(max_length=1_000, description="What the experiment is about, in your words.")]


class OutcomeChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The range of outcomes, and which end is better: rewards (higher) or losses (lower)."""

    lowest: float = 0.0
    highest: float = 1.0
    better: Literal["higher", "lower"] = "higher"

    def build(self) -> OutcomeRange:
        """The range itself, or an InvalidInput. It is no Struct, because the library does not need msgspec."""
        return OutcomeRange(self.lowest, self.highest, self.better)


class TuningChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tuning by name, with its parameters (docs/learner.md)."""

    name: Literal["means", "shadow", "advanced", "simple", "tsallis", "adaptive_exp3", "exp3"] = "means"
    boldness: Positive | UnsetType = UNSET
    scale: Positive | UnsetType = UNSET
    switch_threshold: Positive | UnsetType = UNSET
    eta: Positive | UnsetType = UNSET

    def build(self) -> tunings.Tuning:
        """Build the tuning. Raises InvalidInput if a parameter does not fit."""
        cls: Any = {
            "means": tunings.Means,
            "shadow": tunings.Shadow,
            "advanced": tunings.Advanced,
            "simple": tunings.Simple,
            "tsallis": tunings.Tsallis,
            "adaptive_exp3": tunings.AdaptiveExp3,
            "exp3": tunings.Exp3,
        }[self.name]
        names = ("boldness", "scale", "switch_threshold", "eta")
        given = {name: value for name in names if (value := getattr(self, name)) is not UNSET}
        unknown = given.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            raise InvalidInput(f"the tuning {self.name} has no {sorted(unknown)[0]}. Leave it out.")
        if self.name == "exp3" and self.eta is UNSET:
            raise InvalidInput("the tuning exp3 needs eta, its learning rate")
        tuning: tunings.Tuning = cls(**given)
        return tuning

    def check(self, fewest: int, most: int) -> None:
        """Check that it can begin with any of these numbers of arms. Raises InvalidInput."""
        tuning = self.build()
        for n_arms in range(max(2, fewest), most + 1):  # one arm needs no rates
            try:
                proper_rates(tuning, 1, (0.0, 0.0), tuning.rates(n_arms, 1, 0, 0))
            except ImproperRule as error:
                raise InvalidInput(f"this tuning cannot decide between {n_arms} arms: {error}") from None


FORMER_DEFAULT: Final = TuningChoice("shadow")  # until November 2026


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new experiment."""

    name: Name
    arms: Annotated[list[ArmName], Meta(min_length=1, max_length=MAX_ARMS, description="The options, by name.")]
    outcome: OutcomeChoice = OutcomeChoice()
    tuning: TuningChoice = TuningChoice()
    reward_wait: RewardWait = None
    default_outcome: DefaultOutcome = None
    provisional: (
        Annotated[
            bool,
            Meta(
                description="Whether a decision counts as the default outcome until its own comes. "
                "true if there is a default outcome and the tuning is means, unless you say false."
            ),
        ]
        | UnsetType
    ) = UNSET
    several: (
        Annotated[
            Several,
            Meta(
                description="How several outcomes of one decision add up. Without it there is one outcome, and another "
                "one is a conflict."
            ),
        ]
        | UnsetType
    ) = UNSET
    floor: Floor | UnsetType = UNSET
    holdout: Holdout | UnsetType = UNSET
    control: Control | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    values: Values | UnsetType = UNSET
    parts: Parts | UnsetType = UNSET

    @property
    def declared_values(self) -> dict[str, Any]:
        """The value of each arm. Empty if the arms have none."""
        return {} if self.values is UNSET else dict(self.values)

    @property
    def declared_parts(self) -> dict[str, Part]:
        """The parts of an outcome. Empty if it has none."""
        return {} if self.parts is UNSET else self.parts

    @property
    def default(self) -> float | None:
        """What a decision counts as if nothing is reported until its wait ends, or None."""
        return self.default_outcome if self.parts is UNSET else assumed(self.parts)

    @property
    def is_provisional(self) -> bool:
        """Whether an open decision counts as the default outcome."""
        is_possible = self.default is not None and self.tuning.name == "means"
        return is_possible and self.provisional is not False

    @property
    def rule(self) -> Several | None:
        """How several outcomes of one decision add up, or None if there is only one."""
        return None if self.several is UNSET else self.several

    @property
    def provisional_loss(self) -> float | None:
        """The loss from 0 to 1 that an open decision counts with, or None."""
        default = self.default if self.is_provisional else None
        return None if default is None else self.outcome.build().loss(default)

    def build_learner(self) -> FTRL:
        """Build the learner of the new experiment. Raises InvalidInput or ImproperRule."""
        return FTRL(len(self.arms), self.tuning.build(), seed=0, provisional=self.provisional_loss)

    def check(self, arms: list[str] | None = None) -> None:
        """Check what the types cannot, with these arms or those of the creation. Raises InvalidInput."""
        if not NAME.fullmatch(self.name):  # a pattern's $ lets a final line break through
            raise InvalidInput(f"name must be {well_formed_name(self.name)}, got {self.name!r}")
        check_arms(self.arms)
        try:
            outcomes = self.outcome.build()
        except InvalidInput as error:
            raise InvalidInput(f"outcome: {error}") from None
        if self.default_outcome is not None:
            if self.reward_wait is None:
                raise InvalidInput("default_outcome is used when reward_wait ends. Give a reward_wait too.")
            check_default(outcomes, self.default_outcome)
        if self.provisional is True and not self.is_provisional:
            raise InvalidInput("provisional needs a default_outcome and the tuning means. Leave it out.")
        if self.parts is not UNSET:
            self._check_parts(self.parts)
        self.check_mix(self.arms if arms is None else arms)
        if self.values is not UNSET:
            check_values(self.values, self.arms, "takes part")
            check_all(self.values)
        self.tuning.check(1, MAX_ARMS)  # because arms come and go
        self.build_learner().distribution()

    def _check_parts(self, parts: dict[str, Part]) -> None:
        """Check an outcome that is made of parts. Raises InvalidInput."""
        if self.outcome != OutcomeChoice():
            raise InvalidInput("with parts the outcome is their score from 0 to 1. Leave outcome out.")
        if self.default_outcome is not None:
            raise InvalidInput("with parts each part has a default of its own. Leave default_outcome out.")
        if self.several is not UNSET:
            raise InvalidInput("a part has one value, so parts and several do not go together. Leave one of them out.")
        check_parts(parts, has_wait=self.reward_wait is not None)

    def check_mix(self, names: list[str]) -> None:
        """Check the floor and the holdout with these arms. Raises InvalidInput."""
        floor = self.floor or 0.0
        if floor * len(names) > 1:
            raise InvalidInput(
                f"floor is the probability that each of {len(names)} arms has at least, so it can be at most "
                f"1/{len(names)}, got {floor!r}"
            )
        if not self.control:
            return
        if not self.holdout:
            raise InvalidInput("control is the arm of the holdout. Give a holdout too, such as 0.1.")
        if self.control not in names:
            raise InvalidInput(f"control must be one of the arms {names!r:.200}, got {self.control!r}")


def is_repeated(existing: Settings, asked: Settings) -> bool:
    """Whether a request repeats the one that created an experiment.

    A program that creates its experiment at every start, with the default tuning, may have done so with an older
    release.
    """
    if asked.tuning == TuningChoice() and existing.tuning == FORMER_DEFAULT:
        asked = msgspec.structs.replace(asked, tuning=FORMER_DEFAULT)
    return asked == existing


def differing(existing: Settings, asked: Settings) -> str:
    """Say which settings of an experiment differ from those that somebody asked for."""
    found = []
    for name in Settings.__struct_fields__:
        old, new = getattr(existing, name), getattr(asked, name)
        if old != new:
            found.append(f"its {name} is {shown(old)}, not {shown(new)}")
    return " and ".join(found)


def shown(value: Any) -> str:
    """Return a setting as JSON, cut if it is long."""
    text = "left out" if value is UNSET else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def stored_settings(body: bytes) -> Settings:
    """The settings of an experiment from its journal entry.

    Entries written before the redesign of November 2026 call the shadow's switch threshold `doubt`. All entries name
    their tuning. If one did not, it would be from a time when the shadow was the default.
    """
    document = msgspec.json.decode(body, type=dict[str, Any])
    tuning = document.setdefault("tuning", {})
    if isinstance(tuning, dict):
        tuning.setdefault("name", FORMER_DEFAULT.name)
        if "doubt" in tuning:
            tuning["switch_threshold"] = tuning.pop("doubt")
    return msgspec.convert(document, Settings)


def well_formed_name(name: str) -> str:
    """What the name of an experiment may be, with an example that is like this one."""
    example = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:40] or "my-experiment"
    rule = f"up to {MAX_NAME} letters, digits, dots, dashes and underscores, and begin with a letter or digit"
    return f"{rule}, such as {example}"


class ArmChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arms that join or leave a running experiment."""

    add: Annotated[list[ArmName], Meta(max_length=MAX_ARMS)] = []
    retire: Annotated[list[ArmName], Meta(max_length=MAX_ARMS)] = []
    values: Values | UnsetType = UNSET


def check_arms(names: list[str]) -> None:
    """Check that names differ and are printable."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"arms must have different names, got {twice!r} twice")
    for name in names:
        if not name.isprintable() or name != name.strip():
            raise InvalidInput(f"the name of an arm must be printable, without spaces around it, got {name!r}")
