"""ZS20's Algorithm 2 as the paper prints it. It takes quadratic time and is easy to compare with the page."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Algorithm2(NamedTuple):
    """The backlog D_t of every round, the skipped rounds S, and the new skips of every round."""

    backlog: list[int]
    skipped: set[int]
    new_skips: list[list[int]]


def algorithm_2(n_arms: int, delays: Sequence[int]) -> Algorithm2:
    """If min{d_s, t - s} > sqrt(D_t / ln k) in round t > s, then a_s = 0 from t + 1 on."""
    n = len(delays)
    counts = dict.fromkeys(range(1, n + 1), True)  # the paper's indicators a_s
    total, backlog, new_skips = 0, [], []
    for t in range(1, n + 1):
        total += sum(counts[s] for s in range(1, t) if s + delays[s - 1] >= t)
        backlog.append(total)
        satisfied = [s for s in range(1, t) if min(delays[s - 1], t - s) > math.sqrt(total / math.log(n_arms))]
        new_skips.append([s for s in satisfied if counts[s]])
        for s in satisfied:
            counts[s] = False
    return Algorithm2(backlog, {s for s, counted in counts.items() if not counted}, new_skips)
