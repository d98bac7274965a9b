"""The compiled loop equals ask and tell, and the regret its definition. Also threads and interrupts."""

import io
import math
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from belated import FTRL, Decision, Learner, OutcomeRange, bounds, lab, progress
from belated.errors import GameError, InvalidInput, UnfinishedWarning
from belated.lab.intervals import half_width
from belated.lab.problems.problem import _generator
from belated.tunings import Advanced, Means, Simple, Tsallis
from tests.lab.test_problems import DELAYS, LOSSES
from tests.support.catalogue import TUNINGS, ftrl


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("delays", ["geometric", "bursts"])  # tests/system has the others
def test_compiled_and_interpreted_agree_bit_for_bit(name: str, delays: str) -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.2), DELAYS[delays], n_arms=5, n_rounds=700)
    compiled = lab.play(TUNINGS[name], problem, range(2))
    interpreted = lab.play(ftrl(TUNINGS[name]), problem, range(2))
    np.testing.assert_array_equal(compiled.expected, interpreted.expected)
    np.testing.assert_array_equal(compiled.suffered, interpreted.suffered)


@pytest.mark.parametrize("losses", LOSSES)
def test_regret_by_its_definition(losses: str) -> None:
    problem = lab.Problem(LOSSES[losses], lab.Geometric(10.0), n_arms=4, n_rounds=500)
    curves = lab.play(Advanced(), problem, [3], checkpoints=[1, 7, 100])
    assert curves.checkpoints.tolist() == [1, 7, 100, 500]  # the end is always there
    assert lab.play(Advanced(), problem, [3], checkpoints=[]).checkpoints.tolist() == [500]
    delays = problem.draw_delays(3)
    matrix = np.vstack(list(problem.loss_blocks(3, delays)))
    learner, expected, suffered = FTRL(4, Advanced(), seed=3), [], []
    for t in range(500):
        expected.append(learner.distribution() @ matrix[t])
        suffered.append(matrix[t, learner.ask().arm])
        for s in np.flatnonzero(np.arange(t + 1) + delays[: t + 1] == t):
            learner.tell(int(s) + 1, float(suffered[s]))
    for column, n in enumerate(curves.checkpoints):
        best = matrix[:n].sum(axis=0).min()
        assert curves.expected[0, column] == pytest.approx(sum(expected[:n]) - best, abs=1e-9)
        assert curves.suffered[0, column] == pytest.approx(sum(suffered[:n]) - best, abs=1e-9)


def test_the_number_of_workers_makes_no_difference() -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.Pareto(), n_arms=3, n_rounds=3000)
    one, two = (lab.play(Simple(), problem, range(5), workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.expected, two.expected)
    np.testing.assert_array_equal(one.suffered, two.suffered)
    assert one.seeds.tolist() == two.seeds.tolist() == [0, 1, 2, 3, 4]


def test_intervals_cover_the_truth() -> None:
    """On the block coins the expected regret is known exactly, for every algorithm."""
    problem = lab.Problem(lab.BlockCoins(), lab.Fixed(9), n_arms=3, n_rounds=1000)
    truth = bounds.lower_bound_uniform_delay(3, 1000, 9)
    for tuning in (Advanced(), Tsallis()):
        curves = lab.play(tuning, problem, range(200), checkpoints=[1000])
        assert abs(curves.mean[-1] - truth) < 2.3 * curves.interval[-1]  # 4.5 standard errors
    assert np.isnan(lab.play(Tsallis(), problem, [1]).interval).all()


def test_intervals_are_those_of_student() -> None:
    """Against the printed table of the 0.975 quantile."""
    printed = {1: 12.706, 2: 4.303, 10: 2.228, 11: 2.201, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000, 120: 1.980}
    for degrees, quantile in printed.items():
        samples = np.random.default_rng(degrees).random(degrees + 1)
        error = samples.std(ddof=1) / math.sqrt(samples.size)
        assert float(half_width(samples)) / error == pytest.approx(quantile, abs=6e-4)


def test_theory_figures_come_out() -> None:
    """The resonant wave with k = 10 and d = 100. The prototype had about 203, 278 and 1077 in ten runs."""
    problem = lab.Problem(lab.Wave(), lab.Fixed(100), n_arms=10, n_rounds=10_000)
    simple, advanced, blind = (
        lab.play(tuning, problem, range(6)).mean[-1] for tuning in (Simple(), Advanced(), Tsallis())
    )
    assert 180 < simple < 225
    assert 250 < advanced < 305
    assert blind > 3 * advanced


def test_the_unbalanced_example_has_the_slopes_of_the_theory() -> None:
    """The prototype had 895 to 5698 (slope 0.67) and 186 to 679 (0.47) between n = 8,000 and 128,000, with k = 2."""
    slopes = []
    for tuning in (Simple(), Advanced()):
        regrets = []
        for n in (8000, 128_000):
            problem = lab.Problem(lab.Bernoulli(gap=0.5), lab.Unbalanced(), n_arms=2, n_rounds=n)
            regrets.append(lab.play(tuning, problem, range(6), workers=2).mean[-1])
        slopes.append(np.log(regrets[1] / regrets[0]) / np.log(16))
    assert 0.62 < slopes[0] < 0.72
    assert 0.43 < slopes[1] < 0.52


def test_the_three_cases_of_the_readme() -> None:
    """Advanced beats simple 4 times on unbalanced. Blind is 3 times worse on the wave and best on benign."""
    unbalanced = lab.Problem(lab.Bernoulli(gap=0.5), lab.Unbalanced(), n_arms=10, n_rounds=128_000)
    simple, advanced = (lab.play(tuning, unbalanced, range(4), workers=2).mean[-1] for tuning in (Simple(), Advanced()))
    assert simple > 4 * advanced
    benign = lab.Problem(lab.Bernoulli(gap=0.1), lab.Pareto(0.5), n_arms=10, n_rounds=10_000)
    blind, careful = (lab.play(tuning, benign, range(8)).mean[-1] for tuning in (Tsallis(), Advanced()))
    assert 1.4 * blind < careful


def test_what_is_played_may_be_a_learner_a_class_or_a_function() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(5), n_arms=3, n_rounds=200)
    by_class, by_function = lab.play(FTRL, problem, [4]), lab.play(ftrl(Means()), problem, [4])
    np.testing.assert_array_equal(by_class.expected, by_function.expected)
    learner = FTRL(3, seed=4)
    np.testing.assert_array_equal(lab.play(learner, problem, [4]).expected, by_class.expected)
    assert learner.round == 0  # a copy has played
    with pytest.raises(InvalidInput, match="the learner has 3 arms, but the problem has 4"):
        lab.play(learner, lab.Problem(lab.Bernoulli(), lab.Fixed(5), n_arms=4, n_rounds=200), [4])
    with pytest.raises(InvalidInput, match="cannot play 7"):
        lab.play(7, problem, [4])  # type: ignore[arg-type]


class Spy:
    """Writes down what the game reveals."""

    n_arms, outstanding = 2, 0

    def __init__(self, feedback: str = "loss", *, needs_delay: bool = False) -> None:
        self.feedback, self.needs_delay, self.round = feedback, needs_delay, 0

    def ask(self, *known: int) -> Decision:
        self.round += 1
        SEEN.append(("ask", *known))
        return Decision(self.round, self.round % 2, 0.5)

    def tell(self, decision: Decision | int, loss: float) -> None:
        SEEN.append((decision, loss))

    def tell_sum(self, total: float) -> None:
        SEEN.append(("sum", total))

    def tell_vector(self, round: int, losses: np.ndarray) -> None:
        SEEN.append((round, losses.tolist()))


SEEN: list[tuple[object, ...]] = []
MATRIX = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])


@pytest.mark.parametrize(
    ("spy", "expected"),
    [
        (Spy(), [("ask",), ("ask",), ("ask",), (1, 0.2), (2, 0.3), (3, 0.6), ("ask",)]),
        (Spy("sum"), [("ask",), ("ask",), ("ask",), ("sum", pytest.approx(1.1)), ("ask",)]),
        (Spy("vector"), [("ask",), ("ask",), ("ask",), (1, [0.1, 0.2]), (2, [0.3, 0.4]), (3, [0.5, 0.6]), ("ask",)]),
        (Spy(needs_delay=True), [("ask", 2), ("ask", 1), ("ask", 0), (1, 0.2), (2, 0.3), (3, 0.6), ("ask", 0)]),
    ],
)
def test_the_game_reveals_just_what_each_kind_may_see(spy: Spy, expected: list[object]) -> None:
    """With delays 2, 1, 0 and never, three reports come at the end of round 3, in the order of their rounds."""
    SEEN.clear()
    delays = lab.GivenDelays(np.array([2, 1, 0, lab.NEVER]))
    lab.play(spy, lab.Problem(lab.GivenLosses(MATRIX), delays, n_arms=2, n_rounds=4), [0])
    assert expected == SEEN


def test_delays_losses_and_draws_come_from_independent_streams() -> None:
    for seed in range(20):
        learner = np.random.default_rng(seed).random(5)
        streams = [_generator(seed, part).random(5) for part in (0, 1)]
        assert len({tuple(stream) for stream in (learner, *streams)}) == 3
    lost = lab.Problem(lab.Bernoulli(), lab.Lost(0.5, 0), n_arms=2, n_rounds=20_000)
    never = lost.draw_delays(3) == lab.NEVER
    uniforms = np.random.default_rng(3).random(20_000)
    assert abs(np.corrcoef(never, uniforms)[0, 1]) < 4.5 / np.sqrt(20_000)


def test_an_interrupt_keeps_what_is_finished() -> None:
    problem, played = lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=2, n_rounds=50), []
    sent, never = threading.Event(), threading.Event()

    def make(n_arms: int, seed: int) -> Learner:
        played.append(seed)
        if seed == 2:
            never.wait(0.1)  # the main thread waits for this game then. While it is busy, Python may lose an interrupt
            os.kill(os.getpid(), signal.SIGINT)
            sent.set()
        if seed >= 2:
            sent.wait()
            never.wait(0.2)  # the main thread is interrupted while this game still runs
        return FTRL(n_arms, seed=seed)

    with pytest.warns(UnfinishedWarning, match=r"^make: interrupted\. The curves have only \d+ of 50 seeds$") as caught:
        curves = lab.play(make, problem, range(50))
    assert caught[0].filename == __file__
    assert not curves.is_whole
    assert {0, 1} <= set(curves.seeds.tolist())
    assert len(curves.seeds) < 50
    assert len(played) < 50


def test_an_interrupt_before_anything_is_finished_is_passed_on() -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=2, n_rounds=50)

    def make(n_arms: int, seed: int) -> Learner:
        threading.Event().wait(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.2)
        return FTRL(n_arms, seed=seed)

    with pytest.raises(KeyboardInterrupt):
        lab.play(make, problem, range(3))


def test_an_error_in_one_game_is_passed_on() -> None:
    def make(_n_arms: int, _seed: int) -> Learner:
        raise ZeroDivisionError

    with pytest.raises(GameError, match=r"make, seed 0: it could not be made \(ZeroDivisionError") as caught:
        lab.play(make, lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=2, n_rounds=50), range(3))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_progress_shows_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with progress.Progress("zs20-simple", 1000, console) as bar:
        bar.advance(100)
        assert screen.getvalue() == ""
        monkeypatch.setattr(progress, "SHOW_AFTER", -1.0)
        bar.advance(400)
    assert "zs20-simple" in screen.getvalue()
    assert "50%" in screen.getvalue()


def test_a_bar_inside_another_only_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER", -1.0)
    outer, inner = io.StringIO(), io.StringIO()
    with progress.Progress("whole", 10, Console(file=outer, force_terminal=True)) as bar:
        with progress.Progress("part", 10, Console(file=inner, force_terminal=True)) as part:
            part.advance(10)
        bar.advance(5, "second half")
    assert inner.getvalue() == ""
    assert "second half" in outer.getvalue()
    with progress.Progress("next", 10, Console(file=inner, force_terminal=True)) as part:
        part.advance(1)
    assert "next" in inner.getvalue()


def test_bad_calls_are_refused_before_any_work() -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), n_arms=2, n_rounds=50)
    with pytest.raises(InvalidInput, match="at least one seed"):
        lab.play(Simple(), problem, [])
    with pytest.raises(InvalidInput, match="none twice"):
        lab.play(Simple(), problem, [1, 1])
    with pytest.raises(InvalidInput, match="seed must be a whole number"):
        lab.play(Simple(), problem, [-1])
    with pytest.raises(InvalidInput, match="workers must be"):
        lab.play(Simple(), problem, [1], workers=0)
    with pytest.raises(InvalidInput, match="a checkpoint must be a whole number from 1 to 50"):
        lab.play(Simple(), problem, [1], checkpoints=[51])
    with pytest.raises(InvalidInput, match="checkpoints must be a list of rounds, got 50"):
        lab.play(Simple(), problem, [1], checkpoints=50)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"arms": ["a", "b"]}, {"arms": 2, "outcomes": OutcomeRange(0, 50)}])
def test_a_learner_with_names_or_a_range_is_refused(settings: Any) -> None:
    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), 2, 10)
    for player in (FTRL(**settings), lambda _n_arms, seed: FTRL(**settings, seed=seed)):
        with pytest.raises(InvalidInput, match="a game has numbered arms and losses from 0 to 1"):
            lab.play(player, problem, [1])
