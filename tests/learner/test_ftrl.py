"""FTRL itself, with construction, batches, refresh, the coming distribution and the exact reductions."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, Decision, kernels
from belated.errors import InvalidInput
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Means, Simple, Tuning
from tests.support.catalogue import TUNINGS
from tests.support.oracles import TsallisInf, play


@pytest.mark.parametrize("arms", [0, -1, 2.0, "3", None, True, 10**20])
def test_arms_must_be_a_positive_integer(arms: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^arms must be a (whole )?number"):
        FTRL(arms)


@pytest.mark.parametrize("seed", [-1, 1.5, "abc", [1], True])
def test_seed_must_be_a_natural_number(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed must be a whole number >= 0, got"):
        FTRL(3, seed=seed)


@pytest.mark.parametrize(
    ("name", "value"), [("refresh", 0), ("refresh", 1.5), ("tuning", "advanced"), ("tuning", Simple)]
)
def test_other_settings_are_checked(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be"):
        FTRL(3, **{name: value})


@pytest.mark.parametrize("size", [-1, 2.5, "3", True, 10**20])
def test_a_bad_batch_size_is_refused(size: Any) -> None:
    learner = FTRL(3, seed=1)
    with pytest.raises(InvalidInput, match="size must be a whole number from 0"):
        learner.ask(size)
    assert learner.round == 0


@pytest.mark.parametrize("tuning", [Advanced()])
@pytest.mark.parametrize("k", [2])
def test_without_delay_it_is_tsallis_inf(k: int, tuning: Simple) -> None:
    """tests/system/learner has more arms and tunings."""
    assert_it_is_tsallis_inf(k, tuning)


def assert_it_is_tsallis_inf(k: int, tuning: Simple) -> None:
    """Identical decisions and probabilities, from the same estimates in every round.

    A free run is compared over 300 rounds only. Tsallis-INF is chaotic. A difference in the last bit of an estimate
    grows to 1e-4 within 800 rounds, even between two runs of the reference.
    """
    losses = np.random.default_rng(k).random((2000, k))
    follower, free, learner = TsallisInf(k, seed=9), TsallisInf(k, seed=9), FTRL(k, tuning, seed=9)
    for t in range(2000):
        follower.losses = learner.status.estimated_losses
        np.testing.assert_allclose(learner.distribution(), follower.weights(), rtol=1e-13)
        decision = learner.ask()
        arm, probability = follower.play(losses[t].tolist())
        assert decision.arm == arm
        assert decision.probability == pytest.approx(probability, rel=1e-13)
        if t < 300:
            assert free.play(losses[t].tolist()) == pytest.approx((arm, probability), rel=1e-7)
        learner.tell(decision.round, float(losses[t, arm]))
        np.testing.assert_allclose(learner.status.estimated_losses, follower.losses, rtol=1e-13)
    assert learner.status.backlog == 0


@pytest.mark.parametrize(("tuning", "eta"), [(Exp3(0.1), lambda _t, _d: 0.1), (AdaptiveExp3(), None)])
def test_with_alpha_0_it_is_exponential_weights(tuning: Exp3, eta: Any) -> None:
    k = 6
    eta = eta or (lambda t, d: math.sqrt(math.log(k) / (k * t + 2 * d)))
    learner, losses, delays = FTRL(k, tuning, seed=4), np.random.default_rng(4).random((500, k)), [3] * 500
    play(learner, delays, losses)
    weights = np.exp(
        -eta(501, learner.status.backlog + learner.outstanding)
        * (learner.status.estimated_losses - learner.status.estimated_losses.min())
    )
    np.testing.assert_allclose(learner.distribution(), weights / weights.sum(), rtol=1e-12)


def test_one_arm() -> None:
    learner = FTRL(1, seed=1)
    assert {decision[1:] for decision in (*learner.ask(5), learner.ask())} == {(0, 1.0)}
    learner.tell(3, 1.0)
    assert learner.distribution().tolist() == [1.0]


def test_a_million_arms() -> None:
    learner = FTRL(1_000_000, seed=1, refresh=100)
    for decision in learner.ask(1000):
        learner.tell(decision.round, 1.0)
    x = learner.distribution()
    assert x.shape == (1_000_000,)
    assert abs(x.sum() - 1) < 1e-12
    decision = learner.ask()
    assert decision.probability == x[decision.arm]


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("refresh", [1, 5])
def test_the_coming_distribution_is_the_one_sampled_and_looking_changes_nothing(name: str, refresh: int) -> None:
    looked, blind = (FTRL(7, TUNINGS[name], seed=3, refresh=refresh) for _ in range(2))
    for t in range(1, 200):
        x = looked.distribution()
        decision = looked.ask()
        assert decision.probability == x[decision.arm]
        assert decision == blind.ask()
        if t > 9:
            for learner in (looked, blind):
                learner.tell(t - 9, 0.6)


def gained_from_the_first(tuning: Tuning) -> tuple[Decision, NDArray[np.float64]]:
    """What a late report of the first decision, a loss of 0.8, adds to the estimates."""
    learner = FTRL(3, tuning, seed=1)
    first = learner.ask()
    for _ in range(500):  # the distribution moves far away before the first report comes
        decision = learner.ask()
        learner.tell(decision.round, 1.0 if decision.arm == first.arm else 0.0)
    assert learner.distribution()[first.arm] < 0.1
    before = learner.status.estimated_losses
    learner.tell(first.round, 0.8)
    return first, learner.status.estimated_losses - before


@pytest.mark.parametrize("name", [name for name in TUNINGS if not isinstance(TUNINGS[name], Means)])
def test_the_weight_uses_the_probability_at_action_time(name: str) -> None:
    if TUNINGS[name].discard:
        return  # it throws the report away
    first, gained = gained_from_the_first(TUNINGS[name])
    assert gained[first.arm] == pytest.approx(0.8 / first.probability, rel=1e-9)
    assert np.count_nonzero(gained) == 1


def test_on_means_the_weight_and_the_centre_are_those_at_action_time() -> None:
    """The centre is 1/2, because nothing was reported then. All arms gain it."""
    first, gained = gained_from_the_first(Means())
    expected = np.full(3, 0.5)
    expected[first.arm] += 0.3 / first.probability
    np.testing.assert_allclose(gained, expected, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 13])
def test_a_batch_is_single_decisions_with_a_refresh_of_its_size(size: int) -> None:
    batched, single = FTRL(6, seed=8), FTRL(6, seed=8, refresh=size)
    for _ in range(40):
        decisions = batched.ask(size)
        assert decisions == [single.ask() for _ in range(size)]
        assert len({decision.probability for decision in decisions}) <= 6
        for decision in decisions[::2]:
            for learner in (batched, single):
                learner.tell(decision.round, 0.8)
    assert batched.certificate() == single.certificate()
    assert batched.ask(0) == []


def test_single_decisions_and_batches_draw_from_one_stream() -> None:
    mixed, single = (FTRL(6, seed=8, refresh=1000) for _ in range(2))
    decisions = [mixed.ask(), *mixed.ask(3), mixed.ask(), *mixed.ask(300), mixed.ask()]
    assert decisions == [single.ask() for _ in range(306)]


def test_refresh_holds_the_distribution() -> None:
    learner = FTRL(4, seed=2, refresh=10)
    solves = []
    for _ in range(100):
        learner.tell(learner.ask().round, 1.0)
        solves.append(int(learner._state.clock["solves"][0]))
    assert solves == [1 + t // 10 for t in range(100)]
    for size, solves_then in [(3, 11), (8, 11), (1, 12), (25, 12), (1, 13)]:  # after 3 + 8 >= 10 decisions, not before
        learner.ask(size)
        assert int(learner._state.clock["solves"][0]) == solves_then


def test_discarding_ignores_the_feedback_of_skipped_rounds_only() -> None:
    """With k = 8, Algorithm 2 skips round 1 when it is outstanding at age 1."""
    for discard in (False, True):
        learner = FTRL(8, Advanced(discard=discard), seed=1)
        learner.ask()
        for _ in range(3):
            learner.tell(learner.ask().round, 0.0)
        learner.tell(1, 1.0)
        assert bool(learner.status.estimated_losses.sum() == 0.0) is discard
        learner.tell(learner.ask().round, 1.0)
        assert learner.status.estimated_losses.sum() > 0
        assert learner.outstanding == 0


def test_repr_says_where_it_stands() -> None:
    learner = FTRL(3, Simple(scale=2.0), seed=1)
    learner.ask(4)
    learner.tell(2, 0.5)
    assert repr(learner) == "FTRL(arms=3, tuning=Simple(scale=2.0), refresh=1): round 4, 3 outstanding"


def test_probabilities_never_vanish_where_they_are_drawn() -> None:
    """One arm always loses for 100,000 rounds without delay. Its probability falls and stays exact."""
    learner = FTRL(2, seed=1)
    for _ in range(100_000):
        decision = learner.ask()
        learner.tell(decision.round, float(decision.arm))
    x = learner.distribution()
    assert 0 < x[1] < 1e-3
    assert x.sum() == pytest.approx(1.0, abs=1e-15)
    assert -0.5 * math.log(x[1]) < kernels.V_MAX
