"""Claim 13 is beyond the paper. It plays real delays, the New York flights of 2013."""

from belated.paper.claim import Claim, ClaimKind, Effort, Finding
from belated.replay.flight_study import STORY, study

ASSUMPTION = "None of the theorems covers this. The delay depends on the airport, so it is not fixed in advance."


def investigate(effort: Effort) -> Finding:
    """Play the year of flights."""
    found = study(effort.seeds(2, 20))
    return Finding(found.headline, figures=found.figures, tables=found.tables, remarks=found.remarks)


CLAIM = Claim(
    "real-delays",
    "Real delays: New York flights 2013",
    ClaimKind.EXPERIMENT,
    STORY,
    investigate,
    ASSUMPTION,
    6,
    is_beyond=True,
)
