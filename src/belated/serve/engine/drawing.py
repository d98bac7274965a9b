"""Draw decisions from an experiment's present distribution, as entries that are not written yet."""

import secrets
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from belated.arrays import Floats, Integers
from belated.learner.mixing import NO_CONTROL
from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind, Rest
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.operating import Policy
from belated.serve.engine.requests import Ask

Chosen = tuple[int, float, bytes | None, Policy | None]  # an arm of all, its probability, its Rest, and who chose it


class DrawnBatch(NamedTuple):
    """Which entries belong to a request: `size` of them, from `first` on."""

    request_index: int
    first: int
    size: int


class Turn(NamedTuple):
    """A decision that is due for a subject: the alias of the subject, and how many it had before."""

    alias: bytes
    number: int


def draw(
    experiment: Experiment,
    asked: list[tuple[int, Ask]],
    entries: list[Entry],
    at: int,
    seen: int,
    generator: np.random.Generator,
    turns: Mapping[int, Turn],
) -> list[DrawnBatch]:
    """Append an entry for each decision. All are drawn from the distribution after entry `seen`.

    `turns` has those of requests with a subject, by their index.
    """
    size = sum(request.size for _, request in asked)
    if (fixed := experiment.operations.arm) is not None:
        fixed_by = Policy.WINNER if experiment.operations.state == "ended" else Policy.FROZEN
        chosen: Iterator[Chosen] = ((fixed, 1.0, None, fixed_by) for _ in range(size))
    else:
        chosen = _chosen(experiment, size, generator)
    rows = zip(chosen, nonces(size), strict=True)
    round, drawn = experiment.counts.decisions, []
    for request_index, request in asked:
        drawn.append(DrawnBatch(request_index, len(entries), request.size))
        turn = turns.get(request_index)
        owner = None if request.limit is None or fixed is not None else request.limit.key.encode()
        for position in range(request.size):
            (arm, probability, rest, policy), nonce = next(rows)
            round += 1
            entries.append(
                Entry(
                    at,
                    EntryKind.DECIDED,
                    experiment.seq,
                    round=round,
                    arm=arm,
                    probability=probability,
                    nonce=nonce,
                    seen=seen,
                    request=request.key,
                    position=turn.number if turn is not None else None if request.key is None else position,
                    drawn=rest,
                    alias=None if turn is None else turn.alias,
                    parts=owner,
                    policy=policy,
                )
            )
    return drawn


def _chosen(experiment: Experiment, size: int, generator: np.random.Generator) -> Iterator[Chosen]:
    """Draw from the present distribution. Given the arm, chance says whether the holdout has drawn it."""
    x, bold_advantages, counted = experiment.shared.draw_context()
    cdf = np.cumsum(x)
    if not 0.5 < cdf[-1] < 1.5:  # also if a probability is NaN
        raise ArithmeticError(f"the probabilities add up to {cdf[-1]}")
    indices = np.searchsorted(cdf, generator.random(size) * cdf[-1], side="right")
    arms = np.minimum(indices, np.flatnonzero(x)[-1])
    rests = {arm: msgspec.msgpack.encode(Rest(counted, float(bold_advantages[arm]))) for arm in set(arms.tolist())}
    held_out, all = _are_held_out(experiment, arms, x[arms], generator), experiment.era.arms
    for arm, probability, is_held_out in zip(arms.tolist(), x[arms].tolist(), held_out, strict=True):
        yield all[arm], probability, rests[arm], Policy.HOLDOUT if is_held_out else None


def _are_held_out(
    experiment: Experiment, arms: Integers, probabilities: Floats, generator: np.random.Generator
) -> list[bool]:
    """Say which decisions are for the holdout. The chance is holdout q_i / p_i (docs/theory/mixing.md)."""
    mix, n_arms = experiment.shared.mix, len(experiment.era.arms)
    if mix.holdout == 0:
        return [False] * len(arms)
    q = np.full(len(arms), 1 / n_arms) if mix.control == NO_CONTROL else (arms == mix.control).astype(float)
    return list((generator.random(len(arms)) * probabilities < mix.holdout * q).tolist())


def nonces(size: int) -> list[int]:
    """Return random numbers that nobody can guess. None of them is short, because that marks an older release."""
    words = np.frombuffer(secrets.token_bytes(8 * size), np.int64)
    is_short = (words >= 0) & (words < 1 << ids.SHORT_BITS)
    return nonces(size) if is_short.any() else words.tolist()
