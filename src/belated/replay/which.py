"""Which tuning fits a delay sequence: what is proven for each, and advice in a few sentences (docs/which-tuning.md)."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from belated.bounds import best_skipping, certificate, clip
from belated.errors import InvalidInput
from belated.replay.off_policy import TUNINGS
from belated.tunings import Tuning
from belated.validation import whole_number

LITTLE = 0.5  # of n: a certificate above it is hardly news
FEW = 0.5  # m below this share of sqrt(D ln k): leaving out a few rounds saves half of what delay costs


class TuningCertificate(NamedTuple):
    """The number the expected regret of a tuning provably does not exceed on these delays."""

    tuning: Tuning
    name: str
    certificate: float


class Advice(NamedTuple):
    """All tunings, the smallest certificate first, beside the trivial bound, and what to make of it."""

    certified: tuple[TuningCertificate, ...]
    trivial: int  # n: no regret is larger
    sentences: tuple[str, ...]


def advise(n_arms: int, delays: ArrayLike) -> Advice:
    """Which tuning fits these delays of n rounds; NEVER or anything beyond the game means that nothing came."""
    if whole_number("n_arms", n_arms, 1) == 1:
        raise InvalidInput("n_arms must be at least 2: with one arm there is nothing to choose")
    waits = clip(delays)
    proven = [TuningCertificate(one, type(one).__name__, certificate(n_arms, waits, one)) for one in TUNINGS]
    certified = tuple(sorted(proven, key=lambda one: one.certificate))
    total, m = int(waits.sum()), best_skipping(n_arms, waits)
    sentences = [
        "Keep the default, Shadow(): it does well on ordinary and on hard data.",
        _about_proof(certified[0], waits.size, is_late=total > 0),
    ]
    if total > 0 and m.value < FEW * math.sqrt(total * math.log(n_arms)):
        sentences.append(
            f"A few very long delays dominate: leaving out {m.rounds:,} of {waits.size:,} rounds brings the cost of "
            f"delay from {math.sqrt(total * math.log(n_arms)):,.0f} down to {m.value:,.0f}. Shadow() and Advanced() "
            "stop waiting for them by themselves; Simple() does not."
        )
    return Advice(certified, waits.size, tuple(sentences))


def _about_proof(smallest: TuningCertificate, n: int, *, is_late: bool) -> str:
    if smallest.certificate > LITTLE * n:
        return (
            f"The proofs say little yet: the smallest certificate is {smallest.certificate:,.0f}, and no regret "
            f"exceeds {n:,}, the number of rounds. There are too few rounds for so many arms and such delays."
        )
    if not is_late:
        return (
            "Nothing is late (D = 0): Shadow(), Advanced(), Simple() and Tsallis() are then one and the same "
            "algorithm, Tsallis-INF."
        )
    return (
        f"If the proven number is what counts, use {smallest.name}(): at most {smallest.certificate:,.0f} in {n:,} "
        "rounds, against any losses."
    )
