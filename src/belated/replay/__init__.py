"""Shows what learning with late feedback would have meant for decisions made in the past.

`read` loads your own log with the columns time, arm, outcome, outcome_time and probability. A year of New York flights
is built in.

>>> from belated import replay
>>> example = replay.flights.load()
>>> example.arm_names, example.losses.shape
(('EWR', 'JFK', 'LGA'), (22305, 3))
"""

from belated.replay import flights
from belated.replay.advice import Advice, advise
from belated.replay.decision_log import Columns, Log, read
from belated.replay.findings import Finding, LogCheck, check
from belated.replay.off_policy import LOGGED, UNIFORM, PolicyEstimate, evaluate, evaluate_all
from belated.replay.settling import Settled, settle
from belated.replay.timed_games import Replays, Wait, play
from belated.replay.verdict import Verdict, judge
from belated.replay.waiting import WaitingTimes, delays_in_rounds, measure

__all__ = [
    "LOGGED",
    "UNIFORM",
    "Advice",
    "Columns",
    "Finding",
    "Log",
    "LogCheck",
    "PolicyEstimate",
    "Replays",
    "Settled",
    "Verdict",
    "Wait",
    "WaitingTimes",
    "advise",
    "check",
    "delays_in_rounds",
    "evaluate",
    "evaluate_all",
    "flights",
    "judge",
    "measure",
    "play",
    "read",
    "settle",
]
