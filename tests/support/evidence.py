"""Brute force for belated.verdicts: every decision is kept, and every sum is computed anew, from the definitions."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from belated.verdicts import Evidence
from belated.verdicts.mixture import LOG_WEIGHTS, RATES, STEEPEST


@dataclass
class Stage:
    """A block, as docs/theory/verdicts.md defines it."""

    reference: dict[int, float]  # by arm
    centre: float
    means: dict[int, float]
    known: int
    is_paused: bool = False
    counted: int = 0  # decisions

    def lowest(self, distribution: dict[int, float]) -> float:
        return min(distribution[arm] / self.reference[arm] for arm in distribution)

    def is_over(self, distribution: dict[int, float], known: int, stages: int, decisions: int, n_arms: int) -> bool:
        if not self.reference:
            return True
        room = max(16, 320 // n_arms)
        allowed = room * (1 + math.log(1 + decisions / room))
        share = (stages + 1) / allowed
        if share >= 1:
            return False
        if self.counted >= max(4, decisions / min(40, room / 4)):
            return True
        least = max(0.2, 0.8 ** (1 / (1 - share)))
        highest = max(distribution[arm] / self.reference[arm] for arm in distribution)
        is_moved = self.lowest(distribution) < least or highest > least**-2
        return self.is_paused or is_moved or known >= 2 * self.known + 4


@dataclass
class Kept:
    """A decision and what was known when it was made."""

    position: int
    arm: int
    probability: float
    distribution: dict[int, float]  # empty if it is not known
    stage: Stage
    is_counted: bool
    outcome: float | None = None

    @property
    def mean(self) -> float:
        """Of its arm."""
        return self.stage.means.get(self.arm, 0.5)

    @property
    def outcomes(self) -> list[float]:
        """What its outcome may be."""
        return [step / 20 for step in range(21)] if self.outcome is None else [self.outcome]


class Sums(NamedTuple):
    """The exponents of all rates at the sum itself, and the size of the weights."""

    exponents: list[float]
    bound: float
    size: float


@dataclass
class Everything:
    """All decisions and outcomes of a game. `evidence` gets the same calls."""

    evidence: Evidence
    active: list[int]
    decisions: list[Kept] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    is_changed: bool = True

    def decide(self, position: int, arm: int, distribution: dict[int, float], probability: float) -> None:
        whole = [distribution[i] for i in self.active] if distribution else None
        self.evidence.decide(position, arm, probability, whole)
        stage = self._stage(distribution)
        is_counted = bool(distribution) and not stage.is_paused
        stage.counted += is_counted
        self.decisions.append(Kept(position, arm, probability, distribution, stage, is_counted))

    def _stage(self, distribution: dict[int, float]) -> Stage:
        known = [(one.arm, one.outcome) for one in self.decisions if one.outcome is not None]
        rules = distribution, len(known), len(self.stages), len(self.decisions), self.evidence.n_arms
        if self.is_changed or (distribution and self.stages[-1].is_over(*rules)):
            means = {i: smoothed([y for arm, y in known if arm == i]) for i in range(self.evidence.n_arms)}
            self.stages.append(Stage(distribution, smoothed([y for _, y in known]), means, len(known)))
            self.is_changed = False
        elif distribution and self.stages[-1].lowest(distribution) < 0.2:
            self.stages[-1].is_paused = True
        return self.stages[-1]

    def change_arms(self, active: list[int], n_arms: int) -> None:
        self.evidence.change_arms(active, n_arms)
        self.active, self.is_changed = active, True

    def report(self, position: int, outcome: float) -> None:
        [one] = [one for one in self.decisions if one.position == position]
        if one.outcome is None:
            self.evidence.report(position, one.arm, one.probability, outcome)
        else:
            self.evidence.amend(position, one.arm, one.probability, one.outcome, outcome)
        one.outcome = outcome

    def better(self, i: int, j: int) -> Sums:
        """The evidence that arm i has lower losses than arm j."""
        terms, size, bound = [], 0.0, 0.0
        for one in self.decisions:
            r, c = one.stage.reference, one.stage.centre
            if not one.is_counted or i not in r or j not in r:
                continue
            h = r[i] * r[j] / (r[i] + r[j])
            sign = {i: -1, j: 1}.get(one.arm, 0)
            terms.append([sign * h / one.probability * (y - c) for y in one.outcomes])
            size += h
            bound = max(bound, h / min(one.distribution[i], one.distribution[j]) * max(c, 1 - c))
        return Sums(exponents(terms, bound), bound, size)

    def mean(self, i: int, *, is_flipped: bool) -> Sums:
        """The sums for a lower limit of the mean of arm i, or of 1 - the mean."""
        own = [one for one in self.decisions if one.arm == i]
        middles = [stage.means.get(i, 0.5) for stage in self.stages]
        bound = max(max(middle, 1 - middle) for middle in middles)
        sign = -1 if is_flipped else 1
        terms = [[sign * (y - one.mean) for y in one.outcomes] for one in own]
        return Sums(exponents(terms, bound), bound, len(own))


def smoothed(outcomes: list[float]) -> float:
    """Their mean together with one outcome of 1/2."""
    return (0.5 + sum(outcomes)) / (1 + len(outcomes))


def exponents(terms: list[list[float]], bound: float) -> list[float]:
    """For each rate the exponent at the lowest terms of the open decisions, -inf if the rate does not count."""
    found = []
    for rate in RATES.tolist():
        g = rate * bound
        if not bound or g > STEEPEST:
            found.append(-math.inf)
            continue
        square, cube = math.log(1 - g * g) / 2, math.atanh(g) - g
        units = [min(choices) / bound for choices in terms]
        found.append(math.fsum(g * u + square * u**2 + cube * u**3 for u in units))
    return found


def log_mixture(exponents: list[float]) -> float:
    """The logarithm of the mixture over the rates."""
    logs: list[float] = [log + one for log, one in zip(LOG_WEIGHTS.tolist(), exponents, strict=True)]
    most = max(logs)
    return most + math.log(sum(math.exp(one - most) for one in logs))
