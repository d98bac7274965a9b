"""An experiment at one moment. It no longer changes, so a view may take its time without the engine's lock."""

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
    costs: Costs


def still(experiment: Experiment) -> Still:
    """Copy what may change. The caller holds the engine's lock, for some milliseconds if there are many arms."""
    copied = copy(experiment)
    del copied.shared  # the learner goes on
    copied.counts = msgspec.structs.replace(experiment.counts)
    copied.arms, copied.delays = list(experiment.arms), list(experiment.delays)
    copied.chosen, copied.reports = list(experiment.chosen), list(experiment.reports)
    copied.ages = Ages(list(experiment.ages.starts), list(experiment.ages.counts))
    past = experiment.history  # its points never change
    copied.history = History(past.stride, past.next, list(past.rounds), list(past.times), list(past.points))
    copied.past, copied.era = [copy(era) for era in experiment.past], copy(experiment.era)
    copied.reporting = None if experiment.reporting is None else still_reporting(experiment.reporting)
    if not experiment.is_looked_at:  # otherwise nobody needs the evidence
        copied.evidence = experiment.evidence.copy()
    return Still(copied, experiment.distribution().tolist(), experiment.costs())


def still_reporting(reporting: Reporting) -> Reporting:
    """Copy the counts of reports. The caller holds the engine's lock."""
    blocks = [Block(one.first, one.last_at, list(one.chosen), list(one.reported)) for one in reporting.blocks]
    return Reporting(reporting.size, reporting.room, blocks, list(map(list, reporting.delays)), list(reporting.late))
