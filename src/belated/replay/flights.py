"""The built-in example, which New York airport to fly from in 2013. A delay is known when the plane has landed.

data/README.md says where the numbers come from.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats

DATA = Path(__file__).parent / "data" / "new_york_2013.npz"
LONGEST = 180  # minutes of delay that make the loss 1
NEVER_LANDED = 65535


class Flights(NamedTuple):
    """Rounds in order of time. An arm is an airport, and the loss of every arm is known."""

    losses: Floats  # (n, 3), arrival delay / 180 minutes, clipped to [0, 1], 1 if cancelled or diverted
    landed: Floats  # (n, 3), seconds since 2013-01-01 UTC, infinite for never
    times: Floats  # (n,), of the decision
    destinations: NDArray[np.str_]
    arm_names: tuple[str, ...]


def load() -> Flights:
    """All rounds of the year."""
    with np.load(DATA, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    times = arrays["hour"] * 3600.0
    never = arrays["landed"] == NEVER_LANDED
    landed = np.where(never, np.inf, times[:, None] + arrays["landed"] * 60.0)
    losses = np.where(never, 1.0, arrays["delay"] / LONGEST)
    names = tuple(arrays["airports"].tolist())
    return Flights(losses, landed, times, arrays["destinations"][arrays["destination"]], names)
