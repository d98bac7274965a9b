"""Bootstrapped Thompson sampling for delayed conversions, against the model fitted point by point."""

import copy

import numpy as np
import pytest

from belated.baselines import BootstrappedConversions
from belated.baselines.bootstrapped_conversions import Points, fit
from belated.errors import InvalidInput

Point = tuple[int, int, bool]  # arm, wait, whether it has converted


def literal_fit(points: list[Point], missing: list[float], iterations: int) -> tuple[list[float], list[float]]:
    """Sections 2.2 and 2.3 of the paper, a point at a time. The survival function is Kaplan-Meier's."""
    last = max((wait for _, wait, _ in points), default=0)
    weights = [1.0 if converted else 0.5 for _, _, converted in points]
    rates, survival = list(missing), [1.0] * (last + 1)
    for _ in range(iterations):
        for arm in range(len(missing)):
            own = [weight for weight, point in zip(weights, points, strict=True) if point[0] == arm]
            rates[arm] = sum(own) / len(own) if own else missing[arm]
        alive = 1.0
        for time in range(last + 1):
            events = sum(converted and wait == time for _, wait, converted in points)
            if events:
                alive *= 1 - events / sum(w for w, (_, wait, _) in zip(weights, points, strict=True) if wait >= time)
            survival[time] = alive
        for index, (arm, wait, converted) in enumerate(points):
            late = rates[arm] * survival[wait]
            weights[index] = 1.0 if converted else (late / (1 - rates[arm] + late) if late else 0.0)
    return rates, survival


def as_points(points: list[Point]) -> Points:
    arms, waits, converted = zip(*points, strict=True)
    return Points(np.array(arms), np.array(waits), np.array(converted))


@pytest.mark.parametrize("iterations", [1, 2, 15])
def test_the_fit_is_expectation_maximisation(iterations: int) -> None:
    rng = np.random.default_rng(iterations)
    points = [(int(rng.integers(3)), int(rng.integers(20)), bool(rng.random() < 0.4)) for _ in range(120)]
    rates, survival = fit(as_points(points), np.array([0.1, 0.2, 0.3, 0.4]), iterations)
    expected = literal_fit(points, [0.1, 0.2, 0.3, 0.4], iterations)
    np.testing.assert_allclose(rates, expected[0], rtol=1e-10)
    np.testing.assert_allclose(survival, expected[1], rtol=1e-10, atol=1e-12)
    assert rates[3] == 0.4  # no point has this arm


def test_rounds_that_waited_long_are_failures_and_recent_ones_are_not() -> None:
    """All conversions take at most 5 rounds. So the share of conversions among the old rounds is the rate."""
    old = [(0, 40, False)] * 30 + [(0, wait % 5 + 1, True) for wait in range(20)]
    recent = [(1, 0, False)] * 50 + [(1, wait % 5 + 1, True) for wait in range(20)]
    rates, survival = fit(as_points(old + recent), np.zeros(2), 300)
    assert rates[0] == pytest.approx(0.4)
    assert rates[1] > 0.95  # nothing yet says that the others will not convert
    assert survival[5] == pytest.approx(0, abs=1e-9)
    assert survival[0] == 1


@pytest.mark.parametrize("fractional", [False, True])
def test_it_plays_the_paper_algorithm(fractional: bool) -> None:
    n, k, prior, longest, seed = 70, 3, 6, 9, 4
    learner, twin = BootstrappedConversions(k, prior=prior, longest=longest, seed=seed), np.random.default_rng(seed)
    losses, delays = (np.random.default_rng(1).random((n, k)) < 0.5).astype(float), np.arange(n) * 7 % 11
    if fractional:
        losses = 0.2 + 0.5 * losses
    rounds: list[int] = []
    converted: dict[int, int] = {}
    for t in range(1, n + 1):
        arms, uniform, means = twin.integers(k, size=prior), twin.random(prior), twin.random(prior)
        waits = twin.integers(longest + 1, size=prior)
        data: list[Point] = [(arm, converted.get(s, t - 1 - s), s in converted) for s, arm in enumerate(rounds, 1)]
        data += [
            (int(arm), int(wait), bool(value < mean))
            for arm, wait, value, mean in zip(arms, waits, uniform, means, strict=True)
        ]
        sample = [data[index] for index in twin.integers(len(data), size=len(data))]
        rates, _ = literal_fit(sample, twin.random(k).tolist(), 10)
        rounds.append(learner.ask().arm)
        assert rates[rounds[-1]] == pytest.approx(max(rates), rel=1e-9)
        for s in range(1, t + 1):
            if s + delays[s - 1] == t:
                loss = float(losses[s - 1, rounds[s - 1]])
                learner.tell(s, loss)
                if loss == 0 or (loss < 1 and twin.random() >= loss):
                    converted[s] = t - s
    assert 5 < len(converted) < n - 5


def test_it_needs_no_reports_of_failures() -> None:
    """Conversions come up to 30 rounds late, and failures never."""
    rng, arms, due = np.random.default_rng(3), list[int](), dict[int, list[int]]()
    learner = BootstrappedConversions(3, longest=30, seed=3)
    silent, n = copy.deepcopy(learner), 500
    for t in range(1, n + 1):
        arms.append(learner.ask().arm)
        if rng.random() < (0.3, 0.7, 0.4)[arms[-1]]:
            due.setdefault(t + int(rng.integers(31)), []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.0)
    assert np.mean(np.array(arms[-200:]) == 1) > 0.7
    for _ in range(30):
        silent.tell(silent.ask(), 1.0)
    assert (silent._delays == -1).all()


def test_a_report_after_a_look_counts() -> None:
    """The coming draw is kept after a look, until something is reported."""
    looked, blind = BootstrappedConversions(3, seed=2), BootstrappedConversions(3, seed=2)
    for t in range(1, 60):
        for learner in (looked, blind):
            learner.ask()
        if t > 3:
            looked.distribution()
            for learner in (looked, blind):
                learner.tell(t - 3, t % 3 / 2)
    assert looked.distribution().tolist() == blind.distribution().tolist()
    assert [looked.ask().arm for _ in range(20)] == [blind.ask().arm for _ in range(20)]


def test_settings_are_checked() -> None:
    for settings in ({"prior": -1}, {"longest": -1}, {"iterations": 0}):
        with pytest.raises(InvalidInput, match=next(iter(settings))):
            BootstrappedConversions(3, **settings)
    assert BootstrappedConversions(2, prior=0, seed=1).ask().round == 1
