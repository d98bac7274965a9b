"""Every system of ZS20's Table 1 and of the related work, by name.

The mark says where the constants come from. "read" means the paper's own text, "derived" means derived for this
project, and "recalled" means constants as commonly quoted.
"""

from belated import baselines, bounds
from belated.baselines import bold, composite, delayed_ucb, doubling, queued, skipper, solid, tsallis_reduced_variance
from belated.lab.algorithms import rates
from belated.lab.algorithms.algorithm import Algorithm
from belated.suggestions import unknown_name
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Masoudian2022, Means, Shadow, Simple, Tsallis

ZS20, ZS19 = "Zimmert & Seldin 2020", "Zimmert & Seldin 2019"
TCS19, BZCBB19 = "Thune, Cesa-Bianchi & Seldin 2019", "Bistritz, Zhou, Chen, Bambos & Blanchet 2019"
JGS13 = "Joulani, Gyorgy & Szepesvari 2013"
ALGORITHMS = (
    Algorithm(
        "zs20-simple",
        "hybrid regularizer, rate by all that is outstanding",
        f"{ZS20}, Theorem 1",
        "nothing",
        "read",
        lambda _: Simple(),
        lambda setting: bounds.theorem_1(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "zs20-advanced",
        "the same, but stops waiting for excessive delays",
        f"{ZS20}, Algorithm 2",
        "nothing",
        "read",
        lambda _: Advanced(),
        lambda setting: bounds.theorem_2_sharp(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "zs20-discard",
        "the same, and throws away what it no longer waits for",
        f"{ZS20}, Algorithm 2",
        "nothing",
        "read",
        lambda _: Advanced(discard=True),
        lambda setting: bounds.theorem_2(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "means",
        "the arms' means while the world stands still, then a shadow. The default",
        "Belated, docs/theory/means.md",
        "nothing",
        "derived",
        lambda _: Means(),
        lambda setting: bounds.means_worst_case(setting.n_arms, setting.delays),
    ),
    Algorithm(
        "shadow",
        "tsallis-inf and a careful learner side by side, and the one ahead decides",
        "Belated, docs/theory/shadow.md",
        "nothing",
        "derived",
        lambda _: Shadow(),
        lambda setting: bounds.certificate(setting.n_arms, setting.delays, Shadow()),
    ),
    Algorithm(
        "tsallis-inf",
        "blind to delays, importance-weighted",
        ZS19,
        "nothing",
        "read",
        lambda _: Tsallis(),
        rates.bound_tsallis,
    ),
    Algorithm(
        "exp3-adaptive",
        "exponential weights, rate by what is outstanding",
        "Gyorgy & Joulani 2021",
        "nothing",
        "derived",
        lambda _: AdaptiveExp3(),
        rates.bound_adaptive_exp3,
    ),
    Algorithm(
        "tsallis-rv",
        "Tsallis-INF with the reduced-variance estimator",
        ZS19,
        "nothing",
        "recalled",
        lambda _: lambda k, seed: baselines.TsallisReducedVariance(k, paper_rates=True, seed=seed),
        lambda s: None if s.total_delay else tsallis_reduced_variance.bound(s.n_arms, s.n_rounds),
    ),
    Algorithm(
        "exp3-coop",
        "Exp3 for one uniform delay, constant rate",
        "Cesa-Bianchi, Gentile, Mansour & Minora 2016 (NGMM16)",
        "n, d",
        "read",
        lambda setting: Exp3(rates.rate_ngmm(setting)),
        rates.bound_ngmm,
    ),
    Algorithm(
        "dew",
        "delayed exponential weights, constant rate",
        TCS19,
        "n, D, d_max",
        "recalled",
        lambda s: Exp3(skipper.dew_rate(s.n_arms, s.delays)),
        lambda s: skipper.bound(s.n_arms, s.delays),
    ),
    Algorithm(
        "skipper",
        "the same, without the rounds that take beta or longer",
        TCS19,
        "beta, n, D, delay at action time",
        "recalled",
        rates.make_skipper,
        lambda s: skipper.bound(s.n_arms, s.delays, rates.best_beta(s)),
    ),
    Algorithm(
        "doubling",
        "the same in epochs that double",
        TCS19,
        "delay at action time",
        "recalled",
        lambda _: lambda k, seed: baselines.Doubling(k, seed=seed),
        lambda s: doubling.bound(s.n_arms, s.delays),
    ),
    Algorithm(
        "doubling-waiting",
        "the same with ZS20's skipping: the time waited in place of the delay",
        f"{ZS20}, footnote",
        "nothing",
        "derived",
        lambda _: lambda k, seed: baselines.WaitingDoubling(k, seed=seed),
        lambda s: doubling.bound(s.n_arms, s.delays, known=False),
    ),
    Algorithm(
        "exp3-known",
        "constant-rate Exp3 with n and D known",
        BZCBB19,
        "n, D",
        "recalled",
        lambda setting: Exp3(rates.rate_bzcbb(setting)),
        rates.bound_bzcbb,
    ),
    Algorithm(
        "exp3-doubling",
        "Exp3 in epochs by what is missing; its analysis is disputed, so no bound",
        BZCBB19,
        "nothing",
        "recalled",
        lambda _: lambda k, seed: baselines.BZCBBDoubling(k, seed=seed),
    ),
    Algorithm(
        "composite",
        "wrapper for composite anonymous feedback: sees only sums",
        "Cesa-Bianchi, Gentile & Mansour 2018 (CGM18)",
        "d",
        "read",
        lambda s: lambda k, seed: baselines.Composite(k, max(2, s.longest_delay + 1), seed=seed),
        lambda s: composite.bound(s.n_arms, s.n_rounds, max(2, s.longest_delay + 1)),
    ),
    Algorithm(
        "solid",
        "full information: Hedge fed with whole loss vectors as they arrive",
        "Joulani, Gyorgy & Szepesvari 2016 (JGS16)",
        "the losses of all arms",
        "derived",
        lambda _: lambda k, seed: baselines.SOLID(k, seed=seed),
        lambda s: solid.bound(s.n_arms, s.n_rounds, s.total_delay),
    ),
    Algorithm(
        "bold",
        "a pool of Tsallis-INF learners, each waiting for its own feedback",
        JGS13,
        "nothing",
        "read",
        lambda _: lambda k, seed: baselines.BOLD(k, seed=seed),
        lambda s: bold.bound(s.n_arms, s.n_rounds, s.most_outstanding),
    ),
    Algorithm(
        "delayed-ucb1",
        "UCB1 on what has been observed",
        JGS13,
        "stochastic losses",
        "read",
        lambda _: lambda k, seed: baselines.DelayedUCB1(k, seed=seed),
        rates.stochastic(delayed_ucb.bound),
    ),
    Algorithm(
        "qpm-d",
        "UCB1 behind a queue of observations for each arm",
        JGS13,
        "stochastic losses",
        "read",
        lambda _: lambda k, seed: baselines.Queued(k, seed=seed),
        rates.stochastic(queued.bound),
    ),
    Algorithm(
        "thompson",
        "Thompson sampling on what has been observed",
        "Chapelle & Li 2011, Agrawal & Goyal 2012",
        "stochastic losses",
        "read",
        lambda _: lambda k, seed: baselines.ThompsonSampling(k, seed=seed),
    ),
    Algorithm(
        "masoudian-2022",
        "best of both worlds with a known largest delay",
        "Masoudian, Zimmert & Seldin 2022",
        "d_max",
        "recalled",
        lambda s: Masoudian2022(s.longest_delay),
        lambda s: bounds.certificate(s.n_arms, s.delays, Masoudian2022(s.longest_delay)),
    ),
    Algorithm(
        "masoudian-2024",
        "best of both worlds, robust to excessive delays",
        "Masoudian, Zimmert & Seldin 2024",
        "nothing",
        "read",
        lambda _: lambda k, seed: baselines.Masoudian2024(k, seed=seed),
    ),
    Algorithm(
        "uniform",
        "every arm alike",
        "-",
        "nothing",
        "-",
        lambda _: lambda k, seed: baselines.UniformRandom(k, seed=seed),
        lambda s: s.n_rounds * (1 - 1 / s.n_arms),
    ),
    Algorithm(
        "best-arm",
        "the best single arm in hindsight",
        "-",
        "all losses",
        "-",
        lambda s: lambda k, seed: baselines.OneArm(k, s.best_arm(), seed=seed),
        lambda _: 0.0,
    ),
)
BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}


def find(name: str) -> Algorithm:
    """An algorithm by its name. The error for a wrong name suggests similar ones."""
    if name not in BY_NAME:
        raise unknown_name("algorithm", str(name), BY_NAME)
    return BY_NAME[name]
