"""Options that come and go: Table 1 of Chapelle & Li, An Empirical Evaluation of Thompson Sampling, NIPS 2011.

Ten items have success rates from Beta(4, 4). In each round, with probability 1e-3, a new one replaces one of them.
Feedback comes in batches, every delta rounds. The regret is against the best item of each round.
"""

import numpy as np

import belated
from belated.progress import STRIDE, Progress
from benchmarks.judging import judge

ROUNDS, ITEMS, CHANGE, SEEDS = 1_000_000, 10, 1e-3, (11, 12, 13)
PUBLISHED = {1: (9105, 24_145), 10: (9049, 25_662), 100: (11_550, 37_141), 1000: (59_256, 226_220)}  # Thompson, UCB


def regret_of(delta: int, seed: int) -> float:
    """The regret of a whole game of the default learner."""
    generator = np.random.default_rng((seed, delta))
    learner = belated.FTRL(ITEMS, seed=seed)
    rates = dict(enumerate(generator.beta(4, 4, ITEMS)))
    changes = set(np.flatnonzero(generator.random(ROUNDS) < CHANGE).tolist())
    successes, best, regret = generator.random(ROUNDS).tolist(), max(rates.values()), 0.0
    waiting: list[tuple[int, float]] = []
    with Progress(f"delta = {delta}", ROUNDS) as progress:
        for t in range(ROUNDS):
            if t in changes:
                replace_one(learner, rates, generator)
                best = max(rates.values())
            decision = learner.ask()
            rate = rates[decision.arm]
            regret += best - rate
            waiting.append((decision.round, float(successes[t] < rate)))
            if len(waiting) == delta:
                tell_all(learner, waiting)
            if t % STRIDE == 0:
                progress.advance(STRIDE)
    return regret


def replace_one(learner: belated.FTRL[int], rates: dict[int, float], generator: np.random.Generator) -> None:
    """A new item takes the place of one drawn at random."""
    gone = list(rates)[generator.integers(ITEMS)]
    new = learner.change_arms(add=1, retire=[gone])[-1]
    del rates[gone]
    rates[new] = generator.beta(4, 4)


def tell_all(learner: belated.FTRL[int], waiting: list[tuple[int, float]]) -> None:
    """Report a batch. Some of its decisions may be older than the last change."""
    for round, reward in waiting:
        learner.tell(round, reward=reward)
    waiting.clear()


def table() -> None:
    """Ours beside the published figures."""
    print(f"\noptions that come and go: Chapelle & Li's Table 1, {len(SEEDS)} games of {ROUNDS:,} rounds each")
    found = {}
    for delta, (thompson, ucb) in PUBLISHED.items():
        games = [regret_of(delta, seed) for seed in SEEDS]
        found[delta] = float(np.mean(games))
        figures = f"{found[delta]:7,.0f} ({min(games):,.0f} to {max(games):,.0f})"
        print(f"  delta = {delta:4}: {figures}, published Thompson {thompson:7,}, published UCB {ucb:8,}", flush=True)
    for delta, (thompson, ucb) in PUBLISHED.items():
        judge(f"delta = {delta}: regret / published UCB's", found[delta] / ucb, 1.0, "x", at_most=True)
        if delta <= 100:
            judge(f"delta = {delta}: regret / published Thompson's", found[delta] / thompson, 2.5, "x", at_most=True)
