"""How Shadow was chosen, by comparing designs on problems of their own (`python -m benchmarks.shadow_search`).

Most designs play beta_t = min{ b_t, gain * damage }, b_t = scale sqrt(D_t / ln k), and differ in what they call damage:

    in order    the learner without delay, y, is followed in the order of the rounds, as soon as they have arrived:
                delta = loss (1 - y / x),  its bounded form,  or the exact gap minus sqrt(k / t)
    arrival     the same with the learner of the moment of arrival in place of y
    twin        a careful learner z on the same estimates:  (loss - mean) (1 - z / x)

The damage is the running maximum of the sum, less `switch_threshold` standard deviations. `forget` starts the sum anew
whenever it is negative. `tail` adds the average damage for every round that is not measured yet.

    leader      a bold learner y and a careful one z, and the one ahead decides: x = z while the sum of
                (loss - mean) (y - z) / x exceeds `switch_threshold` standard deviations, x = y otherwise
"""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import belated
from belated import kernels, lab
from belated.arrays import Floats, Integers
from belated.kernels.argmin import _root
from belated.lab.problems.losses import flip
from belated.tunings import schedule

DELTA, BOUNDED, GAP, ARRIVAL, TWIN, TWIN_MEAN, LEADER = range(7)


class Design(NamedTuple):
    """What is called damage, and how much of it."""

    kind: int
    scale: float = 1.0
    gain: float = 3.0
    switch_threshold: float = 0.0
    forget: bool = False
    tail: float = 0.0


DESIGNS = {
    "in order, delta, gain 1": Design(DELTA, gain=1.0),
    "in order, delta, gain 3 (prototype)": Design(DELTA),
    "in order, delta, gain 6": Design(DELTA, gain=6.0),
    "in order, delta, cap twice as high": Design(DELTA, scale=2.0),
    "in order, delta, forget": Design(DELTA, forget=True),
    "in order, delta, tail": Design(DELTA, tail=1.0),
    "in order, delta, 2 deviations, gain 40": Design(DELTA, gain=40.0, switch_threshold=2.0),
    "in order, bounded": Design(BOUNDED),
    "in order, exact gap - sqrt(k/t)": Design(GAP),
    "arrival, delta": Design(ARRIVAL),
    "twin, gain 10": Design(TWIN, gain=10.0),
    "twin, scale 2, gain 10": Design(TWIN, scale=2.0, gain=10.0),
    "twin, scale 2, gain 20, 2 deviations": Design(TWIN, scale=2.0, gain=20.0, switch_threshold=2.0),
    "twin, the same, forget": Design(TWIN, scale=2.0, gain=20.0, switch_threshold=2.0, forget=True),
    "twin - mean, scale 2, gain 40, 2 deviations": Design(TWIN_MEAN, scale=2.0, gain=40.0, switch_threshold=2.0),
    "twin - mean, scale 3, gain 40, 2 deviations": Design(TWIN_MEAN, scale=3.0, gain=40.0, switch_threshold=2.0),
    "twin - mean, scale 3, gain 100, 1.5 deviations": Design(TWIN_MEAN, scale=3.0, gain=100.0, switch_threshold=1.5),
    "twin - mean, scale 3, gain 100, 2 deviations": Design(TWIN_MEAN, scale=3.0, gain=100.0, switch_threshold=2.0),
    "twin - mean, the same, forget": Design(TWIN_MEAN, scale=3.0, gain=100.0, switch_threshold=2.0, forget=True),
    "leader, scale 2, 1.5 deviations": Design(LEADER, scale=2.0, switch_threshold=1.5),
    "leader, scale 3, 1 deviation": Design(LEADER, scale=3.0, switch_threshold=1.0),
    "leader, scale 3, 1.5 deviations": Design(LEADER, scale=3.0, switch_threshold=1.5),
    "leader, scale 3, 2 deviations": Design(LEADER, scale=3.0, switch_threshold=2.0),
    "leader, scale 3, 1.5 deviations, forget": Design(LEADER, scale=3.0, switch_threshold=1.5, forget=True),
    "leader, scale 4, 1.5 deviations": Design(LEADER, scale=4.0, switch_threshold=1.5),
}


@kernels.compiled_first
def _fall(x: float, estimate: float, alpha: float, beta: float) -> float:
    """The integral of the arm's probability over its estimate, with the multiplier held."""
    v = -0.5 * math.log(x)
    x_after = math.exp(-2 * _root(alpha, beta, alpha * math.exp(v) + 2 * beta * v + estimate))
    return alpha * (math.sqrt(x) - math.sqrt(x_after)) + beta * (x - x_after)


@kernels.compiled_first
def _solve(policy: Floats, cdf: Floats, alpha: float, beta: float, solves: int) -> None:
    kernels.argmin(policy, alpha, beta, solves)
    kernels.normalise(policy[kernels.X], cdf)


@kernels.compiled_first
def _gap(policy: Floats, cdf: Floats, arm: int, estimate: float, alpha: float, beta: float) -> float:
    """Phi(L + estimate) - Phi(L); the policy keeps L."""
    before = kernels.potential(policy, alpha, beta)
    after = policy.copy()
    after[kernels.LOSSES, arm] += estimate
    _solve(after, cdf, alpha, beta, 0)
    return kernels.potential(after, alpha, beta) - before


@kernels.compiled_first
def play(  # noqa: C901, PLR0912, PLR0915  (all designs side by side)
    losses: Floats,
    uniforms: Floats,
    first: NDArray[np.int32],
    following: NDArray[np.int32],
    careful: Floats,
    skipped_in: Integers,
    kind: int,
    gain: float,
    switch_threshold: float,
    forget: bool,
    tail: float,
) -> float:
    """The sum of <x_t, l_t> over a whole game."""
    n, k = losses.shape
    policies, cdf = np.zeros((3, kernels.ROWS, k)), np.empty(-(-k // kernels.BLOCK))
    policies[:, kernels.V] = 0.5 * math.log(k)
    bold, other, brave = policies[0], policies[1], policies[2]
    arms, state = np.zeros(n, np.int64), np.zeros(n, np.int64)  # state 1: arrived, 2: no longer waited for
    x, y_drawn, z, beta = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    suffered = reported = total = squares = damage = paid = 0.0
    next_round = measured = 0
    for t in range(n):
        alpha = math.sqrt(t + 1.0)
        unmeasured = (t - next_round) * max(0.0, total) / max(1, measured) * tail
        beta[t] = max(beta[t - 1] if t else 0.0, min(careful[t], gain * (damage + unmeasured)))
        if kind == LEADER:
            beta[t] = careful[t] if total > switch_threshold * math.sqrt(1 + squares) else 0.0
        _solve(bold, cdf, alpha, beta[t], t)
        arm = kernels.draw(bold[kernels.X], cdf, uniforms[t])
        arms[t], x[t] = arm, bold[kernels.X, arm]
        paid += kernels.expectation(bold[kernels.X], losses[t])
        if kind >= TWIN:
            kernels.argmin(other, alpha, careful[t], t)
            z[t] = other[kernels.X, arm]
        y_drawn[t] = x[t]
        if kind == LEADER:
            kernels.argmin(brave, alpha, 0.0, t)
            y_drawn[t] = brave[kernels.X, arm]
        s = first[t]
        while s >= 0:
            loss, a = losses[s, arms[s]], arms[s]
            bold[kernels.LOSSES, a] += loss / x[s]
            if kind >= TWIN or state[s] == 2:
                other[kernels.LOSSES, a] += loss / x[s]
                brave[kernels.LOSSES, a] += loss / x[s]
            if kind >= ARRIVAL:
                y = bold[kernels.X, a] if kind == ARRIVAL else z[s]
                mean = suffered / max(1.0, reported) if kind >= TWIN_MEAN else 0.0
                saving = (loss - mean) * (y_drawn[s] - y) / x[s]
                total, squares = total + saving, squares + saving * saving
                total = max(0.0, total) if forget else total
                damage = max(damage, total - switch_threshold * math.sqrt(squares))
                suffered, reported = suffered + loss, reported + 1
            state[s] = 1 if state[s] == 0 else state[s]
            s = following[s]
        while kind < ARRIVAL and next_round <= t:
            s = next_round
            if state[s] == 1:
                loss, a, rate = losses[s, arms[s]], arms[s], math.sqrt(s + 1.0)
                _solve(other, cdf, rate, beta[s], s)
                y = other[kernels.X, a]
                saving = loss * (1 - y / x[s])
                if kind == BOUNDED and loss > 0:
                    saving = _fall(x[s], loss / x[s], rate, beta[s]) - _fall(y, loss / x[s], rate, beta[s])
                elif kind == GAP:
                    saving = loss + _gap(other, cdf, a, loss / x[s], rate, beta[s]) - math.sqrt(k / (s + 1.0))
                other[kernels.LOSSES, a] += loss / x[s]
                total, squares, measured = total + saving, squares + saving * saving, measured + 1
                total = max(0.0, total) if forget else total
                damage = max(damage, total - switch_threshold * math.sqrt(squares))
            elif 0 < skipped_in[s] <= t + 1:
                state[s] = 2
            else:
                break
            next_round += 1
    return paid


@dataclass(frozen=True)
class Made(lab.Losses):
    """Losses by a function of (arms, rounds, delay, generator), all at once."""

    make: Callable[[int, int, int, np.random.Generator], Floats]

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        """The whole matrix."""
        yield self.make(n_arms, n_rounds, delay, generator)


def then(one: lab.Losses, other: lab.Losses, share: float) -> lab.Losses:
    """First one rule, then another."""

    def make(k: int, n: int, d: int, generator: np.random.Generator) -> Floats:
        m = int(n * share)
        return np.vstack([*one.blocks(k, m, d, generator), *other.blocks(k, n - m, d, generator)])

    return Made(make)


def rotating(k: int, n: int, d: int, generator: np.random.Generator) -> Floats:
    """Every 2 d rounds the next arm is the best."""
    best = np.arange(n) // (2 * d) % k
    return flip(generator, np.where(np.arange(k) == best[:, None], 0.2, 0.6))


def lone_wave(k: int, n: int, d: int, _generator: np.random.Generator) -> Floats:
    """One arm swings between 0 and 1, the others stay at 1/2."""
    return np.where(np.arange(k) == 0, np.arange(n)[:, None] // (2 * d) % 2, 0.5)


def walk(k: int, n: int, _d: int, generator: np.random.Generator) -> Floats:
    """Means that walk at random between 0 and 1."""
    means = np.cumsum(generator.normal(0, 0.02, (n, k)), axis=0)
    return flip(generator, np.abs((means + 0.5) % 2 - 1))


def trap(k: int, n: int, _d: int, generator: np.random.Generator) -> Floats:
    """The best arm of the first third is the worst of the rest."""
    means = np.full((n, k), 0.5)
    means[:, 0], means[:, 1] = np.where(np.arange(n) < n // 3, 0.1, 0.9), 0.4
    return flip(generator, means)


def problems(n: int) -> dict[str, tuple[lab.Losses, lab.Delays]]:
    """The problems the settings were chosen on."""
    coins, wave, d = lab.Bernoulli, lab.Wave, n // 100
    return {
        "coins 0.2, geometric": (coins(0.2), lab.Geometric(n / 150)),
        "coins 0.05, fixed": (coins(0.05), lab.Fixed(d)),
        "coins 0.4, fixed n/20": (coins(0.4), lab.Fixed(n // 20)),
        "coins 0.5, fixed n/5": (coins(0.5), lab.Fixed(n // 5)),
        "coins 0.1, fixed n/5": (coins(0.1), lab.Fixed(n // 5)),
        "coins 0.2, bursts": (coins(0.2), lab.Bursts(n // 40)),
        "coins 0.1, unbalanced": (coins(0.1), lab.Unbalanced()),
        "coins 0.15, Pareto": (coins(0.15), lab.Pareto(0.5)),
        "rare losses, fixed": (coins(0.08, 0.1), lab.Fixed(d)),
        "coins 0.2, half lost": (coins(0.2), lab.Lost(0.5, d)),
        "constrained, uniform": (lab.Constrained(), lab.Uniform(n // 60)),
        "shifting 0.3, geometric": (lab.Shifting(0.3, 5), lab.Geometric(d)),
        "shifting 0.5, fixed": (lab.Shifting(0.5, 40), lab.Fixed(d // 2)),
        "wave, fixed": (wave(), lab.Fixed(n // 150)),
        "wave, fixed n/30": (wave(), lab.Fixed(n // 30)),
        "wave, fixed n/8": (wave(), lab.Fixed(n // 8)),
        "wave, 10% lost": (wave(), lab.Lost(0.1, n // 150)),
        "wave, half lost": (wave(), lab.Lost(0.5, d)),
        "wave, geometric": (wave(), lab.Geometric(n / 150)),
        "wave, bursts": (wave(), lab.Bursts(2 * d)),
        "wave 3 d, fixed": (wave(half_period=3 * d), lab.Fixed(d)),
        "weak wave 0.6, fixed": (wave(strength=0.6), lab.Fixed(d)),
        "weak wave 0.3, fixed": (wave(strength=0.3), lab.Fixed(d)),
        "sine, fixed": (lab.Sine(), lab.Fixed(n // 150)),
        "wave, then coins": (then(wave(), coins(0.2), 0.3), lab.Fixed(n // 150)),
        "wave for a tenth, then coins": (then(wave(), coins(0.2), 0.1), lab.Fixed(n // 400)),
        "wave, coins, wave, coins": (
            then(then(wave(), coins(0.3), 0.5), then(wave(), coins(0.3), 0.5), 0.5),
            lab.Fixed(n // 200),
        ),
        "coins, then wave": (then(coins(0.2), wave(), 0.5), lab.Fixed(n // 150)),
        "rotating, fixed": (Made(rotating), lab.Fixed(d)),
        "lone wave, fixed": (Made(lone_wave), lab.Fixed(d)),
        "random walk, fixed": (Made(walk), lab.Fixed(d)),
        "random walk, Pareto": (Made(walk), lab.Pareto(0.5)),
        "trap, fixed": (Made(trap), lab.Fixed(d)),
    }


def regrets(problem: lab.Problem, seed: int) -> list[float]:
    """The regret of every design in one game."""
    delays = problem.draw_delays(seed)
    losses = np.ascontiguousarray(np.vstack(list(problem.loss_blocks(seed, delays))))
    arrivals, uniforms = kernels.arrivals(delays), np.random.default_rng(seed).random(problem.n_rounds)
    found = []
    for design in DESIGNS.values():
        rates = schedule(belated.tunings.Advanced(design.scale), problem.n_arms, delays)
        settings: tuple[Any, ...] = (design.kind, design.gain, design.switch_threshold, design.forget, design.tail)
        found.append(play(losses, uniforms, *arrivals, rates.beta, rates.skipped_in, *settings))
    return list(np.array(found) - losses.sum(axis=0).min())


def main() -> None:
    """Print the worst ratio and the geometric mean of each design, for each number of arms."""
    n, seeds, sizes = 20_000, range(6), (2, 10, 50)
    rivals = (belated.tunings.Tsallis(), belated.tunings.Simple(), belated.tunings.Advanced())
    rows: dict[int, Floats] = {}
    for k in sizes:

        def ratios(name: str, k: int = k) -> Floats:
            problem = lab.Problem(*problems(n)[name], k, n)
            best = min(lab.play(rival, problem, seeds, checkpoints=[n]).mean[-1] for rival in rivals)
            mean = np.mean([regrets(problem, seed) for seed in seeds], axis=0)
            print(f"\r  k = {k}: {name:30}", end="", file=sys.stderr, flush=True)
            return np.asarray(np.maximum(mean, math.sqrt(n)) / max(best, math.sqrt(n)))

        with ThreadPoolExecutor(2) as pool:
            rows[k] = np.array(list(pool.map(ratios, problems(n))))
    print(
        f"\r{len(problems(n))} problems, n = {n:,}, ratio to the best of blind, simple, advanced: worst, geometric mean"
    )
    print(f"  {'':48}" + "".join(f"    k = {k:<7}" for k in sizes))
    for i, name in enumerate(DESIGNS):
        cells = [f"{rows[k][:, i].max():6.2f} {np.exp(np.log(rows[k][:, i]).mean()):6.2f}" for k in sizes]
        print(f"  {name:48}" + "  ".join(cells))


if __name__ == "__main__":
    main()
