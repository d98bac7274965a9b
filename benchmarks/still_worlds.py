"""The default's regret over Thompson sampling's in worlds that stand still.

The settings of belated.tunings.Means were chosen on the problems of means_search.py. These are others.
"""

from belated import lab
from belated.tunings import DEFAULT
from benchmarks.judging import judge
from benchmarks.worlds import Coins, Spread, geometric_mean, mean_regret, thompson

N, SEEDS, LEAST = 20_000, range(3000, 3012), 5.0  # regrets below LEAST are noise
WAITS = {"no delay": lab.NoDelay(), "geometric 100": lab.Geometric(100), "fixed 1000": lab.Fixed(1000)}


def worlds() -> dict[str, lab.Losses]:
    """Success rates from 2% to 98%. Which arm is best depends on the seed."""
    return {
        "2%, the best 5%": Coins(0.98, 0.03),
        "12%, the best 18%": Coins(0.88, 0.06),
        "40%, the best 55%": Coins(0.6, 0.15),
        "77%, the best 85%": Coins(0.23, 0.08),
        "92%, the best 98%": Coins(0.08, 0.06),
        "evenly from 15% to 65%": Spread(0.35, 0.85),
    }


def ratio(problem: lab.Problem) -> float:
    """The default's mean regret over Thompson sampling's, each at least LEAST."""
    ours, rival = (max(LEAST, mean_regret(player, problem, SEEDS)) for player in (DEFAULT, thompson))
    return ours / rival


def regret() -> None:
    """The geometric mean over all problems."""
    print(f"\nstill worlds: mean regret of {len(SEEDS)} games of {N:,} rounds / Thompson sampling's, Beta(1, 1)")
    print(f"  {'success rates':30}" + "".join(f"{name:>14}" for name in WAITS))
    found: list[float] = []
    for k in (2, 10, 50):
        for name, losses in worlds().items():
            row = [ratio(lab.Problem(losses, delays, k, N)) for delays in WAITS.values()]
            found.extend(row)
            print(f"  k = {k:2}, {name:22}" + "".join(f"{cell:14.2f}" for cell in row), flush=True)
    mean = geometric_mean(found)
    print(
        f"  worst {max(found):.2f}. We aim for a geometric mean of 0.9: {'reached' if mean <= 0.9 else 'not reached'}"
    )
    judge(f"regret / Thompson sampling's, geometric mean of {len(found)}", mean, 1.3, "x", at_most=True)
