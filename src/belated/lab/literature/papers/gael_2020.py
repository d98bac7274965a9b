"""Gael, Vernade, Carpentier & Valko 2020, Figures 4 and 5."""

from belated.lab.literature.games import Played
from belated.lab.literature.records import Case, Paper, Published
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import Pareto
from belated.lab.problems.feedback import ArmDelays, PositivesOnly
from belated.lab.problems.problem import Problem

SAME = {f"PatientBandits {alpha}": f"patient-bandits(n=5000,alpha={alpha})" for alpha in (0.1, 0.5)}


def _case(name: str, title: str, tails: tuple[float, float], values: dict[str, float], reading: float) -> Case:
    feedback = PositivesOnly(ArmDelays([Pareto(tail) for tail in tails]))
    return Case(
        name=name,
        title=title,
        game=Played(Problem(Bernoulli(means=(0.4, 0.2)), feedback, 2, 5000), regret="means"),
        systems=("means(provisional)", *SAME.values()),
        published=tuple(
            Published(system, value, SAME.get(system), reading=reading) for system, value in values.items()
        ),
        full_seeds=100,
    )


ALIKE = {
    "PatientBandits 0.1": 85.6,
    "PatientBandits 0.5": 39.5,
    "D-UCB 10": 35.2,
    "D-UCB 50": 33.3,
    "D-UCB 100": 53.2,
    "D-UCB 200": 97.8,
}
APART = {
    "PatientBandits 0.1": 429.0,
    "PatientBandits 0.5": 425.0,
    "D-UCB 10": 980.0,
    "D-UCB 50": 960.0,
    "D-UCB 100": 921.0,
    "D-UCB 200": 802.0,
}
PAPER = Paper(
    name="gael-2020",
    citation="A. Gael Manegueu, C. Vernade, A. Carpentier, M. Valko. Stochastic Bandits with Arm-Dependent Delays. "
    "ICML 2020",
    settings="2 arms that succeed with probabilities 0.6 and 0.8, 5,000 rounds. The delay of arm i is Pareto with tail "
    "a_i. Only successes are told, so a late one looks like a failure",
    read="Settings in Section 8.2, numbers read off the ends of the curves of Figures 4 and 5, which are bitmaps. "
    "Delays are rounded down here. The paper's rounding and its number of runs are not stated. PatientBandits plays "
    "here with the widths of Algorithm 1. D-UCB is not in the lab",
    cases=(
        _case("gael-2020-alike", "tails 0.7, 0.7", (0.7, 0.7), ALIKE, 0.5),
        _case("gael-2020-apart", "tails 1, 0.3", (1.0, 0.3), APART, 5),
    ),
)
