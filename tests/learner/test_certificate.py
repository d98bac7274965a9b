"""The online certificate equals its definition, its two lemmas hold, and it bounds the regret of games."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, bounds, kernels
from belated.tunings import Advanced, Means, Shadow, Simple, Tsallis, Tuning, schedule
from tests.kernels.test_clock import random_delays
from tests.support.catalogue import TUNINGS
from tests.support.oracles import (
    Log,
    kernel_argmin,
    literal_certificate,
    literal_step,
    play,
    rates_of,
    theory_certificate,
    uncapped_certificate,
)


def run(learner: FTRL, delays: NDArray[np.int64], batches: list[int] | None = None) -> tuple[list[Log], frozenset[int]]:
    """Play, and write down what each round's distribution knew and which feedback was thrown away."""
    log: list[Log] = []
    known: set[int] = set()
    told: set[int] = set()
    discarded: set[int] = set()
    due: dict[int, list[int]] = {}
    t = 0
    while t < delays.size:
        size = batches.pop() if batches else 1
        size = min(size, delays.size - t)
        solves = int(learner._state.clock["solves"][0])
        learner.ask(size)
        if int(learner._state.clock["solves"][0]) > solves:
            known |= told - discarded
        for _ in range(size):
            t += 1
            log.append(Log(*rates_of(learner), frozenset(known)))
            due.setdefault(t + int(delays[t - 1]), []).append(t)
        for arrival in [when for when in due if when <= t]:
            for s in due.pop(arrival):
                if learner.status.tuning.discard and s <= int(learner._state.clock["skipped"][0]):
                    discarded.add(s)
                learner.tell(s, 0.7)
                told.add(s)
    return log, frozenset(discarded)


QUICK = ["advanced, discarding", "shadow", "means"]  # tests/system/learner has the other tunings


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("refresh", [1, 4])
def test_online_equals_its_definition(name: str, refresh: int) -> None:
    generator = np.random.default_rng([len(name), refresh])
    for _ in range(60):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        learner = FTRL(k, TUNINGS[name], seed=1, refresh=refresh)
        log, discarded = run(learner, delays)
        if isinstance(learner.status.tuning, Means):  # test_means.py has the alarm
            allowed = 10 * math.sqrt(k * len(log)) + math.sqrt(learner.status.backlog * math.log(k)) + k
            literal = allowed + len(log) - len(log[-1].known)
        else:
            literal = literal_certificate(k, log, discarded, has_shadow=isinstance(learner.status.tuning, Shadow))
        assert uncapped_certificate(learner) == pytest.approx(literal, rel=1e-11)
        assert learner.certificate() == pytest.approx(min(delays.size, literal), rel=1e-11)


def test_batches_count_as_the_delay_they_are() -> None:
    generator = np.random.default_rng(5)
    for _ in range(100):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        learner = FTRL(k, Shadow(), seed=1, refresh=int(generator.integers(1, 6)))
        log, discarded = run(learner, delays, batches=generator.integers(1, 9, delays.size).tolist())
        literal = literal_certificate(k, log, discarded, has_shadow=True)
        assert uncapped_certificate(learner) == pytest.approx(literal, rel=1e-11)
        assert learner.certificate() == pytest.approx(min(delays.size, literal), rel=1e-11)


@pytest.mark.parametrize("name", QUICK)
def test_a_whole_sequence_has_the_same_certificate(name: str) -> None:
    generator = np.random.default_rng(len(name))
    for _ in range(100):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        learner = FTRL(k, TUNINGS[name], seed=1)
        run(learner, delays)
        whole = bounds.uncapped_certificate(k, delays, TUNINGS[name])
        assert uncapped_certificate(learner) == pytest.approx(whole, rel=1e-11)
        assert bounds.certificate(k, delays, TUNINGS[name]) == min(delays.size, whole)


def test_a_tiny_first_rate_costs_no_digits() -> None:
    """1 / beta = 1e15 in the first round must not swallow what comes after."""
    delays = np.full(3000, 200)
    log, _ = run(FTRL(2, Leap(), seed=1), delays)
    literal = literal_certificate(2, log)
    assert bounds.uncapped_certificate(2, delays, Leap()) == pytest.approx(literal, rel=1e-9)
    learner = FTRL(2, Leap(), seed=1)
    run(learner, delays)
    assert uncapped_certificate(learner) == pytest.approx(literal, rel=1e-9)


class Leap(Tuning):
    """A proper rule that starts almost without a regularizer."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return 0.0, 1e-15 if round == 1 else 2000.0


def test_it_is_never_above_the_one_read_off_theorem_3() -> None:
    generator = np.random.default_rng(7)
    tunings: list[Tuning] = [Simple(), Advanced(), Tsallis(), Simple(scale=0.2)]
    for tuning in tunings:
        for _ in range(50):
            k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
            log, _ = run(FTRL(k, tuning, seed=1), delays)
            ours = bounds.uncapped_certificate(k, delays, tuning)
            assert ours <= theory_certificate(k, log) + 1e-9
            assert ours <= bounds.theorem_3(k, delays, [entry.beta for entry in log]) + 1e-9


def potential(losses: NDArray[np.float64], alpha: float, beta: float) -> tuple[NDArray[np.float64], float]:
    """x(L) and Phi(L) = max over the simplex of -<x, L> - F(x)."""
    policy = np.zeros((kernels.ROWS, losses.size))
    policy[kernels.LOSSES] = losses
    x = kernel_argmin(policy, alpha, beta)
    entropy = x[x > 0] @ np.log(x[x > 0])
    return x, float(-x @ losses + 2 * alpha * np.sqrt(x).sum() - beta * entropy)


def test_the_two_lemmas_behind_the_charges() -> None:
    """With lhat = loss_A / x_A on the drawn arm A ~ x and an earlier round's M = loss_B / w_B on B ~ w, on average:

    stability  <x, lhat> + Phi(L + lhat) - Phi(L)                                  <= k / (alpha sqrt(k) + 2 beta)
    drift      Phi(L) - Phi(L + lhat) - Phi(L + M) + Phi(L + M + lhat)             <= 1 / (beta + alpha / 2)

    The drift is at most a quarter of that with two arms or with alpha = 0.
    """
    generator = np.random.default_rng(11)
    tightest = np.zeros(2)
    for _ in range(600):
        k = int(generator.choice([2, 3, 8]))
        alpha, beta = float(generator.choice([0.0, 1.0, 10.0])), float(generator.choice([0.5, 5.0, 50.0]))
        beta = float(generator.choice([beta, 0.0])) if alpha else beta
        losses = generator.random(k) * float(generator.choice([0.0, 1.0, 30.0]))
        loss: NDArray[np.float64] = generator.choice(np.array([generator.random(k), np.ones(k), np.arange(k) < k / 2]))
        earlier: NDArray[np.float64] = generator.dirichlet(np.full(k, float(generator.choice([0.3, 5.0]))))
        earlier = np.maximum(earlier, 1e-6) / np.maximum(earlier, 1e-6).sum()
        loss_then: NDArray[np.float64] = generator.choice(np.array([loss, np.ones(k), generator.integers(0, 2, k)]))
        x, now = potential(losses, alpha, beta)
        estimates = np.diag(loss / x)
        after = np.array([potential(losses + estimate, alpha, beta)[1] for estimate in estimates])
        drift = 0.0
        for weight, missing in zip(earlier, np.diag(loss_then / earlier), strict=True):
            later = [potential(losses + missing + estimate, alpha, beta)[1] for estimate in estimates]
            drift += weight * (x @ (now - after - potential(losses + missing, alpha, beta)[1] + later))
        measured = np.array([x @ (loss + after - now), drift])
        proven = np.array([k / (alpha * math.sqrt(k) + 2 * beta), literal_step(k, alpha, beta)])
        assert (measured <= proven + 1e-10 * (1 + abs(now))).all()
        tightest = np.maximum(tightest, measured / proven)
    assert tightest[0] > 0.8
    assert tightest[1] > 0.8


@pytest.mark.parametrize("name", ["simple", "advanced", "advanced, discarding", "adaptive exp3", "own rule"])
def test_measured_regret_stays_below_it(name: str) -> None:
    """On the resonant wave losses swap every 2d rounds, the worst rhythm for feedback that is d rounds late."""
    k, n, d = 4, 2000, 50
    wave = (np.arange(n) // (2 * d)) % 2
    losses = np.where(np.arange(k) < k // 2, wave[:, None], 1 - wave[:, None]).astype(float)
    regrets = []
    for seed in range(8):
        learner = FTRL(k, TUNINGS[name], seed=seed)
        decisions = play(learner, [d] * n, losses)
        regrets.append(sum(losses[t - 1, arm] for t, arm, _ in decisions) - losses.sum(axis=0).min())
    assert np.mean(regrets) <= bounds.certificate(k, [d] * n, TUNINGS[name])
    assert learner.certificate() == pytest.approx(bounds.certificate(k, [d] * n, TUNINGS[name]), rel=1e-11)


def test_scale_has_its_price() -> None:
    delays = [100] * 5000
    prices = {scale: bounds.certificate(4, delays, Simple(scale=scale)) for scale in (0.1, 1.0, 10.0)}
    assert prices[1.0] < prices[0.1]
    assert prices[1.0] < prices[10.0]


def test_small_cases() -> None:
    learner = FTRL(3, seed=1)
    assert learner.certificate() == 0.0
    learner.ask()
    assert learner.certificate() == 1.0  # one round cannot cost more
    only = FTRL(1, seed=1)
    only.ask(10)
    assert only.certificate() == 0.0
    assert bounds.certificate(1, [3, 0, 0]) == 0.0
    assert schedule(Advanced(), 1, [3, 0, 0]).beta.tolist() == [0.0] * 3
