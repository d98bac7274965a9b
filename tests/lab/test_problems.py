"""Every rule of losses and delays matches its description."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars
import pytest

from belated import lab
from belated.baselines import BOLD
from belated.errors import GameError, InvalidInput
from belated.tunings import Means, Shadow, Simple

LOSSES: dict[str, lab.Losses] = {
    "bernoulli": lab.Bernoulli(gap=0.2),
    "bernoulli, given means": lab.Bernoulli(means=[0.2, 0.7, 0.1, 0.4]),
    "constrained": lab.Constrained(),
    "shifting": lab.Shifting(gap=0.4, phases=4),
    "comeback": lab.Comeback(after=0.3),
    "wave": lab.Wave(),
    "noisy wave": lab.Wave(half_period=60, strength=0.6),
    "sine": lab.Sine(),
    "coins": lab.BlockCoins(),
    "given": lab.GivenLosses(np.random.default_rng(1).random((3000, 4))),
    "shuffled": lab.Shuffled(lab.Bernoulli(means=[0.2, 0.7, 0.1, 0.4])),
}
DELAYS: dict[str, lab.Delays] = {
    "none": lab.NoDelay(),
    "fixed": lab.Fixed(7),
    "uniform": lab.Uniform(30),
    "geometric": lab.Geometric(20.0),
    "pareto": lab.Pareto(),
    "lost": lab.Lost(0.1, 5),
    "bursts": lab.Bursts(50),
    "unbalanced": lab.Unbalanced(),
    "held": lab.Held(),
    "permuted": lab.Permuted(lab.Unbalanced()),
    "lagged": lab.Lagged(lab.Lost(0.1, 5), lag=9),
    "replicated": lab.Replicated(lab.Geometric(20.0), replicas=3, lag=40),
    "given": lab.GivenDelays(np.array([1, 2, 1, 0, 3, 0, 2])),
}


def matrix(losses: lab.Losses, seed: int = 1, k: int = 4, n: int = 3000, d: int = 25) -> np.ndarray:
    problem = lab.Problem(losses, lab.Fixed(d), k, n)
    return np.vstack(list(problem.loss_blocks(seed, problem.draw_delays(seed))))


def ordered(losses: np.ndarray, *rows: int) -> np.ndarray:
    """The arms in the order of their losses in these rows."""
    return losses[:, np.argsort(losses[list(rows)].sum(axis=0), kind="stable")]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_fill_the_game_lie_in_range_and_repeat(name: str) -> None:
    first = matrix(LOSSES[name])
    assert first.shape == (3000, 4)
    assert ((first >= 0) & (first <= 1)).all()
    np.testing.assert_array_equal(first, matrix(LOSSES[name]))
    if name in ("bernoulli", "constrained", "shifting", "noisy wave", "coins"):
        assert (first != matrix(LOSSES[name], seed=2)).any()


def test_a_long_game_comes_in_small_blocks() -> None:
    for losses in (lab.Bernoulli(), lab.Constrained(), lab.Wave(), lab.Sine(), lab.BlockCoins()):
        problem = lab.Problem(losses, lab.Fixed(100), 10, 200_000)
        sizes = [block.nbytes for block in problem.loss_blocks(1, problem.draw_delays(1))]
        assert max(sizes) <= 2**21
        assert sum(sizes) == 8 * 10 * 200_000


def test_shifting_means() -> None:
    losses = matrix(lab.Shifting(gap=0.4, phases=4), n=40_000)
    means = losses.reshape(4, 10_000, 4).mean(axis=1)
    np.testing.assert_allclose(np.sort(means, axis=1), [[0.1, 0.5, 0.5, 0.5]] * 4, atol=4.5 * 0.5 / 100)
    assert len({int(row.argmin()) for row in means}) > 1


def test_a_comeback_swaps_once() -> None:
    losses = ordered(matrix(lab.Comeback(after=0.3)), -1)
    assert (losses[:900] == [1, 0, 0, 0]).all()
    assert (losses[900:] == [0, 1, 1, 1]).all()


def test_a_weak_wave_is_coin_flips_around_the_wave() -> None:
    losses = ordered(matrix(lab.Wave(half_period=10_000, strength=0.6), n=20_000), *range(10_000))
    means = losses.reshape(2, 10_000, 4).mean(axis=1)
    np.testing.assert_allclose(means, [[0.2, 0.2, 0.8, 0.8], [0.8, 0.8, 0.2, 0.2]], atol=4.5 * 0.5 / 100)


def test_bernoulli_means() -> None:
    means = matrix(lab.Bernoulli(gap=0.3, mean=0.6), n=40_000).mean(axis=0)
    np.testing.assert_allclose(np.sort(means), [0.3, 0.6, 0.6, 0.6], atol=4.5 * 0.5 / 200)
    means = matrix(lab.Bernoulli(means=np.array([0.3, 0.1, 0.9, 0.0])), n=40_000).mean(axis=0)
    np.testing.assert_allclose(means, [0.3, 0.1, 0.9, 0.0], atol=4.5 * 0.5 / 200)


def test_constrained_keeps_the_gap_while_the_means_jump() -> None:
    losses = matrix(lab.Constrained(gap=0.2, growth=2.0), n=2**15 - 1)
    losses = ordered(losses, *range(losses.shape[0]))
    phases = [losses[2**j - 1 : 2 ** (j + 1) - 1] for j in range(10, 15)]
    for j, phase in zip(range(10, 15), phases, strict=True):
        expected = [0.8, 1, 1, 1] if j % 2 else [0, 0.2, 0.2, 0.2]
        np.testing.assert_allclose(phase.mean(axis=0), expected, atol=4.5 * 0.5 / math.sqrt(len(phase)))


def test_the_wave_swaps_halves_every_two_delays() -> None:
    losses = ordered(matrix(lab.Wave(), d=25, n=200), 0)
    assert losses[:50].tolist() == [[0, 0, 1, 1]] * 50
    assert losses[50:100].tolist() == [[1, 1, 0, 0]] * 50
    assert ordered(matrix(lab.Wave(half_period=3), n=6), 0)[:, 0].tolist() == [0, 0, 0, 1, 1, 1]


def test_the_sine_is_a_sine() -> None:
    losses = matrix(lab.Sine(period=8.0), n=8)
    assert sorted(losses[0]) == pytest.approx([0.0, 0.5, 0.5, 1.0])
    turns = np.arcsin(np.clip(2 * losses[[0, 2]] - 1, -1, 1))  # two rounds are a quarter of a turn
    np.testing.assert_allclose(np.sin(turns[0]) ** 2 + np.sin(turns[1]) ** 2, 1)
    angles = np.sort(np.arctan2(np.sin(turns[0]), np.sin(turns[1])))
    np.testing.assert_allclose(np.diff(angles), np.pi / 2)  # the arms are a quarter of a turn apart


def test_coins_are_shared_within_blocks() -> None:
    losses = matrix(lab.BlockCoins(), d=9, n=3000)
    for block in np.split(losses, 300):
        assert (block == block[0]).all()
    assert abs(losses[::10].mean() - 0.5) < 4.5 * 0.5 / math.sqrt(1200)


def draw(delays: lab.Delays, n: int = 2000, k: int = 4) -> np.ndarray:
    return lab.Problem(lab.Wave(), delays, k, n).draw_delays(3)


@pytest.mark.parametrize("name", DELAYS)
def test_delays_are_whole_and_repeat(name: str) -> None:
    first = draw(DELAYS[name])
    assert first.shape == (2000,)
    assert first.dtype == np.int64
    assert first.min() >= 0
    np.testing.assert_array_equal(first, draw(DELAYS[name]))


def test_delays_are_what_they_say() -> None:
    assert set(draw(lab.NoDelay())) == {0}
    assert set(draw(lab.Fixed(7))) == {7}
    assert set(draw(lab.Uniform(3))) == {0, 1, 2, 3}
    assert draw(lab.Geometric(20.0), n=50_000).mean() == pytest.approx(20, abs=4.5 * 21 / math.sqrt(50_000))
    assert np.mean(draw(lab.Pareto(0.5), n=50_000) >= 3) == pytest.approx(0.5, abs=0.02)  # (1 + 3)^-1/2
    lost = draw(lab.Lost(0.1, 5), n=10_000)
    assert set(lost) == {5, lab.NEVER}
    assert np.mean(lost == lab.NEVER) == pytest.approx(0.1, abs=0.02)
    assert set((np.arange(1, 2001) + draw(lab.Bursts(50))) % 50) == {0}
    held = math.floor(math.sqrt(4 * 2000 / math.log(4)))
    unbalanced = draw(lab.Unbalanced())
    assert (np.arange(1, held + 1) + unbalanced[:held] == 2000).all()
    assert not unbalanced[held:].any()
    late = draw(lab.Held(share=0.05, until=0.5))
    assert (np.arange(100) + late[:100] == 1000).all()
    assert not late[100:].any()
    permuted = draw(lab.Permuted(lab.Unbalanced()))
    assert sorted(permuted) == sorted(unbalanced)
    assert (permuted != unbalanced).any()
    assert draw(lab.GivenDelays(np.array([1, 0, 5])), n=5).tolist() == [1, 0, 5, 1, 0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_files(tmp_path: Path, ending: str) -> None:
    losses = np.random.default_rng(1).random((50, 3))
    delays = np.arange(50) % 4
    paths = tmp_path / f"losses.{ending}", tmp_path / f"delays.{ending}"
    if ending == "npy":
        np.save(paths[0], losses)
        np.save(paths[1], delays)
    else:
        for path, table in zip(paths, [polars.DataFrame(losses), polars.DataFrame({"delay": delays})], strict=True):
            getattr(table, f"write_{ending}")(path)
    problem = lab.Problem(lab.LossesFile(paths[0]), lab.DelaysFile(paths[1]), 3, 50)
    np.testing.assert_allclose(np.vstack(list(problem.loss_blocks(1, problem.draw_delays(1)))), losses, rtol=1e-15)
    assert problem.draw_delays(1).tolist() == delays.tolist()


def test_a_file_may_begin_with_many_whole_numbers(tmp_path: Path) -> None:
    """Clicks are 0 and 1 for a long time, and then a loss between them comes."""
    (tmp_path / "losses.csv").write_text("a,b\n" + "0,1\n" * 2000 + "0.25,0.5\n")
    (tmp_path / "delays.csv").write_text("delay\n" + "3\n" * 2000 + "4.0\n")
    problem = lab.Problem(lab.LossesFile(tmp_path / "losses.csv"), lab.DelaysFile(tmp_path / "delays.csv"), 2, 2001)
    delays = problem.draw_delays(1)
    assert delays.tolist() == [3] * 2000 + [4]
    assert np.vstack(list(problem.loss_blocks(1, delays)))[-2:].tolist() == [[0, 1], [0.25, 0.5]]


def test_other_wrong_arguments_are_refused() -> None:
    problem, certify = lab.Problem(lab.Bernoulli(), lab.Fixed(2), 3, 20), cast("Any", lab.certify)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: certify(lambda k, seed: BOLD(k, seed=seed), problem, 1), "has no certificate. lab.certify is for"),
        (lambda: certify(lambda _k, _seed: 1 / 0, problem, 1), r"could not be made \(ZeroDivisionError"),
        (lambda: certify(Shadow, problem, 1), "tuning must be a belated.tunings.Tuning"),
        (lambda: lab.Duel([[0, 1], [1, 0]], coins="no"), "coins must be True or False, got 'no'"),  # type: ignore[arg-type]
        (lambda: lab.default_checkpoints(0), "n_rounds must be a whole number from 1"),
        (lambda: lab.plan("x"), "give a lab.PlanSettings, got 'x'"),  # type: ignore[arg-type]
    ]
    for call, message in calls:
        with pytest.raises((InvalidInput, GameError), match=message):
            call()
    by_default = certify(None, problem, 1)
    np.testing.assert_array_equal(by_default.regret, certify(Means(), problem, 1).regret)


def test_what_is_no_rule_is_refused_with_the_rule_for_it() -> None:
    rows, delays = np.zeros((9, 2)), [1, 2, 3]
    wrong: list[tuple[Any, Any, str]] = [
        (rows, lab.Fixed(1), r"lab\.GivenLosses\(array\)"),
        (Path("losses.csv"), lab.Fixed(1), r"lab\.LossesFile\(path\)"),
        (lab.Bernoulli(), delays, r"lab\.GivenDelays\(array\)"),
        (lab.Bernoulli(), Path("delays.csv"), r"lab\.DelaysFile\(path\)"),
        ("wave", lab.Fixed(1), r"A text such as 'bernoulli' is for lab\.Comparison"),
        (lab.Bernoulli, lab.Fixed(1), r"must be a rule such as lab\.Bernoulli\(\)"),
    ]
    for losses, late, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            lab.Problem(losses, late, 2, 9)


def test_what_is_no_problem_is_refused() -> None:
    given: list[Any] = ["wave", "li-2019", lab.Bernoulli(), None, {"losses": "wave"}]
    for wrong in given:
        for use in (lab.play, lab.certify):
            with pytest.raises(InvalidInput, match=r"a lab\.Problem is needed, got .*lab\.from_literature\(name\)"):
                use(Shadow(), wrong, 1)


def test_an_empty_cell_of_a_delays_file_means_never(tmp_path: Path) -> None:
    for text in ("round,delay\n1,3\n2,\n3,0\n", 'delay\n3.0\n""\n0.0\n'):
        (tmp_path / "delays.csv").write_text(text)
        assert draw(lab.DelaysFile(tmp_path / "delays.csv"), n=3).tolist() == [3, lab.NEVER, 0]


def test_a_delay_in_a_file_that_is_too_large_means_never(tmp_path: Path) -> None:
    (tmp_path / "delays.csv").write_text("delay\n1e30\ninf\n2\n")
    assert draw(lab.DelaysFile(tmp_path / "delays.csv"), n=3).tolist() == [lab.NEVER, lab.NEVER, 2]


def test_an_array_that_is_given_may_be_used_again() -> None:
    """A caller may fill the same array for the next problem."""
    losses, delays, payoffs = np.full((20, 4), 0.5), np.full(20, 3), np.full((2, 2), 0.5)
    problem, duel = lab.Problem(lab.GivenLosses(losses), lab.GivenDelays(delays), 4, 20), lab.Duel(payoffs)
    for array in (losses, delays, payoffs):
        array[:] = 9
    assert (np.vstack(list(problem.loss_blocks(1, problem.draw_delays(1)))) == 0.5).all()
    assert (problem.draw_delays(1) == 3).all()
    assert (np.asarray(duel.first) == 0.5).all()


def test_bad_files_are_refused_with_their_name(tmp_path: Path) -> None:
    (tmp_path / "text.csv").write_text("delay\nsoon\n")
    (tmp_path / "wide.csv").write_text("a,b\n1,2\n")
    (tmp_path / "half.csv").write_text("delay\n0.5\n")
    (tmp_path / "broken.npy").write_text("no array")
    (tmp_path / "bare.csv").write_text("5\n7\n9\n")
    (tmp_path / "before.csv").write_text("delay\n1\n-inf\n")
    np.save(tmp_path / "square.npy", np.ones((2, 2)))
    np.save(tmp_path / "complex.npy", np.ones(2) + 1j)
    np.save(tmp_path / "words.npy", np.array(["1", "2"]))
    for name, reason in [
        ("text.csv", "every cell must be a number"),
        ("wide.csv", "no column 'delay'. The columns are a, b"),
        ("half.csv", "whole numbers"),
        ("broken.npy", "not a readable .npy file"),
        ("before.csv", "whole numbers of rounds from 0, got -inf"),
        ("square.npy", r"one column is needed, got an array of the shape \(2, 2\)"),
        ("complex.npy", "every cell must be a number"),
        ("words.npy", "every cell must be a number"),
        ("missing.csv", "No such file"),
        ("bare.csv", "the first line must name the columns, got 5"),
        ("delays.xlsx", "must end in .csv, .parquet or .npy"),
    ]:
        with pytest.raises(InvalidInput, match=reason) as caught:
            draw(lab.DelaysFile(tmp_path / name))
        assert name in str(caught.value)


def test_bad_problems_are_refused() -> None:
    for build in (
        lambda: lab.Bernoulli(gap=0.9),
        lambda: lab.Bernoulli(gap=-0.1),
        lambda: lab.Bernoulli(means=[]),
        lambda: lab.Bernoulli(means=[0.5, 1.5]),
        lambda: lab.Bernoulli(means=0.5),  # type: ignore[arg-type]
        lambda: lab.Bernoulli(means="0.5"),  # type: ignore[arg-type]
        lambda: lab.Bernoulli(means=[[0.5, 0.6]]),  # type: ignore[list-item]
        lambda: lab.Bernoulli(means=[[0.5], [0.6, 0.7]]),  # type: ignore[list-item]
        lambda: lab.Bernoulli(gap=0.3, means=[0.5, 0.2]),
        lambda: lab.Bernoulli(gap=0.1, means=[0.5, 0.2]),  # the default, but given
        lambda: lab.Bernoulli(mean=0.5, means=[0.5, 0.2]),
        lambda: matrix(lab.Bernoulli(means=[0.5, 0.2])),
        lambda: lab.Fixed(2.5),  # type: ignore[arg-type]
        lambda: lab.Geometric("5"),  # type: ignore[arg-type]
        lambda: lab.Pareto("1"),  # type: ignore[arg-type]
        lambda: lab.Lost("0.1"),  # type: ignore[arg-type]
        lambda: lab.Held("0.1"),  # type: ignore[arg-type]
        lambda: lab.Constrained(growth="2"),  # type: ignore[arg-type]
        lambda: lab.Shifting(gap="0.1"),  # type: ignore[arg-type]
        lambda: lab.Sine(period=1e-310),  # its sine would be that of infinity
        lambda: lab.Wave(half_period=0),
        lambda: lab.Sine(period=-1.0),
        lambda: lab.Constrained(gap=2.0),
        lambda: lab.Fixed(-1),
        lambda: lab.Pareto(0.0),
        lambda: lab.Lost(1.5),
        lambda: lab.Bursts(0),
        lambda: lab.Held(share=0.5, until=0.1),
        lambda: lab.Comeback(after=1.5),
        lambda: lab.Lagged(lab.NoDelay(), lag=-1),
        lambda: lab.Permuted(lab.LostByArm(lab.NoDelay(), [0.1])),  # type: ignore[arg-type]
        lambda: lab.Lagged(3),  # type: ignore[arg-type]
        lambda: lab.Replicated(3),  # type: ignore[arg-type]
        lambda: lab.Shuffled(3),  # type: ignore[arg-type]
        lambda: lab.Replicated(lab.NoDelay(), replicas=0),
        lambda: lab.Replicated(lab.NoDelay(), lag=2.5),  # type: ignore[arg-type]
        lambda: lab.GivenLosses(np.array([[0.5, 2.0]])),
        lambda: lab.GivenLosses(np.array([0.5])),
        lambda: lab.GivenLosses([["a", "b"]]),  # type: ignore[arg-type]
        lambda: lab.GivenLosses([["0.1", "0.2"]]),  # type: ignore[arg-type]
        lambda: lab.GivenLosses([[0.1, 0.2], [0.3]]),  # type: ignore[arg-type]
        lambda: lab.GivenLosses(np.array([[0.5 + 1j, 0.5]])),
        lambda: lab.GivenLosses(np.ma.array([[0.1, 0.9]], mask=[[True, False]])),
        lambda: lab.GivenDelays(np.ma.array([1, 2], mask=[True, False])),
        lambda: lab.GivenDelays(np.array([-1])),
        lambda: lab.Problem(lab.Wave(), lab.NoDelay(), n_arms=0),
        lambda: lab.Problem(lab.Wave(), lab.NoDelay(), n_rounds=0),
        lambda: draw(lab.Unbalanced(), k=1),
        lambda: matrix(lab.GivenLosses(np.zeros((10, 4))), n=11),
    ):
        with pytest.raises(InvalidInput):
            build()


class Short(lab.Delays):
    """A rule that gives too few delays."""

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> np.ndarray:
        return np.zeros(n_rounds // 2, np.int64)


class Odd(lab.Losses):
    """A rule that gives the blocks it was made with."""

    def __init__(self, *blocks: np.ndarray) -> None:
        self.given = blocks

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        return iter(self.given)


def test_rules_of_your_own_are_checked_before_they_are_played() -> None:
    with pytest.raises(InvalidInput, match="gave 10 delays for 20 rounds"):
        lab.play(Simple(), lab.Problem(lab.Wave(), Short(), 4, 20), [1])
    for losses, message in [
        (Odd(np.zeros((10, 4))), "gave losses for 10 of 20 rounds"),
        (Odd(np.zeros((21, 4))), "wrong shape"),
        (Odd(np.zeros((20, 3))), "wrong shape"),
        (Odd(np.full((20, 4), 1.5)), r"outside \[0, 1\]"),
        (Odd(np.full((20, 4), np.nan)), r"outside \[0, 1\]"),
        (Odd(np.full((20, 4), "a")), "not numbers"),
        (Odd(np.ma.array(np.zeros((20, 4)), mask=True)), "not numbers .* masked"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            lab.play(Simple(), lab.Problem(losses, lab.NoDelay(), 4, 20), [1])


def test_coins_for_a_delay_longer_than_the_game() -> None:
    losses = matrix(lab.BlockCoins(), d=10**9, n=50)
    assert (losses == losses[0]).all()
