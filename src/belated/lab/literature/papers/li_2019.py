"""Li, Chen & Giannakis 2019, Figure 5 (a)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.lab.literature.games import Played
from belated.lab.literature.records import Case, Paper, Published
from belated.lab.problems.given_delays import GivenDelays
from belated.lab.problems.losses import Deterministic, spans
from belated.lab.problems.problem import Problem
from belated.lab.problems.shuffled import Shuffled

ARMS, ROUNDS, SCALE = 5, 2000, 2.0
PERIOD = (1, 2, 1, 0, 3, 0, 2)


@final
@dataclass(frozen=True)
class SuddenChange(Deterministic):
    """0.4 i |cos t| for arm i = 1..5 in the first 500 rounds, then 0.2 i |sin 2t|. Divided by 2, the largest."""

    def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Iterator[Floats]:
        for start, stop in spans(n_rounds, n_arms):
            t, arm = np.arange(start + 1, stop + 1)[:, None], np.arange(1, n_arms + 1)
            height = np.where(t <= 500, 0.4 * np.abs(np.cos(t)), 0.2 * np.abs(np.sin(2 * t)))
            yield height * arm / SCALE


def _published(system: str, share: float) -> Published:
    return Published(system, round(share * ROUNDS, 1), reading=1)


PAPER = Paper(
    name="li-2019",
    citation="B. Li, T. Chen, G. B. Giannakis. Bandit Online Learning with Unknown Delays. AISTATS 2019",
    settings="5 arms, 2,000 rounds. Arm i loses 0.4 i |cos t| up to round 500, then 0.2 i |sin 2t|. The delays repeat "
    "1, 2, 1, 0, 3, 0, 2, and all reports come by the end, so D = 2,569",
    read="Settings in Section 6, numbers at the ends of the curves of Figure 5 (a), a vector graphic, times 2,000. The "
    "rates of its systems and the number of runs are not stated, so ours only stand beside them",
    cases=(
        Case(
            name="li-2019",
            title="synthetic",
            game=Played(Problem(Shuffled(SuddenChange()), GivenDelays(np.array(PERIOD)), ARMS, ROUNDS), SCALE),
            systems=("means", "zs20-advanced", "exp3-adaptive", "bold", "composite", "thompson"),
            published=(
                _published("Exp3 (without delay)", 0.0713),
                _published("BOLD", 0.0944),
                _published("DEXP3", 0.1041),
                _published("CLW (composite)", 0.1492),
            ),
        ),
    ),
)
