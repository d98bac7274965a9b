"""Options that come and go: Table 1 of Chapelle & Li, An Empirical Evaluation of Thompson Sampling, NIPS 2011.

`belated reproduce chapelle-li-2011 --full` has the game, the published numbers and Thompson sampling itself.
"""

import numpy as np

from belated.lab.literature.changing_items import ChangingItems
from belated.lab.literature.papers.chapelle_li_2011 import TABLE_1
from benchmarks.judging import judge

BATCHES, SEEDS = (1, 10, 100, 1000), (11, 12, 13)


def table() -> None:
    """Ours beside the published figures."""
    rounds = ChangingItems().n_rounds
    print(f"\noptions that come and go: Chapelle & Li's Table 1, {len(SEEDS)} games of {rounds:,} rounds each")
    found = {}
    for delta in BATCHES:
        thompson, ucb = TABLE_1[delta]
        games = ChangingItems(delta).regrets("means", SEEDS, rounds)
        found[delta] = float(np.mean(games))
        figures = f"{found[delta]:7,.0f} ({min(games):,.0f} to {max(games):,.0f})"
        print(f"  delta = {delta:4}: {figures}, published Thompson {thompson:7,}, published UCB {ucb:8,}", flush=True)
    for delta, mean in found.items():
        thompson, ucb = TABLE_1[delta]
        judge(f"delta = {delta}: regret / published UCB's", mean / ucb, 1.0, "x", at_most=True)
        if delta <= 100:
            judge(f"delta = {delta}: regret / published Thompson's", mean / thompson, 2.5, "x", at_most=True)
