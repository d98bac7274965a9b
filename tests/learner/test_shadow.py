"""The shadow equals its literal transcription, ignores what has not arrived, and keeps its guarantee."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from belated import FTRL, bounds, kernels, lab
from belated.errors import InvalidInput
from belated.lab.games.compiled import CompiledShadow
from belated.learner import rounds
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning, schedule
from tests.kernels.test_clock import random_delays
from tests.lab.test_problems import DELAYS, LOSSES
from tests.learner.test_certificate import run
from tests.support.catalogue import TUNINGS
from tests.support.oracles import Known, LiteralShadow, Report, literal_charge, literal_measured, slow_potential


class Case(NamedTuple):
    """A game for the transcription."""

    tuning: Shadow
    n_arms: int
    n_rounds: int
    batches: list[int]
    largest_delay: int
    swap: int  # losses swap after this many rounds. 0 means coins.
    lost: int = 10**9  # every so many rounds one is never reported


CASES = {
    "wave": Case(Shadow(switch_threshold=0.3), 3, 260, [1, 1, 1, 4], 40, 20),
    "coins": Case(Shadow(), 3, 260, [1, 1, 1, 4], 40, 0),
    "bursts": Case(Shadow(switch_threshold=1e6), 2, 1500, [40], 0, 40),  # it is bold whatever happens, until the alarm
    "bursts, some lost": Case(Shadow(switch_threshold=1e6), 2, 2000, [40], 0, 40, lost=30),
}


# These problems are played on every check. tests/system/learner plays all the others.
QUICK = [("geometric", "wave"), ("lost", "bernoulli"), ("bursts", "sine")]


@pytest.mark.parametrize("name", ["coins", "bursts"])
@pytest.mark.parametrize("refresh", [5])
def test_it_equals_the_literal_transcription(name: str, refresh: int) -> None:
    """Every solve is computed from the list of reports, with random batches, delays and orders of arrival."""
    tuning, k, n, batches, largest, swap, lost = CASES[name]
    generator = np.random.default_rng(len(name))
    learner, oracle = FTRL(k, tuning, seed=2, refresh=refresh), LiteralShadow(k, tuning.switch_threshold)
    made: dict[int, Report] = {}
    due: dict[int, list[int]] = {}
    reports: list[Report] = []
    played = set()
    while learner.round < n:
        size = int(generator.choice(batches))
        solves, x, allowed = int(learner._state.clock["solves"][0]), learner.distribution(), _allowed(learner)
        decisions = learner.ask(size)
        if int(learner._state.clock["solves"][0]) > solves:
            alpha, careful = (float(learner._state.clock[name][0]) for name in ("alpha", "beta"))
            served = range(decisions[0].round, learner.round + refresh + max(batches))
            beta, expected = oracle.solve(served, alpha, careful, allowed, reports)
            assert (learner.status.alpha, learner.status.beta) == pytest.approx((alpha, beta), rel=1e-8)
            np.testing.assert_allclose(x, expected, rtol=1e-7)
            played.add("careful" if beta > 0 else "bold")
        for round, arm, probability in decisions:
            loss = (round // swap + arm) % 2 if swap else generator.random()
            made[round] = Report(round, arm, probability, float(loss))
            never = n if round % lost == 0 else 0
            due.setdefault(round + never + int(generator.integers(0, largest + 1)), []).append(round)
        for when in [when for when in due if when <= learner.round]:
            for round in due.pop(when):
                learner.tell(round, made[round].loss)
                reports.append(made[round])
    assert oracle.was_alarmed == bool(learner._state.clock["shadow"]["alarm"][0]) == ("bursts" in name)
    assert played == ({"bold"} if name == "coins" else {"bold", "careful"})


def _allowed(learner: FTRL) -> float:
    """What the guarantee of the careful rates grants at the coming solve."""
    clock = learner._state.clock.copy()
    policies = learner._state.policies.copy()
    kernels.solve(clock[0], policies, np.empty(1), *rounds.coming_rates(learner._state))
    penalty = kernels.penalty(learner.n_arms, *(float(clock[name][0]) for name in ("alpha", "beta")))
    return penalty + kernels.closed_charge(clock[0])


def test_the_alarm_is_raised_just_where_it_is_said() -> None:
    losses, suffered, alpha, careful = np.array([3.0, 5.0, 4.0]), 11.0, 7.0, 4.0
    measured = suffered + slow_potential(losses, alpha, careful) - 2 * alpha
    for allowed, is_raised in ((measured - 1 + 1e-6, 0), (measured - 1 - 1e-6, 1)):
        learner = FTRL(3, Shadow(), seed=1)
        learner._state.clock["suffered"], learner._state.clock["alpha"], learner._state.clock["beta"] = (
            suffered,
            alpha,
            careful,
        )
        learner._state.policies[:, kernels.LOSSES] = losses
        kernels.choose(learner._state.clock[0], learner._state.policies, allowed)
        assert learner._state.clock["shadow"]["alarm"][0] == learner._state.clock["shadow"]["played"][0] == is_raised


def test_what_is_allowed_by_its_definition() -> None:
    """It is the penalty plus the charges of the rounds reported before. Compares three ways to compute it."""
    generator = np.random.default_rng(3)
    for _ in range(30):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        beforehand = bounds.allowances(k, delays, schedule(Shadow(), k, delays))
        learner = FTRL(k, Shadow(), seed=1)
        due: dict[int, list[int]] = {}
        for t, delay in enumerate(delays.tolist(), 1):
            assert _allowed(learner) == pytest.approx(beforehand[t - 1], rel=1e-9)
            learner.ask()
            due.setdefault(t + delay, []).append(t)
            for s in due.pop(t, []):
                learner.tell(s, 0.5)
        log, _ = run(FTRL(k, Shadow(), seed=1), delays)
        closed = sum(literal_charge(k, log, s, has_shadow=True) for s in log[-1].known)
        penalty = kernels.penalty(k, log[-1].alpha, log[-1].beta)
        assert beforehand[-1] == pytest.approx(penalty + closed, rel=1e-9)


@pytest.mark.parametrize("refresh", [1, 6])
def test_what_is_allowed_with_refresh_and_batches(refresh: int) -> None:
    generator = np.random.default_rng(refresh)
    for _ in range(40):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        learner = FTRL(k, Shadow(), seed=1, refresh=refresh)
        log, _ = run(learner, delays, batches=generator.integers(1, 9, delays.size).tolist())
        told = np.flatnonzero(np.arange(1, delays.size + 1) + delays <= delays.size) + 1
        closed = sum(literal_charge(k, log, s, has_shadow=True) for s in told.tolist())
        penalty = kernels.penalty(k, *rounds.coming_rates(learner._state))
        assert _allowed(learner) == pytest.approx(penalty + closed, rel=1e-9)


@pytest.mark.parametrize("delays", ["fixed", "geometric", "pareto", "lost", "bursts", "unbalanced"])
def test_it_cannot_see_what_has_not_arrived(delays: str) -> None:
    """Two games that differ only in losses not reported before round 600 are the same game up to there."""
    k, n, t = 4, 1200, 600
    problem = lab.Problem(lab.Wave(half_period=30), DELAYS[delays], k, n)
    waits = problem.draw_delays(5)
    losses = np.vstack(list(problem.loss_blocks(5, waits)))
    unseen = np.arange(n) + waits >= t - 1  # its report comes at the end of round t - 1 (from 0) or later
    assert unseen[: t - 1].any()
    others = np.where(unseen[:, None], 1 - losses, losses)
    games = []
    for matrix in (losses, others):
        game = CompiledShadow(Shadow(switch_threshold=0.1), problem, waits, 5)
        played = game.play(matrix[:t])[0]
        games.append(
            (game.arms[:t].tolist(), game.probabilities[:t].tolist(), game.bold_advantages[:t].tolist(), played)
        )
    assert games[0][:3] == games[1][:3]
    assert (games[0][3] != games[1][3]).any()  # the losses did differ
    game.play(others[t:])
    other = CompiledShadow(Shadow(switch_threshold=0.1), problem, waits, 5)
    other.play(losses[:t])
    other.play(losses[t:])
    assert game.arms.tolist() != other.arms.tolist()  # and later they made a difference


def kept(tuning: Tuning, learners: list[FTRL]) -> Callable[[int, int], FTRL]:
    """Make learners that can be looked at after their games. The lab makes one more, to see whether it plays alike."""

    def make(n_arms: int, seed: int) -> FTRL:
        learners.append(FTRL(n_arms, tuning, seed=seed))
        return learners[-1]

    return make


@pytest.mark.parametrize("delays", ["fixed", "geometric", "lost", "bursts"])
def test_compiled_and_interpreted_agree_when_it_is_careful(delays: str) -> None:
    problem = lab.Problem(lab.Wave(half_period=40), DELAYS[delays], n_arms=4, n_rounds=900)
    tuning = Shadow(switch_threshold=0.2)
    learners: list[FTRL] = []
    compiled, interpreted = lab.play(tuning, problem, [3]), lab.play(kept(tuning, learners), problem, [3])
    np.testing.assert_array_equal(compiled.expected, interpreted.expected)
    np.testing.assert_array_equal(compiled.suffered, interpreted.suffered)
    assert learners[0].status.beta > 0


def test_compiled_and_interpreted_agree_when_the_alarm_is_raised() -> None:
    problem = lab.Problem(lab.Wave(half_period=40), lab.Bursts(40), n_arms=2, n_rounds=1000)
    tuning = Shadow(switch_threshold=1e6)
    learners, game = list[FTRL](), CompiledShadow(tuning, problem, problem.draw_delays(3), 3)
    compiled, interpreted = lab.play(tuning, problem, [3]), lab.play(kept(tuning, learners), problem, [3])
    np.testing.assert_array_equal(compiled.expected, interpreted.expected)
    for block in problem.loss_blocks(3, problem.draw_delays(3)):
        game.play(block)
    assert game.clock["shadow"]["alarm"][0] == learners[0]._state.clock["shadow"]["alarm"][0] == 1


def test_it_becomes_bold_again_when_the_world_calms_down() -> None:
    wave = np.vstack(list(lab.Wave().blocks(4, 3000, 100, np.random.default_rng(1))))
    calm = np.tile([0.1, 0.6, 0.6, 0.6], (9000, 1))
    problem = lab.Problem(lab.GivenLosses(np.vstack([wave, calm])), lab.Fixed(100), n_arms=4, n_rounds=12_000)
    game = CompiledShadow(Shadow(), problem, problem.draw_delays(1), 1)
    losses = np.vstack(list(problem.loss_blocks(1, problem.draw_delays(1))))
    played = []
    for start in range(0, 12_000, 1000):
        game.play(losses[start : start + 1000])
        played.append(int(game.clock["shadow"]["played"][0]))
    assert played[2] == 1
    assert played[-1] == 0


def test_without_delay_it_is_tsallis_inf() -> None:
    problem = lab.Problem(lab.Bernoulli(gap=0.2), lab.NoDelay(), n_arms=5, n_rounds=3000)
    shadow, blind = lab.play(Shadow(), problem, range(3)), lab.play(Tsallis(), problem, range(3))
    np.testing.assert_allclose(shadow.expected, blind.expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("losses", "delays"),
    [(lab.Bernoulli(gap=0.5), lab.Fixed(1000)), (lab.Wave(), lab.Fixed(100)), (lab.Sine(), lab.Fixed(100))],
)
def test_it_is_good_where_each_of_the_others_is_bad(losses: lab.Losses, delays: lab.Delays) -> None:
    problem = lab.Problem(losses, delays, n_arms=10, n_rounds=20_000)
    tunings: list[Tuning] = [Tsallis(), Simple(), Advanced(), Shadow()]
    regrets = [lab.play(tuning, problem, range(4), checkpoints=[20_000]).mean[-1] for tuning in tunings]
    assert regrets[3] <= 1.2 * min(regrets)
    assert max(regrets[:3]) >= 4 * min(regrets)


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("losses", LOSSES)
def test_ordinary_problems_raise_no_alarm(losses: str, delays: str) -> None:
    problem = lab.Problem(LOSSES[losses], DELAYS[delays], n_arms=4, n_rounds=3000)
    waits = problem.draw_delays(1)
    game = CompiledShadow(Shadow(), problem, waits, 1)
    for block in problem.loss_blocks(1, waits):
        game.play(block)
    assert game.clock["shadow"]["alarm"][0] == 0


@pytest.mark.parametrize("name", ["scale", "switch_threshold"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "2", True])
def test_odd_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a positive finite number"):
        Shadow(**{name: value})  # type: ignore[arg-type]


def test_the_potential_is_that_of_the_solution() -> None:
    generator = np.random.default_rng(8)
    for _ in range(60):
        k = int(generator.choice([2, 3, 8]))
        losses = generator.random(k) * generator.choice([0.0, 1.0, 300.0])
        alpha, beta = float(generator.choice([0.0, 1.0, 30.0])), float(generator.choice([0.5, 40.0]))
        beta = beta if alpha == 0 else float(generator.choice([0.0, beta]))
        policy = np.zeros((kernels.ROWS, k))
        policy[kernels.LOSSES] = losses
        assert kernels.argmin(policy, alpha, beta, 0)
        literal = slow_potential(losses, alpha, beta)
        assert kernels.potential(policy, alpha, beta) == pytest.approx(literal, rel=1e-9, abs=1e-9)


def test_the_worst_case_in_closed_form_is_above_the_certificate() -> None:
    generator = np.random.default_rng(9)
    for _ in range(200):
        k, delays = int(generator.choice([2, 5, 40])), random_delays(generator)
        for tuning in (Shadow(), Shadow(scale=0.7)):
            certificate = bounds.uncapped_certificate(k, delays, tuning)
            assert certificate <= bounds.shadow_worst_case(k, delays, tuning) + 1e-9
        m, log_k = bounds.best_skipping(k, delays).value, math.log(k)
        of_delay = (11 + max(1.0, math.sqrt(2 / log_k))) * m + 11 / 9 * log_k
        assert bounds.uncapped_certificate(k, delays, Shadow()) <= 4 * math.sqrt(k * delays.size) + of_delay + 2 + 1e-9


@pytest.mark.parametrize(("delays", "losses"), QUICK)
def test_the_mean_of_the_measured_certificate_is_at_least_the_mean_regret(losses: str, delays: str) -> None:
    assert_measured_above_regret(losses, delays)


def assert_measured_above_regret(losses: str, delays: str) -> None:
    """On average over the seeds, by more than three standard errors."""
    problem = lab.Problem(LOSSES[losses], DELAYS[delays], n_arms=4, n_rounds=600)
    tunings: list[Tuning] = [Shadow(), Advanced(), Tsallis(), AdaptiveExp3()]
    for tuning in tunings:
        seeds = 120 if losses == "comeback" else 6  # rare draws with a large weight decide its games
        certified = lab.certify(tuning, problem, range(seeds), checkpoints=[100])
        margin = certified.measured - certified.regret
        assert (margin.mean(axis=0) > 3 * margin.std(axis=0, ddof=1) / math.sqrt(seeds)).all()  # and not by chance


def test_the_measured_certificate_by_its_definition() -> None:
    """On every tuning, also with rounds that wait, are late, or were thrown away."""
    for name, tuning in TUNINGS.items():
        learner = FTRL(3, tuning, seed=5, refresh=3)
        assert learner.measured_certificate() == 0.0
        on_means, rounds = isinstance(tuning, Means), list[Known]()
        for t in range(1, 120):
            told = [known.loss for known in rounds if known.loss is not None]
            centre = (sum(told) / len(told) if told else 0.5) if on_means else 0.0
            decision, loss = learner.ask(), (t % 7) / 7 if t % 4 else None
            if loss is not None:
                learner.tell(decision.round, loss)
            rounds.append(Known(decision.arm, decision.probability, centre, loss))
        literal = literal_measured(np.zeros(3), rounds, on_means=on_means)
        assert learner.measured_certificate() == pytest.approx(literal, rel=1e-9), name
    discarding = FTRL(3, Advanced(scale=0.1, discard=True), seed=1)
    discarding.ask(40)
    discarding.ask()
    before = discarding.measured_certificate()
    discarding.tell(1, 0.3)  # skipped long ago, so it is discarded and still counts as 1
    assert discarding.measured_certificate() == before
    assert FTRL(1, seed=1).measured_certificate() == 0.0


def test_taking_the_measured_certificate_changes_nothing() -> None:
    watched, other = FTRL(4, seed=1), FTRL(4, seed=1)
    for _ in range(100):
        watched.measured_certificate()
        assert watched.ask() == other.ask()
