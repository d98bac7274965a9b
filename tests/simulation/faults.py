"""What may go wrong in one run. Each seed turns on some kinds of faults and leaves others off."""

from random import Random
from typing import Final, NamedTuple

CURSED: Final = "cursed"  # the experiment whose learner fails
CURSED_ARMS: Final = ["a", "b", "c", "d", "e"]  # no other experiment has so many


class Faults(NamedTuple):
    """The chance of each fault, at each opportunity."""

    lost_messages: float = 0.0  # between clients and servers
    repeated_messages: float = 0.0
    lost_requests: float = 0.0  # between a server and the database, before anything has happened
    lost_answers: float = 0.0  # after it has happened
    cut_appends: float = 0.0  # the connection breaks while a transaction is open, which ends later by itself
    partitions: float = 0.0  # a server cannot reach the database for some time
    crashes: float = 0.0  # of a server, at any call of the journal
    stops: float = 0.0  # a server is stopped cleanly and saves a snapshot
    database_crashes: float = 0.0  # every open transaction is lost, and every connection
    failovers: float = 0.0  # the same, and numbers are skipped
    foreign_transactions: float = 0.0  # somebody else's open transaction hides new entries
    broken_disks: float = 0.0  # a permanent error of a store. It is unknown whether it has written.
    lost_tails: float = 0.0  # a failover to a standby that lacks the newest commits, or an older backup
    clock_jumps: float = 0.0  # by days
    failing_learner: bool = False  # the learner of one experiment raises an error


RATES: Final = {
    "lost_messages": 0.15,
    "repeated_messages": 0.15,
    "lost_requests": 0.05,
    "lost_answers": 0.05,
    "cut_appends": 0.1,
    "partitions": 0.003,
    "crashes": 0.005,
    "stops": 0.002,
    "database_crashes": 0.002,
    "failovers": 0.002,
    "foreign_transactions": 0.004,
    "broken_disks": 0.01,
}
SELDOM: Final = {"lost_tails": 0.003, "clock_jumps": 0.03}


def drawn(random: Random) -> Faults:
    """Draw the faults of a run. About half of all kinds occur, and a third of those that change much."""
    rates = {name: rate * random.choice((0.0, 0.0, 0.5, 1.0, 2.0)) for name, rate in RATES.items()}
    rates |= {name: rate * random.choice((0.0, 0.0, 1.0)) for name, rate in SELDOM.items()}
    return Faults(**rates, failing_learner=random.random() < 0.3)


CALM: Final = Faults()
