"""Papers and problems of the literature by name."""

from typing import Any

from belated.errors import InvalidInput
from belated.lab.literature import PAPERS
from belated.lab.literature.games import Played
from belated.lab.literature.records import Paper
from belated.lab.problems.problem import Problem
from belated.suggestions import unknown_name

BY_NAME = {paper.name: paper for paper in PAPERS}
CASES = {case.name: case for paper in PAPERS for case in paper.cases}
PROBLEMS = {name: case.game.problem for name, case in CASES.items() if isinstance(case.game, Played)}


def paper_of(name: str) -> Paper:
    """A paper by its name."""
    if name not in BY_NAME:
        raise unknown_name("paper", name, BY_NAME)
    return BY_NAME[name]


def from_literature(name: str) -> Problem:
    """A problem that a paper played, by its name.

    >>> from belated import lab
    >>> problem = lab.from_literature("li-2019")
    >>> problem.n_arms, problem.n_rounds
    (5, 2000)
    """
    if name in PROBLEMS:
        return PROBLEMS[name]
    if name in CASES:
        raise InvalidInput(f"{name} is no lab.Problem, because its arms change. `belated reproduce` plays it")
    if name in BY_NAME:
        paper = BY_NAME[name]
        names = [case.name for case in paper.cases if case.name in PROBLEMS]
        why = f"Its problems are {', '.join(names)}" if names else "`belated reproduce` tells more"
        raise InvalidInput(f"{name} is a paper and no problem. {why}")
    raise unknown_name("problem of the literature", str(name), PROBLEMS)


def note_of_losses(losses: Any) -> str:
    """What to say of losses that are a paper's divided by their largest. Empty for all others."""
    for case in CASES.values():
        if isinstance(case.game, Played) and case.game.scale != 1 and case.game.problem.losses is losses:
            times = f"{case.game.scale:g}"
            return f"The losses of {case.name} are divided by {times}, to be at most 1. So regret is, too."
    return ""


def settings_of_problem(name: str) -> dict[str, Any]:
    """A problem of the literature as settings of a comparison."""
    problem = from_literature(name)
    return {
        "losses": problem.losses,
        "delays": problem.delays,
        "arms": problem.n_arms,
        "rounds": problem.n_rounds,
    }
