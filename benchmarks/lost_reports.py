"""What lost reports cost: regret with a share of some options' reports lost, over that of the same game without loss.

What is not seen must be tried more often. So with a share p lost, 1 / (1 - p) times the regret would be fair.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import belated
from belated import lab
from belated.arrays import Floats
from belated.lab.games.compiled import CompiledMeans
from benchmarks.judging import judge

N, SEEDS, DELAY = 20_000, range(2000, 2040), 10
RATES = (
    (0.05, 0.03),
    (0.15, 0.08),
    (0.5, 0.1),
    (0.75, 0.25),
    (0.95, 0.06),
)  # loss rate, and how much less the best has
Lost = NDArray[np.bool_]
Arms = NDArray[np.int32]


class Case(NamedTuple):
    """Coin flips, of which arm 0 is the best. The victims lose a share of their reports."""

    k: int
    mean: float
    gap: float
    share: float
    victims: str

    @property
    def problem(self) -> lab.Problem:
        """The problem without loss."""
        means = [self.mean - self.gap, *[self.mean] * (self.k - 1)]
        return lab.Problem(lab.Bernoulli(means=means), lab.Fixed(DELAY), self.k, N)

    def losses(self, seed: int) -> Floats:
        """The loss matrix."""
        return np.vstack(list(self.problem.loss_blocks(seed, self.problem.draw_delays(seed))))

    def lost(self, seed: int) -> Lost:
        """Whose reports do not come, round by round."""
        arms = np.arange(self.k)
        victims = {"a worse one": arms == 1, "the best one": arms == 0, "all but the best": arms > 0}[self.victims]
        return np.asarray((np.random.default_rng((seed, 7)).random((N, self.k)) < self.share) & victims)


def arms_left_open(case: Case, seed: int, lost: Lost | None) -> Arms:
    """The arms that the default draws if lost rounds stay open."""
    game = CompiledMeans(belated.tunings.Means(), case.problem, np.full(N, DELAY), seed)
    game.play(case.losses(seed), lost)
    return game.arms


def arms_given_up(case: Case, seed: int, lost: Lost) -> Arms:
    """The arms that the default draws if lost rounds are given up when their report would have come."""
    learner, losses = belated.FTRL(case.k, seed=seed), case.losses(seed).tolist()
    waiting: deque[belated.Decision[int]] = deque()
    arms = np.empty(N, np.int32)
    for t in range(N):
        waiting.append(learner.ask())
        arms[t] = waiting[-1].arm
        if t >= DELAY:
            due = waiting.popleft()
            if lost[t - DELAY, due.arm]:
                learner.give_up(due)
            else:
                learner.tell(due, losses[t - DELAY][due.arm])
    return arms


def mistakes(case: Case, *, give_up: bool = False) -> float:
    """The share of the games' draws that miss the best arm, over that with nothing lost: the ratio of the regrets."""
    play = arms_given_up if give_up else arms_left_open
    with_loss = sum(np.count_nonzero(play(case, seed, case.lost(seed))) for seed in SEEDS)
    whole = sum(np.count_nonzero(arms_left_open(case, seed, None)) for seed in SEEDS)
    return with_loss / whole


def cases(k: int, share: float) -> list[Case]:
    """All rates and all victims. With two arms, the worse one is all but the best."""
    victims = ("a worse one", "the best one", "all but the best")[: 2 if k == 2 else 3]
    return [Case(k, *rates, share, who) for rates in RATES for who in victims]


def regret() -> None:
    """The worst ratio for each number of arms and share, times (1 - p)."""
    print(
        f"\nlost reports: regret / the same with nothing lost, times (1 - p). {len(SEEDS)} games of {N:,} rounds each"
    )
    worst = 0.0
    with ThreadPoolExecutor(2) as pool:
        for k in (2, 10):
            for share in (0.1, 0.3, 0.5):
                found = {case: mistake * (1 - share) for case, mistake in _all(pool, cases(k, share)).items()}
                case = max(found, key=lambda case: found[case])
                worst = max(worst, found[case])
                print(
                    f"  k = {k:2}, p = {share:.0%}: worst {found[case]:.2f} of {len(found)}, {_named(case)}", flush=True
                )
    judge("rounds left open: worst regret ratio (1 - p)", worst, 1.3, "x", at_most=True)


def _all(pool: ThreadPoolExecutor, wanted: list[Case]) -> dict[Case, float]:
    return dict(zip(wanted, pool.map(mistakes, wanted), strict=True))


def _named(case: Case) -> str:
    return f"loss rate {case.mean:g}, the best {case.mean - case.gap:.2g}, {case.victims} loses"


def regret_given_up() -> None:
    """The same, through ask, tell and give_up, for some of the cases."""
    print("\nlost reports, rounds given up: regret / the same with nothing lost, times (1 - p)")
    worst = 0.0
    for k, share, rates, who in (
        (2, 0.3, (0.5, 0.1), "a worse one"),
        (2, 0.5, (0.95, 0.06), "the best one"),
        (2, 0.5, (0.15, 0.08), "a worse one"),
        (10, 0.5, (0.5, 0.1), "the best one"),
        (10, 0.3, (0.95, 0.06), "all but the best"),
        (10, 0.5, (0.15, 0.08), "a worse one"),
    ):
        case = Case(k, *rates, share, who)
        found = mistakes(case, give_up=True) * (1 - share)
        worst = max(worst, found)
        print(f"  k = {k:2}, p = {share:.0%}: {found:.2f}, {_named(case)}", flush=True)
    judge("rounds given up: worst regret ratio (1 - p)", worst, 1.3, "x", at_most=True)


def silent() -> None:
    """The share of an option that never reports, in the last half of the game."""
    print("\nan option that never reports: its share in the last half of the game, less 1/k")
    for k in (2, 3, 10):
        wanted = [Case(k, *rates, 1.0, who) for rates in RATES for who in ("a worse one", "the best one")]
        found = {case: share_of_silent(case, arms_left_open, SEEDS[:16]) for case in wanted}
        case = max(found, key=lambda case: found[case])
        closed = max(share_of_silent(case, arms_given_up, SEEDS[:4]) for case in (case, wanted[4], wanted[5]))
        print(f"  k = {k:2}: most if {_named(case)}; least {min(found.values()) - 1 / k:+.0%}", flush=True)
        judge(f"k = {k}: share, left open", 100 * (found[case] - 1 / k), 10, "%", at_most=True)
        judge(f"k = {k}: share, given up", 100 * (closed - 1 / k), 10, "%", at_most=True)


def share_of_silent(case: Case, play: Callable[[Case, int, Lost], Arms], seeds: range) -> float:
    """The mean share of the option that loses all reports, in the last half of the games."""
    games = np.array([play(case, seed, case.lost(seed))[N // 2 :] for seed in seeds])
    return float(np.mean(games == (case.victims == "a worse one")))
