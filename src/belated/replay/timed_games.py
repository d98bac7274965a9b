"""Plays a learner on rounds whose losses are all known, with feedback at the real clock time of the DRAWN arm.

The delay then depends on the arm, as in real services. So the certificate here is the one for any delays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.games.curves import as_checkpoints
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import FTRL, check_plain
from belated.progress import STRIDE, Progress
from belated.tunings import Tuning
from belated.validation import as_loss, positive_number, whole_number


@final
@dataclass(frozen=True)
class Wait:
    """Tells the loss `default` after `seconds` without feedback. Feedback that comes later is ignored."""

    seconds: float
    default: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", positive_number("seconds", self.seconds))
        object.__setattr__(self, "default", as_loss(self.default))


@final
@dataclass(frozen=True, eq=False)
class Replays:
    """The results, a row for each seed. A certificate is NaN if the learner has none."""

    seeds: Integers
    checkpoints: Integers
    regret: Floats  # at the checkpoints, the sum of <x_t, l_t> minus the loss of the best arm so far
    shares: Floats  # (seeds, checkpoints, arms), of the draws since the previous checkpoint
    certificate: Floats  # at the end, for any delays
    measured: Floats
    bound: Floats  # on the regret of the run, with 95% confidence
    total: Integers  # D, the outstanding decisions summed over the rounds
    largest_backlog: Integers  # max o_t


class _Game(NamedTuple):
    expected: Floats  # <x_t, l_t>, or the drawn arm's loss if the learner has no distribution
    arms: Integers
    outstanding: Integers  # o_t
    certificate: float
    measured: float
    bound: float


def play(
    player: Tuning | MakeLearner,
    losses: Floats,
    landed: Floats,
    times: Floats,
    seeds: Sequence[int] | range,
    *,
    wait: Wait | None = None,
    checkpoints: Sequence[int] | None = None,
) -> Replays:
    """Play a tuning, or a learner made from the number of arms and a seed, once for each seed.

    If round t draws arm a, it costs losses[t, a]. The learner is told this loss before the first round u > t with
    times[u] >= landed[t, a], or never if landed[t, a] is infinite.
    """
    n_rounds, n_arms = _checked(losses, landed, times)
    at = as_checkpoints(checkpoints, n_rounds)
    make = _maker(player)
    told_at, told = _with_wait(losses, landed, times, wait)
    numbers = [whole_number("seed", seed, 0) for seed in seeds]
    if not numbers:
        raise InvalidInput("at least one seed is needed")
    with Progress("replaying", len(numbers) * n_rounds) as progress:
        games = [_play_once(make(n_arms, seed), losses, told_at, told, times, progress) for seed in numbers]
    return _gather(games, numbers, at, losses)


def _gather(games: list[_Game], seeds: list[int], at: Integers, losses: Floats) -> Replays:
    return Replays(
        np.array(seeds),
        at,
        np.array([_regret(game.expected, losses, at) for game in games]),
        np.array([_shares(game.arms, losses.shape[1], at) for game in games]),
        np.array([game.certificate for game in games]),
        np.array([game.measured for game in games]),
        np.array([game.bound for game in games]),
        np.array([game.outstanding.sum() for game in games]),
        np.array([game.outstanding.max() for game in games]),
    )


def _checked(losses: Floats, landed: Floats, times: Floats) -> tuple[int, int]:
    if losses.ndim != 2 or 0 in losses.shape or landed.shape != losses.shape or times.shape != losses.shape[:1]:
        shapes = f"{losses.shape}, {landed.shape} and {times.shape}"
        raise InvalidInput(f"losses and landed must be (rounds, arms) and times (rounds,), got {shapes}")
    _refuse(
        losses,
        ~((losses >= 0) & (losses <= 1)),
        "every loss must lie in [0, 1]",
        "An arm that never reports needs a loss too",
    )
    is_wrong = ~np.isfinite(times) | (np.diff(times, prepend=times[0]) < 0)
    _refuse(times, is_wrong, "times must be finite and must not decrease", "Sort the rounds")
    _refuse(landed, ~(landed >= times[:, None]), "landed must not be before its round's time", "Infinite means never")
    return losses.shape[0], losses.shape[1]


def _refuse(values: Floats, is_wrong: NDArray[np.bool_], rule: str, hint: str) -> None:
    if is_wrong.any():
        first = np.argwhere(is_wrong)[0]
        raise InvalidInput(f"{rule}, got {values[tuple(first)]} in round {first[0] + 1}. {hint}")


def _maker(player: Any) -> MakeLearner:
    if isinstance(player, Tuning):
        return lambda n_arms, seed: FTRL(n_arms, player, seed=seed)
    if not callable(player):
        raise InvalidInput(
            f"cannot play {player!r}. Give a tuning, or a function that makes a learner from n_arms and a seed"
        )
    maker: MakeLearner = player
    return maker


def _with_wait(losses: Floats, landed: Floats, times: Floats, wait: Wait | None) -> tuple[Floats, Floats]:
    """When the loss of each arm of each round would be told, and which loss."""
    if wait is None:
        return landed, losses
    limit = times[:, None] + wait.seconds
    return np.minimum(landed, limit), np.where(landed <= limit, losses, wait.default)


def _play_once(learner: Any, losses: Floats, told_at: Floats, told: Floats, times: Floats, progress: Progress) -> _Game:
    check_plain(learner, "a game")
    has_distribution = hasattr(learner, "distribution")
    n_rounds = times.size
    expected, arms, outstanding = np.empty(n_rounds), np.empty(n_rounds, np.int64), np.empty(n_rounds, np.int64)
    due: list[tuple[float, int, float]] = []  # a heap of time, round and loss
    n_told = 0
    for t, now in enumerate(times.tolist()):
        while due and due[0][0] <= now:
            _, round, loss = heappop(due)
            learner.tell(round, loss)
            n_told += 1
        outstanding[t] = t - n_told
        x = learner.distribution() if has_distribution else None
        decision = learner.ask()
        arms[t] = decision.arm
        expected[t] = losses[t, decision.arm] if x is None else x @ losses[t]
        when = told_at.item(t, decision.arm)
        if when < math.inf:
            heappush(due, (when, decision.round, told.item(t, decision.arm)))
        if (t + 1) % STRIDE == 0:
            progress.advance(STRIDE)
    progress.advance(n_rounds % STRIDE)
    is_certified = isinstance(learner, FTRL)
    numbers = [math.nan] * 3
    if is_certified:
        numbers = [learner.certificate("any"), learner.measured_certificate(), learner.regret_bound()]
    return _Game(expected, arms, outstanding, *numbers)


def _regret(expected: Floats, losses: Floats, at: Integers) -> Floats:
    return np.asarray(np.cumsum(expected)[at - 1] - np.cumsum(losses, axis=0)[at - 1].min(axis=1))


def _shares(arms: Integers, n_arms: int, at: Integers) -> Floats:
    drawn = np.cumsum(arms[:, None] == np.arange(n_arms), axis=0)[at - 1]
    since = np.diff(drawn, axis=0, prepend=np.zeros((1, n_arms), np.int64))
    return np.asarray(since / np.diff(at, prepend=0)[:, None])
