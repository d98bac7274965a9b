"""Rules for how losses are reported that depend on the arm, on the loss, or on both.

Such a rule stands in the place of `Delays` in a problem. A rule of `Delays` fixes the delay of a round before the game.
Here every arm has its own delay in every round, and what is reported may differ from what was suffered.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Any, NamedTuple, final

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.delays import NEVER, Delays
from belated.lab.problems.texts import text_of
from belated.scalars import as_float
from belated.validation import as_delays, whole_number

SUCCESS = 0.5  # a loss below this is a success


class Reports(NamedTuple):
    """What becomes of a block of losses. Both have a row for each round and a column for each arm."""

    delays: Integers
    losses: Floats  # as they are reported


class Feedback(ABC):
    """A rule for when each loss is reported, and as what. Subclass it for a rule of your own."""

    def __repr__(self) -> str:
        return text_of(self)

    @abstractmethod
    def blocks(
        self, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[Reports]:
        """The delay and the reported value of every loss, for each block of losses. A block may be a single round."""

    @property
    def typical(self) -> int | None:
        """A delay that stands for all, if there is one. The resonant wave takes its period from it."""
        return None

    @property
    def depends_on_horizon(self) -> bool:
        """Whether the first rounds of a longer game have other delays."""
        return False

    def loaded(self) -> "Feedback":
        """The same rule, with its files read into memory."""
        return self


def delays_of(rule: Delays, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
    """The delays of all rounds, checked. A copy, because a rule may fill the same array again for the next game."""
    delays = as_delays(rule.draw(n_arms, n_rounds, generator)).copy()
    if delays.size != n_rounds:
        raise InvalidInput(f"{rule!r:.80} gave {delays.size} delays for {n_rounds} rounds")
    return delays


def every_arm_alike(
    rule: Delays, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
) -> Iterator[Reports]:
    """The reports by a rule that gives a delay for each round."""
    delays, start = delays_of(rule, n_arms, n_rounds, generator), 0
    for block in losses:
        here = delays[start : start + len(block), None]
        start += len(block)
        yield Reports(np.broadcast_to(here, block.shape), block)


def _blocks_of(
    rule: Delays | Feedback, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
) -> Iterator[Reports]:
    if isinstance(rule, Feedback):
        return rule.blocks(losses, n_arms, n_rounds, generator)
    return every_arm_alike(rule, losses, n_arms, n_rounds, generator)


def _check_rules(rules: Iterable[object]) -> None:
    for rule in rules:
        if not isinstance(rule, Delays | Feedback):
            raise InvalidInput(f"a rule must be lab.Delays or lab.Feedback, such as lab.Fixed(10), got {rule!r:.80}")


def _one_for_each_arm(what: str, given: Any) -> tuple[Any, ...]:
    try:
        return tuple(given)
    except TypeError:
        raise InvalidInput(f"a list of {what} is needed, one for each arm, got {given!r:.80}") from None


def _middle(rules: Iterable[Delays | Feedback]) -> int | None:
    """The median of the typical delays of these rules."""
    known = [rule.typical for rule in rules if rule.typical is not None]
    return int(np.median(known)) if known else None


@final
@dataclass(frozen=True)
class ArmDelays(Feedback):
    """Every arm has a rule of its own. The first is for arm 0.

    >>> from belated import lab
    >>> rule = lab.ArmDelays([lab.Fixed(1), lab.Lost(share=0.5, d=20)])  # arm 1 is slow, and half of it gets lost
    """

    rules: Sequence[Delays | Feedback]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", _one_for_each_arm("rules", self.rules))
        _check_rules(self.rules)

    @property
    def typical(self) -> int | None:
        return _middle(self.rules)

    @property
    def depends_on_horizon(self) -> bool:
        return any(rule.depends_on_horizon for rule in self.rules)

    def blocks(
        self, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[Reports]:
        if len(self.rules) != n_arms:
            raise InvalidInput(f"there are rules for {len(self.rules)} arms, but the game has {n_arms} arms")
        streams, generators = tee(losses, n_arms), generator.spawn(n_arms)
        arms = [
            _blocks_of(rule, stream, n_arms, n_rounds, own)
            for rule, stream, own in zip(self.rules, streams, generators, strict=True)
        ]
        for parts in zip(*arms, strict=True):
            delays = np.stack([part.delays[:, arm] for arm, part in enumerate(parts)], axis=1)
            yield Reports(delays, np.stack([part.losses[:, arm] for arm, part in enumerate(parts)], axis=1))

    def loaded(self) -> "ArmDelays":
        return ArmDelays([rule.loaded() for rule in self.rules])


@final
@dataclass(frozen=True)
class OutcomeDelays(Feedback):
    """Successes have one rule and failures another. A loss below 1/2 is a success.

    >>> from belated import lab
    >>> rule = lab.OutcomeDelays(successes=lab.Geometric(mean=20), failures=lab.Fixed(100))
    """

    successes: Delays | Feedback
    failures: Delays | Feedback

    def __post_init__(self) -> None:
        _check_rules((self.successes, self.failures))

    @property
    def typical(self) -> int | None:
        return _middle((self.successes, self.failures))

    @property
    def depends_on_horizon(self) -> bool:
        return self.successes.depends_on_horizon or self.failures.depends_on_horizon

    def blocks(
        self, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[Reports]:
        streams, generators = tee(losses, 3), generator.spawn(2)
        rules = [
            _blocks_of(rule, stream, n_arms, n_rounds, own)
            for rule, stream, own in zip((self.successes, self.failures), streams[1:], generators, strict=True)
        ]
        for block, low, high in zip(streams[0], *rules, strict=True):
            is_success = block < SUCCESS
            delays = np.where(is_success, low.delays, high.delays)
            yield Reports(delays, np.where(is_success, low.losses, high.losses))

    def loaded(self) -> "OutcomeDelays":
        return OutcomeDelays(self.successes.loaded(), self.failures.loaded())


@final
@dataclass(frozen=True)
class PositivesOnly(Feedback):
    """Only successes are ever reported. A loss below 1/2 is a success.

    With a `cutoff` every round is known after so many rounds. What has not been reported as a success by then is
    reported as loss 1, also a success that would have come later.
    """

    of: Delays | Feedback
    cutoff: int | None = None

    def __post_init__(self) -> None:
        _check_rules((self.of,))
        if self.cutoff is not None:
            whole_number("cutoff", self.cutoff, 0)

    @property
    def typical(self) -> int | None:
        return self.of.typical if self.cutoff is None else self.cutoff

    @property
    def depends_on_horizon(self) -> bool:
        return self.of.depends_on_horizon

    def blocks(
        self, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[Reports]:
        losses, given = tee(losses)
        until = NEVER if self.cutoff is None else self.cutoff
        for block, reports in zip(losses, _blocks_of(self.of, given, n_arms, n_rounds, generator), strict=True):
            is_seen = (block < SUCCESS) & (reports.delays <= until)
            yield Reports(np.where(is_seen, reports.delays, until), np.where(is_seen, reports.losses, 1.0))

    def loaded(self) -> "PositivesOnly":
        return PositivesOnly(self.of.loaded(), self.cutoff)


@final
@dataclass(frozen=True)
class LostByArm(Feedback):
    """A share of the reports of each arm gets lost by chance. The first share is that of arm 0."""

    of: Delays | Feedback
    shares: Sequence[float]

    def __post_init__(self) -> None:
        _check_rules((self.of,))
        object.__setattr__(self, "shares", _one_for_each_arm("shares", self.shares))
        for share in self.shares:
            if not 0 <= as_float(share) <= 1:
                raise InvalidInput(f"a share of lost reports must lie in [0, 1], got {share!r}")
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))

    @property
    def typical(self) -> int | None:
        return self.of.typical

    @property
    def depends_on_horizon(self) -> bool:
        return self.of.depends_on_horizon

    def blocks(
        self, losses: Iterator[Floats], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[Reports]:
        if len(self.shares) != n_arms:
            raise InvalidInput(f"there are shares for {len(self.shares)} arms, but the game has {n_arms} arms")
        own, chance = generator.spawn(2)
        for delays, reported in _blocks_of(self.of, losses, n_arms, n_rounds, own):
            is_lost = chance.random(delays.shape) < np.array(self.shares)
            yield Reports(np.where(is_lost, NEVER, delays), reported)

    def loaded(self) -> "LostByArm":
        return LostByArm(self.of.loaded(), self.shares)
