"""Blocks in which nothing is known in time, and what they cost every algorithm."""

import numpy as np
import pytest

from belated import bounds, lab
from belated.paper import Effort
from belated.paper.claims.conjectures import ORDERS, tightness
from belated.paper.orders import Blocks, block_lengths, must_lose
from belated.tunings import Advanced, Exp3, Tsallis


def test_no_report_of_a_block_comes_before_its_end_and_no_block_could_be_longer() -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        delays = generator.integers(0, int(generator.choice([2, 6, 40])), int(generator.integers(1, 40)))
        start = 0
        for length in block_lengths(delays).tolist():
            rounds = np.arange(start, start + length)
            assert (rounds + delays[rounds] >= start + length - 1).all()  # known only after the last round of the block
            is_last = start + length == delays.size
            assert is_last or (rounds + delays[rounds] < start + length).any()  # or one more round would fit
            start += length
        assert start == delays.size


@pytest.mark.parametrize("delay", [0, 3, 20])
def test_equal_blocks_cost_what_the_exact_formula_says(delay: int) -> None:
    n = 50 * (delay + 1)
    lengths = block_lengths(np.full(n, delay))
    assert lengths.tolist() == [delay + 1] * 50
    samples = must_lose(4, lengths, 20_000, np.random.default_rng(2))
    error = samples.std() / np.sqrt(samples.size)
    assert abs(samples.mean() - bounds.lower_bound_uniform_delay(4, n, delay)) < 5 * error


@pytest.mark.parametrize("tuning", [Advanced(), Tsallis(), Exp3(0.05)])
def test_every_algorithm_loses_the_same_on_the_blocks(tuning: object) -> None:
    delays = np.sort(np.random.default_rng(3).geometric(0.05, 600))[::-1]
    lengths = block_lengths(delays)
    problem = lab.Problem(Blocks(lengths), lab.GivenDelays(delays), 3, 600)
    lost = lab.play(tuning, problem, range(400), checkpoints=[600], workers=2).expected[:, -1]  # type: ignore[arg-type]
    expected = must_lose(3, lengths, 20_000, np.random.default_rng(4)).mean()
    assert abs(lost.mean() - expected) < 5 * lost.std() / np.sqrt(400)


def test_the_order_of_the_delays_matters() -> None:
    shares = {order: tightness("Pareto 0.5", order, 8_000, Effort()).share for order in ORDERS}
    assert shares["longest first"] > 3 * shares["random order"]
