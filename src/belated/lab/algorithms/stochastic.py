"""The systems for independent, identically distributed losses, by name."""

from belated import baselines
from belated.baselines import delayed_ucb, queued, successive_elimination
from belated.lab.algorithms import rates
from belated.lab.algorithms.algorithm import Algorithm

JGS13, LSKM21 = "Joulani, Gyorgy & Szepesvari 2013", "Lancewicki, Segal, Koren & Mansour 2021"
STOCHASTIC = (
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
        "epsilon-greedy",
        "the least mean of what has been observed, and some uniform play that fades",
        "Auer, Cesa-Bianchi & Fischer 2002",
        "stochastic losses, the gap",
        "derived",
        rates.make_epsilon_greedy,
        rates.bound_epsilon_greedy,
    ),
    Algorithm(
        "explore-then-commit",
        "all arms in turn, and then one arm for ever",
        "Lattimore & Szepesvari 2020, Algorithm 1",
        "stochastic losses, n",
        "derived",
        rates.make_explore_then_commit,
        rates.bound_explore_then_commit,
    ),
    Algorithm(
        "successive-elimination",
        "all arms in turn, without those that are known to be worse",
        LSKM21,
        "stochastic losses, n",
        "derived",
        lambda s: lambda k, seed: baselines.SuccessiveElimination(k, s.n_rounds, seed=seed),
        rates.stochastic(successive_elimination.bound),
    ),
    Algorithm(
        "opse",
        "the same, where a missing outcome may be anything: for delays that depend on the outcome",
        LSKM21,
        "stochastic losses, n",
        "derived",
        lambda s: lambda k, seed: baselines.OptimisticPessimistic(k, s.n_rounds, seed=seed),
        rates.stochastic(successive_elimination.bound_opse),
    ),
    Algorithm(
        "patient-bandits",
        "UCB where a reward of 0 and a missing one look alike",
        "Gael, Vernade, Carpentier & Valko 2020, Algorithm 1",
        "stochastic losses, n, the delays' tail",
        "derived",
        lambda s: lambda k, seed: baselines.PatientBandits(k, s.n_rounds, seed=seed),
        rates.bound_patient_bandits,
    ),
)
