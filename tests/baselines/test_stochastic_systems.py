"""The systems for stochastic losses, each compared with a literal transcription of its rule."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from belated.arrays import Floats
from belated.baselines import (
    EpsilonGreedy,
    ExploreThenCommit,
    OptimisticPessimistic,
    PatientBandits,
    SuccessiveElimination,
    epsilon_greedy,
    explore_then_commit,
    patient_bandits,
    successive_elimination,
)
from belated.errors import InvalidInput
from tests.support.bandits import coins, random_delays
from tests.support.oracles import play

N, K, MEANS = 900, 4, (0.7, 0.1, 0.6, 0.9)


def known(arms: Sequence[int], delays: Sequence[int], losses: Floats, t: int, arm: int) -> list[float]:
    """The losses of an arm that were observed before round t."""
    return [losses[s - 1, arm] for s in range(1, t) if arms[s - 1] == arm and s + delays[s - 1] < t]


def played(arms: Sequence[int], t: int, arm: int) -> int:
    """The rounds of an arm before round t."""
    return list(arms[: t - 1]).count(arm)


@pytest.mark.parametrize("gaps", [(0.0, 0.6, 0.4), (0.2, 0.0, 0.2), (0.0, 0.1)])
def test_the_bound_of_epsilon_greedy_is_the_formula(gaps: tuple[float, ...]) -> None:
    n, k, c, gap = 300, len(gaps), 5.0, min(one for one in gaps if one)
    delays = [*random_delays(n - 1, 40, 1), 2**31 - 1]
    expected, epsilons = 0.0, [min(1, c * k / (gap**2 * t)) for t in range(1, n + 1)]
    for t, epsilon in enumerate(epsilons, 1):
        m = sum(epsilons[s - 1] / k for s in range(1, t) if s + delays[s - 1] < t)
        chances = [
            2 * (math.exp(-m / 8) + math.exp(-(math.floor(m / 2) + 1) * one**2 / 2) / (1 - math.exp(-(one**2) / 2)))
            for one in gaps
            if one
        ]
        greedy = sum(one * min(1, chance) for one, chance in zip(filter(None, gaps), chances, strict=True))
        expected += epsilon * sum(gaps) / k + (1 - epsilon) * min(max(gaps), greedy)
    assert epsilon_greedy.bound(gaps, delays, gap, c) == pytest.approx(expected)
    assert epsilon_greedy.bound(gaps, [0] * n, gap, c) <= expected * (1 + 1e-12)


@pytest.mark.parametrize(("c", "gap"), [(5.0, 0.5), (0.2, 0.3)])
def test_epsilon_greedy_is_the_rule(c: float, gap: float) -> None:
    losses, delays = coins(N, (0.5, 0.4, 0.45, 0.6), 1), random_delays(N, 30, 1)
    learner = EpsilonGreedy(K, c=c, gap=gap, seed=1)
    arms: list[int] = []
    due: dict[int, list[int]] = {}
    best_seen = set()
    for t in range(1, N + 1):
        x, seen = learner.distribution(), [known(arms, delays, losses, t, arm) for arm in range(K)]
        if not any(seen):
            np.testing.assert_allclose(x, 1 / K)
        else:
            epsilon = min(1, c * K / (gap**2 * t))
            best = min(range(K), key=lambda i: sum(seen[i]) / len(seen[i]) if seen[i] else math.inf)
            np.testing.assert_allclose(x, np.where(np.arange(K) == best, 1 - epsilon, 0) + epsilon / K)
            best_seen.add(best)
        arms.append(learner.ask().arm)
        due.setdefault(t + delays[t - 1], []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, losses[s - 1, arms[s - 1]])
    assert learner.epsilon < 0.2
    assert len(best_seen) > 1


@pytest.mark.parametrize(("m", "longest"), [(1, 0), (10, 0), (7, 40)])
def test_explore_then_commit_is_the_rule(m: int, longest: int) -> None:
    losses, delays = coins(N, MEANS, 2), random_delays(N, longest, 2)
    learner = ExploreThenCommit(K, m)
    arms = [decision.arm for decision in play(learner, delays, losses)]
    explored = 0
    while min(len(known(arms, delays, losses, explored + 1, arm)) for arm in range(K)) < m:
        assert arms[explored] == explored % K
        explored += 1
    means = [np.mean(known(arms, delays, losses, explored + 1, arm)) for arm in range(K)]
    assert set(arms[explored:]) == {int(np.argmin(means))} == {learner.committed}
    assert explored == m * K if longest == 0 else m * K < explored < m * K + 60
    counts = explore_then_commit.draws_until_commitment(K, m, delays)
    assert counts.tolist() == [played(arms, explored + 1, arm) for arm in range(K)]
    expected = sum(
        gap * (count + (N - explored) * math.exp(-m * gap**2))
        for gap, count in zip((0, 0.3, 0.5, 0.8), sorted(counts), strict=True)
    )
    assert explore_then_commit.bound((0.8, 0, 0.5, 0.3), m, delays) == pytest.approx(expected)


def test_explore_then_commit_explores_for_ever_without_reports() -> None:
    learner = ExploreThenCommit(3, 2)
    assert [learner.ask().arm for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert learner.committed is None
    assert explore_then_commit.draws_until_commitment(3, 2, [99] * 7).tolist() == [3, 2, 2]
    assert explore_then_commit.bound((0, 0.25, 0.5), 2, [99] * 7) == 3 * 0.5 + 2 * 0.25  # any arm may come first
    assert [explore_then_commit.exploration(2, n) for n in (1, 2, 10, 1000)] == [1, 1, 4, 120]


def literal_elimination(
    delays: Sequence[int], losses: Floats, *, is_pessimistic: bool
) -> Iterator[tuple[int, list[int]]]:
    """The arm of each round and the active arms. Everything is computed from the list of rounds."""
    arms: list[int] = []
    active = list(range(K))
    while len(arms) < N:
        t = len(arms) + 1
        lower, upper = [-math.inf] * K, [math.inf] * K
        for arm in range(K):
            seen, drawn = known(arms, delays, losses, t, arm), played(arms, t, arm)
            if is_pessimistic and drawn:
                width = math.sqrt(2 * math.log(N) / drawn)
                filled = [sum(seen) + missing * (drawn - len(seen)) for missing in (0, 1)]
                lower[arm], upper[arm] = filled[0] / drawn - width, filled[1] / drawn + width
            elif not is_pessimistic and seen:
                width = math.sqrt(2 * math.log(N) / len(seen))
                lower[arm], upper[arm] = sum(seen) / len(seen) - width, sum(seen) / len(seen) + width
        active = [i for i in active if all(lower[i] <= upper[j] for j in active)]
        for arm in active:
            arms.append(arm)
            yield arm, active


@pytest.mark.parametrize("longest", [0, 60])
@pytest.mark.parametrize("is_pessimistic", [False, True])
def test_elimination_is_the_rule(longest: int, is_pessimistic: bool) -> None:
    losses, delays = coins(N, MEANS, 3), random_delays(N, longest, 3)
    learner = (OptimisticPessimistic if is_pessimistic else SuccessiveElimination)(K, N)
    literal = literal_elimination(delays, losses, is_pessimistic=is_pessimistic)
    due: dict[int, list[int]] = {}
    arms: list[int] = []
    sizes = set()
    for t, (arm, active) in zip(range(1, N + 1), literal, strict=False):
        arms.append(learner.ask().arm)
        assert arms[-1] == arm
        assert learner.active == active
        sizes.add(len(active))
        due.setdefault(t + delays[t - 1], []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, losses[s - 1, arms[s - 1]])
    assert sizes >= {4, 3}
    assert 1 in learner.active


def test_opse_is_not_fooled_when_the_successes_of_the_best_arm_come_late() -> None:
    """Only its failures are known at first. So it looks worst to whoever trusts the reports alone."""
    n, slow = 6000, 5000
    losses = coins(n, (0.5, 0.3), 4)
    for make, is_fooled in ((SuccessiveElimination, True), (OptimisticPessimistic, False)):
        learner, arms, due = make(2, n), list[int](), dict[int, list[int]]()
        for t in range(1, n + 1):
            arms.append(learner.ask().arm)
            loss = losses[t - 1, arms[-1]]
            due.setdefault(t + (slow if arms[-1] == 1 and loss == 0 else 0), []).append(t)
            for s in due.pop(t, []):
                learner.tell(s, losses[s - 1, arms[s - 1]])
        assert (learner.active == [0]) == is_fooled


def test_the_bounds_of_elimination() -> None:
    apart = 32 * math.log(500) * (1 / 0.5 + 1 / 0.2) + 6 / 250_000
    assert successive_elimination.bound((0, 0.5, 0.2), 500, 9) == pytest.approx(apart + 7)
    assert successive_elimination.bound_opse((0, 0.5, 0.2), 500, 9) == pytest.approx(apart + 36.7)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 3.0])
def test_patient_bandits_is_the_paper_algorithm(alpha: float) -> None:
    """Algorithm 1 with the estimator (4). A reward that has not come counts as 0."""
    losses, delays = coins(N, MEANS, 5), random_delays(N, 40, 5)
    losses[::7] = 0.3
    arms = [decision.arm for decision in play(PatientBandits(K, N, alpha), delays, losses)]
    assert arms[:K] == list(range(K))
    for t in range(K + 1, N + 1, 5):
        index = []
        for arm in range(K):
            drawn, seen = played(arms, t, arm), known(arms, delays, losses, t, arm)
            width = math.sqrt(2 * math.log(2 * K * N**3) / drawn) + 2 * drawn ** -min(alpha, 1 / 2)
            index.append(sum(1 - loss for loss in seen) / drawn + width)
        assert index[arms[t - 1]] == pytest.approx(max(index))
    assert played(arms, N + 1, 1) > N / 3


def test_patient_bandits_learns_nothing_from_failures() -> None:
    told, untold = PatientBandits(3, 400), PatientBandits(3, 400)
    for t in range(1, 400):
        arm = told.ask().arm
        assert arm == untold.ask().arm
        if arm == 1:
            for learner in (told, untold):
                learner.tell(t, 0.0)
        else:
            told.tell(t, 1.0)
    assert told.outstanding == 0 < untold.outstanding


def test_the_bound_of_patient_bandits() -> None:
    spread = 32 * math.log(6 * 1000**3)
    assert patient_bandits.bound((0, 0.5), 1000, 2) == pytest.approx(1 + 0.5 * (1 + 32 * math.log(4e9) / 0.25))
    assert patient_bandits.bound((0, 0.5, 0.5), 1000, 0.25) == pytest.approx(1 + 1 * (1 + 16**4))
    assert patient_bandits.bound((0, 1, 0), 1000, 0.5) == pytest.approx(2 + spread)


def test_settings_are_checked() -> None:
    for attempt in (
        lambda: EpsilonGreedy(3, c=0),
        lambda: EpsilonGreedy(3, gap=-1),
        lambda: ExploreThenCommit(3, 0),
        lambda: SuccessiveElimination(3, 0),
        lambda: OptimisticPessimistic(3, 2.5),  # type: ignore[arg-type]
        lambda: PatientBandits(3, 100, 0),
    ):
        with pytest.raises(InvalidInput):
            attempt()
