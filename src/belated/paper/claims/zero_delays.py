"""Claim 8 says that without delays both tunings are Tsallis-INF (Zimmert & Seldin 2019)."""

import numpy as np

from belated import kernels, lab
from belated.arrays import Floats
from belated.paper.claim import OBLIVIOUS, Claim, ClaimKind, Effort, Finding, exactly
from belated.tunings import Advanced, Simple, Tsallis, Tuning

PAPER: tuple[Tuning, ...] = (Simple(), Advanced())


def tsallis_weights(losses: Floats, eta: float) -> Floats:
    """w_i = 4 (eta (L_i - z))^-2 with z such that they sum to 1, by bisection (ZS19, with their factor 4 and eta).

    Their regularizer is -4 sum (sqrt(w_i) - w_i / 2) / eta. With eta = 2 / sqrt(t) it is Belated's alpha = sqrt(t).
    """
    k = losses.size
    low, high = losses.min() - 2 * np.sqrt(k) / eta, losses.min() - 2 / eta
    for _ in range(200):
        z = (low + high) / 2
        low, high = (z, high) if (4 / (eta * (losses - z)) ** 2).sum() < 1 else (low, z)
    weights = 4 / (eta * (losses - z)) ** 2
    return np.asarray(weights / weights.sum())


def largest_gap(problem: lab.Problem, seed: int, effort: Effort) -> float:
    """The largest gap between the probabilities and the closed form, or the estimates and loss / probability.

    Both are computed from the game's own estimates. A second game would drift away even if the difference were tiny,
    because a smaller probability makes a larger estimate.
    """
    delays = problem.draw_delays(seed)
    game, gap = effort.game(Advanced(), problem, delays, seed), 0.0
    losses = np.vstack(list(problem.loss_blocks(seed, delays)))
    for t, row in enumerate(losses):
        estimates = game.policy[kernels.LOSSES].copy()
        weights = tsallis_weights(estimates, 2 / np.sqrt(t + 1))
        game.play(row[None, :])
        arm = int(game.arms[t])
        estimates[arm] += row[arm] / weights[arm]
        grown = np.abs(game.policy[kernels.LOSSES] - estimates) / np.maximum(estimates, 1.0)
        gap = float(np.max([gap, np.abs(game.policy[kernels.X] - weights).max(), grown.max()]))  # keeps a NaN
    return gap


def investigate(effort: Effort) -> Finding:
    """Play the same game with three tunings, and compare with the closed form."""
    n = effort.pick(20_000, 200_000)
    problems = [
        lab.Problem(losses, lab.NoDelay(), 8, n) for losses in (lab.Bernoulli(), lab.Constrained(), lab.Wave(50))
    ]
    games = same = 0
    at = lab.default_checkpoints(n).tolist()
    for problem in problems:
        for seed in effort.seeds(4, 16):
            runs = [effort.play(tuning, problem, range(seed, seed + 1), at) for tuning in PAPER]
            yardstick = lab.play(Tsallis(), problem, [seed], checkpoints=at)
            games += 1
            same += all((run.expected == yardstick.expected).all() for run in runs)
    short = lab.Problem(lab.Constrained(), lab.NoDelay(), 8, effort.pick(500, 3_000))
    gap = max(largest_gap(short, seed, effort) for seed in effort.seeds(2, 8))
    return Finding(
        f"simple, advanced and Tsallis-INF play the same {games} games bit for bit",
        [
            exactly("Both play Tsallis-INF's game, bit for bit", same == games, f"{same} of {games} games"),
            exactly("The probabilities are Tsallis-INF's closed form", gap < 1e-9, f"largest gap {gap:.1e}"),
        ],
    )


CLAIM = Claim(
    "zero-delays",
    "Zero delays: Tsallis-INF",
    ClaimKind.THEOREM,
    (
        "Without delays nothing is ever outstanding and β_t is 0. Only the 1/2-Tsallis entropy is left. The algorithm "
        "is then Tsallis-INF, which is optimal for both adversarial and stochastic losses.",
    ),
    investigate,
    f"{OBLIVIOUS} All delays are 0.",
    cost=1,
)
