"""Simulated options whose reports come late, or are lost, and a page that somebody looks at all the time."""

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from belated.serve.domain.observations import bucket_of
from belated.serve.domain.reporting import Reporting
from belated.serve.domain.timestamps import MICROSECONDS

PER_SECOND = 10
REWARDS = (0.3, 0.5, 0.4)
Law = Callable[[np.random.Generator], float]

LAWS: dict[str, Law] = {
    "none": lambda _: 0.0,
    "fixed": lambda _: 3.0,
    "exponential": lambda generator: float(generator.exponential(5.0)),
    "lognormal": lambda generator: float(generator.lognormal(0.0, 1.5)),
    "pareto": lambda generator: float(generator.pareto(1.5)),
}


class World(NamedTuple):
    """How three options report."""

    law: str = "exponential"  # of the delay, in seconds
    chances: tuple[float, ...] = (0.7, 0.7, 0.7)  # of a report
    slower: tuple[float, ...] = (1.0, 1.0, 1.0)  # factors of the delay
    wait: float | None = None
    share: float = 0.6  # of the option that earned most so far, and the rest is shared evenly
    drift: float = 0.0  # by how much the chances of all options go up and down together


class Seen(NamedTuple):
    """When the page first warned of each option, as a number of decisions, and of whom it warned at the end."""

    first: dict[int, int]
    at_end: set[int]


class Run:
    """One experiment in a world. The favourite changes with the reports, as that of a learner does."""

    def __init__(self, world: World, generator: np.random.Generator) -> None:
        self.world, self.generator = world, generator
        self.reporting, self.now = Reporting.new(3), 10**15
        self.waiting: list[tuple[int, int, int, int]] = []
        self.earned, self.known = np.ones(3) / 2, np.ones(3)

    def decide(self, number: int) -> None:
        world, generator = self.world, self.generator
        self.now += int(generator.exponential(1 / PER_SECOND) * MICROSECONDS)
        self.receive()
        best = int(np.argmax(self.earned / self.known))
        arm = best if generator.random() < (3 * world.share - 1) / 2 else int(generator.integers(3))
        self.reporting.decide(number, self.now, arm)
        chance = world.chances[arm] * (1 - world.drift * (1 + np.sin(number / 300)) / 2)
        if generator.random() < chance:
            delay = int(LAWS[world.law](generator) * world.slower[arm] * MICROSECONDS)
            heapq.heappush(self.waiting, (self.now + delay, number, arm, self.now))

    def receive(self) -> None:
        while self.waiting and self.waiting[0][0] <= self.now:
            at, number, arm, decided_at = heapq.heappop(self.waiting)
            wait = self.world.wait
            is_late = wait is not None and at - decided_at > wait * MICROSECONDS
            self.reporting.report(number, arm, bucket_of(at - decided_at), is_late=is_late)
            self.earned[arm] += self.generator.random() < REWARDS[arm]
            self.known[arm] += 1

    def look(self) -> set[int]:
        found = self.reporting.compare(self.now, self.world.wait)
        return {arm for arm, one in enumerate(found) if one.is_warned}


def watched(
    world: World, generator: np.random.Generator, decisions: int, every: int = 20, *, after: bool = True
) -> Seen:
    """Play an experiment, and look at the page again and again, also `after` the last decision."""
    run, first = Run(world, generator), dict[int, int]()
    for number in range(1, decisions + 1):
        run.decide(number)
        if number % every == 0:
            for arm in run.look():
                first.setdefault(arm, number)
    for _ in range(40 if after else 0):
        run.now += 10 * MICROSECONDS
        run.receive()
        for arm in run.look():
            first.setdefault(arm, decisions)
    run.now += 10**6 * MICROSECONDS
    run.receive()
    return Seen(first, run.look())


def turned(
    generator: np.random.Generator, decisions: int, *, at: int, favourite: float = 0.98, is_told_later: bool = False
) -> Reporting:
    """Three options that report equally often. From one decision on, one is chosen nearly always, and reports are more.

    Reports come at once, or after all decisions.
    """
    number = np.arange(decisions)
    arms = generator.integers(3, size=decisions)
    arms[(number >= at) & (generator.random(decisions) < 1 - 1.5 * (1 - favourite))] = 0
    told = generator.random(decisions) < np.where(number >= at, 0.9, 0.3)
    reporting, later = Reporting.new(3), list[tuple[int, int]]()
    for one, arm, is_told in zip(number.tolist(), arms.tolist(), told.tolist(), strict=True):
        reporting.decide(one, one, arm)
        if is_told and is_told_later:
            later.append((one, arm))
        elif is_told:
            reporting.report(one, arm, 0, is_late=False)
    for one, arm in later:
        reporting.report(one, arm, 0, is_late=False)
    return reporting
