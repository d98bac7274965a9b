"""The repository djo/delayed-bandit, of two papers by A. Dzhoha."""

from dataclasses import dataclass
from typing import final

import numpy as np

from belated.arrays import Integers
from belated.lab.literature.games import Played
from belated.lab.literature.records import Case, Paper, Published
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import Delays, Fixed, NoDelay
from belated.lab.problems.feedback import OutcomeDelays
from belated.lab.problems.problem import Problem
from belated.lab.problems.shuffled import Shuffled


def _constant(delay: int, thompson: float, greedy: float, explore_first: float) -> Case:
    return Case(
        name=f"dzhoha-2021-{delay}",
        title=f"delay {delay}",
        game=Played(Problem(Bernoulli(gap=0.03, mean=0.23), Fixed(delay), 2, 10_000), regret="mixed"),
        systems=("qpm-d(thompson)", "thompson", "means"),
        published=(
            Published("Thompson sampling, queued", thompson, "qpm-d(thompson)", reading=0.4),
            Published("epsilon-greedy, queued", greedy, reading=0.4),
            Published("explore-first, queued", explore_first, reading=0.4),
        ),
        trim=0.1,
        full_seeds=200,
        fewer={"thompson": 40, "means": 40},
    )


BERNOULLI = Paper(
    name="dzhoha-2021",
    citation="A. S. Dzhoha. Bernoulli Multi-Armed Bandit Problem under Delayed Feedback. Bulletin of Taras Shevchenko "
    "National University of Kyiv 2021, and github.com/djo/delayed-bandit",
    settings="2 arms that succeed with probabilities 0.77 and 0.8, 10,000 rounds, every report d rounds late, and "
    "queued as in QPM-D",
    read="Settings in delayed_bandit/experiments.py, numbers read off the ends of the curves of the README's three "
    "figures. The tenth of the runs with the least regret and that with the most are left out, as there. Runs that "
    "tie with those stay here, and are left out there too. The number of runs and the parameters of "
    "epsilon-greedy and explore-first behind the figures are not stated",
    cases=(
        _constant(0, 30.0, 33.7, 26.4),
        _constant(50, 28.8, 35.0, 25.2),
        _constant(150, 28.3, 36.7, 28.6),
    ),
)

PATIENTS, PER_DAY = 12_668, 11
MORTALITY = (836 / 6334, 750 / 6334)  # without aspirin, with aspirin
DEATHS = {  # days from the start of the treatment: patients, in the notebook's third output
    **dict(enumerate((30, 136, 113, 130, 80, 102, 105, 90, 76, 74, 64, 49, 58, 38, 35, 31, 26, 23, 14, 12, 15, 11, 7))),
    **dict(enumerate((8, 8, 11, 7, 3, 5, 2, 6, 4, 8, 5, 3, 3, 8, 3, 1, 2, 2, 4, 1, 1, 7, 2, 2, 2), start=23)),
    **dict.fromkeys((49, 50, 55, 57, 62, 63, 66, 71, 85, 117, 121, 149), 1),
    **dict.fromkeys((53, 56, 58, 74), 2),
    73: 3,
}
DAYS = np.repeat(list(DEATHS), list(DEATHS.values()))


@final
@dataclass(frozen=True)
class Deaths(Delays):
    """A patient who dies is reported on the day after the death, at 11 patients a day."""

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Integers:
        return np.asarray(PER_DAY * (generator.choice(DAYS, n_rounds) + 1))


LOSSES = Shuffled(Bernoulli(means=MORTALITY))
AT_ONCE = Problem(LOSSES, NoDelay(), 2, PATIENTS)
LATE = Problem(LOSSES, OutcomeDelays(successes=Fixed(14 * PER_DAY), failures=Deaths()), 2, PATIENTS)
STROKE = Paper(
    name="dzhoha-2023",
    citation="A. Dzhoha. Beta Upper Confidence Bound Policy for the Design of Clinical Trials. 2023, the notebook of "
    "github.com/djo/delayed-bandit on the International Stroke Trial",
    settings="12,668 patients over 65 with an ischaemic stroke, 11 a day. 5,498 of 6,334 live without aspirin, 5,584 "
    "of 6,334 with aspirin. One who lives is reported after 14 days, one who dies on the day after the death. So the "
    "delay depends on the outcome",
    read="Settings and numbers in the printed outputs of the notebook, with standard deviations",
    cases=(
        Case(
            name="dzhoha-2023-at-once",
            title="without delay",
            game=Played(AT_ONCE, regret="means"),
            systems=("thompson", "uniform", "means"),
            published=(
                Published("Thompson sampling", 31.055, "thompson", deviation=48.871),
                Published("uniform", 85.46, "uniform", deviation=36.366),
                Published("UCB on Beta rewards", 48.518, deviation=0.496),
            ),
            runs=2000,
            full_seeds=100,
        ),
        Case(
            name="dzhoha-2023",
            title="with delay",
            game=Played(LATE, regret="means"),
            systems=("qpm-d(thompson)", "thompson", "means"),
            published=(Published("Thompson sampling, queued", 74.072, "qpm-d(thompson)", deviation=90.894),),
            runs=2000,
            full_seeds=100,
        ),
    ),
)
