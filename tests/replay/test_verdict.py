"""When a best policy is named, and which may be the best."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import OutcomeRange
from belated.arrays import Floats
from belated.replay import LOGGED, UNIFORM, Log, evaluate, evaluate_all, log_sections, log_study
from belated.replay.off_policy import Interval, PolicyEstimate, policy_weights
from belated.replay.verdict import judge, lead
from belated.tunings import Means, Tsallis
from tests.support.decided_logs import decided
from tests.support.lossy_logs import write
from tests.support.replays import run

REWARDS = OutcomeRange(0, 1, better="higher")
LOSSES = OutcomeRange(0, 1, better="lower")


def literal_lead(log: Log, one: int, other: int) -> float:
    """t from its definition, with a block for each row."""
    moves, values = [], []
    for policy in (one, other):
        weights = policy_weights(log, policy, 1 - log.outcomes)
        mass, rows = sum(weights), list(zip(weights, log.outcomes, strict=True))
        value = sum(w * y for w, y in rows) / mass
        moves.append([w * (y - value) / mass for w, y in rows])
        values.append(value)
    gaps = [a - b for a, b in zip(*moves, strict=True)]
    largest = max(map(abs, gaps))
    return float((values[0] - values[1] - largest) / math.sqrt(sum(gap**2 for gap in gaps) + largest**2))


def test_a_lead_is_that_of_its_definition() -> None:
    log = decided([0.5, 0.2], 300, seed=1, is_adaptive=True)
    one, other = (evaluate(log, arm, REWARDS) for arm in (0, 1))
    assert lead(one, other, REWARDS) == pytest.approx(literal_lead(log, 0, 1))
    assert one.blocks.size == 300
    assert abs(one.blocks.sum()) < 1e-12
    assert lead(other, one, REWARDS) == 0  # it is behind
    assert lead(other, one, LOSSES) == pytest.approx(lead(one, other, REWARDS))


def test_many_rows_are_put_into_blocks() -> None:
    log = decided([0.5, 0.2], 5500, seed=1)
    one, other = (evaluate(log, arm, REWARDS) for arm in (0, 1))
    assert one.blocks.size == 1000
    assert lead(one, other, REWARDS) == pytest.approx(literal_lead(log, 0, 1), rel=0.05)


def test_policies_that_are_the_same_are_not_told_apart() -> None:
    """1 / (10 * 0.1) is not always exactly 1."""
    log = decided([0.2] * 3, 900, seed=1)
    uniform, logged = (evaluate(log, policy, REWARDS) for policy in (UNIFORM, LOGGED))
    assert lead(uniform, logged, REWARDS) == lead(logged, uniform, REWARDS) == 0


def test_arms_without_any_spread_are_told_apart() -> None:
    arms = np.arange(400) % 2
    log = Log(("bad", "good"), np.arange(400.0), arms, arms.astype(float), np.arange(400.0), np.full(400, 0.5))
    found = judge(evaluate_all(log, REWARDS, [0, 1]), REWARDS)
    assert found.best is not None
    assert found.best.name == "always good"


def drawn(means: Floats, root: Floats, generator: np.random.Generator) -> list[PolicyEstimate]:
    """Estimates whose blocks are Gaussian with the covariance root root'."""
    rows = generator.standard_normal((400, root.shape[1])) @ root.T + means
    values = rows.mean(axis=0)
    exact = [Interval(value, value, value) for value in values.tolist()]
    return [
        PolicyEstimate(arm, f"always {arm}", value, value, 400, 400.0, 1.0, 1.0, blocks)
        for arm, (value, blocks) in enumerate(zip(exact, ((rows - values) / 400).T, strict=True))
    ]


@pytest.mark.parametrize("n_policies", [2, 3, 10])
@pytest.mark.parametrize("n_worse", [0, 1])
def test_equal_policies_are_not_named_however_they_depend(n_policies: int, n_worse: int) -> None:
    """At most 2.5% of the draws, and hardly any of many policies. The others are worse by much or by little."""
    named = 0
    for seed in range(1000):
        generator = np.random.default_rng(seed)
        root = generator.standard_normal((n_policies, generator.integers(2, n_policies + 1)))
        root *= 10 ** generator.uniform(-1, 1, (n_policies, 1))
        n_below = min(n_worse, n_policies - 2)
        below = 10 ** generator.uniform(-2, 0, n_below)
        means = np.append(np.zeros(n_policies - n_below), -below)
        named += judge(drawn(means, root, generator), OutcomeRange(-99, 99)).best is not None
    assert named <= 25 + 2 * 5


POLICIES: list[Any] = [Means(), Tsallis(), 0, 1, UNIFORM, LOGGED]


@pytest.mark.parametrize("is_adaptive", [False, True])
@pytest.mark.parametrize("delay", [0.0, 30.0])
def test_equal_arms_are_hardly_ever_named(is_adaptive: bool, delay: float) -> None:
    """benchmarks/naming.py has more logs, and more kinds of them."""
    named = 0
    for seed in range(100):
        log = decided([0.2, 0.2], 400, seed, is_adaptive=is_adaptive, delay=delay)
        found = judge(evaluate_all(log, REWARDS, POLICIES), REWARDS)
        named += found.best is not None or found.best_arm is not None
    assert named <= 9  # 5% and two standard errors


def test_a_real_difference_is_named() -> None:
    right = 0
    for seed in range(50):
        found = judge(evaluate_all(decided([0.4, 0.2], 1500, seed), REWARDS, [0, 1, UNIFORM, LOGGED]), REWARDS)
        right += found.best is not None and found.best.policy == 0
        assert found.best is None or found.best_arm is found.best
    assert right >= 45


def said(log: Log) -> tuple[log_study.LogStudy, str, list[tuple[str, ...]]]:
    found = log_study.study(log, REWARDS)
    *_, section = log_sections.sections(found)
    return found, section.headline, list(section.tables[0].rows)


def test_equal_arms_are_said_to_be_alike() -> None:
    found, headline, rows = said(decided([0.3] * 4, 2000, seed=1))
    assert found.best is None
    assert len(found.may_be_best) == 12
    assert headline.startswith(
        "the 12 policies that the log can judge cannot be told apart. Any of them may be the best"
    )
    assert {row[2] for row in rows} == {"yes"}


def test_the_policies_that_may_be_best_are_named_and_the_best_arm() -> None:
    """A learner that soon found the best arm cannot be told from it. Both are better than the other arm."""
    found, headline, rows = said(decided([0.3, 0.2], 2000, seed=0))
    assert found.best is None
    assert [one.name for one in found.may_be_best] == ["always arm 0", "Means"]
    assert headline.startswith(
        "these policies cannot be told apart, and any may be the best: always arm 0, Means. 8 others are worse. Of the "
        "arms, arm 0 is the best, and the logged decisions got"
    )
    assert {row[0] for row in rows if row[2] == "yes"} == {"always arm 0", "Means"}
    assert {row[2] for row in rows} == {"yes", "no"}


def test_the_arms_that_the_best_arm_beats_may_not_be_best() -> None:
    """All pairs together would still let arm 1 pass. Winning every comparison of arms is enough to count it out."""
    found, headline, rows = said(decided([0.3, 0.2, 0.2], 3000, seed=0, delay=30))
    estimates = {one.name: one for one in found.estimates}
    assert 2.24 < lead(estimates["always arm 0"], estimates["always arm 1"], REWARDS) < 3
    assert found.best_arm is estimates["always arm 0"]
    assert [one.name for one in found.may_be_best] == ["always arm 0", "Means", "Shadow", "Tsallis"]
    assert "7 others are worse. Of the arms, arm 0 is the best" in headline
    assert {row[0]: row[2] for row in rows}["always arm 1"] == "no"


def with_a_rare_arm(chance: float) -> Log:
    """2,000 decisions between a good arm, a bad one and a rare one. The file says that the bad one has this chance."""
    generator = np.random.default_rng(1)
    arms = generator.choice(3, 2000, p=[0.48, 0.48, 0.04])
    values = (generator.random(2000) < np.array([0.6, 0.2, 0.2])[arms]).astype(float)
    times, chances = np.arange(2000.0), np.array([0.48, chance, 0.04])[arms]
    return Log(("good", "bad", "rare"), times, arms, values, times + 100, chances)


def test_a_policy_with_few_outcomes_is_not_judged() -> None:
    found, headline, rows = said(with_a_rare_arm(0.48))
    assert [one.name for one in found.verdict.thin] == ["always rare"]
    assert found.best is not None
    assert headline.startswith("of the 10 policies that the log can judge, the best is always good with 0.")
    assert {row[0]: row[2] for row in rows if row[2] != "no"} == {"always good": "yes", "always rare": "-"}


def test_a_policy_with_doubtful_probabilities_is_not_judged() -> None:
    found, _, _ = said(with_a_rare_arm(0.58))
    off = {one.name for one in found.verdict.off}
    assert "always bad" in off
    assert "always good" not in off
    assert not off & {one.name for one in found.may_be_best}


def test_doubtful_probabilities_of_all_arms_name_nothing() -> None:
    log = decided([0.5, 0.2], 2000, seed=1)
    wrong = np.where(log.arms == 0, 0.4, 0.6)
    found, headline, _ = said(Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times, wrong))
    assert {"uniform", "logged"} & {one.name for one in found.verdict.judged}
    assert found.best is None
    assert found.may_be_best == ()
    assert headline.startswith("the logged probabilities are too doubtful to name a best")


def test_results_have_the_policies_that_may_be_best(tmp_path: Path) -> None:
    path = write(decided([0.3, 0.2], 2000, seed=0), tmp_path / "log.csv")
    words = " ".join(run(str(path), "--reward", "--out", str(tmp_path / "out")).split())
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert results["best"] is None
    assert results["best arm"] == "always arm 0"
    assert results["may be best"] == ["always arm 0", "Means"]
    assert "blocks" not in results["estimates"][0]
    assert "these policies cannot be told apart, and any may be the best: always arm 0, Means." in words
