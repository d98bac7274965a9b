"""Paired differences between algorithms that played the same seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.comparisons.row import Row
from belated.lab.games.curves import Measure
from belated.lab.intervals import half_width
from belated.suggestions import unknown_name


class Difference(NamedTuple):
    """How much more regret one algorithm has than another at the end of the game, on the same seeds."""

    algorithm: str
    against: str
    mean: float  # regret of the algorithm minus that of the other, NaN if one of the two means nothing
    interval: float  # half the width of the 95% interval, by Student's t on the seeds. NaN for one seed

    @property
    def winner(self) -> str | None:
        """The one with less regret, if zero is outside the interval."""
        if abs(self.mean) > self.interval:
            return self.algorithm if self.mean < 0 else self.against
        return None


def differences_of(rows: Sequence[Row], against: str | None, of: Measure) -> list[Difference]:
    """Every other algorithm against one, by default the first that learns."""
    if not rows:
        raise InvalidInput("no algorithm has finished all seeds, so there is nothing to compare")
    by_name = {row.algorithm.name: row for row in rows}
    first = next((row for row in rows if row.is_learner and not row.curves.is_suspicious), rows[0])
    name = first.algorithm.name if against is None else against
    if name not in by_name:
        raise unknown_name("algorithm", str(name), by_name, " The results have only the algorithms that were compared.")
    other = _at_the_end(by_name[name], of)
    differences = []
    for row in rows:
        if row.algorithm.name != name:
            by_seed = _at_the_end(row, of) - other
            interval = float(half_width(by_seed))
            differences.append(Difference(row.algorithm.name, name, float(np.mean(by_seed)), interval))
    return differences


def _at_the_end(row: Row, of: Measure) -> Floats:
    """The regret of each seed. The expected one of a suspicious learner means nothing, so it is NaN."""
    regret = row.curves.of(of)[:, -1]
    return np.full_like(regret, np.nan) if of == "expected" and row.curves.is_suspicious else regret
