"""Notices games that draw from the random generators that all of Python shares.

Nobody can seed those for one game, because all threads draw from them. So such a game is another one each time.
"""

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from belated.errors import SharedRandomnessWarning


@contextmanager
def watched_randomness(what: str, stacklevel: int) -> Iterator[None]:
    """Warn if one of the shared generators was drawn from meanwhile."""
    before = _states()
    yield
    after = _states()
    drawn = [name for name, state in before.items() if after[name] != state]
    if drawn:
        message = (
            f"{what}: random numbers of the module {' and '.join(drawn)} were drawn while this played. All threads "
            "share them, so no seed gives this result again. Draw from np.random.default_rng(seed) or "
            "random.Random(seed) in its place (docs/players.md)"
        )
        warnings.warn(message, SharedRandomnessWarning, stacklevel=stacklevel)


def _states() -> dict[str, object]:
    """How far the shared generators are. A normal number that NumPy holds back does not count."""
    numpys = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return {"random": random.getstate(), "numpy.random": (numpys["pos"], numpys["key"].tobytes())}
