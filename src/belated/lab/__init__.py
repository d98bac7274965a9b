"""The lab plays games with delayed feedback, at compiled speed.

>>> import belated
>>> from belated import lab
>>> problem = lab.Problem(lab.Bernoulli(gap=0.1), lab.Geometric(mean=20), n_arms=10, n_rounds=500)
>>> curves = lab.play(belated.tunings.Advanced(), problem, seeds=range(4))
"""

from belated.lab.algorithms import ALGORITHMS, Algorithm, Setting, find, named
from belated.lab.comparisons.compare import compare
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.differences import Difference
from belated.lab.comparisons.results import Results
from belated.lab.comparisons.row import Row
from belated.lab.comparisons.sweep_grid import sweep
from belated.lab.comparisons.sweep_results import SweepResults
from belated.lab.games import replicas
from belated.lab.games.certify import Certified, certify
from belated.lab.games.curves import Curves, default_checkpoints
from belated.lab.games.play import play
from belated.lab.literature.naming import from_literature
from belated.lab.plans.plan import plan
from belated.lab.plans.results import PlanResults, PlanRow
from belated.lab.plans.settings import PlanSettings
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import (
    NEVER,
    Bursts,
    Delays,
    Fixed,
    Geometric,
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
from belated.lab.problems.duel import Duel, DuelGame
from belated.lab.problems.feedback import (
    ArmDelays,
    Feedback,
    LostByArm,
    OutcomeDelays,
    PositivesOnly,
    Reports,
)
from belated.lab.problems.given_delays import DelaysFile, GivenDelays
from belated.lab.problems.given_losses import GivenLosses, LossesFile
from belated.lab.problems.losses import (
    BlockCoins,
    CoinFlips,
    Comeback,
    Constrained,
    Deterministic,
    Losses,
    Shifting,
    Sine,
    Wave,
    spans,
)
from belated.lab.problems.problem import Problem
from belated.lab.problems.reacting import Reacting
from belated.lab.problems.shuffled import Shuffled
from belated.lab.problems.steps import Report, Step, StepGame

__all__ = [
    "ALGORITHMS",
    "NEVER",
    "Algorithm",
    "ArmDelays",
    "Bernoulli",
    "BlockCoins",
    "Bursts",
    "Certified",
    "CoinFlips",
    "Comeback",
    "Comparison",
    "Constrained",
    "Curves",
    "Delays",
    "DelaysFile",
    "Deterministic",
    "Difference",
    "Duel",
    "DuelGame",
    "Feedback",
    "Fixed",
    "Geometric",
    "GivenDelays",
    "GivenLosses",
    "Held",
    "Lagged",
    "Losses",
    "LossesFile",
    "Lost",
    "LostByArm",
    "NoDelay",
    "OutcomeDelays",
    "Pareto",
    "Permuted",
    "PlanResults",
    "PlanRow",
    "PlanSettings",
    "PositivesOnly",
    "Problem",
    "Reacting",
    "Replicated",
    "Report",
    "Reports",
    "Results",
    "Row",
    "Setting",
    "Shifting",
    "Shuffled",
    "Sine",
    "Step",
    "StepGame",
    "SweepResults",
    "Unbalanced",
    "Uniform",
    "Wave",
    "certify",
    "compare",
    "default_checkpoints",
    "find",
    "from_literature",
    "named",
    "plan",
    "play",
    "replicas",
    "spans",
    "sweep",
]
