"""Drawing decisions: arms from the distribution that an experiment has now, as entries that are not written yet."""

import secrets
from typing import NamedTuple

import msgspec
import numpy as np

from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, Kind, Rest
from belated.serve.domain.experiment import Experiment
from belated.serve.engine.requests import Decide


class Asked(NamedTuple):
    """A request for decisions and its place among those that are answered together."""

    place: int
    request: Decide


class Drawn(NamedTuple):
    """Where the entries for a request are: the first one, and how many."""

    place: int
    first: int
    size: int


def draw(
    experiment: Experiment, asked: list[Asked], entries: list[Entry], at: int, seen: int, generator: np.random.Generator
) -> list[Drawn]:
    """Append an entry for each decision; all are drawn from one distribution, that of the state after `seen`."""
    size = sum(request.size for _, request in asked)
    x, bold_advantages, counted = experiment.learner.outlook()
    cdf = np.cumsum(x)
    places = np.searchsorted(cdf, generator.random(size) * cdf[-1], side="right")
    arms = np.minimum(places, np.flatnonzero(x)[-1])
    rests = {arm: msgspec.msgpack.encode(Rest(counted, float(bold_advantages[arm]))) for arm in set(arms.tolist())}
    rows = zip(arms.tolist(), x[arms].tolist(), nonces(size), strict=True)
    round, drawn = experiment.counts.decisions, []
    for place, request in asked:
        drawn.append(Drawn(place, len(entries), request.size))
        for position in range(request.size):
            arm, probability, nonce = next(rows)
            round += 1
            entries.append(
                Entry(
                    at,
                    Kind.DECIDED,
                    experiment.seq,
                    round=round,
                    arm=experiment.era.arms[arm],
                    probability=probability,
                    nonce=nonce,
                    seen=seen,
                    request=request.key,
                    position=None if request.key is None else position,
                    drawn=rests[arm],
                )
            )
    return drawn


def nonces(size: int) -> list[int]:
    """Random numbers that nobody can guess."""
    words = np.frombuffer(secrets.token_bytes(8 * size), np.uint64)
    return (words >> np.uint64(64 - ids.NONCE_BITS)).tolist()  # type: ignore[no-any-return]
