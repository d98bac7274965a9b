"""The systems that play the games of the literature, by name."""

from belated.baselines import PatientBandits, Queued, ThompsonSampling, UniformRandom
from belated.baselines.delayed_ucb import DelayedUCB1
from belated.lab.algorithms import BY_NAME, Algorithm
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import FTRL
from belated.suggestions import unknown_name
from belated.tunings import Advanced, Shadow

# they need nothing of the game in advance, so they also play where delays depend on what was drawn
MAKERS: dict[str, MakeLearner] = {
    "means": lambda k, seed: FTRL(k, seed=seed),
    "shadow": lambda k, seed: FTRL(k, Shadow(), seed=seed),
    "zs20-advanced": lambda k, seed: FTRL(k, Advanced(), seed=seed),
    "delayed-ucb1": lambda k, seed: DelayedUCB1(k, seed=seed),
    "thompson": lambda k, seed: ThompsonSampling(k, seed=seed),
    "qpm-d(thompson)": lambda k, seed: Queued(k, lambda k, seed: ThompsonSampling(k, seed=seed), seed=seed),
    "uniform": lambda k, seed: UniformRandom(k, seed=seed),
    "means(provisional)": lambda k, seed: FTRL(k, seed=seed, provisional=1.0),
    "patient-bandits(n=5000,alpha=0.1)": lambda k, seed: PatientBandits(k, 5000, 0.1, seed=seed),
    "patient-bandits(n=5000,alpha=0.5)": lambda k, seed: PatientBandits(k, 5000, 0.5, seed=seed),
}


def maker_of(name: str) -> MakeLearner:
    """Makes learners of this name."""
    if name not in MAKERS:
        raise unknown_name("system", name, MAKERS)
    return MAKERS[name]


def player_of(name: str) -> Algorithm | MakeLearner:
    """What plays a problem under this name. Compiled if the lab has it in its table."""
    return BY_NAME[name] if name in BY_NAME else maker_of(name)
