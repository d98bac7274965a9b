"""Chapelle & Li 2011, Table 1."""

from belated.lab.literature.changing_items import THOMPSON, ChangingItems
from belated.lab.literature.records import Case, Paper, Published

TABLE_1 = {  # rounds between two batches of feedback: Thompson sampling, UCB
    1: (9_105, 24_145),
    3: (9_199, 24_695),
    10: (9_049, 25_662),
    32: (9_451, 28_148),
    100: (11_550, 37_141),
    316: (21_594, 77_687),
    1000: (59_256, 226_220),
}
LONG = (100, 316, 1000)  # here it matters when in a batch an item may change
OURS = (1, 1000)  # where ours plays too


def _case(batch: int, *, between: bool = False) -> Case:
    thompson, ucb = TABLE_1[batch]
    return Case(
        name=f"chapelle-li-2011-{batch}" + "-between" * between,
        title=f"feedback every {batch} rounds" + ", changes between batches" * between,
        game=ChangingItems(batch, between),
        systems=(THOMPSON, "means") if batch in OURS else (THOMPSON,),
        published=(Published("Thompson sampling", thompson, THOMPSON), Published("UCB", ucb)),
        runs=100,
        seeds=8,
        full_seeds=12,
        fewer={"means": 3},
        quick_rounds=20_000,
    )


PAPER = Paper(
    name="chapelle-li-2011",
    citation="O. Chapelle, L. Li. An Empirical Evaluation of Thompson Sampling. NIPS 2011",
    settings="10 items with success rates from Beta(4, 4). With probability 0.001 in each round, a new item replaces "
    "one. Feedback comes every delta rounds. 1,000,000 rounds. The regret is against the best item of each round",
    read="Settings and numbers in Section 3 and Table 1. It does not say when in a batch an item may change, so both "
    "ways are played. The formula of its UCB could not be read",
    cases=(*(_case(batch) for batch in TABLE_1), *(_case(batch, between=True) for batch in LONG)),
)
