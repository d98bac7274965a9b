"""`belated replay` on logs whose outcomes are missing, and how often healthy logs raise a false alarm."""

import json
import math
import random
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL, OutcomeRange
from belated.replay import Log, check, read
from tests.support.lossy_logs import healthy, positives_only, without, write
from tests.support.replays import run

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"
REWARDS = OutcomeRange(0, 1, better="higher")


def replayed(log: Log, folder: Path, *options: str) -> tuple[str, dict[str, Any], str]:
    """What the terminal says, results.json and the page."""
    path, out = write(log, folder / "log.csv"), folder / "out"
    words = " ".join(run(str(path), "--reward", "--out", str(out), *options).split())
    return words, json.loads((out / "results.json").read_text())["results"], (out / "report.html").read_text()


def test_positives_only_are_refused_a_best_everywhere(tmp_path: Path) -> None:
    words, results, page = replayed(positives_only(healthy(1)), tmp_path)
    for shown in (words, page):
        assert "Every reported outcome is 1" in shown
        assert "no best can be named, because the log has only one kind of outcome" in shown
        assert "If a blank means 0, say so with --default-outcome 0." in shown
        assert "no method can tell from the log" in shown
        assert "Not to be relied on. Mean outcome of a decision" in shown
        assert "the best is" not in shown
        assert "Are the logged probabilities" not in shown
    assert results["best"] is None
    assert [finding["kind"] for finding in results["check"]["findings"]] == ["one value", "missing"]
    assert results["check"]["p-values"]["missing"] < 0.001
    assert words.index("Whether outcomes are missing") < words.index("How late the feedback is")


def test_the_default_outcome_that_is_advised_gives_a_best(tmp_path: Path) -> None:
    words, results, page = replayed(
        positives_only(healthy(1, 8000, never=-1, is_drifting=False)), tmp_path, "--default-outcome", "0"
    )
    for shown in (words, page):
        assert "blanks count as 0 after" in shown
        assert "are left out." in shown
        assert "the best is always calm with 0.2" in shown
    assert results["best"] == "always calm"
    assert results["check"]["findings"] == []


def test_the_wait_that_is_advised_gives_a_best(tmp_path: Path) -> None:
    log = healthy(6, 12_000, is_drifting=False)
    exported = without(log, log.outcome_times > log.times[-1])
    words, results, _ = replayed(exported, tmp_path)
    assert results["best"] is None
    assert "Among the decisions of the last 2 days, calm has an outcome" in words
    advised = words.split("Leave these decisions out with --wait ")[1].split(".")[0]
    words, results, _ = replayed(exported, tmp_path, "--wait", advised)
    assert results["best"] == "always calm"
    assert "decisions younger than 2 days are left out." in words


def test_the_example_log_raises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of examples/make_log.py, with a hundred other seeds."""
    seeds = iter(range(100))
    original = random.Random
    monkeypatch.setattr(random, "Random", lambda _: original(next(seeds)))
    make_log = runpy.run_path(str(EXAMPLES / "make_log.py"))["main"]
    alarms = 0
    for _ in range(100):
        make_log(str(tmp_path / "log.csv"))
        alarms += bool(check(read(tmp_path / "log.csv"), REWARDS).findings)
    assert alarms <= 5


def learned(seed: int, n: int = 3000) -> Log:
    """A log whose arms a learner chose from the outcomes that had come. A tenth never comes, whatever the arm."""
    generator, learner = np.random.default_rng(seed + 10_000), FTRL(3, seed=seed)
    arms, chances, values = np.empty(n, np.int64), np.empty(n), np.empty(n)
    waits = np.where(generator.random(n) < 0.1, np.inf, generator.exponential(20, n))
    due: list[tuple[float, int]] = []
    for t in range(n):
        while due and due[0][0] <= t:
            learner.tell(due[0][1] + 1, 1 - values[due.pop(0)[1]])
        decision = learner.ask()
        arms[t], chances[t] = decision.arm, decision.probability
        values[t] = generator.random() < 0.1 + 0.2 * decision.arm
        if np.isfinite(waits[t]):
            due = sorted([*due, (t + waits[t], t)])
    times, outcomes = np.arange(n, dtype=np.float64), np.where(np.isfinite(waits), values, math.nan)
    return Log(("a", "b", "c"), times, arms, outcomes, np.asarray(times + waits), chances)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: healthy(seed, 4000),
        lambda seed: healthy(seed, 4000, is_drifting=False),
        lambda seed: healthy(seed, 4000, is_exported=True),
        lambda seed: healthy(seed, 20_000, is_exported=True, never=0.3),
    ],
    ids=["drifting", "steady", "exported", "large"],
)
def test_healthy_logs_raise_nothing(make: Callable[[int], Log]) -> None:
    """At most 1% of 1,000 logs. Three tests of 1 in 1,000 would be 3."""
    alarms = sum(bool(check(make(seed), REWARDS).findings) for seed in range(1000))
    assert alarms <= 10


def test_a_log_that_a_learner_wrote_raises_nothing() -> None:
    assert sum(bool(check(learned(seed), REWARDS).findings) for seed in range(60)) <= 3


@pytest.mark.parametrize("size", [1000, 4000])
@pytest.mark.parametrize("arm", [0, 1, 2])
def test_thirty_percent_of_an_arm_are_found(arm: int, size: int) -> None:
    """Among the failures only, as when an arm forgets to report them."""
    n_found = 0
    for seed in range(100):
        log = healthy(seed, size)
        is_lost = (log.arms == arm) & (log.outcomes == 0) & (np.random.default_rng(seed + 10_000).random(size) < 0.35)
        n_found += not check(without(log, is_lost), REWARDS).can_name_best
    assert n_found >= 99


def test_the_tests_keep_their_level() -> None:
    """Without a threshold on what matters, a p-value below 0.01 comes in about 1 of 100 healthy logs."""
    p_values = []
    for seed in range(1000):
        found = check(healthy(seed, 4000), REWARDS)
        p_values.append((found.rates.p_value, found.delays.p_value))
    shares = (np.array(p_values) < 0.01).mean(axis=0)
    assert (shares <= 0.02).all(), shares
    medians = np.median(p_values, axis=0)
    assert ((medians > 0.4) & (medians < 0.6)).all(), medians


def test_a_million_rows_are_checked_in_seconds() -> None:
    log = healthy(1, 1_000_000)
    start = time.perf_counter()
    check(log, REWARDS)
    assert time.perf_counter() - start < 30
