"""Fixed delays in an order that the adversary chooses, and what every algorithm must lose with them.

Cut the game into blocks such that no report of a block comes before its end. In each block the losses of an arm are all
0 or all 1, by one fair coin. Then nothing is known in time, so every algorithm has the same expected regret,

    E max_i sum over blocks b of |b| (1/2 - coin_{b,i}).

That is a lower bound for this order of the delays. A longer block costs more, so the adversary groups long delays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from belated import lab
from belated.arrays import Floats, Integers


def block_lengths(delays: Integers) -> Integers:
    """The longest blocks, one after the other, in which no report comes before the end."""
    waits, lengths, start = delays.tolist(), [], 0
    while start < len(waits):
        end = start  # the last round of the block, from 0
        first_report = start + waits[start]
        while end + 1 < len(waits) and first_report > end:
            end += 1
            first_report = min(first_report, end + waits[end])
        lengths.append(end - start + 1)
        start = end + 1
    return np.array(lengths)


@final
@dataclass(frozen=True, eq=False)
class Blocks(lab.Losses):
    """One fair coin for each arm and block, of the given lengths."""

    lengths: Integers

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        coins = generator.integers(0, 2, (self.lengths.size, n_arms)).astype(np.float64)
        yield np.repeat(coins, self.lengths, axis=0)[:n_rounds]


def must_lose(n_arms: int, lengths: Integers, samples: int, generator: np.random.Generator) -> Floats:
    """Samples of max_i sum_b |b| (1/2 - coin). Their mean is the regret that no algorithm avoids."""
    sizes, counts = np.unique(lengths, return_counts=True)
    heads = generator.binomial(counts, 0.5, (samples, n_arms, counts.size))
    return np.asarray(((counts / 2 - heads) @ sizes.astype(np.float64)).max(axis=1))
