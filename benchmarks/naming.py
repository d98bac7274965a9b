"""How often replay names a best policy, on logs whose arms are equal and on logs with a real difference.

    .venv/bin/python -m benchmarks.naming                 # 1,000 logs of each kind, about 15 minutes on two cores
    .venv/bin/python -m benchmarks.naming --logs 100 80   # fewer logs, only the kinds whose name contains 80

The columns are the share of logs in which replay

    wrong   names a policy or an arm although another one that it judged is as good
    best    names the best arm as the best policy
    arm     names the best arm, at least as the best of the arms
    first   gives the best estimate to a best arm. Without a test it would name that policy
    lost    does not count arm 0, which is a best one, among those that may be
    alarm   doubts the logged probabilities, which are right

and the mean number of policies that may be the best. Kinds with one best arm have a fifth of the logs. Exits with 1 if
more than 5% of the logs, and two standard errors, are wrong or raise an alarm.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from belated import OutcomeRange
from belated.replay import LOGGED, UNIFORM, evaluate_all
from belated.replay.off_policy import Policy
from belated.replay.verdict import LEVEL, judge
from belated.tunings import Means, Tsallis
from tests.support.decided_logs import decided

REWARDS = OutcomeRange(0, 1, better="higher")


SHARES = ("wrong", "best", "arm", "first", "lost", "alarm")


class Kind(NamedTuple):
    """Logs of k arms, of which the first `n_best` are better by `gap`."""

    k: int
    n: int
    is_adaptive: bool
    delay: float
    gap: float = 0.0
    n_best: int = 1
    base: float = 0.2

    @property
    def policies(self) -> list[Policy]:
        """Single arms, uniform play, the log itself and two learners. Many equal arms do without, to save time.

        It is easier to be named among fewer rivals.
        """
        learners = [] if self.k == 80 and not self.gap else [Means(), Tsallis()]
        return [*learners, *range(self.k), UNIFORM, LOGGED]

    @property
    def name(self) -> str:
        """What is special about it."""
        who = "a learner" if self.is_adaptive else "uniform"
        late = f", {self.delay:.0f} late" if self.delay else ""
        gap = f", {self.n_best} better by {self.gap:g}" if self.gap else ""
        return f"{self.k} arms at {self.base:g}, {self.n:,} rows, {who}{late}{gap}"


class Told(NamedTuple):
    """What replay says about one log, as above."""

    wrong: bool
    best: bool
    arm: bool
    first: bool
    lost: bool
    alarm: bool
    n_judged: int
    n_may_be: int


def equal() -> Iterator[Kind]:
    """No policy is better than another, or two arms are equally good and all policies worse."""
    for k, n in ((2, 600), (10, 2000), (80, 9600)):
        for is_adaptive in (False, True):
            for delay in (0.0, 50.0):
                yield Kind(k, n, is_adaptive, delay)
    yield Kind(2, 2000, is_adaptive=True, delay=0.0, base=0.03)
    yield Kind(10, 3000, is_adaptive=False, delay=0.0, gap=0.3, n_best=2)
    yield Kind(10, 6000, is_adaptive=True, delay=0.0, gap=0.3, n_best=2)


def different() -> Iterator[Kind]:
    """One arm is the best."""
    for k, n, gap in ((2, 1000, 0.1), (2, 2000, 0.1), (10, 3000, 0.15), (10, 6000, 0.15), (80, 12000, 0.25)):
        yield Kind(k, n, is_adaptive=False, delay=0.0, gap=gap)
    for k, n, gap in ((2, 2000, 0.1), (10, 6000, 0.15), (80, 12000, 0.25)):
        yield Kind(k, n, is_adaptive=True, delay=50.0, gap=gap)


def tell(kind: Kind, seed: int) -> Told:
    """Judge one log."""
    rates = np.full(kind.k, kind.base)
    rates[: kind.n_best] += kind.gap
    log = decided(rates, kind.n, seed, is_adaptive=kind.is_adaptive, delay=kind.delay)
    found = judge(evaluate_all(log, REWARDS, kind.policies), REWARDS)
    is_best = {one.policy: isinstance(one.policy, int) and one.policy < kind.n_best for one in found.judged}
    leader = max(found.judged, key=lambda one: one.snips.value)
    named = [one.policy for one in (found.best, found.best_arm) if one is not None]
    rivals = [policy for policy in is_best if is_best[policy] or kind.gap == 0]  # the truth: none is better than these
    return Told(
        wrong=any(set(rivals) - {policy} for policy in named),
        best=found.best is not None and is_best[found.best.policy],
        arm=any(is_best[policy] for policy in named),
        first=is_best[leader.policy],
        lost=0 in is_best and 0 not in [one.policy for one in found.may_be_best],
        alarm=bool(found.off),
        n_judged=len(found.judged),
        n_may_be=len(found.may_be_best),
    )


def measured(kind: Kind, logs: int, pool: ProcessPoolExecutor) -> dict[str, float]:
    """The shares of the logs in percent, and the mean numbers of policies."""
    told = np.array(list(pool.map(partial(tell, kind), range(logs), chunksize=5)), float).mean(axis=0)
    return dict(zip(Told._fields, (*(100 * told[:-2]), *told[-2:]), strict=True))


def row(kind: Kind, found: dict[str, float]) -> None:
    """Print the figures of a kind."""
    shares = "  ".join(f"{found[name]:5.1f}%" for name in SHARES)
    print(f"{kind.name:66} {shares}  {found['n_may_be']:5.1f} of {found['n_judged']:4.1f}", flush=True)


def main() -> None:
    """Measure all kinds, or those whose name contains a text."""
    options = argparse.ArgumentParser()
    options.add_argument("--logs", type=int, default=1000)
    options.add_argument("wanted", nargs="?", default="")
    chosen = options.parse_args()
    kinds = [(kind, chosen.logs) for kind in equal()] + [(kind, max(chosen.logs // 5, 1)) for kind in different()]
    is_missed = False
    print(f"{'':66} {'  '.join(f'{name:>6}' for name in SHARES)}  may be best")
    with ProcessPoolExecutor(2) as pool:
        for kind, logs in (one for one in kinds if chosen.wanted in one[0].name):
            found = measured(kind, logs, pool)
            row(kind, found)
            bar = 100 * (LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / logs))
            is_missed |= max(found["wrong"], found["alarm"]) > bar
    sys.exit(int(is_missed))


if __name__ == "__main__":
    main()
