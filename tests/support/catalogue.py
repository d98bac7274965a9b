"""Every learner of the package, by name. A new algorithm is added here and must pass the contract."""

import math
from collections.abc import Callable

from belated import FTRL, Learner
from belated.baselines import (
    BOLD,
    BootstrappedConversions,
    BZCBBDoubling,
    Composite,
    DelayedUCB1,
    Doubling,
    EpsilonGreedy,
    ExploreThenCommit,
    Hoeven2022,
    Masoudian2024,
    MixedExp3,
    OneArm,
    OptimisticPessimistic,
    PatientBandits,
    Queued,
    Skipper,
    SuccessiveElimination,
    ThompsonSampling,
    TsallisReducedVariance,
    UniformRandom,
    WaitingDoubling,
)
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Means, Shadow, Simple, Tsallis, Tuning


class Own(Tuning):
    """A rule that a user might write, with twice the entropy rate of the simple tuning."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return math.sqrt(round), 2 * math.sqrt(2 * backlog / math.log(n_arms))


TUNINGS: dict[str, Tuning] = {
    "simple": Simple(),
    "simple, scaled": Simple(scale=0.3),
    "advanced": Advanced(),
    "advanced, scaled": Advanced(scale=2.5),
    "advanced, discarding": Advanced(discard=True),
    "tsallis": Tsallis(),
    "shadow": Shadow(),
    "shadow, quick to fear": Shadow(scale=1.0, switch_threshold=0.01),
    "means": Means(),
    "means, quick to fear": Means(boldness=0.5, scale=1.0, switch_threshold=0.01),
    "exp3": Exp3(eta=0.05),
    "adaptive exp3": AdaptiveExp3(),
    "own rule": Own(),
}


Maker = Callable[[int, int], Learner]


def ftrl(tuning: Tuning, refresh: int = 1) -> Maker:
    """A maker of learners from a number of arms and a seed."""
    return lambda n_arms, seed: FTRL(n_arms, tuning, seed=seed, refresh=refresh)


# These do not learn within 3,000 rounds or in a stretch without reports. test_baselines.py says when they do.
NOT_LEARNING: dict[str, Maker] = {
    "uniform random": lambda n_arms, seed: UniformRandom(n_arms, seed=seed),
    "one arm": lambda n_arms, seed: OneArm(n_arms, seed=seed),
    "bold": lambda n_arms, seed: BOLD(n_arms, seed=seed),  # without reports every decision starts a new instance
    "bzcbb doubling": lambda n_arms, seed: BZCBBDoubling(n_arms, seed=seed),  # it has just restarted
    "masoudian 2024": lambda n_arms, seed: Masoudian2024(n_arms, seed=seed),  # skips delay 10 at first, and is slow
}

BASELINES: dict[str, Maker] = {
    "tsallis, reduced variance": lambda n_arms, seed: TsallisReducedVariance(n_arms, seed=seed),
    "tsallis, reduced variance, paper": lambda n_arms, seed: TsallisReducedVariance(
        n_arms, paper_rates=True, seed=seed
    ),
    "delayed ucb1": lambda n_arms, seed: DelayedUCB1(n_arms, seed=seed),
    "queued ucb1": lambda n_arms, seed: Queued(n_arms, seed=seed),
    "queued tsallis": lambda n_arms, seed: Queued(n_arms, lambda k, s: FTRL(k, Tsallis(), seed=s), seed=seed),
    "thompson sampling": lambda n_arms, seed: ThompsonSampling(n_arms, seed=seed),
    "skipper": lambda n_arms, seed: Skipper(n_arms, 100, seed=seed),
    "doubling": lambda n_arms, seed: Doubling(n_arms, seed=seed),
    "doubling, waiting": lambda n_arms, seed: WaitingDoubling(n_arms, seed=seed),
    "exp3, mixed": lambda n_arms, seed: MixedExp3(n_arms, 0.1, seed=seed),
    "hoeven 2022": lambda n_arms, seed: Hoeven2022(n_arms, 10, seed=seed),
    "epsilon-greedy": lambda n_arms, seed: EpsilonGreedy(n_arms, gap=0.5, seed=seed),
    "explore then commit": lambda n_arms, seed: ExploreThenCommit(n_arms, 20, seed=seed),
    "successive elimination": lambda n_arms, seed: SuccessiveElimination(n_arms, 3000, seed=seed),
    "opse": lambda n_arms, seed: OptimisticPessimistic(n_arms, 3000, seed=seed),
    "bootstrapped conversions": lambda n_arms, seed: BootstrappedConversions(n_arms, seed=seed),
    "patient bandits": lambda n_arms, seed: PatientBandits(n_arms, 3000, seed=seed),
    "composite": lambda n_arms, seed: Composite(n_arms, 11, lambda k, s: FTRL(k, Exp3(0.5), seed=s), seed=seed),
}

DETERMINISTIC = {  # the seed changes nothing
    "one arm",
    "delayed ucb1",
    "queued ucb1",
    "explore then commit",
    "successive elimination",
    "opse",
    "patient bandits",
}

LEARNERS: dict[str, Maker] = {
    **{name: ftrl(tuning) for name, tuning in TUNINGS.items()},
    "advanced, refresh 7": ftrl(Advanced(), refresh=7),
    **BASELINES,
    **NOT_LEARNING,
}
