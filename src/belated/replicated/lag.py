"""What decisions drawn from an older state of a learner did not know (docs/theory/certificate.md, "Replicas")."""

from typing import Any, NamedTuple

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.tunings import Tuning


class Drawn(NamedTuple):
    """What a learner had counted when decisions were drawn from its distribution. Keep it with them."""

    round: int  # decisions entered
    outstanding: int
    counted: int  # o: those outstanding that the tuning counts
    backlog: int  # D before the coming round
    alarm: int


class DrawContext(NamedTuple):
    """What a draw elsewhere needs."""

    x: Floats  # the probability of each arm
    bold_advantages: Floats  # (y - z) / x of each arm, 0 without a shadow (docs/theory/shadow.md)
    drawn: Drawn


class Lag(NamedTuple):
    """How decisions drawn from an older state differ from those that would be drawn now."""

    alpha: float  # the rates they were drawn with
    beta: float
    dip: float  # by how much beta may have fallen since then
    missed: int  # rounds that were outstanding then, and are not now
    surcharge: float = 0.0  # 1 if an alarm was raised since then, also by the solve before they are entered


def drawn_now(clock: Any) -> Drawn:
    """What the coming decision will rest on."""
    counted = int(clock["counted"] - clock["late_counted"])
    counts = int(clock["round"]), int(clock["outstanding"]), counted, int(clock["backlog"])
    return Drawn(*counts, int(clock["shadow"]["alarm"]))


def rates_of(
    drawn: Drawn, tuning: Tuning, n_arms: int, arrived: int = 0, origin: tuple[int, int] = (0, 0)
) -> tuple[float, float]:
    """The rates of the coming decision if `arrived` more reports had come.

    origin: the round and the backlog that they are counted from. After an alarm a learner on means begins again.
    """
    if n_arms == 1:
        return 1.0, 0.0  # nothing to choose, and ln k = 0
    counted = max(0, drawn.counted - arrived)
    round, backlog = drawn.round + 1 - origin[0], drawn.backlog + counted - origin[1]
    return tuning.rates(n_arms, max(1, round), counted, max(0, backlog))


def lag_since(drawn: Drawn, clock: Any, tuning: Tuning, n_arms: int) -> Lag:
    """What has happened since. An InvalidInput if it was no earlier state of this learner."""
    now = drawn_now(clock)
    missed = (now.round - now.outstanding) - (drawn.round - drawn.outstanding)
    is_earlier = drawn.round <= now.round and missed >= 0 and 0 <= drawn.backlog <= now.backlog
    if not (is_earlier and 0 <= drawn.counted <= drawn.outstanding <= drawn.round):
        raise InvalidInput(f"{drawn} is not an earlier state of this learner, which is at {now}")
    means = clock["means"]
    origin = (int(means["start"]), int(means["start_backlog"])) if now.alarm else (0, 0)
    alpha, beta = rates_of(drawn, tuning, n_arms, origin=origin)
    dip = max(0.0, beta - rates_of(drawn, tuning, n_arms, missed, origin)[1])
    return Lag(alpha, beta, dip, missed)
