"""A simulated experiment, played by a real learner and watched with real evidence until it is decided."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.lab.plans.settings import TUNINGS, PlanSettings
from belated.learner.ftrl import FTRL
from belated.tunings import Means
from belated.verdicts import Evidence

STEP: Final = 200  # the learner is asked for 1/200 of the decisions so far at a time, at least for one
LOOKS: Final = 1.02  # a look follows after so many times the decisions
WAITS: Final = 1.05  # and to stop and wait, which is slow to try, after so many
NO_SALE: Final = 1.0  # the loss of a failure


class Ending(NamedTuple):
    """The first look at which a game was decided, or its end if it never was."""

    decisions: int
    is_right: bool | None  # whether the best option was named, None if no option was
    lost: float  # expected successes less than the best option alone would have had


class GameEndings(NamedTuple):
    """How a game ends if decisions go on, and if they stop and the last outcomes are waited for."""

    running: Ending
    stopped: Ending


@dataclass(slots=True)
class Draws:
    """What was decided so far, and the evidence about it."""

    arms: list[int]
    probabilities: list[float]
    is_success: NDArray[np.bool_]  # with room for all decisions
    evidence: Evidence  # with the outcomes that are known
    at_once: Evidence  # with all outcomes, as if they were known at once


def play(
    settings: PlanSettings, player: str, game: int, *, step: int = STEP, looks: float = LOOKS, waits: float = WAITS
) -> GameEndings:
    """Play a game. The best option is another one in each game.

    To stop and wait is tried only when evidence with all outcomes known at once is decided. That is cheaper to find.
    """
    best = game % settings.options
    own, world = np.random.SeedSequence([settings.seed, game]).generate_state(2)
    generator, learner = np.random.default_rng(int(world)), _learner(settings, player, int(own))
    assumed = None if settings.wait is None else NO_SALE
    empty = Evidence.new(settings.options, assumed), Evidence.new(settings.options)
    draws, others = Draws([], [], np.zeros(settings.most, np.bool_), *empty), 0
    stopped, next_look, next_wait, is_close = None, 0.0, 0.0, settings.wait_decisions == 0
    while (n := len(draws.arms)) < settings.most:
        size = min(max(1, n // step), settings.most - n)
        distribution = _decide(settings, learner, draws, size, best, generator)
        _learn(settings, draws, n, distribution, learner, is_close)
        n += size
        others += size - draws.arms[-size:].count(best)
        if n < next_look:
            continue
        next_look, lost = n * looks, settings.difference * others
        if (ending := _look(draws.evidence, settings, best, n, lost)) is not None:
            return GameEndings(ending, stopped or ending)
        is_close = is_close or draws.at_once.verdict(settings.confidence).is_decided
        if stopped is None and is_close and settings.wait_decisions and n >= next_wait:
            next_wait = n * waits
            stopped = _look(_waited(settings, draws), settings, best, n, lost)
    end = Ending(n, None, settings.difference * others)
    return GameEndings(end, stopped or end)


def _look(evidence: Evidence, settings: PlanSettings, best: int, decisions: int, lost: float) -> Ending | None:
    """The ending if there is a verdict now."""
    verdict = evidence.verdict(settings.confidence)
    return Ending(decisions, verdict.leader == best, lost) if verdict.is_decided else None


def _waited(settings: PlanSettings, draws: Draws) -> Evidence:
    """What the evidence would be after a wait for the open outcomes."""
    evidence, now = deepcopy(draws.evidence), len(draws.arms)
    young = np.arange(max(0, now - settings.wait_decisions), now)
    is_known = draws.is_success[young] & (young < now - settings.delay_decisions)
    _report(evidence, draws, young[~is_known].tolist())
    return evidence


def _learner(settings: PlanSettings, player: str, seed: int) -> FTRL[int] | None:
    """A new learner, None for uniform. With a wait, an open decision counts as a failure, as in the service."""
    tuning = TUNINGS[player]
    if tuning is None:
        return None
    is_provisional = settings.wait is not None and isinstance(tuning, Means)
    return FTRL(settings.options, tuning, seed=seed, provisional=NO_SALE if is_provisional else None)


def _decide(
    settings: PlanSettings,
    learner: FTRL[int] | None,
    draws: Draws,
    size: int,
    best: int,
    generator: np.random.Generator,
) -> Floats:
    """Make decisions from one distribution, and draw their outcomes. Returns the distribution."""
    k, n = settings.options, len(draws.arms)
    if learner is None:
        distribution = np.full(k, 1 / k)
        draws.arms += generator.integers(k, size=size).tolist()
        draws.probabilities += [1 / k] * size
    else:
        distribution, decisions = learner.distribution(), learner.ask(size)
        draws.arms += [one.arm for one in decisions]
        draws.probabilities += [one.probability for one in decisions]
    rates = settings.base_rate + settings.difference * (np.array(draws.arms[n:]) == best)
    draws.is_success[n : n + size] = generator.random(size) < rates
    return distribution


def _learn(
    settings: PlanSettings,
    draws: Draws,
    start: int,
    distribution: Floats,
    learner: FTRL[int] | None,
    is_close: bool,
) -> None:
    """Enter the decisions from `start` on, and all outcomes that have come by now."""
    now = len(draws.arms)
    batch = range(start, now), draws.arms[start:], draws.probabilities[start:], distribution
    if not is_close:
        draws.at_once.decide_batch(*batch)
        _report(draws.at_once, draws, range(start, now))
    due = arrivals(draws.is_success, start, now, settings.delay_decisions, settings.wait_decisions).tolist()
    draws.evidence.decide_batch(*batch)
    _report(draws.evidence, draws, due)
    if learner is not None:
        for position, is_success in zip(due, draws.is_success[due].tolist(), strict=True):
            learner.tell(position + 1, 1.0 - is_success)


def _report(evidence: Evidence, draws: Draws, positions: list[int] | range) -> None:
    losses = (1.0 - draws.is_success[np.asarray(positions, np.int64)]).tolist()
    for position, loss in zip(positions, losses, strict=True):
        evidence.report(position, draws.arms[position], draws.probabilities[position], loss)


def arrivals(is_success: NDArray[np.bool_], before: int, now: int, delay: int, wait: int) -> Integers:
    """The decisions whose outcomes come after the first `before` decisions and by the first `now`, in that order.

    The success of decision s, counted from 0, comes right after decision s + delay, and its failure after s + wait.
    """
    early = np.arange(max(0, before - delay), max(0, now - delay))
    if delay == wait:
        return early
    late = np.arange(max(0, before - wait), max(0, now - wait))
    successes, failures = early[is_success[early]], late[~is_success[late]]
    order = np.argsort(np.concatenate((successes + delay, failures + wait)), kind="stable")
    return np.asarray(np.concatenate((successes, failures))[order])
