"""The O(1) clock counts outstanding rounds like Algorithm 2 as the paper writes it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from belated import FTRL, bounds
from belated.paper.algorithm_2 import algorithm_2
from belated.tunings import Advanced, Simple, outstanding_counts, schedule

ARMS = st.sampled_from([2, 3, 4, 8, 20, 100, 1000])
DELAYS = st.lists(st.integers(0, 60), min_size=1, max_size=60) | st.lists(st.integers(0, 3), min_size=1, max_size=60)


def random_delays(generator: np.random.Generator) -> NDArray[np.int64]:
    n = int(generator.integers(1, 70))
    match generator.integers(4):
        case 0:
            return generator.integers(0, generator.integers(1, n + 2), n)
        case 1:
            return generator.geometric(generator.uniform(0.02, 0.9), n) - 1
        case 2:
            return (generator.pareto(0.5, n)).clip(max=1e6).astype(np.int64)
        case _:
            return np.where(generator.random(n) < 0.2, 10**6, generator.integers(0, 3, n))


def test_equals_the_literal_algorithm_2_on_hundreds_of_sequences() -> None:
    """tests/system/kernels tries thousands."""
    assert_equals_the_literal_algorithm_2(sequences=300)


def assert_equals_the_literal_algorithm_2(sequences: int) -> None:
    """Backlog, skipped rounds and beta are those of the paper's pseudo-code."""
    generator = np.random.default_rng(0)
    for _ in range(sequences):
        delays, k = random_delays(generator), int(generator.choice([2, 3, 5, 8, 30, 200]))
        literal = algorithm_2(k, delays.tolist())
        fast = schedule(Advanced(), k, delays)
        assert fast.backlog.tolist() == literal.backlog
        assert {s for s, t in enumerate(fast.skipped_in.tolist(), 1) if t} == literal.skipped
        np.testing.assert_array_equal(fast.beta, np.sqrt(np.array(literal.backlog) / math.log(k)))


def test_the_learner_equals_the_literal_algorithm_2() -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        delays, k = random_delays(generator), int(generator.choice([2, 3, 8, 30]))
        learner = FTRL(k, Advanced(), seed=1)
        backlog = []
        due: dict[int, list[int]] = {}
        for t, delay in enumerate(delays.tolist(), 1):
            learner.ask()
            backlog.append(learner.status.backlog)
            due.setdefault(t + delay, []).append(t)
            for s in generator.permutation(due.pop(t, [])).tolist():  # the order of reports does not matter
                learner.tell(s, 0.5)
            assert learner.outstanding == np.count_nonzero(np.arange(1, t + 1) + delays[:t] > t)
        assert backlog == algorithm_2(k, delays.tolist()).backlog


@pytest.mark.parametrize(("k", "delays"), [(8, (1, 1, 0)), (3, (1, 0)), (100, (1, 0))])
def test_the_small_instances_on_which_the_paper_is_read_carefully(k: int, delays: tuple[int, ...]) -> None:
    literal = algorithm_2(k, delays)
    assert schedule(Advanced(), k, delays).backlog.tolist() == literal.backlog
    assert 1 in literal.skipped  # for k >= 3 the first outstanding round is skipped at age 1


@settings(max_examples=300, deadline=None)
@given(ARMS, DELAYS)
def test_invariants_of_every_delay_sequence(k: int, delays: list[int]) -> None:
    waits = bounds.clip(delays)
    assert outstanding_counts(waits).sum() == waits.sum()  # sum of o_t = D
    assert schedule(Simple(), k, delays).backlog[-1] == waits.sum()

    literal = algorithm_2(k, delays)
    assert all(len(new) <= 1 for new in literal.new_skips)  # at most one new skip a round
    backlog, n, log_k = literal.backlog[-1], len(delays), math.log(k)
    assert len(literal.skipped) <= 2 * math.sqrt(backlog * log_k) + 1e-9
    u, m = math.sqrt(backlog * log_k), bounds.best_skipping(k, delays).value
    certificate = bounds.uncapped_certificate(k, np.array(delays), Advanced())
    assert certificate <= 4 * math.sqrt(k * n) + 3 * u + 1e-9
    assert u <= m + log_k + 1e-9
    assert bounds.theorem_2_sharp(k, delays) <= bounds.theorem_2(k, delays) + 3 * log_k


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10), DELAYS, st.integers(2, 60))
def test_a_prefix_of_a_longer_game_is_the_same_game(k: int, delays: list[int], more: int) -> None:
    longer = delays + [0] * more
    short, long = (schedule(Advanced(), k, sequence) for sequence in (delays, longer))
    np.testing.assert_array_equal(short.beta, long.beta[: len(delays)])


def test_the_ledger_keeps_only_what_waits() -> None:
    learner = FTRL(3, seed=1)
    for _ in range(200):
        learner.ask()  # never reported
    for _ in range(20_000):
        learner.tell(learner.ask().round, 0.5)
    assert learner.outstanding == 200
    assert learner._state.ledger.size < 1000  # it grows only while less than a quarter is free
    learner.tell(1, 0.3)
    learner.tell(150, 0.3)
    assert learner.outstanding == 198
