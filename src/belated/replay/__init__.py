"""Replay: what learning with late feedback means for decisions that have been made already.

>>> from belated import replay
>>> example = replay.flights.load()  # 22,305 rounds of New York flights
>>> log = replay.read("decisions.csv")  # your own: time, arm, outcome, outcome_time, probability
"""

from belated.replay import flights
from belated.replay.decision_log import Columns, Log, read
from belated.replay.off_policy import LOGGED, UNIFORM, PolicyEstimate, evaluate, evaluate_all
from belated.replay.outcomes import Outcomes
from belated.replay.timed_games import Replays, Wait, play
from belated.replay.waiting import WaitingTimes, delays_in_rounds, measure
from belated.replay.which import Advice, advise

__all__ = [
    "LOGGED",
    "UNIFORM",
    "Advice",
    "Columns",
    "Log",
    "Outcomes",
    "PolicyEstimate",
    "Replays",
    "Wait",
    "WaitingTimes",
    "advise",
    "delays_in_rounds",
    "evaluate",
    "evaluate_all",
    "flights",
    "measure",
    "play",
    "read",
]
