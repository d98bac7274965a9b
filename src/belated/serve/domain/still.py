"""An experiment at one moment. It no longer changes, so a view may take its time without the engine's lock."""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import msgspec

from belated.serve.domain.experiment import Costs, Experiment
from belated.serve.domain.observations import Ages, History
from belated.serve.domain.reporting import Block, Reporting


class Still(NamedTuple):
    """A copy of an experiment without its learner, and what its learner said."""

    experiment: Experiment
    distribution: list[float]  # of the present arms
    costs: Callable[[], Costs]  # takes long with many arms


def still(experiment: Experiment) -> Still:
    """Copy an experiment. The caller holds the engine's lock, for one or two milliseconds if there are many arms."""
    copied = without_evidence(experiment)
    if not copied.is_looked_at:  # otherwise nobody needs the evidence
        copied.evidence = experiment.share_evidence()
    return Still(copied, experiment.shares(), experiment.costs_later())


def without_evidence(experiment: Experiment) -> Experiment:
    """Copy all that may change, but neither the learner nor the evidence. The caller holds the engine's lock."""
    copied = copy(experiment)
    del copied.shared, copied.evidence, copied._shared_blocks  # they go on
    copied.counts = msgspec.structs.replace(experiment.counts)
    copied.arms, copied.delays = list(experiment.arms), list(experiment.delays)
    copied.chosen, copied.reports = list(experiment.chosen), list(experiment.reports)
    copied.ages = Ages(*map(list, msgspec.structs.astuple(experiment.ages)))
    past = experiment.history  # its points never change
    copied.history = History(past.stride, past.next, list(past.rounds), list(past.times), list(past.points))
    copied.parts = None if experiment.parts is None else experiment.parts.copy()
    copied.operations = experiment.operations.copy()
    copied.past, copied.era = list(map(copy, experiment.past)), copy(experiment.era)
    copied.reporting = None if experiment.reporting is None else _still_reporting(experiment.reporting)
    return copied


def _still_reporting(reporting: Reporting) -> Reporting:
    blocks = [Block(one.first, one.last_at, list(one.chosen), list(one.reported)) for one in reporting.blocks]
    return Reporting(reporting.size, reporting.room, blocks, list(map(list, reporting.delays)), list(reporting.late))
