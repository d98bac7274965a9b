"""Zimmert & Seldin 2019, Figure 1."""

from belated.lab.literature.games import Played
from belated.lab.literature.records import Case, Paper, Published
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.losses import Constrained, Losses
from belated.lab.problems.problem import Problem

GAP, ARMS = 0.125, 8
STOCHASTIC = Bernoulli(gap=GAP, mean=(1 + GAP) / 2)
CONSTRAINED = Constrained(gap=GAP)


def _short(name: str, title: str, losses: Losses, values: tuple[float, ...]) -> Case:
    tsallis, exp3, ucb, thompson, exp3_plus, broad = values
    return Case(
        name=name,
        title=title,
        game=Played(Problem(losses, NoDelay(), ARMS, 10_000)),
        systems=("tsallis-inf", "thompson", "exp3-adaptive", "means"),
        published=(
            Published("Tsallis-INF", tsallis, "tsallis-inf", reading=2),
            Published("Thompson sampling", thompson, "thompson", reading=2),
            Published("Exp3", exp3, reading=2),
            Published("UCB1 (alpha = 1.5)", ucb, reading=2),
            Published("Exp3++", exp3_plus, reading=2),
            Published("Broad", broad, reading=2),
        ),
        runs=1000,
        full_seeds=200,
        fewer={"thompson": 32},
    )


def _long(name: str, title: str, losses: Losses, tsallis: float) -> Case:
    return Case(
        name=name,
        title=title,
        game=Played(Problem(losses, NoDelay(), ARMS, 10_000_000)),
        systems=("tsallis-inf", "means"),
        published=(Published("Tsallis-INF", tsallis, "tsallis-inf", reading=10),),
        runs=1000,
        full_seeds=6,
        fewer={"means": 3},
        quick_rounds=100_000,
    )


PAPER = Paper(
    name="zimmert-seldin-2019",
    citation="J. Zimmert, Y. Seldin. An Optimal Algorithm for Stochastic and Adversarial Bandits. AISTATS 2019",
    settings="8 arms, gap 1/8, no delay. (a) Coin flips of means (1 - gap)/2 and (1 + gap)/2. (b) The means of (best "
    "arm, others) switch between (1 - gap, 1) and (0, gap) in phases whose lengths grow exponentially",
    read="Settings in Section 8, numbers at the ends of the curves of Figure 1, a vector graphic. The factor 1.6 by "
    "which phases grow is recalled. The rate of its Exp3 is not stated, so exp3-adaptive only stands beside it",
    cases=(
        _short("zimmert-seldin-2019-a", "(a) stochastic", STOCHASTIC, (284.8, 382.8, 416.8, 115.5, 380.9, 1063)),
        _short("zimmert-seldin-2019-b", "(b) constrained", CONSTRAINED, (278.9, 373.0, 791.2, 575.3, 370.1, 1053)),
        _long("zimmert-seldin-2019-a-long", "(a) 10,000,000 rounds", STOCHASTIC, 991),
        _long("zimmert-seldin-2019-b-long", "(b) 10,000,000 rounds", CONSTRAINED, 998),
    ),
)
