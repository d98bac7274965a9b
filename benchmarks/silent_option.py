"""One of three options fails silently. At the end the best of those that report must be in front, in every game.

An option that loses a part of its reports by chance still reports. So it may be in front, if it is the best.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np

import belated
from belated import lab
from belated.arrays import Floats, Integers
from belated.lab.games.compiled import CompiledMeans
from benchmarks.judging import judge
from benchmarks.lost_reports import Arms, Lost

K, N, END, SEEDS = 3, 20_000, 2_000, range(4)
RATES = ((0.02, 0.05, 0.08), (0.1, 0.2, 0.3), (0.3, 0.4, 0.5), (0.75, 0.85, 0.95))  # loss rates, the best first
FAILS = {"the best": 0, "the middle one": 1, "the worst": 2}
WAYS = {  # how large a part of the reports is lost, in the first half and in the second one
    "silent from the start": (1.0, 1.0),
    "silent from the middle": (0.0, 1.0),
    "losing 30%": (0.3, 0.3),
    "losing 50%": (0.5, 0.5),
    "losing 70%": (0.7, 0.7),
}
DELAYS = {"no delay": lab.NoDelay(), "geometric": lab.Geometric(100), "fixed": lab.Fixed(100)}


class Game(NamedTuple):
    """One game."""

    rates: tuple[float, ...]
    fails: str
    way: str
    delays: str
    seed: int

    @property
    def problem(self) -> lab.Problem:
        """The delays, and how long the game is. The losses are drawn here."""
        return lab.Problem(lab.Bernoulli(), DELAYS[self.delays], K, N)

    def losses(self) -> Floats:
        """Coin flips. The order of the options changes with the seed."""
        return (np.random.default_rng((self.seed, 11)).random((N, K)) < np.array(self.rates)[self.order()]).astype(
            float
        )

    def order(self) -> Integers:
        """Which rate each option has."""
        return np.random.default_rng((self.seed, 12)).permutation(K)

    def lost(self) -> Lost:
        """Whose reports do not come, round by round."""
        parts = np.repeat(WAYS[self.way], N // 2)[:, None]
        is_lost = np.random.default_rng((self.seed, 13)).random((N, K)) < parts
        return np.asarray(is_lost & (self.order() == FAILS[self.fails]))

    def best(self) -> int:
        """The rate of the best option among those that report at the end."""
        return 1 if self.fails == "the best" and self.way.startswith("silent") else 0

    def in_front(self) -> int:
        """The rate of the option that is drawn most often at the end, if lost rounds stay open."""
        delays = self.problem.draw_delays(self.seed)
        game = CompiledMeans(belated.tunings.Means(), self.problem, delays, self.seed)
        game.play(self.losses(), self.lost())
        return self._most(game.arms)

    def in_front_given_up(self) -> int:
        """The same, if lost rounds are given up when their report would have come."""
        learner, losses, lost = belated.FTRL(K, seed=self.seed), self.losses(), self.lost()
        delays, arms = self.problem.draw_delays(self.seed), np.empty(N, np.int32)
        due: dict[int, list[tuple[int, belated.Decision[int]]]] = {}
        for t in range(N):
            decision = learner.ask()
            arms[t] = decision.arm
            due.setdefault(t + int(delays[t]), []).append((t, decision))
            for s, one in due.pop(t, []):
                if lost[s, one.arm]:
                    learner.give_up(one)
                else:
                    learner.tell(one, losses[s, one.arm])
        return self._most(arms)

    def _most(self, arms: Arms) -> int:
        return int(self.order()[np.bincount(arms[-END:], minlength=K).argmax()])


def games(seeds: range) -> list[Game]:
    """All of them."""
    return [Game(*case) for case in product(RATES, FAILS, WAYS, DELAYS, seeds)]


def newcomer() -> None:
    """Count the games in which another option is in front."""
    played, some = games(SEEDS), games(range(4, 5))
    print(f"\none of three options fails silently: who is in front in the last {END:,} of {N:,} decisions")
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(played, pool.map(Game.in_front, played), strict=True))
    wrong = [game for game, rate in found.items() if rate != game.best()]
    given_up = [game for game in some if game.in_front_given_up() != game.best()]
    for (fails, way), count in Counter((game.fails, game.way) for game in wrong + given_up).items():
        print(f"  {fails} is {way}: {count} wrong")
    judge(f"left open: of {len(played)} games, another one in front", len(wrong), 0, "games", at_most=True)
    judge(f"given up: of {len(some)} games, another one in front", len(given_up), 0, "games", at_most=True)
