"""Replayed games equal the lab's if delays do not depend on the arm, and the plain definition if they do."""

import math
from typing import Any

import numpy as np
import pytest

from belated import FTRL, lab
from belated.arrays import Floats
from belated.baselines import OneArm, UniformRandom
from belated.errors import InvalidInput
from belated.replay import Wait, delays_in_rounds, play
from belated.tunings import Advanced, Shadow, Simple, Tuning
from tests.support.catalogue import BASELINES


def data(n: int = 400, k: int = 3, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Losses, landings that depend on the arm, and times with many ties."""
    generator = np.random.default_rng(seed)
    losses = generator.random((n, k)) * np.linspace(0.5, 1, k)
    times = np.sort(generator.integers(0, n // 4, n)).astype(float)
    waits = generator.exponential(np.linspace(2, 20, k), (n, k))
    waits[generator.random((n, k)) < 0.1] = math.inf
    return losses, times[:, None] + waits, times


@pytest.mark.parametrize("tuning", [Shadow(), Advanced(), Simple()])
def test_it_is_the_lab_where_delays_do_not_depend_on_the_arm(tuning: Tuning) -> None:
    losses, landed, tied = data(n=600)
    times = np.arange(600.0)
    delays = delays_in_rounds(times, landed[:, 0] - tied + times)
    usable = np.arange(600) + delays + 1
    told_at = np.where(usable < 600, usable, math.inf)
    replays = play(tuning, losses, np.repeat(told_at[:, None], 3, axis=1), times, range(3), checkpoints=[50, 333])
    problem = lab.Problem(lab.GivenLosses(losses), lab.GivenDelays(delays), 3, 600)
    curves = lab.play(lambda k, seed: FTRL(k, tuning, seed=seed), problem, range(3), checkpoints=[50, 333])
    assert replays.checkpoints.tolist() == [50, 333, 600]
    np.testing.assert_allclose(replays.regret, curves.expected, rtol=1e-9)


@pytest.mark.parametrize("wait", [None, Wait(9.0, 0.75)])
@pytest.mark.parametrize("tuning", [Shadow(), Simple()])
def test_it_is_the_definition_written_down(tuning: Tuning, wait: Wait | None) -> None:
    losses, landed, times = data()
    replays = play(tuning, losses, landed, times, [7], wait=wait, checkpoints=range(1, 401))
    learner, told, arms, outstanding, lost = FTRL(3, tuning, seed=7), set[int](), list[int](), [], 0.0
    for t, now in enumerate(times):
        ready = []
        for s in set(range(t)) - told:
            deadline = times[s] + (wait.seconds if wait else math.inf)
            truth = landed[s, arms[s]]
            if min(truth, deadline) <= now:
                loss = losses[s, arms[s]] if truth <= deadline else wait.default if wait else math.nan
                ready.append((min(truth, deadline), s, float(loss)))
        for _, s, loss in sorted(ready):
            learner.tell(s + 1, loss)
            told.add(s)
        outstanding.append(t - len(told))
        lost += float(learner.distribution() @ losses[t])
        assert replays.regret[0, t] == pytest.approx(lost - losses[: t + 1].sum(axis=0).min(), abs=1e-9)
        arms.append(learner.ask().arm)
    assert replays.shares[0].argmax(axis=1).tolist() == arms  # a checkpoint every round
    assert replays.total.tolist() == [sum(outstanding)]
    assert replays.largest_backlog.tolist() == [max(outstanding)]
    assert replays.certificate.tolist() == [learner.certificate("any")]
    assert replays.measured.tolist() == [learner.measured_certificate()]
    assert replays.bound.tolist() == [learner.regret_bound()]


def test_yardsticks() -> None:
    losses, landed, times = data()
    best = int(losses.sum(axis=0).argmin())
    always = play(lambda k, seed: OneArm(k, best, seed=seed), losses, landed, times, [0, 1])
    assert always.regret[:, -1] == pytest.approx([0, 0], abs=1e-9)
    assert (always.shares[:, :, best] == 1).all()
    assert np.isnan(always.certificate).all()
    uniform = play(lambda k, seed: UniformRandom(k, seed=seed), losses, landed, times, [0])
    assert uniform.regret[0, -1] == pytest.approx(losses.mean(axis=1).sum() - losses.sum(axis=0).min())
    assert uniform.shares.sum(axis=2) == pytest.approx(np.ones_like(uniform.shares[:, :, 0]))


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_can_be_replayed(name: str) -> None:
    losses, landed, times = data(n=100)
    replays = play(BASELINES[name], losses, landed, times, [0], wait=Wait(5.0))
    assert replays.regret.shape == (1, replays.checkpoints.size)
    assert replays.shares.shape == (1, replays.checkpoints.size, 3)


def test_a_wait_of_a_moment_makes_everything_the_default() -> None:
    losses, landed, tied = data()
    times = np.arange(400.0)
    landed += (times - tied)[:, None]
    replays = play(Simple(), losses, landed, times, [0], wait=Wait(1e-9, 0.0))
    uniform = play(lambda k, seed: UniformRandom(k, seed=seed), losses, landed, times, [0])
    assert replays.total.tolist() == [0]
    assert replays.regret[0, -1] == pytest.approx(uniform.regret[0, -1])  # nothing was learned: every loss was 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"losses": np.full((400, 3), 1.5)}, r"every loss must lie in \[0, 1\], got 1.5 in round 1"),
        ({"losses": np.zeros((400, 2))}, r"losses and landed must be \(rounds, arms\)"),
        ({"times": -np.arange(400.0)}, "must not decrease, got -1.0 in round 2"),
        ({"landed": np.full((400, 3), -1.0)}, "landed must not be before its round's time, got -1.0 in round 1"),
        ({"landed": np.full((400, 3), math.nan)}, "got nan in round 1"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "seed must be a whole number"),
        ({"checkpoints": [401]}, "a checkpoint must be a whole number from 1 to 400"),
        ({"player": "shadow"}, "cannot play 'shadow'"),
    ],
)
def test_what_cannot_be_played_is_refused(change: dict[str, Any], message: str) -> None:
    losses, landed, times = data()
    arguments: dict[str, Any] = {"player": Shadow(), "losses": losses, "landed": landed, "times": times, "seeds": [0]}
    with pytest.raises(InvalidInput, match=message):
        play(**(arguments | change))


@pytest.mark.parametrize("settings", [(0.0,), (-1.0,), (math.inf,), (1.0, 1.5), ("1",)])
def test_waits_are_checked(settings: Any) -> None:
    with pytest.raises(InvalidInput):
        Wait(*settings)
