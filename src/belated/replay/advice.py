"""Advises which tuning fits a delay sequence, and computes what is proven for each. See docs/which-tuning.md."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from belated.bounds import best_skipping, certificate, clip
from belated.errors import InvalidInput
from belated.replay.off_policy import TUNINGS
from belated.tunings import Tuning
from belated.validation import whole_number

# What the certificate below needs. Another number may need less, so its words stand here beside it.
IF = "if delays do not depend on the drawn arm"
ASSUMPTION = (
    "The certificates need delays that do not depend on the drawn arm. A log holds only the delays of the chosen arms, "
    "so it cannot show whether that holds."
)
LITTLE = 0.5  # of n. A certificate above it says little
DOMINATED = 0.5  # of sqrt(D ln k). If m is below it, leaving out a few very late rounds saves half the cost of delay


class TuningCertificate(NamedTuple):
    """A number that the expected regret of a tuning provably does not exceed on these delays, under the assumption."""

    tuning: Tuning
    name: str
    certificate: float


class Advice(NamedTuple):
    """All tunings sorted by certificate, the trivial bound, and advice in sentences."""

    certified: tuple[TuningCertificate, ...]
    trivial: int  # n, because no regret is larger
    sentences: tuple[str, ...]
    assumption: str = ASSUMPTION  # of all certificates. Show it wherever they are shown


def advise(n_arms: int, delays: ArrayLike) -> Advice:
    """Advise which tuning fits the delays of n rounds. A delay of NEVER or beyond the game means that nothing came."""
    if whole_number("n_arms", n_arms, 1) == 1:
        raise InvalidInput("n_arms must be at least 2, because one arm leaves nothing to choose")
    waits = clip(delays)
    proven = [TuningCertificate(one, type(one).__name__, certificate(n_arms, waits, one)) for one in TUNINGS]
    certified = tuple(sorted(proven, key=lambda one: one.certificate))
    total, m = int(waits.sum()), best_skipping(n_arms, waits)
    sentences = [
        "Keep the default, Means(). It does well on both ordinary and hard data.",
        _about_proof(certified[0], waits.size, is_late=total > 0),
    ]
    if total > 0 and m.value < DOMINATED * math.sqrt(total * math.log(n_arms)):
        sentences.append(
            f"A few very long delays dominate. Leaving out {m.rounds:,} of {waits.size:,} rounds brings the cost of "
            f"delay from {math.sqrt(total * math.log(n_arms)):,.0f} down to {m.value:,.0f}. Means(), Shadow() and "
            "Advanced() stop waiting for such rounds by themselves. Simple() does not."
        )
    return Advice(certified, waits.size, tuple(sentences))


def _about_proof(smallest: TuningCertificate, n: int, *, is_late: bool) -> str:
    if smallest.certificate > LITTLE * n:
        return (
            f"The proofs say little yet. The smallest certificate is {smallest.certificate:,.0f}, and no regret "
            f"exceeds {n:,}, the number of rounds. There are too few rounds for so many arms and such delays."
        )
    if not is_late:
        return (
            "Nothing is late (D = 0). Shadow(), Advanced(), Simple() and Tsallis() are then the same algorithm, "
            "Tsallis-INF."
        )
    return (
        f"For the smallest proven number, use {smallest.name}(). Its expected regret is at most "
        f"{smallest.certificate:,.0f} in {n:,} rounds, against any losses, {IF}."
    )
