"""A learner whose distribution does not fit its draws is noticed. An honest one is not."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision, lab
from belated.errors import InvalidInput, MismatchWarning
from belated.lab.algorithms import ALGORITHMS
from belated.lab.comparisons.compare import compare
from belated.lab.games import mismatch
from belated.lab.games.mismatch import FALSE_ALARM, is_suspicious, log_evidence
from tests.support.sweeps import same

COINS = lab.Problem(lab.GivenLosses(np.tile([0.2, 0.8, 0.9], (400, 1))), lab.Fixed(5), n_arms=3, n_rounds=400)


class Player:
    """Says one distribution and draws from another."""

    outstanding = 0

    def __init__(self, said: Any, drawn: Any, *, seed: int, probability: Any = None, first: int = 1) -> None:
        self.said, self.drawn, self.probability = said, drawn, probability
        self.n_arms, self.round = 3, first - 1
        self.generator = np.random.default_rng(seed)

    def distribution(self) -> Any:
        return self.said

    def ask(self) -> Decision:
        self.round += 1
        arm: Any = int(self.generator.choice(3, p=self.drawn)) if isinstance(self.drawn, list) else self.drawn
        return Decision(self.round, arm, self.probability)

    def tell(self, decision: Decision | int, loss: float) -> None:
        pass


def play(said: Any, drawn: Any, problem: lab.Problem = COINS, seeds: Any = 4, **settings: Any) -> lab.Curves:
    return lab.play(lambda _, seed: Player(said, drawn, seed=seed, **settings), problem, seeds)


def liar(_: int, seed: int) -> Player:
    return Player([0.98, 0.01, 0.01], [0.3, 0.3, 0.4], seed=seed)


liar.fingerprint = "1"  # type: ignore[attr-defined]


def test_a_liar_is_called_one() -> None:
    """With the first arm's loss as the expected one, its regret would be almost zero."""
    with pytest.warns(MismatchWarning, match=r"function: distribution\(\) does not fit .* Look at the suffered one"):
        curves = play([0.98, 0.01, 0.01], [0.3, 0.3, 0.4])
    assert curves.is_suspicious
    assert curves.mean[-1] < 6
    assert curves.suffered.mean(axis=0)[-1] > 100


def test_a_liar_is_marked_in_a_comparison_and_stays_so_in_a_folder(tmp_path: Any) -> None:
    comparison = lab.Comparison([liar, "shadow", "bold"], COINS.losses, COINS.delays, arms=3, rounds=400, seeds=3)
    with pytest.warns(MismatchWarning, match="liar"):
        first, kept = (compare(comparison, folder=tmp_path) for _ in range(2))
    for results in (first, kept):
        assert {row.algorithm.name for row in results.rows if row.curves.is_suspicious} == {"liar"}
    assert same(first, kept)


def test_lies_in_both_directions_do_not_cancel() -> None:
    """One seed looks too good and the other too bad. Their sum is about zero."""

    def make(_: int, seed: int) -> Player:
        two = [0.9, 0.05, 0.05], [0.05, 0.05, 0.9]
        return Player(*(two if seed else two[::-1]), seed=seed)

    with pytest.warns(MismatchWarning):
        curves = lab.play(make, COINS, 2)
    difference = (curves.expected - curves.suffered)[:, -1]
    assert abs(difference.sum()) < 0.1 * abs(difference).sum()


@pytest.mark.parametrize("probability", [7.0, 1.00001, 0.0, -0.5, math.inf])
def test_what_is_no_probability_is_refused_without_a_distribution_too(probability: float) -> None:
    class Silent:
        """Has no distribution."""

        n_arms, round, outstanding = 3, 0, 0

        def ask(self) -> Decision:
            self.round += 1
            return Decision(self.round, 0, probability if self.round == 7 else 1.0)

        def tell(self, decision: Decision | int, loss: float) -> None:
            pass

    message = r"function, seed 5, round 7: the probability in its decision must exceed 0 and be at most 1, got"
    for problem in (COINS, lab.Problem(COINS.losses, lab.LostByArm(lab.Fixed(1), (0.0, 0.1, 0.2)), 3, 400)):
        with pytest.raises(InvalidInput, match=message):
            lab.play(lambda _n_arms, _seed: Silent(), problem, [5])


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS])
def test_no_system_of_the_lab_is_suspicious(name: str) -> None:
    """Their distributions and decisions agree in every round, also where a wrapper repeats an arm."""
    problem = lab.Problem(lab.Sine(), lab.Uniform(9), n_arms=3, n_rounds=300)
    with warnings.catch_warnings(action="error"):
        lab.play(name, problem, 2)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """The evidence of an honest game is at most 1 on average. So at 5% at most 5% of the games exceed 20."""
    generator, found = np.random.default_rng(1), []
    for _ in range(3000):
        rounds, share = int(generator.integers(1, 400)), float(generator.choice([0.001, 0.05, 0.5, 0.95]))
        draws = generator.random(rounds) < share
        found.append(math.exp(log_evidence(float((share - draws).sum()), rounds * share * (1 - share))))
    evidence = np.array(found)
    assert evidence.mean() < 1 + 4 * evidence.std() / math.sqrt(evidence.size)
    assert (evidence > 20).mean() < 0.05


@pytest.mark.parametrize("variance", [100.0, 1e3, 1e5, 1e6])
def test_seven_standard_deviations_are_enough(variance: float) -> None:
    assert is_suspicious([log_evidence(7 * math.sqrt(variance), variance)])
    assert not is_suspicious([log_evidence(5 * math.sqrt(variance), variance)])


def test_the_average_is_the_formula() -> None:
    rates = [4 / 2**j for j in range(14)]
    for d, v in ((3.0, 2.0), (-7.5, 10.0), (0.0, 0.0), (400.0, 1.0)):
        terms = [sign * r * d - (math.exp(r) - 1 - r) * v for r in rates for sign in (1, -1)]
        most = max(terms)
        assert log_evidence(d, v) == pytest.approx(most + math.log(sum(math.exp(t - most) for t in terms) / 28))
    level = -math.log(FALSE_ALARM)
    assert not is_suspicious([level / 2, level / 2 - 0.01])
    assert is_suspicious([level / 2, level / 2 + 0.01])
    assert mismatch.FALSE_ALARM == 1e-6


BAD = math.nan, math.inf, -math.inf


@pytest.mark.parametrize(
    ("said", "message"),
    [
        *([[0.5, 0.5, bad], "probabilities >= 0 whose sum is 1"] for bad in BAD),
        ([0.2, 0.2, 0.1], "probabilities >= 0 whose sum is 1"),
        ([0.5, 0.5, 2e-6], "probabilities >= 0 whose sum is 1"),
        ([1.1, -0.1, 0.0], "probabilities >= 0 whose sum is 1"),
        ([0.5, 0.5], "must be 3 probabilities, one for each arm"),
        ([1.0], "must be 3 probabilities, one for each arm"),
        (1 / 3, "must be 3 probabilities, one for each arm"),
        ([[1.0, 0.0, 0.0]], "must be 3 probabilities, one for each arm"),
        (np.full((3, 3), 1 / 3), "must be 3 probabilities, one for each arm"),
        ("abc", "must be 3 probabilities, one for each arm"),
        (["1.0", "0.0", "0.0"], "must be 3 probabilities, one for each arm"),
        ([1 + 1j, 0, 0], "must be 3 probabilities, one for each arm"),
        ({0: 1.0, 1: 0.0, 2: 0.0}, "must be 3 probabilities, one for each arm"),
        ((p for p in (1.0, 0.0, 0.0)), "must be 3 probabilities, one for each arm"),
        (None, "must be 3 probabilities, one for each arm"),
        ([0.0, 0.5, 0.5], r"it drew arm 0, which has probability 0 in its distribution"),
    ],
)
def test_what_is_no_distribution_is_refused(said: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^function, seed 0, round 1: .*{message}"):
        play(said, 0)


@pytest.mark.parametrize(
    "said", [[1, 0, 0], (1.0, 0.0, 0.0), np.array([1, 0, 0], np.float32), [1 - 9e-7, 0, 0], np.ones(6)[::2] / 3]
)
def test_any_three_probabilities_will_do(said: Any) -> None:
    if isinstance(said, np.ndarray):
        said.flags.writeable = False  # the learners share it
    curves = play(said, [float(p) / sum(map(float, said)) for p in said])
    assert not curves.is_suspicious
    assert curves.expected[0, -1] == pytest.approx(curves.suffered[0, -1], abs=40)


@pytest.mark.parametrize("arm", [-1, 3, 1.0, True, None, "1", math.nan, np.int64(3), np.float64(1)])
def test_an_arm_is_a_whole_number_of_the_game(arm: Any) -> None:
    with pytest.raises(
        InvalidInput, match="function, seed 0, round 1: the arm of a decision must be a whole number from 0 to 2"
    ):
        play([0.2, 0.6, 0.2], arm)


def test_numbers_of_numpy_are_numbers() -> None:
    curves = play([0.0, 1.0, 0.0], np.int64(1), probability=np.float32(1))
    assert (curves.expected == curves.suffered).all()


@pytest.mark.parametrize("probability", [0.5, 0.600002, -0.6, "half"])
def test_a_decision_must_have_the_probability_of_the_distribution(probability: Any) -> None:
    if probability == "half":
        assert not play([0.2, 0.6, 0.2], [0.2, 0.6, 0.2], probability=None).is_suspicious  # it need not have one
        return
    with pytest.raises(InvalidInput, match=r"it drew arm 1, which has probability 0.6 in its distribution and"):
        play([0.2, 0.6, 0.2], 1, probability=probability)


def test_the_round_of_the_error_is_the_round_of_the_fault() -> None:
    class Late(Player):
        def distribution(self) -> Any:
            return [0.2, 0.2, 0.2] if self.round == 200 else [1.0, 0.0, 0.0]

    with pytest.raises(InvalidInput, match="seed 7, round 201: its distribution"):
        lab.play(lambda _, seed: Late(None, 0, seed=seed), COINS, [7])


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (3, "ask must return a belated.Decision"),
        (None, "ask must return"),
        (Decision(2, 0, 1.0), "has the round 2"),
        (Decision("1", 0, 1.0), "has the round '1'"),  # type: ignore[arg-type]
        (Decision(np.array([1, 1]), 0, 1.0), r"has the round array\(\[1, 1\]\)"),  # type: ignore[arg-type]
    ],
)
def test_a_decision_must_be_the_next_one(decision: Any, message: str) -> None:
    class Wrong(Player):
        def ask(self) -> Any:
            return decision

    with pytest.raises(InvalidInput, match=message):
        lab.play(lambda _, seed: Wrong([1.0, 0.0, 0.0], 0, seed=seed), COINS, 1)


class Feeding(Player):
    """Takes feedback of another kind."""

    feedback = "bits"


class Mute:
    """Cannot be told."""

    def ask(self) -> None:
        pass


def test_a_learner_has_what_the_game_needs() -> None:
    for make, message in (
        (lambda _, seed: Feeding([1.0, 0.0, 0.0], 0, seed=seed), "its feedback must be one of loss, sum, vector"),
        (lambda *_: Mute(), "it has no method tell"),
        (lambda *_: FTRL(5), "the learner has 5 arms, but the problem has 3"),
        (lambda *_: None, "it has no method ask"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lab.play(make, COINS, 1)  # type: ignore[arg-type]
