"""The published systems that are not a tuning of FTRL, one file each; every one with `ask`, `tell` and `distribution`.

needs_delay = True     `ask(delay)` wants the delay of the round that is being decided
feedback = "sum"       `tell_sum(total)` with the sum of what arrives may replace `tell`; nothing else is used
feedback = "vector"    `tell_vector(round, losses)` with the losses of all arms replaces `tell`

A file with a published or derived bound has it as its function `bound`. Unlike FTRL they are not for several threads.
"""

from belated.baselines.base_learners import Base, MakeBase
from belated.baselines.bold import BOLD
from belated.baselines.bzcbb_doubling import BZCBBDoubling
from belated.baselines.composite import Composite
from belated.baselines.delayed_ucb import DelayedUCB1
from belated.baselines.doubling import Doubling, WaitingDoubling
from belated.baselines.masoudian_2024 import Masoudian2024
from belated.baselines.one_arm import OneArm
from belated.baselines.queued import Queued
from belated.baselines.skipper import Skipper
from belated.baselines.solid import SOLID
from belated.baselines.tsallis_reduced_variance import TsallisReducedVariance
from belated.baselines.uniform import UniformRandom

__all__ = [
    "BOLD",
    "SOLID",
    "BZCBBDoubling",
    "Base",
    "Composite",
    "DelayedUCB1",
    "Doubling",
    "MakeBase",
    "Masoudian2024",
    "OneArm",
    "Queued",
    "Skipper",
    "TsallisReducedVariance",
    "UniformRandom",
    "WaitingDoubling",
]
