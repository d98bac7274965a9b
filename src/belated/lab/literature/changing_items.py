"""Items that come and go, with feedback in batches. The game of Chapelle & Li's Table 1.

O. Chapelle, L. Li. An Empirical Evaluation of Thompson Sampling. NIPS 2011, Section 3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from belated.arrays import Floats, Integers
from belated.lab.literature.systems import maker_of
from belated.learner.ftrl import FTRL
from belated.progress import STRIDE, Progress
from belated.validation import as_probability, whole_number

THOMPSON = "thompson"
MakeChanging = Callable[[int, int], FTRL[int]]  # from the number of items and a seed


@final
@dataclass(frozen=True)
class ChangingItems:
    """Items have success rates from Beta(4, 4). In each round, with probability `change`, a new item replaces one.

    Feedback comes every `batch` rounds. With `between` a change waits for the end of its batch. The learner always
    knows of a change at once. The regret is against the best item of each round.
    """

    batch: int = 1
    between: bool = False
    n_items: int = 10
    change: float = 1e-3
    n_rounds: int = 1_000_000

    def __post_init__(self) -> None:
        whole_number("batch", self.batch, 1)
        whole_number("n_items", self.n_items, 2)
        whole_number("n_rounds", self.n_rounds, 1)
        as_probability(self.change)

    def regrets(self, system: str, seeds: Sequence[int], n_rounds: int) -> Floats:
        """The regret in each game. Thompson sampling plays all of them side by side."""
        game = replace(self, n_rounds=n_rounds)
        if system == THOMPSON:
            return game.play_thompson(len(seeds), seeds[0])
        make: Any = maker_of(system)
        return np.array([game.play(make, seed) for seed in seeds])

    def play(self, make: MakeChanging, seed: int) -> float:
        """The regret of a learner that can change its arms. Old decisions still teach it about items that stayed."""
        generator = np.random.default_rng((seed, self.batch))
        learner = make(self.n_items, seed)
        rates = dict(enumerate(generator.beta(4, 4, self.n_items)))
        changes = self._when(np.flatnonzero(generator.random(self.n_rounds) < self.change))
        successes, best, regret = generator.random(self.n_rounds).tolist(), max(rates.values()), 0.0
        waiting: list[tuple[int, float]] = []
        with Progress(f"batches of {self.batch}", self.n_rounds) as progress:
            for t in range(self.n_rounds):
                for _ in range(changes.get(t, 0)):
                    _replace_one(learner, rates, generator)
                    best = max(rates.values())
                decision = learner.ask()
                rate = rates[decision.arm]
                regret += best - rate
                waiting.append((decision.round, float(successes[t] < rate)))
                if len(waiting) == self.batch:
                    _tell_all(learner, waiting)
                if t % STRIDE == 0:
                    progress.advance(STRIDE)
        return regret

    def _when(self, rounds: Integers) -> dict[int, int]:
        """The rounds before which items change, and how many do."""
        if self.between:
            rounds = -(-rounds // self.batch) * self.batch
        at, counts = np.unique(rounds, return_counts=True)
        return dict(zip(at.tolist(), counts.tolist(), strict=True))

    def _stops(self, due: Iterable[int]) -> list[int]:
        """The rounds before which something changes or is reported, and the end."""
        ends = range(self.batch, self.n_rounds, self.batch)
        return [*sorted({round for round in due if 0 < round < self.n_rounds}.union(ends)), self.n_rounds]

    def play_thompson(self, n_games: int, seed: int) -> Floats:
        """The regret of Thompson sampling (Algorithm 2, prior Beta(1, 1)) in each of many games."""
        generator = np.random.default_rng((seed, self.batch, n_games))
        changing = [self._when(np.flatnonzero(generator.random(self.n_rounds) < self.change)) for _ in range(n_games)]
        due, table = _by_round(changing), _Table(generator.beta(4, 4, (n_games, self.n_items)))
        regret, waiting, t = np.zeros(n_games), list[tuple[int, Integers, Floats]](), 0
        with Progress(f"batches of {self.batch}", self.n_rounds) as progress:
            for stop in self._stops(due):
                if t in due:
                    games = np.array(due[t])
                    items = generator.integers(0, self.n_items, games.size)
                    table.replace(games, items, generator.beta(4, 4, games.size), t)
                size = stop - t, n_games, self.n_items  # nothing changes in these rounds
                arms = generator.beta(1 + table.successes, 1 + table.failures, size).argmax(axis=2)
                rates = table.rates[table.games, arms]
                regret += (table.best - rates).sum(axis=0)
                waiting.append((t, arms, (generator.random(arms.shape) < rates).astype(np.float64)))
                if stop % self.batch == 0:
                    table.learn(waiting)
                progress.advance(stop - t)
                t = stop
        return regret


class _Table:
    """The rates and what has been seen of them, with a row for each game. Reports of items that left are ignored."""

    def __init__(self, rates: Floats) -> None:
        self.rates, self.best, self.games = rates, rates.max(axis=1), np.arange(len(rates))
        self.successes, self.failures = np.zeros(rates.shape), np.zeros(rates.shape)
        self.since = np.zeros(rates.shape, np.int64)  # the first round of the item

    def replace(self, games: Integers, items: Integers, rates: Floats, round: int) -> None:
        self.rates[games, items] = rates
        self.successes[games, items] = self.failures[games, items] = 0
        self.since[games, items] = round
        self.best = self.rates.max(axis=1)

    def learn(self, waiting: list[tuple[int, Integers, Floats]]) -> None:
        """Take in the arms and outcomes of some rounds, with a row for each round. The first is the first of them."""
        for first, arms, outcomes in waiting:
            is_there = self.since[self.games, arms] <= first
            at = np.broadcast_to(self.games, arms.shape), arms
            np.add.at(self.successes, at, outcomes * is_there)
            np.add.at(self.failures, at, (1 - outcomes) * is_there)
        waiting.clear()


def _by_round(changing: list[dict[int, int]]) -> dict[int, list[int]]:
    """The games in which an item changes before a round. A game is there once for each of its changes."""
    due: dict[int, list[int]] = {}
    for game, rounds in enumerate(changing):
        for round, count in rounds.items():
            due.setdefault(round, []).extend([game] * count)
    return due


def _replace_one(learner: FTRL[int], rates: dict[int, float], generator: np.random.Generator) -> None:
    """A new item takes the place of one drawn at random."""
    gone = list(rates)[generator.integers(len(rates))]
    new = learner.change_arms(add=1, retire=[gone])[-1]
    del rates[gone]
    rates[new] = generator.beta(4, 4)


def _tell_all(learner: FTRL[int], waiting: list[tuple[int, float]]) -> None:
    """Report a batch. Some of its decisions may be older than the last change."""
    for round, reward in waiting:
        learner.tell(round, reward=reward)
    waiting.clear()
