"""Learners that are wrong on purpose. A claim that stays green while one of them plays has not shown anything.

`belated paper --saboteur NAME` puts one in the place of the learner. The claims, their limits and the verdicts stay as
they are.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats
from belated.kernels import LOSSES, ROWS, X, argmin, compiled_first, draw, expectation, normalise
from belated.lab.algorithms import Algorithm, Game, Player, Setting
from belated.lab.games.compiled import Compiled
from belated.tunings import Means, Shadow, Tsallis, Tuning

Links = NDArray[np.int32]


class VisibleGame(Game, Protocol):
    """A game whose estimates, probabilities and arms can be seen."""

    policy: Floats  # rows LOSSES and X
    arms: Links


@final
class Unmoved:
    """Draws from one distribution, whatever is reported. Its estimates are what they should be."""

    def __init__(self, x: Floats, setting: Setting) -> None:
        self.policy = np.zeros((ROWS, setting.n_arms))
        self.policy[X] = x
        self.arms, self.estimates = np.zeros(setting.n_rounds, np.int32), np.zeros(setting.n_rounds)
        self.arrives = np.arange(setting.n_rounds) + setting.drawn_delays
        self.in_order = np.argsort(self.arrives, kind="stable")
        self.generator, self.t = np.random.default_rng(setting.seed), 0

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x, l_t> and the loss of the drawn arm."""
        x, rounds = self.policy[X], np.arange(self.t, self.t + len(losses))
        arms = np.searchsorted(np.cumsum(x[:-1]), self.generator.random(len(losses)), side="right")
        suffered = losses[np.arange(len(losses)), arms]
        self.arms[rounds], self.estimates[rounds] = arms, suffered / x[arms]
        self.t += len(losses)
        first, last = np.searchsorted(self.arrives[self.in_order], (rounds[0], self.t))
        arrived = self.in_order[first:last]
        np.add.at(self.policy[LOSSES], self.arms[arrived], self.estimates[arrived])
        return losses @ x, suffered


@compiled_first
def play_with_latest(
    start: int,
    losses: Floats,
    alpha: Floats,
    beta: Floats,
    uniforms: Floats,
    first: Links,
    following: Links,
    policy: Floats,
    cdf: Floats,
    arms: Links,
    reports: Floats,
    expected: Floats,
    suffered: Floats,
) -> None:
    """Play as kernels.play_block does, but divide a report by the probability at its arrival."""
    for i in range(losses.shape[0]):
        t = start + i
        argmin(policy, alpha[t], beta[t], t)
        normalise(policy[X], cdf)
        arm = draw(policy[X], cdf, uniforms[i])
        arms[t] = arm
        expected[i] = expectation(policy[X], losses[i])
        suffered[i] = reports[t] = losses[i, arm]
        s = first[t]
        while s >= 0:
            policy[LOSSES, arms[s]] += reports[s] / policy[X, arms[s]]
            s = following[s]


@final
class LatestProbability:
    """A tuning whose reports are divided by the arm's latest probability, not by the one it was drawn with."""

    def __init__(self, tuning: Tuning, setting: Setting) -> None:
        self.right = Compiled(tuning, setting.problem, setting.drawn_delays, setting.seed)
        self.policy, self.arms = self.right.policy, self.right.arms

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        right, rows = self.right, np.ascontiguousarray(losses)
        expected, suffered = np.empty(len(rows)), np.empty(len(rows))
        play_with_latest(
            right.t,
            rows,
            right.alpha,
            right.beta,
            right.generator.random(len(rows)),
            *right.arrivals,
            right.policy,
            right.cdf,
            right.arms,
            right.estimates,
            expected,
            suffered,
        )
        right.t += len(rows)
        return expected, suffered


class Saboteur(NamedTuple):
    """A wrong learner, in words, and how it plays in the place of another."""

    name: str
    words: str
    replace: Callable[[Player, Setting], Player]

    def in_place_of(self, player: Tuning | Algorithm) -> Algorithm:
        """The player as an algorithm of the lab, with its own bound, played by the saboteur."""
        real = player if isinstance(player, Algorithm) else as_algorithm(player)
        return dataclasses.replace(real, player=lambda setting: self.replace(real.player(setting), setting))

    def game(self, tuning: Tuning, setting: Setting) -> VisibleGame:
        """The saboteur's game, or that of the tuning it puts in place."""
        player = self.replace(tuning, setting)
        if isinstance(player, Unmoved | LatestProbability):
            return player
        return Compiled(plain(player) or tuning, setting.problem, setting.drawn_delays, setting.seed)


def as_algorithm(tuning: Tuning) -> Algorithm:
    """A tuning as an algorithm of the lab."""
    return Algorithm(type(tuning).__name__, "a tuning", "belated.tunings", "nothing", "-", lambda _: tuning)


def plain(player: Player) -> Tuning | None:
    """The player, if it is a tuning that looks at delays only."""
    return player if isinstance(player, Tuning) and not isinstance(player, Means | Shadow) else None


def totals_of(setting: Setting) -> Floats:
    """The total loss of each arm."""
    return np.asarray(np.sum([block.sum(axis=0) for block in setting.loss_blocks()], axis=0))


def worst_arm(_player: Player, setting: Setting) -> Player:
    """Always the arm with the largest total loss."""
    worst = totals_of(setting).argmax()
    return Unmoved((np.arange(setting.n_arms) == worst).astype(np.float64), setting)


def uniform(_player: Player, setting: Setting) -> Player:
    """Every arm with the same probability."""
    return Unmoved(np.full(setting.n_arms, 1 / setting.n_arms), setting)


def latest_probability(player: Player, setting: Setting) -> Player:
    """The same tuning with wrong weights. A system that is no plain tuning stays as it is."""
    tuning = plain(player)
    return player if tuning is None else LatestProbability(tuning, setting)


def ignores_delays(player: Player, _setting: Setting) -> Player:
    """beta_t = 0 in place of a rule with both rates. A system without Tsallis entropy stays as it is."""
    tuning = plain(player)
    has_both = tuning is not None and tuning.rates(2, 1, 0, 0)[0] > 0
    return Tsallis() if has_both else player


SABOTEURS = {
    saboteur.name: saboteur
    for saboteur in (
        Saboteur("worst-arm", "always plays the arm that loses most", worst_arm),
        Saboteur("uniform", "plays every arm with the same probability", uniform),
        Saboteur("latest-probability", "divides reports by the arm's latest probability", latest_probability),
        Saboteur("ignores-delays", "has β_t = 0, whatever is outstanding", ignores_delays),
    )
}
