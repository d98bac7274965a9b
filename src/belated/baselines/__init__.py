"""Published systems that are not a tuning of FTRL, one file each.

Every system has `ask`, `tell` and `distribution`. Two class attributes mark systems that need something else.

    needs_delay = True     `ask(delay)` takes the delay of the round being decided
    feedback = "sum"       `tell_sum(total)` may replace `tell`, because only the sum of the arriving losses is used
    feedback = "vector"    `tell_vector(round, losses)` replaces `tell` and takes the losses of all arms

A file with a published or derived bound has a function `bound`. Unlike FTRL, these learners are not thread-safe.

>>> from belated.baselines import DelayedUCB1
>>> learner = DelayedUCB1(2)
>>> for loss in (0.9, 0.1, 0.2):
...     decision = learner.ask()
...     learner.tell(decision.round, loss)
>>> learner.ask()
Decision(round=4, arm=1, probability=1.0)

A tag says where a rule or a constant comes from. [read] means from the paper. [derived] means proven in
docs/theory/baselines.md for the rule as it is here. [recalled] means as commonly quoted, and then there is no bound.
"""

from belated.baselines.base_learners import Base, MakeBase
from belated.baselines.bold import BOLD
from belated.baselines.bootstrapped_conversions import BootstrappedConversions
from belated.baselines.bzcbb_doubling import BZCBBDoubling
from belated.baselines.composite import Composite
from belated.baselines.delayed_ucb import DelayedUCB1
from belated.baselines.doubling import Doubling, WaitingDoubling
from belated.baselines.epsilon_greedy import EpsilonGreedy
from belated.baselines.explore_then_commit import ExploreThenCommit
from belated.baselines.hoeven_2022 import Hoeven2022
from belated.baselines.masoudian_2024 import Masoudian2024
from belated.baselines.mixed_exp3 import MixedExp3
from belated.baselines.one_arm import OneArm
from belated.baselines.patient_bandits import PatientBandits
from belated.baselines.queued import Queued
from belated.baselines.skipper import Skipper
from belated.baselines.solid import SOLID
from belated.baselines.successive_elimination import OptimisticPessimistic, SuccessiveElimination
from belated.baselines.thompson import ThompsonSampling
from belated.baselines.tsallis_reduced_variance import TsallisReducedVariance
from belated.baselines.uniform import UniformRandom

__all__ = [
    "BOLD",
    "SOLID",
    "BZCBBDoubling",
    "Base",
    "BootstrappedConversions",
    "Composite",
    "DelayedUCB1",
    "Doubling",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "Hoeven2022",
    "MakeBase",
    "Masoudian2024",
    "MixedExp3",
    "OneArm",
    "OptimisticPessimistic",
    "PatientBandits",
    "Queued",
    "Skipper",
    "SuccessiveElimination",
    "ThompsonSampling",
    "TsallisReducedVariance",
    "UniformRandom",
    "WaitingDoubling",
]
