"""The step interface plays the same games as `lab.play`, and worlds that depend on the arm, the loss or the past."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import pytest

from belated import FTRL, lab
from belated.errors import GameError, InvalidInput
from belated.tunings import Advanced
from tests.lab.test_problems import DELAYS, LOSSES

WORLDS: dict[str, lab.Feedback] = {
    "by arm": lab.ArmDelays([lab.Fixed(1), lab.Geometric(20), lab.Lost(0.5, 4)]),
    "by outcome": lab.OutcomeDelays(lab.Uniform(9), lab.Fixed(30)),
    "by both": lab.ArmDelays([lab.OutcomeDelays(lab.Fixed(0), lab.Fixed(9)), lab.Fixed(3), lab.NoDelay()]),
    "positives": lab.PositivesOnly(lab.Geometric(5)),
    "cutoff": lab.PositivesOnly(lab.Geometric(5), cutoff=8),
    "lost by arm": lab.LostByArm(lab.Bursts(10), [0.0, 0.3, 1.0]),
}


def coins(feedback: lab.Feedback | lab.Delays, n: int = 300) -> lab.Problem:
    return lab.Problem(lab.Bernoulli(means=[0.2, 0.5, 0.6]), feedback, 3, n)


def played(problem: lab.Problem, arms: list[int], seed: int = 1) -> tuple[lab.StepGame, list[lab.Step]]:
    game = problem.start(seed)
    return game, [game.step(arm) for arm in arms]


@pytest.mark.parametrize("delays", DELAYS)
def test_a_learner_by_steps_has_the_game_of_play(delays: str) -> None:
    for losses in ("bernoulli", "wave", "sine"):
        problem = lab.Problem(LOSSES[losses], DELAYS[delays], n_arms=4, n_rounds=1500)
        game, learner = problem.start(seed=3), FTRL(4, Advanced(), seed=3)
        suffered = []
        while not game.is_over:
            step = game.step(learner.ask().arm)
            suffered.append(step.suffered)
            for report in step.reports:
                learner.tell(report.round, report.loss)
        curves = lab.play(lambda k, seed: FTRL(k, Advanced(), seed=seed), problem, [3], checkpoints=[1500])
        matrix = np.vstack(list(problem.loss_blocks(3, problem.draw_delays(3))))
        best = matrix.sum(axis=0).min()
        assert game.regret == pytest.approx(curves.suffered[0, -1], abs=1e-9)
        assert sum(suffered) - best == pytest.approx(game.regret, abs=1e-9)
        np.testing.assert_allclose(game.totals, matrix.sum(axis=0))
        if losses != "sine":  # whole numbers, so the sums have no rounding
            assert game.regret == curves.suffered[0, -1]


def test_reports_come_when_they_are_due_in_the_order_of_their_rounds() -> None:
    matrix = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])
    problem = lab.Problem(lab.GivenLosses(matrix), lab.GivenDelays(np.array([2, 1, 0, lab.NEVER])), 2, 4)
    game, steps = played(problem, [0, 1, 0, 1])
    assert steps == [(1, [], 0.1), (2, [], 0.4), (3, [(1, 0, 0.1), (2, 1, 0.4), (3, 0, 0.5)], 0.5), (4, [], 0.8)]
    assert (steps[2].reports[1].arm, steps[2].reports[1].loss) == (1, 0.4)
    assert game.suffered == pytest.approx(1.8)
    assert game.regret == pytest.approx(1.8 - 1.6)
    assert game.losses.tolist() == [0.7, 0.8]


def test_what_is_known_in_between() -> None:
    problem = lab.Problem(lab.GivenLosses(np.tile([1.0, 0.0], (2500, 1))), lab.Fixed(2), 2, 2500)
    game = problem.start(1)
    assert (game.round, game.waiting, game.is_over, game.regret) == (0, 0, False, 0.0)
    with pytest.raises(InvalidInput, match="no round has been played"):
        _ = game.losses
    for t in range(1, 2501):
        game.step(0)
        assert (game.round, game.regret, game.totals.tolist()) == (t, t, [t, 0])
        assert game.waiting == min(t, 2, 2500 - t)
    assert game.is_over
    with pytest.raises(InvalidInput, match=r"the game of 2,500 rounds is over. Begin another with problem.start"):
        game.step(0)
    assert game.round == 2500


@pytest.mark.parametrize("arm", [-1, 3, 1.0, True, None, "0"])
def test_a_wrong_arm_is_refused_and_changes_nothing(arm: Any) -> None:
    game = coins(lab.NoDelay()).start(1)
    with pytest.raises(InvalidInput, match="arm must be a whole number from 0 to 2, got"):
        game.step(arm)
    assert game.round == 0
    arm = np.arange(3)[2]
    assert game.step(arm).reports[0].arm == 2  # NumPy's numbers are arms too


def model(problem: lab.Problem, arms: list[int], seed: int) -> list[list[tuple[int, int, float]]]:
    """The reports of every round, straight from the rows of the game."""
    blocks = list(problem.rows(seed, lambda: 0))
    losses, delays, reported = (np.vstack(parts) for parts in zip(*blocks, strict=True))
    assert losses.shape == delays.shape == reported.shape == (problem.n_rounds, problem.n_arms)
    due = defaultdict(list)
    for t, arm in enumerate(arms, 1):
        due[t + int(delays[t - 1, arm])].append((t, arm, float(reported[t - 1, arm])))
    return [due[t] for t in range(1, problem.n_rounds + 1)]


@pytest.mark.parametrize("name", WORLDS)
def test_feedback_by_arm_and_loss_comes_as_the_rule_says(name: str) -> None:
    problem = coins(WORLDS[name])
    arms = np.random.default_rng(5).integers(0, 3, 300).tolist()
    _, steps = played(problem, arms)
    assert [step.reports for step in steps] == model(problem, arms, 1)
    assert steps == played(problem, arms)[1]
    assert steps != played(problem, arms, seed=2)[1]


def rows_of(feedback: lab.Feedback, n: int = 3000, losses: lab.Losses | None = None) -> tuple[np.ndarray, ...]:
    problem = lab.Problem(losses or lab.Bernoulli(means=[0.2, 0.5, 0.6]), feedback, 3, n)
    return tuple(np.vstack(parts) for parts in zip(*problem.rows(4, lambda: 0), strict=True))


def test_feedback_rules_are_what_they_say() -> None:
    losses, delays, reported = rows_of(WORLDS["by arm"])
    assert set(delays[:, 0]) == {1}
    assert delays[:, 1].mean() == pytest.approx(20, abs=2)
    assert np.mean(delays[:, 2] == lab.NEVER) == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(losses, reported)

    losses, delays, _ = rows_of(WORLDS["by outcome"])
    assert set(delays[losses == 0]) == set(range(10))
    assert set(delays[losses == 1]) == {30}

    losses, delays, _ = rows_of(WORLDS["by both"])
    assert (delays[:, 0] == 9 * losses[:, 0]).all()
    assert (delays[:, 1:] == [3, 0]).all()

    losses, delays, reported = rows_of(WORLDS["positives"])
    assert (delays[losses == 1] == lab.NEVER).all()
    assert delays[losses == 0].mean() == pytest.approx(5, abs=0.5)
    assert (reported[losses == 0] == 0).all()

    losses, delays, reported = rows_of(WORLDS["cutoff"])
    assert (delays[reported == 1] == 8).all()
    assert (reported[losses == 1] == 1).all()
    late = np.mean(reported[losses == 0] == 1)  # P(d > 8) for a geometric delay of mean 5
    assert late == pytest.approx((5 / 6) ** 9, abs=0.03)

    losses, delays, _ = rows_of(WORLDS["lost by arm"])
    np.testing.assert_allclose(np.mean(delays == lab.NEVER, axis=0), [0, 0.3, 1], atol=0.04)
    assert set(delays[:, 0]) == set(range(10))


def test_losses_follow_the_typical_delay_of_feedback() -> None:
    feedback = lab.ArmDelays([lab.Fixed(10), lab.Fixed(20), lab.Fixed(90)])
    losses, _, _ = rows_of(feedback, losses=lab.Wave())
    assert (losses[:40] == losses[0]).all()
    assert (losses[40:80] == 1 - losses[0]).all()


class Late(lab.Feedback):
    """Gives what it was made with."""

    def __init__(self, *given: Any) -> None:
        self.given = given

    def blocks(self, losses: Iterator[Any], n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        return iter(self.given)


def test_wrong_rules_are_refused() -> None:
    zeros, whole = np.zeros((300, 3)), np.zeros((300, 3), int)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: lab.ArmDelays(lab.Fixed(3)), "a list of rules is needed, one for each arm"),  # type: ignore[arg-type]
        (lambda: lab.LostByArm(lab.NoDelay(), 0.1), "a list of shares is needed, one for each arm"),  # type: ignore[arg-type]
        (lambda: lab.ArmDelays([3]), "a rule must be lab.Delays or lab.Feedback"),  # type: ignore[list-item]
        (lambda: coins(lab.ArmDelays([lab.NoDelay()])).start(1).step(0), "rules for 1 arms, but the game has 3"),
        (lambda: coins(lab.LostByArm(lab.NoDelay(), [0.1])).start(1).step(0), "shares for 1 arms"),
        (lambda: lab.LostByArm(lab.NoDelay(), [1.1]), "share of lost reports must lie in"),
        (lambda: lab.PositivesOnly(lab.NoDelay(), cutoff=-1), "cutoff must be a whole number"),
        (lambda: lab.Problem("bernoulli", lab.NoDelay()), r"got 'bernoulli'\. A text .* is for lab\.Comparison"),  # type: ignore[arg-type]
        (lambda: lab.Problem(lab.Wave(), "none"), r"got 'none'\. A text .* is for lab\.Comparison"),  # type: ignore[arg-type]
        (lambda: lab.Problem(3, lab.NoDelay()), "losses must be a rule"),  # type: ignore[arg-type]
        (lambda: lab.Problem(lab.Wave(), 3), "delays must be a rule"),  # type: ignore[arg-type]
        (lambda: coins(Late()).start(1).step(0), r"must give lab.Reports\(delays, losses\), got None"),
        (lambda: coins(Late((whole[1:], zeros))).start(1).step(0), "gave delays of the shape"),
        (lambda: coins(Late((whole, zeros[:, 1:]))).start(1).step(0), "gave losses of the shape"),
        (lambda: coins(Late((zeros, zeros))).start(1).step(0), "delays that are whole numbers from 0"),
        (lambda: coins(Late((whole - 1, zeros))).start(1).step(0), "delays that are whole numbers from 0"),
        (lambda: coins(Late((whole, zeros + 2))).start(1).step(0), "must report losses from 0 to 1"),
        (lambda: coins(WORLDS["by arm"]).draw_delays(1), "depends on what is played"),
        (lambda: reacting(wearing_out).loss_blocks(1, np.zeros(5, int)), "react to what is played"),
        (lambda: coins(lab.NoDelay()).start(-1), "seed must be a whole number"),
    ]
    for build, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            build()


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_the_largest_number_of_any_kind_means_never(kind: type[Any]) -> None:
    never = np.full((300, 3), np.iinfo(kind).max, kind)
    game = coins(Late((never, np.zeros((300, 3))))).start(1)
    for _ in range(300):
        assert game.step(0).reports == []
    assert game.waiting == 0


def wearing_out(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Generator[Any, int, None]:
    """An arm wears out while it is played."""
    wear = np.zeros(n_arms)
    while True:
        arm = yield wear
        wear *= 0.9
        wear[arm] += 0.1


def reacting(rule: Any, n: int = 40, delays: lab.Delays | lab.Feedback | None = None) -> lab.Problem:
    return lab.Problem(lab.Reacting(rule), delays or lab.Fixed(2), 3, n)


def test_losses_react_to_what_was_played() -> None:
    arms = np.random.default_rng(2).integers(0, 3, 40).tolist()
    game, steps = played(reacting(wearing_out), arms)
    wear, total = np.zeros(3), np.zeros(3)
    for arm, step in zip(arms, steps, strict=True):
        assert step.suffered == wear[arm]
        total += wear
        wear = 0.9 * wear + 0.1 * (np.arange(3) == arm)
    assert game.totals == pytest.approx(total)
    assert game.regret == pytest.approx(sum(step.suffered for step in steps) - total.min())
    assert [step.reports for step in steps][5] == [(4, arms[3], steps[3].suffered)]
    assert steps == played(reacting(wearing_out), arms)[1]  # every game starts afresh
    by_arm = reacting(wearing_out, delays=lab.ArmDelays([lab.NoDelay(), lab.Fixed(1), lab.Fixed(2)]))
    assert [step.suffered for step in played(by_arm, arms)[1]] == [step.suffered for step in steps]


def stops(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Generator[Any, int, None]:
    yield [0.5] * n_arms


def too_many(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Generator[Any, int, None]:
    while True:
        yield [0.5] * (n_arms + 1)


def too_large(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Generator[Any, int, None]:
    while True:
        yield [0.5] * (n_arms - 1) + [1.5]


def test_wrong_reacting_rules_are_refused() -> None:
    for rule, message in [
        (stops, "gave losses for 1 of 40 rounds"),
        (too_many, "must yield 3 losses from 0 to 1"),
        (too_large, r"must yield 3 losses from 0 to 1, got \[0.5, 0.5, 1.5\] in round 1"),
        (lambda k, _n, _generator: [0.5] * k, "must be a generator function"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            played(reacting(rule), [0, 0])
    with pytest.raises(InvalidInput, match="must be a generator function"):
        lab.Reacting(3)  # type: ignore[arg-type]


def breaks(n_arms: int, _n_rounds: int, _generator: np.random.Generator) -> Generator[Any, int, None]:
    for left in range(3, -1, -1):
        yield [1 / (1 + 1 // left)] * n_arms


class NoDraw(lab.Delays):
    """Fails to draw anything."""

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        raise KeyError("d")


class TwoRounds(lab.Losses):
    """Fails after two rounds."""

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        yield np.zeros((2, n_arms))
        raise KeyError("l")


class NoMeans(lab.Losses):
    """Fails to say its means."""

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        yield np.zeros((n_rounds, n_arms))

    def mean_blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
        raise KeyError("m")


class Spoils(lab.Feedback):
    """Changes the losses themselves in place of what is reported."""

    def blocks(self, losses: Any, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        for block in losses:
            block *= 0.5  # noqa: PLW2901
            yield lab.Reports(np.zeros(block.shape, int), block)


def test_a_crash_in_a_rule_says_where() -> None:
    for problem, message in (
        (reacting(breaks), r"breaks .*seed 4: it failed to give the losses after round 3 \(ZeroDivisionError: "),
        (
            lab.Problem(TwoRounds(), lab.Fixed(1), 3, 9),
            r"seed 4: it failed to give the losses after round 2 \(KeyError",
        ),
        (lab.Problem(NoMeans(), lab.Fixed(1), 3, 9), r"seed 4: it failed to give the means \(KeyError: 'm'\)"),
        (coins(Spoils()), r"Spoils\(\), seed 4: it failed to give reports \(ValueError: .*read-only"),
        (coins(NoDraw()), r"NoDraw\(\), seed 4: it failed to draw the delays \(KeyError: 'd'\)"),
    ):
        with pytest.raises(GameError, match=message) as caught:
            lab.play("zs20-simple", problem, [4])
        assert isinstance(caught.value.__cause__, ZeroDivisionError | KeyError | ValueError)
