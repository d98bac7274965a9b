"""What the seed fixes: the places of the arms, the means, and that a rule gives the same again."""

import math
from collections.abc import Generator, Iterator

import numpy as np
import pytest

from belated import Decision, baselines, lab
from belated.errors import InvalidInput
from belated.tunings import Shadow, Simple
from tests.lab.test_problems import DELAYS, LOSSES, Odd, matrix


def means_of(losses: lab.Losses, seed: int = 1, k: int = 4, n: int = 3000, d: int = 25) -> np.ndarray:
    problem = lab.Problem(losses, lab.Fixed(d), k, n)
    blocks = problem.mean_blocks(seed, problem.draw_delays(seed))
    assert blocks is not None
    return np.vstack(list(blocks))


PLACED: dict[str, lab.Losses] = {  # one arm stands out
    "bernoulli": lab.Bernoulli(gap=0.5),
    "constrained": lab.Constrained(gap=0.5),
    "shifting": lab.Shifting(gap=0.5, phases=1),
    "comeback": lab.Comeback(),
    "wave": lab.Wave(half_period=200),
    "noisy wave": lab.Wave(half_period=200, strength=0.9),
    "sine": lab.Sine(period=1000.0),
    "shuffled": lab.Shuffled(lab.GivenLosses(np.tile([0.0, 1.0, 1.0], (300, 1)))),
}


@pytest.mark.parametrize("name", PLACED)
def test_no_arm_is_better_because_of_its_number(name: str) -> None:
    """Each of three arms is the best in a third of the seeds. In 240 seeds, 4.5 standard deviations are 33."""
    best = [int(matrix(PLACED[name], seed=seed, k=3, n=300).sum(axis=0).argmin()) for seed in range(240)]
    assert np.abs(np.bincount(best, minlength=3) - 80).max() < 33


def test_a_policy_that_prefers_low_numbers_does_not_win() -> None:
    def first_arm(n_arms: int, seed: int) -> baselines.OneArm:
        return baselines.OneArm(n_arms, 0, seed=seed)

    for losses in (lab.Bernoulli(gap=0.5), lab.Comeback()):
        regret = lab.play(first_arm, lab.Problem(losses, lab.NoDelay(), 2, 300), range(40)).suffered[:, -1]
        assert 4 <= np.count_nonzero(regret > 50) <= 36


@pytest.mark.parametrize("name", LOSSES)
def test_means_are_those_of_the_losses(name: str) -> None:
    """Over 400 seeds, sums of losses less their means have no bias, in each arm and third of the game."""
    off = (
        [matrix(LOSSES[name], seed, n=60, d=3) - means_of(LOSSES[name], seed, n=60, d=3) for seed in range(400)]
        if name != "given"
        else [matrix(LOSSES[name]) - means_of(LOSSES[name])]
    )
    sums = np.array(off).reshape(len(off), 3, -1, 4).sum(axis=2)
    error = np.sqrt((sums**2).sum(axis=0)) + 1e-9
    assert (np.abs(sums.sum(axis=0)) < 4.5 * error).all()
    means = means_of(LOSSES[name], n=60, d=3)
    assert means.shape == (60, 4)
    assert ((means >= 0) & (means <= 1)).all()


def test_means_follow_the_seed() -> None:
    """The long average of the losses of one seed is near the means of that seed."""
    for losses in (lab.Bernoulli(gap=0.5), lab.Constrained(gap=0.5), lab.Shifting(0.5, 4), lab.Wave(3000, 0.8)):
        for seed in range(3):
            gap = matrix(losses, seed, n=8000) - means_of(losses, seed, n=8000)
            assert np.abs(gap.reshape(4, 2000, 4).mean(axis=1)).max() < 4.5 * 0.5 / math.sqrt(2000)


def test_means_of_a_rule_that_does_not_say_them_are_unknown() -> None:
    problem = lab.Problem(Odd(np.zeros((20, 4))), lab.NoDelay(), 4, 20)
    assert problem.mean_blocks(1, problem.draw_delays(1)) is None
    shuffled = lab.Problem(lab.Shuffled(Odd(np.zeros((20, 4)))), lab.NoDelay(), 4, 20)
    assert shuffled.mean_blocks(1, shuffled.draw_delays(1)) is None


class Rising(lab.CoinFlips):
    """A rule that says its means only."""

    def mean_blocks(
        self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator
    ) -> Iterator[np.ndarray]:
        for start, stop in lab.spans(n_rounds, n_arms):
            yield np.tile(np.arange(start, stop)[:, None] / n_rounds, n_arms)


def test_a_rule_of_means_flips_coins() -> None:
    losses = matrix(Rising(), n=9000)
    assert set(losses.ravel()) == {0, 1}
    np.testing.assert_allclose(losses.reshape(3, 12_000).mean(axis=1), [1 / 6, 1 / 2, 5 / 6], atol=0.02)


class Walking(lab.CoinFlips):
    """Draws the means of a block when the coins of the one before are flipped."""

    def mean_blocks(
        self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator
    ) -> Iterator[np.ndarray]:
        for _ in range(n_rounds):
            yield generator.random((1, n_arms))


def test_means_that_the_coins_would_change_are_refused() -> None:
    """Pseudo-regret would be that of other means."""
    with pytest.raises(InvalidInput, match=r"Walking\(.*\) differ if coins are flipped in between\. Draw whatever"):
        lab.play("uniform", lab.Problem(Walking(), lab.NoDelay(), 3, 20), 1)
    assert lab.play("uniform", lab.Problem(Walking(), lab.NoDelay(), 3, 1), 1).is_whole


def is_prefix(problem: lab.Problem, longer: lab.Problem) -> bool:
    """Whether the short game is the first part of the longer one, for the same seed."""
    delays, more = problem.draw_delays(4), longer.draw_delays(4)
    losses = [np.vstack(list(one.loss_blocks(4, given))) for one, given in ((problem, delays), (longer, more))]
    n = problem.n_rounds
    return bool((delays == more[:n]).all() and (losses[0] == losses[1][:n]).all())


def test_what_depends_on_the_horizon_says_so() -> None:
    """A shorter game is the beginning of a longer one unless the problem says that it depends on the horizon."""
    for losses in LOSSES.values():
        for delays in (*DELAYS.values(), lab.Replicated(lab.Fixed(3), replicas=1)):
            short, long = (lab.Problem(losses, delays, 4, n) for n in (400, 1100))
            if not short.depends_on_horizon and delays != DELAYS["replicated"]:  # which draws its delays in two turns
                assert is_prefix(short, long), short
    for problem in (
        lab.Problem(lab.Shifting(), lab.NoDelay(), 4, 400),
        lab.Problem(lab.Comeback(), lab.NoDelay(), 4, 400),
        lab.Problem(lab.Shuffled(lab.Comeback()), lab.NoDelay(), 4, 400),
        lab.Problem(lab.Bernoulli(), lab.Unbalanced(), 4, 400),
        lab.Problem(lab.Bernoulli(), lab.Lagged(lab.Held(), lag=3), 4, 400),
        lab.Problem(lab.Bernoulli(), lab.Replicated(lab.Held(), replicas=1), 4, 400),
        lab.Problem(lab.Bernoulli(), lab.Permuted(lab.Bursts()), 4, 400),
        lab.Problem(lab.Wave(), lab.GivenDelays(np.append(np.zeros(400, int), np.full(900, 7))), 4, 400),
        lab.Problem(lab.Shuffled(lab.Sine()), lab.GivenDelays(np.append(np.zeros(400, int), np.full(900, 7))), 4, 400),
    ):
        assert problem.depends_on_horizon
        assert not is_prefix(problem, lab.Problem(problem.losses, problem.delays, 4, 1100)), problem


class Counting(lab.Losses):
    """Other losses every time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        self.asked += 1
        yield np.full((n_rounds, n_arms), 1 / self.asked)


class Adaptive(lab.Losses):
    """Losses that depend on the arm that a learner has played last."""

    def __init__(self) -> None:
        self.played = [0]

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        for _ in range(n_rounds):
            yield (np.arange(n_arms) == self.played[-1])[None].astype(float)


class Drifting(lab.Delays):
    """Other delays every time that it is asked."""

    asked = 0

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> np.ndarray:
        self.asked += 1
        return np.full(n_rounds, self.asked)


class Restless(lab.Feedback):
    """Other delays by arm every time that it is asked."""

    asked = 0

    def blocks(
        self, losses: Iterator[np.ndarray], n_arms: int, n_rounds: int, generator: np.random.Generator
    ) -> Iterator[lab.Reports]:
        self.asked += 1
        for block in losses:
            yield lab.Reports(np.full(block.shape, self.asked), block)


def steady(n_arms: int, n_rounds: int, _: np.random.Generator) -> Generator[list[float], int, None]:
    for _round in range(n_rounds):
        yield [0.5] * n_arms


STEADY = lab.Reacting(steady)
LOST = lab.LostByArm(lab.Fixed(3), [0.1, 0.1])


def test_what_the_seed_does_not_fix_is_refused() -> None:
    adaptive = Adaptive()

    class Telling:
        n_arms, round = 2, 0

        def ask(self) -> Decision:
            self.round += 1
            adaptive.played.append(self.round % 2)
            return Decision(self.round, self.round % 2, 0.5)

        def tell(self, decision: Decision | int, loss: float) -> None:
            pass

    for player, losses, delays, what in (
        (Simple(), Counting(), lab.NoDelay(), "losses"),
        (Simple(), lab.Shuffled(Counting()), lab.NoDelay(), "losses"),
        (lambda _k, _seed: Telling(), adaptive, lab.NoDelay(), "losses"),
        (Simple(), lab.Wave(5), Drifting(), "delays"),
        (Simple(), lab.Wave(5), lab.Lagged(Drifting()), "delays"),
        (Simple(), Counting(), LOST, "losses"),  # compiled
        (Shadow(), lab.Shuffled(Counting()), LOST, "losses"),
        (lambda _k, _seed: Telling(), adaptive, LOST, "losses"),  # a step at a time
        (Simple(), lab.Wave(5), lab.PositivesOnly(Drifting()), "delays"),
        (lambda _k, _seed: Telling(), lab.Wave(5), Restless(), "delays"),
        (Simple(), STEADY, Drifting(), "delays"),
    ):
        with pytest.raises(InvalidInput, match=f"gave other {what} when it was asked again.*lab.Reacting"):
            lab.play(player, lab.Problem(losses, delays, 2, 20), [3])  # type: ignore[arg-type]
