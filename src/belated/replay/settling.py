"""Settles a log. Rows without an outcome get a default after a wait, and rows younger than the wait are left out."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from belated.errors import InvalidInput
from belated.replay.decision_log import Log
from belated.replay.missing import Mask, came, end_of, is_old, usual_wait, within_wait
from belated.validation import positive_number


class Settled(NamedTuple):
    """A log whose rows have all had the same time to report."""

    log: Log
    wait: float  # in the unit of the log's times
    n_defaults: int  # rows that got the default outcome
    n_young: int  # rows that were left out


def settle(log: Log, wait: float | None = None, default_outcome: float | None = None) -> Settled:
    """Leave out the rows younger than `wait` at the end of the log, and give the other blanks the default outcome.

    Without a wait, it is the one that the log says. Otherwise it is the time within which 99 in 100 of the outcomes
    came, also those of a slow arm. Without a default outcome, blanks stay blank. A row that gets the default gets it at
    the end of its wait. Outcomes that came stay as they are.
    """
    declared = declared_wait(log) if wait is None else None
    limit = _limit(log, wait) if declared is None else declared
    old = is_old(log, limit) if declared is None else ~within_wait(log)
    if not old.any():
        span = end_of(log) - log.times[0]
        raise InvalidInput(f"no decision is older than the wait {limit:g}, because the log spans {span:g}. Wait less")
    kept = _rows(log, old)
    blank = ~came(kept)
    if default_outcome is None:
        return Settled(kept, limit, 0, int((~old).sum()))
    filled = replace(
        kept,
        outcomes=np.where(blank, default_outcome, kept.outcomes),
        outcome_times=np.where(blank, kept.times + limit, kept.outcome_times),
    )
    return Settled(filled, limit, int(blank.sum()), int((~old).sum()))


def declared_wait(log: Log) -> float | None:
    """The longest wait that the log itself says, or None if it says none."""
    if log.expires is None or not np.isfinite(log.expires).any():
        return None
    return float((log.expires - log.times)[np.isfinite(log.expires)].max())


def _limit(log: Log, wait: float | None) -> float:
    if wait is not None:
        return positive_number("wait", wait)
    if not came(log).any():
        raise InvalidInput("no decision of the log has an outcome, so it does not show how long to wait. Give a wait")
    return usual_wait(log)


def _rows(log: Log, kept: Mask) -> Log:
    """These rows. Their waits are over, so nothing is said about the end of these any more."""
    return replace(
        log,
        times=log.times[kept],
        arms=log.arms[kept],
        outcomes=log.outcomes[kept],
        outcome_times=log.outcome_times[kept],
        probabilities=None if log.probabilities is None else log.probabilities[kept],
        locations=None if log.locations is None else (log.locations[0], log.locations[1][kept]),
        is_open=None if log.is_open is None else log.is_open[kept],
        expires=None,
    )
