"""The published systems keep their bounds in the settings they are for."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from belated import FTRL, Decision, Learner
from belated.arrays import Floats
from belated.baselines import (
    BOLD,
    SOLID,
    Composite,
    DelayedUCB1,
    Doubling,
    EpsilonGreedy,
    ExploreThenCommit,
    Hoeven2022,
    MixedExp3,
    OptimisticPessimistic,
    PatientBandits,
    Queued,
    Skipper,
    SuccessiveElimination,
    TsallisReducedVariance,
    WaitingDoubling,
    bold,
    composite,
    delayed_ucb,
    doubling,
    epsilon_greedy,
    explore_then_commit,
    hoeven_2022,
    mixed_exp3,
    patient_bandits,
    queued,
    skipper,
    solid,
    successive_elimination,
    tsallis_reduced_variance,
)
from belated.tunings import Exp3
from tests.support.bandits import coins, play_known, regret
from tests.support.oracles import play


def assert_bounded(
    run: Callable[[int, Floats], Sequence[Decision]], bound: float, n: int, means: Sequence[float], seeds: int = 6
) -> None:
    """Assert that the mean regret is at most the bound, and that uniform play would break the bound."""
    games = [coins(n, means, seed) for seed in range(seeds)]
    mean = np.mean([regret(run(seed, losses), losses) for seed, losses in enumerate(games)])
    uniform = np.mean([losses.mean(axis=1).sum() - losses.sum(axis=0).min() for losses in games])
    assert mean <= bound < uniform, (mean, bound, uniform)


def test_reduced_variance_keeps_its_bound() -> None:
    n = 3000
    bound = tsallis_reduced_variance.bound(2, n)
    assert bound == pytest.approx(2 * math.sqrt(6000) + 28 * math.log(200) + 16)
    assert tsallis_reduced_variance.bound(2, 15) == 15
    for paper_rates in (True, False):
        assert_bounded(
            lambda seed, losses, rates=paper_rates: play(  # type: ignore[misc]
                TsallisReducedVariance(2, paper_rates=rates, seed=seed), [0] * n, losses
            ),
            bound,
            n,
            (0.1, 0.6),
        )


def test_delayed_ucb_and_queued_ucb_keep_their_bounds() -> None:
    n, delay, gaps = 2000, 20, (0.0, 0.7, 0.5)
    expected = 8 * math.log(n) * (1 / 0.7 + 2) + 3.5 * 1.2 + 1.2 * delay
    assert delayed_ucb.bound(gaps, n, delay) == pytest.approx(expected)
    assert queued.bound(gaps, n, delay) == pytest.approx(expected + (math.pi**2 / 3 - 2.5) * 1.2)
    for make in (DelayedUCB1, Queued):
        assert_bounded(
            lambda seed, losses, make=make: play(make(3, seed=seed), [delay] * n, losses),  # type: ignore[misc]
            delayed_ucb.bound(gaps, n, delay),
            n,
            (0.2, 0.9, 0.7),
        )


def test_bold_keeps_its_bound() -> None:
    n, delay = 2000, 10
    assert bold.bound(2, n, delay) == pytest.approx(4 * math.sqrt(2 * n * 11) + 11)
    assert_bounded(
        lambda seed, losses: play(BOLD(2, seed=seed), [delay] * n, losses), bold.bound(2, n, delay), n, (0.0, 1.0)
    )


def test_skipper_keeps_its_bound_on_the_unbalanced_example() -> None:
    n, k = 3000, 2
    late = int(math.sqrt(k * n / math.log(k)))
    delays = [n - t if t <= late else 0 for t in range(1, n + 1)]
    eta = skipper.dew_rate(k, delays, beta=5)
    assert eta == pytest.approx(math.sqrt(math.log(2) / (math.e * n)))
    bound = skipper.bound(k, delays, beta=5)
    assert bound == pytest.approx(late + math.log(2) / eta + eta * (n - late))
    assert bound < skipper.bound(k, delays) / 4
    assert_bounded(
        lambda seed, losses: play_known(
            Skipper(k, 5, lambda k, seed: FTRL(k, Exp3(eta), seed=seed), seed=seed), delays, losses
        ),
        bound,
        n,
        (0.0, 1.0),
    )


def test_dew_keeps_its_bound() -> None:
    n, k, delays = 3000, 2, [10] * 3000
    total = sum(min(10, 3000 - t) for t in range(1, 3001))
    assert skipper.dew_rate(k, delays) == pytest.approx(
        min(math.sqrt(math.log(2) / (math.e * n + total)), 1 / (40 * math.e))
    )
    eta = skipper.dew_rate(k, delays)
    assert skipper.bound(k, delays) == pytest.approx(math.log(2) / eta + eta * (n + total / 4))
    base = Exp3(eta)
    assert_bounded(
        lambda seed, losses: play(FTRL(k, base, seed=seed), delays, losses), skipper.bound(k, delays), n, (0.0, 1.0)
    )


@pytest.mark.parametrize("known", [True, False])
def test_doubling_keeps_its_bound(known: bool) -> None:
    n, k = 4000, 2
    late = int(math.sqrt(k * n / math.log(k)))
    delays = [n - t if t <= late else 2 for t in range(1, n + 1)]

    def run(seed: int, losses: Floats) -> list[Decision]:
        if known:
            return play_known(Doubling(k, seed=seed), delays, losses)
        return play(WaitingDoubling(k, seed=seed), delays, losses)

    assert_bounded(run, doubling.bound(k, delays, known=known), n, (0.0, 1.0))


def test_composite_stays_below_the_leading_term() -> None:
    n, d = 6000, 2
    most = composite.leading_term(2, n, d)
    assert most == pytest.approx(8 * math.sqrt(2 * 9 * n * math.log(2)))
    assert_bounded(lambda seed, losses: play(Composite(2, d, seed=seed), [1] * n, losses), most, n, (0.0, 1.0))


def test_solid_keeps_its_bound() -> None:
    n, delay = 1000, 5
    assert solid.bound(3, n, n * delay) == pytest.approx(2 * math.sqrt(11 * n * math.log(3)))

    def run(seed: int, losses: Floats) -> list[Decision]:
        learner, decisions = SOLID(3, seed=seed), []
        for t in range(1, n + 1):
            decisions.append(learner.ask())
            if t > delay:
                learner.tell_vector(t - delay, losses[t - delay - 1])
        return decisions

    assert_bounded(run, solid.bound(3, n, n * delay), n, (0.2, 0.8, 0.9))


def test_mixed_exp3_keeps_its_bound() -> None:
    n = 3000
    gamma = mixed_exp3.best_gamma(2, n)
    assert_bounded(
        lambda seed, losses: play(MixedExp3(2, gamma, seed=seed), [0] * n, losses),
        mixed_exp3.bound(2, n, gamma),
        n,
        (0.0, 1.0),
    )


def play_by_outcome(
    learner: Learner, losses: Floats, delay_of: Callable[[int, float], int]
) -> tuple[list[Decision], int]:
    """A game whose delays depend on the arm and its loss. Returns the decisions and the most that were ever missing."""
    due: dict[int, list[int]] = {}
    decisions: list[Decision] = []
    most = 0
    for t in range(1, len(losses) + 1):
        most = max(most, learner.outstanding)
        decisions.append(learner.ask())
        loss = float(losses[t - 1, decisions[-1].arm])
        due.setdefault(t + delay_of(decisions[-1].arm, loss), []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, float(losses[s - 1, decisions[s - 1].arm]))
    return decisions, most


@pytest.mark.parametrize("by_arm", [(10, 10), (0, 30)])
def test_hoeven_keeps_its_bound(by_arm: tuple[int, int]) -> None:
    n, longest = 4000, max(by_arm)
    assert_bounded(
        lambda seed, losses: play_by_outcome(Hoeven2022(2, longest, seed=seed), losses, lambda arm, _loss: by_arm[arm])[
            0
        ],
        hoeven_2022.bound(2, n, n * longest, longest),
        n,
        (0.0, 1.0),
    )


@pytest.mark.parametrize("delay", [0, 30])
def test_epsilon_greedy_keeps_its_bound(delay: int) -> None:
    n, delays = 4000, [delay] * 4000
    bound = epsilon_greedy.bound((0.0, 0.6, 0.4), delays, gap=0.4, c=5)
    assert_bounded(
        lambda seed, losses: play(EpsilonGreedy(3, gap=0.4, c=5, seed=seed), delays, losses), bound, n, (0.9, 0.3, 0.7)
    )


@pytest.mark.parametrize("delay", [0, 30])
def test_explore_then_commit_keeps_its_bound(delay: int) -> None:
    n, delays = 4000, [delay] * 4000
    bound = explore_then_commit.bound((0.0, 0.6, 0.4), 60, delays)
    assert_bounded(lambda _, losses: play(ExploreThenCommit(3, 60), delays, losses), bound, n, (0.9, 0.3, 0.7))


def test_elimination_keeps_its_bounds() -> None:
    n, delay, gaps = 6000, 20, (0.0, 0.8, 0.8)
    assert_bounded(
        lambda _, losses: play(SuccessiveElimination(3, n), [delay] * n, losses),
        successive_elimination.bound(gaps, n, delay),
        n,
        (0.9, 0.1, 0.9),
    )
    seen = []

    def opse(_: int, losses: Floats) -> list[Decision]:
        """The successes of the best arm come 60 rounds late, and the failures of the others."""
        late = {(1, 0.0), (0, 1.0), (2, 1.0)}
        decisions, most = play_by_outcome(
            OptimisticPessimistic(3, n), losses, lambda arm, loss: 60 if (arm, loss) in late else 0
        )
        seen.append(most)
        return decisions

    assert_bounded(opse, successive_elimination.bound_opse(gaps, n, 60), n, (0.9, 0.1, 0.9))
    assert max(seen) <= 60


def test_patient_bandits_keeps_its_bound_with_heavy_tails() -> None:
    """The delays have no mean. A delay exceeds m rounds with a chance of (m + 2)^(-1/2)."""
    n = 6000

    def run(seed: int, losses: Floats) -> list[Decision]:
        delays = np.minimum(np.random.default_rng(seed + 100).random(n) ** -2, n).astype(int) - 1
        return play(PatientBandits(2, n, 0.5), delays.tolist(), losses)

    assert_bounded(run, patient_bandits.bound((0.0, 0.9), n, 0.5), n, (0.95, 0.05))
