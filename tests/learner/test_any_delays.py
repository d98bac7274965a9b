"""Certificates that hold for any delays, also those that depend on arms and outcomes (docs/theory/any-delays.md)."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, Decision, kernels
from belated.errors import InvalidInput
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning
from tests.support.oracles import rates_of, slow_potential

RATES: list[Tuning] = [Simple(), Advanced(), Tsallis(), AdaptiveExp3(), Advanced(discard=True)]
TUNINGS: list[Tuning] = [*RATES, Shadow(), Means()]
GRID = [0.7 / 2**j for j in range(16)]
Floats = NDArray[np.float64]


class Game:
    """A learner, and its game as a list. Delays depend on arm and loss."""

    def __init__(self, tuning: Tuning, seed: int, k: int = 3, refresh: int = 1) -> None:
        self.learner: FTRL[int] = FTRL(k, tuning, seed=seed, refresh=refresh)
        self.generator, self.k = np.random.default_rng([seed, 7]), k
        self.made: dict[int, Decision[int]] = {}
        self.losses: dict[int, float] = {}  # of the rounds reported so far
        self.due: dict[int, list[int]] = {}
        self.given_up: set[int] = set()
        self.used: set[int] = set()  # the rounds in the estimates
        self.known: set[int] = set()  # those that the last solve knew
        self.cost, self.since = 0.0, 0  # what the rounds have cost, and the rounds before them

    def play(self, n_rounds: int) -> None:
        while self.learner.round < n_rounds:
            self.decide(int(self.generator.choice([1, 1, 1, 4])))
            for round in self.due.pop(self.learner.round, []):
                self.close(round)

    def decide(self, size: int) -> None:
        solves = int(self.learner._state.clock["solves"][0])
        decisions = self.learner.ask(size)
        if int(self.learner._state.clock["solves"][0]) > solves:
            self.known = set(self.used)
        x, (alpha, beta) = self.x(), rates_of(self.learner)
        for decision in decisions:
            self.charge(x, alpha, beta)
            self.made[decision.round] = decision
            loss = float(self.generator.integers(0, 3)) / 2
            delay = int(self.generator.integers(0, 1 + 3 * decision.arm + int(30 * loss)))
            self.due.setdefault(decision.round + delay, []).append(decision.round)
            self.losses[decision.round] = loss
        for when in [when for when in self.due if when < self.learner.round]:
            self.due.setdefault(self.learner.round, []).extend(self.due.pop(when))

    def x(self) -> Floats:
        state = self.learner._state
        return np.array(state.policies[state.played, kernels.X])

    def charge(self, x: Floats, alpha: float, beta: float) -> None:
        """The stability of a round, and what it pays for each round that its solve did not know."""
        has_shadow = len(self.learner._state.policies) > 1
        self.cost += min(1.0, self.k / (alpha * math.sqrt(self.k) + (0 if has_shadow else 2 * beta)))
        for round, made in self.made.items():
            if round > self.since and round not in self.known:
                self.cost += x[made.arm] / (beta + alpha / math.sqrt(x[made.arm]) / 2) / made.probability

    def close(self, round: int) -> None:
        fate = self.generator.random()
        if fate < 0.8:
            reported = int(self.learner._state.clock["reported"][0])
            self.learner.tell(round, self.losses[round])
            if int(self.learner._state.clock["reported"][0]) > reported:  # else it was thrown away
                self.used.add(round)
        elif fate < 0.9:
            self.learner.give_up(round)
            self.given_up.add(round)
            if fate < 0.85 and not self.learner._state.discard:
                self.learner.amend(self.made[round], None, self.losses[round])
                self.used.add(round)

    def penalty(self) -> float:
        alpha, beta = rates_of(self.learner)
        return 2 * alpha * (math.sqrt(self.k) - 1) + beta * math.log(self.k)


@pytest.mark.parametrize("tuning", RATES, ids=repr)
@pytest.mark.parametrize("refresh", [1, 6])
def test_rates_pay_for_missing_rounds_by_their_arms(tuning: Tuning, refresh: int) -> None:
    game = Game(tuning, 1, refresh=refresh)
    for n in (1, 20, 60, 150):
        game.play(n)
        assert game.learner.certificate("any") == pytest.approx(game.penalty() + game.cost, rel=1e-9)
    assert game.learner.certificate() <= game.learner.round


def test_a_shadow_pays_so_after_an_alarm() -> None:
    game = Game(Shadow(), 2)
    game.play(60)
    learner, clock = game.learner, game.learner._state.clock[0]
    assert learner.certificate("any") >= learner.certificate()  # the same number, which is not cut off
    while not clock["shadow"]["alarm"]:
        learner.tell(learner.record(1, 0.9), 1.0)
        game.since, losses = learner.round, learner.status.estimated_losses
        first = learner.ask()
    alpha, beta = rates_of(learner)
    lead = float(clock["suffered"]) + slow_potential(losses, alpha, beta) - 2 * alpha
    start = lead + game.since - int(clock["reported"]) - game.penalty()
    game.made, game.used, game.known, game.cost = {}, set(), set(), math.sqrt(3) / alpha
    game.made[first.round] = first
    assert learner.certificate("any") == pytest.approx(start + game.penalty() + game.cost, rel=1e-9)
    game.due, game.losses = {}, {first.round: 0.5}
    game.play(learner.round + 60)
    assert learner.certificate("any") == pytest.approx(start + game.penalty() + game.cost, rel=1e-9)


def brute_logarithms(game: Game, losses: dict[int, float]) -> Floats:
    """For each g and arm the sum of ln(1 + g U), with U = -1 for a round without a report."""
    logs = np.zeros((len(GRID), game.k))
    for (j, g), arm in itertools.product(enumerate(GRID), range(game.k)):
        for round, made in game.made.items():
            if round in losses:
                estimate = losses[round] / made.probability if made.arm == arm else 0.0
                logs[j, arm] += math.log1p(g * (estimate - losses[round]))
            else:
                logs[j, arm] += math.log1p(-g)
    return logs


def brute_bound(logs: Floats, delta: float) -> float:
    """The regret at which the average of the bets is 1 / delta, by a fine search."""
    low, high = -1e7, 1e7
    for _ in range(200):
        middle = (low + high) / 2
        exponents = logs + np.array(GRID) * middle - math.log(len(GRID)) + math.log(delta)
        top = float(exponents.max())
        total = top + math.log(float(np.exp(exponents - top).sum()))
        low, high = (middle, high) if total < 0 else (low, middle)
    return high


@pytest.mark.parametrize("tuning", TUNINGS, ids=repr)
def test_the_bound_on_this_run_by_its_definition(tuning: Tuning) -> None:
    game = Game(tuning, 3)
    game.play(120)
    learner, losses = game.learner, {round: game.losses[round] for round in game.used}
    for round in sorted(game.used)[:10] if not learner._state.discard else []:
        learner.amend(game.made[round], losses[round], 0.25)
        losses[round] = 0.25
    logs, n = brute_logarithms(game, losses), learner.round
    for confidence in (0.5, 0.95, 0.999):
        delta = 1 - confidence
        for arm in range(3):
            expected = min(n, brute_bound(logs[:, arm], delta))
            assert learner.regret_bound(confidence, against=arm) == pytest.approx(expected, rel=1e-6)
        worst = max(brute_bound(logs[:, arm], 0.9 * delta / 3) for arm in range(3))
        assert learner.regret_bound(confidence) == pytest.approx(min(n, worst), rel=1e-6)
    copy: FTRL[int] = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    assert copy.regret_bound() == learner.regret_bound()
    assert copy.certificate("any") == learner.certificate("any")


def test_tiny_probabilities_and_long_games_stay_finite() -> None:
    learner = FTRL(2, seed=1)
    for t in range(3000):
        learner.tell(learner.record(t % 2, 1e-290 if t % 10 == 0 else 0.5), 1.0)
    assert 0 <= learner.regret_bound() <= learner.round
    assert np.isfinite(learner._state.bets).all()
    assert FTRL.restore(json.loads(json.dumps(learner.snapshot()))).regret_bound() == learner.regret_bound()


def test_stretches_add_up_and_share_the_confidence() -> None:
    learner = FTRL(["a", "b"], seed=1)
    shares, total = (0.9, 0.1 / 2, 0.1 / 6), 0.0
    for number, name in enumerate(("c", "d", "e")):
        rounds: list[tuple[int, float, float]] = []
        arms = list(learner.status.arms)
        for t in range(300):
            decision = learner.ask()
            loss = float(t % 3 == 0)
            learner.tell(decision, loss)
            rounds.append((arms.index(decision.arm), decision.probability, loss))
        logs = np.array([bets_of(rounds, g, len(arms)) for g in GRID])
        shared = 0.05 * shares[number] / len(arms)
        now = max(brute_bound(logs[:, arm], shared) for arm in range(len(arms)))
        assert learner.regret_bound() == pytest.approx(min(learner.round, total + now), rel=1e-6)
        total += brute_bound(logs.min(axis=1), shared)
        learner.change_arms(add=[name])
        assert learner.regret_bound() == pytest.approx(min(learner.round, total), rel=1e-6)
    copy: FTRL[str] = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    assert copy.regret_bound(0.9) == learner.regret_bound(0.9)
    with pytest.raises(InvalidInput, match="against='a' needs arms that have never changed"):
        learner.regret_bound(against="a")


def test_what_was_given_up_stays_in_its_stretch() -> None:
    learner = FTRL(2, seed=1)
    for t in range(400):
        decision = learner.ask()
        if t % 3:
            learner.tell(decision, float(decision.arm))
        else:
            learner.give_up(decision)
    learner.change_arms(add=1)
    state = learner._state
    assert not kernels.unreported(state.clock[0], state.ledger, state.policies).any()
    assert learner.status.open_cost == 0


def bets_of(rounds: list[tuple[int, float, float]], g: float, k: int) -> list[float]:
    return [sum(math.log1p(g * (loss / x * (drawn == arm) - loss)) for drawn, x, loss in rounds) for arm in range(k)]


@pytest.mark.parametrize("value", [0, 1, -0.5, 95, float("nan"), "0.95", None])
def test_an_impossible_confidence_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"confidence must lie between 0 and 1, such as 0\.95, got"):
        FTRL(2, seed=1).regret_bound(value)


def test_other_delays_are_refused() -> None:
    with pytest.raises(InvalidInput, match='delays must be "fixed" or "any", got \'all\''):
        FTRL(2, seed=1).certificate("all")  # type: ignore[arg-type]


def test_one_arm_and_no_rounds_have_no_regret() -> None:
    for learner in (FTRL(1, seed=1), FTRL(3, seed=1)):
        assert learner.regret_bound() == learner.certificate("any") == 0.0
    learner = FTRL(1, seed=1)
    learner.tell(learner.ask(), 1.0)
    assert learner.regret_bound() == learner.certificate("any") == 0.0


DELAYS: dict[str, Callable[[int, float], int]] = {
    "failures late": lambda _arm, loss: 2 if loss else 0,
    "arm 1 late": lambda arm, _loss: 3 * arm,
    "arm 0 never fails in time": lambda arm, loss: 9 if loss and not arm else 0,
}


def every_run(
    make: Callable[[], FTRL[int]], losses: Floats, delay: Callable[[int, float], int]
) -> list[tuple[float, float, FTRL[int]]]:
    """All draws of a short game as (chance, regret of <x_t, l_t> against arm 1, learner at the end)."""
    runs = []
    for arms in itertools.product(range(2), repeat=len(losses)):
        learner, chance, regret, due = make(), 1.0, 0.0, dict[int, list[tuple[int, float]]]()
        for t, arm in enumerate(arms):
            x = learner.distribution()
            decision = learner.record(arm, float(x[arm]))
            chance *= float(x[arm])
            regret += float(x @ losses[t]) - losses[t, 1]
            loss = float(losses[t, arm])
            due.setdefault(t + delay(arm, loss), []).append((decision.round, loss))
            for round, told in due.pop(t, []):
                learner.tell(round, told)
        runs.append((chance, regret, learner))
    return runs


@pytest.mark.parametrize("rule", DELAYS)
@pytest.mark.parametrize("tuning", [Simple(), Shadow(), Means(), "provisional"], ids=repr)
def test_all_runs_of_short_games(tuning: Tuning | str, rule: str) -> None:
    """The mean of each certificate is at least the mean regret. And no bet is worth more than 1 on average."""
    generator = np.random.default_rng(5)

    def make() -> FTRL[int]:
        return FTRL(2, Means(), seed=1, provisional=1.0) if isinstance(tuning, str) else FTRL(2, tuning, seed=1)

    for _ in range(4):
        losses = generator.integers(0, 2, (5, 2)).astype(float)
        runs = every_run(make, losses, DELAYS[rule])
        assert sum(chance for chance, _, _ in runs) == pytest.approx(1.0)
        regret = sum(chance * regret for chance, regret, _ in runs)
        assert sum(chance * learner.certificate("any") for chance, _, learner in runs) >= regret - 1e-9
        assert sum(chance * learner.measured_certificate() for chance, _, learner in runs) >= regret - 1e-9
        for j, g in enumerate(GRID):
            worth = 0.0
            for chance, suffered, learner in runs:
                bets, missing = (
                    learner._state.bets,
                    int(learner._state.clock["round"][0] - learner._state.clock["reported"][0]),
                )
                logs = np.log(bets[:, 0, j]) + bets[:, 1, j]
                worth += chance * math.exp(logs[1] + logs[2] + missing * math.log1p(-g) + g * suffered)
            assert worth <= 1 + 1e-12
