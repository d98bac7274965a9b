"""Which arms a document has in full. A document stays small, however many arms an experiment ever had."""

from collections.abc import Sequence
from typing import Final

from belated.serve.domain.experiment import Experiment, Look
from belated.serve.domain.reporting import Comparison
from belated.serve.domain.still import Still

MOST_ARMS: Final = 100  # in full. The rest is summed up, and `GET .../arms` lists all
MOST_SERIES: Final = 20  # arms whose probabilities over time are told
MOST_WARNED: Final = 20  # arms that are in the document because they report less often


def likeliest(still: Still) -> list[int]:
    """Return the present arms, those with the largest probability first."""
    arms = still.experiment.era.arms
    by_probability = sorted(zip(still.distribution, arms, strict=True), key=lambda one: (-one[0], one[1]))
    return [arm for _, arm in by_probability]


def worth(experiment: Experiment, look: Look, arm: int) -> float:
    """Return the loss that the page sorts by. An open decision counts as the default, if there is one."""
    found, default = look.means[arm], experiment.settings.default
    if found is None:
        return 2.0
    if default is None:
        return found.mean
    assumed = experiment.outcomes.loss(default)
    return (found.mean * found.known + assumed * found.open) / (found.known + found.open)


def shown_arms(still: Still, look: Look, comparisons: list[Comparison]) -> list[int]:
    """Return the arms that the document has in full, in order.

    These are the leader, the arm that is the hardest to tell from it, the likeliest, those that report less often, and
    then the best, present ones before retired ones.
    """
    experiment, verdict = still.experiment, look.verdict
    n_arms, active = len(experiment.arms), set(experiment.era.arms)
    if n_arms <= MOST_ARMS:
        return list(range(n_arms))
    closest = sorted(verdict.comparisons, key=lambda one: (one.sure, one.low))[:1]
    warned = [arm for arm, one in enumerate(comparisons) if one.is_warned and arm in active]
    warned.sort(key=lambda arm: -(comparisons[arm].less or 0.0))
    best = sorted(range(n_arms), key=lambda arm: (arm not in active, worth(experiment, look, arm), arm))
    first = [] if verdict.leader is None else [verdict.leader]
    first += [*(one.arm for one in closest), *likeliest(still)[:MOST_SERIES], *warned[:MOST_WARNED]]
    return sorted(list(dict.fromkeys([*first, *best]))[:MOST_ARMS])


def drawn_arms(still: Still, shown: Sequence[int]) -> set[int]:
    """Return which of these arms have their probabilities over time told: the likeliest, then retired ones."""
    experiment, active = still.experiment, set(still.experiment.era.arms)
    retired = sorted((arm for arm in shown if arm not in active), key=lambda arm: (not experiment.chosen[arm], arm))
    return set([*likeliest(still), *retired][:MOST_SERIES])
