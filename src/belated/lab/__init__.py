"""The lab plays games with delayed feedback, at compiled speed.

>>> import belated
>>> from belated import lab
>>> problem = lab.Problem(lab.Bernoulli(gap=0.1), lab.Geometric(mean=20), n_arms=10, n_rounds=500)
>>> curves = lab.play(belated.tunings.Advanced(), problem, seeds=range(4))
"""

from belated.lab.algorithms import ALGORITHMS, Algorithm, find
from belated.lab.comparisons.compare import compare
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.results import Results
from belated.lab.games import replicas
from belated.lab.games.certify import Certified, certify
from belated.lab.games.curves import Curves, default_checkpoints
from belated.lab.games.play import play
from belated.lab.plans.plan import plan
from belated.lab.plans.results import PlanResults, PlanRow
from belated.lab.plans.settings import PlanSettings
from belated.lab.problems.delays import (
    NEVER,
    Bursts,
    Delays,
    DelaysFile,
    Fixed,
    Geometric,
    GivenDelays,
    Held,
    Lagged,
    Lost,
    NoDelay,
    Pareto,
    Permuted,
    Replicated,
    Unbalanced,
    Uniform,
)
from belated.lab.problems.losses import (
    Bernoulli,
    BlockCoins,
    Comeback,
    Constrained,
    GivenLosses,
    Losses,
    LossesFile,
    Shifting,
    Sine,
    Wave,
    spans,
)
from belated.lab.problems.problem import Problem

__all__ = [
    "ALGORITHMS",
    "NEVER",
    "Algorithm",
    "Bernoulli",
    "BlockCoins",
    "Bursts",
    "Certified",
    "Comeback",
    "Comparison",
    "Constrained",
    "Curves",
    "Delays",
    "DelaysFile",
    "Fixed",
    "Geometric",
    "GivenDelays",
    "GivenLosses",
    "Held",
    "Lagged",
    "Losses",
    "LossesFile",
    "Lost",
    "NoDelay",
    "Pareto",
    "Permuted",
    "PlanResults",
    "PlanRow",
    "PlanSettings",
    "Problem",
    "Replicated",
    "Results",
    "Shifting",
    "Sine",
    "Unbalanced",
    "Uniform",
    "Wave",
    "certify",
    "compare",
    "default_checkpoints",
    "find",
    "plan",
    "play",
    "replicas",
    "spans",
]
