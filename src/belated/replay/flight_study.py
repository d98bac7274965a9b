"""Studies the flights. How late is their feedback, and how does each tuning do?"""

from typing import Any, NamedTuple

import numpy as np

from belated.lab.intervals import half_width
from belated.replay import flights
from belated.replay.flights import Flights
from belated.replay.off_policy import TUNINGS
from belated.replay.pictures import backlog_figure, tail_figure, waiting_table
from belated.replay.timed_games import Replays, Wait, play
from belated.replay.waiting import delays_in_rounds, measure_times
from belated.reports import Figure, Table, columns_of, lines

DAY = Wait(24 * 3600.0, default=1.0)
STORY = (
    "Every three hours, for every destination that EWR, JFK and LGA all serve, which airport should we fly from? The "
    "loss is the delay on arrival, up to three hours. It is known only when the plane has landed. A cancelled or "
    "diverted flight never reports and has loss 1. All three losses of a round are known, so the regret is exact.",
    "The feedback delay depends on the airport chosen, as in real life. So the certificate here is the one for any "
    "delays. Its mean over runs is at least the mean regret, if the losses are fixed in advance. It may exceed the "
    "number of rounds. The bound holds for each run at all times, with 95% confidence.",
    "A flight that never reports stays outstanding for ever. With a wait of 24 hours, it then counts as cancelled "
    "(loss 1), as a service would do it. The backlog stays small and most certificates fall.",
)


class FlightStudy(NamedTuple):
    """The study in words, numbers, tables and figures."""

    headline: str
    remarks: list[str]
    results: dict[str, Any]
    tables: list[Table]
    figures: list[Figure]


def regret_table(title: str, played: dict[str, Replays], uniform: float) -> Table:
    """A table with a row for each tuning and one for uniform play."""
    rows = []
    for name, games in played.items():
        ends = games.regret[:, -1]
        half = "" if len(ends) == 1 else f"\u00a0±\u00a0{float(half_width(ends)):,.0f}"
        numbers = games.certificate, games.measured, games.bound, games.total, games.largest_backlog
        rows.append((name, f"{ends.mean():z,.0f}{half}", *(f"{values.mean():,.0f}" for values in numbers)))
    rows.append(("uniform", f"{uniform:z,.0f}", "-", "-", "-", "-", "-"))
    names = "tuning", "regret ± 95%", "certificate", "measured", "bound", "D", "most open"
    return Table(title, names, rows)


def regret_figure(played: dict[str, Replays]) -> Figure:
    """The regret over the year."""
    rows = []
    for name, games in played.items():
        half = half_width(games.regret) if len(games.seeds) > 1 else np.zeros(games.checkpoints.size)
        points = games.checkpoints.tolist(), games.regret.mean(axis=0).tolist(), half.tolist()
        rows += list(zip([name] * games.checkpoints.size, *points, strict=True))
    columns = columns_of(("tuning", "round", "regret", "half width"), rows)
    draw = lines("round", "regret", "tuning", half="half width", dashed=("Tsallis",))
    return Figure("flights-regret", "Regret through the year 2013", columns, draw)


def shares_figure(games: Replays, arm_names: tuple[str, ...]) -> Figure:
    """How often the default tuning chose each airport."""
    shares, rounds = games.shares.mean(axis=0), games.checkpoints.tolist()
    rows = [(name, t, float(shares[i, arm])) for arm, name in enumerate(arm_names) for i, t in enumerate(rounds)]
    columns = columns_of(("airport", "round", "share of the decisions"), rows)
    draw = lines("round", "share of the decisions", "airport")
    return Figure("flights-shares", "Airports chosen by the default tuning", columns, draw)


def study(seeds: range) -> FlightStudy:
    """Play the year with every tuning, with and without a wait of a day."""
    data = flights.load()
    at = np.linspace(data.times.size // 40, data.times.size, 40).astype(int).tolist()
    arrays = data.losses, data.landed, data.times
    plain = {type(one).__name__: play(one, *arrays, seeds, checkpoints=at) for one in TUNINGS}
    waited = {type(one).__name__: play(one, *arrays, seeds, checkpoints=at, wait=DAY) for one in TUNINGS}
    uniform = float(data.losses.mean(axis=1).sum() - data.losses.sum(axis=0).min())
    is_bold = bool((plain["Shadow"].regret == plain["Tsallis"].regret).all())
    best, worst = plain["Means"].regret[:, -1].mean(), plain["Simple"].regret[:, -1].mean()
    return FlightStudy(
        f"{data.times.size:,} rounds, regret {best:,.0f} with the default tuning, {worst:,.0f} with ZS20's simple "
        f"tuning, {uniform:,.0f} with uniform choices ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})",
        ["The shadow follows its bold learner all year, so its curve is that of Tsallis."] if is_bold else [],
        {"plain": numbers_of(plain), "wait of 24 hours": numbers_of(waited), "uniform regret": uniform},
        [
            regret_table("Through the year", plain, uniform),
            regret_table("With a wait of 24 hours, then loss 1", waited, uniform),
            waiting_of(data),
        ],
        [regret_figure(plain), shares_figure(plain["Means"], data.arm_names), *late_figures(data)],
    )


def numbers_of(played: dict[str, Replays]) -> dict[str, dict[str, list[float]]]:
    """The results for programs, a number for each seed."""
    return {
        name: {
            "regret": games.regret[:, -1].tolist(),
            "certificate": games.certificate.tolist(),
            "measured certificate": games.measured.tolist(),
            "bound on the run": games.bound.tolist(),
            "total delay": games.total.tolist(),
            "most outstanding": games.largest_backlog.tolist(),
        }
        for name, games in played.items()
    }


def waiting_of(data: Flights) -> Table:
    """A table of how late each airport's feedback is."""
    measured = {
        name: measure_times(len(data.arm_names), data.times, data.landed[:, arm])
        for arm, name in enumerate(data.arm_names)
    }
    return waiting_table("How late the feedback is if we always fly from", measured)


def late_figures(data: Flights) -> list[Figure]:
    """How long feedback is missing, and how much is outstanding at once."""
    delays = {name: delays_in_rounds(data.times, data.landed[:, arm]) for arm, name in enumerate(data.arm_names)}
    return [
        tail_figure("flights-delays", "How long feedback is missing", delays),
        backlog_figure("flights-backlog", "Outstanding decisions (cancelled flights pile up)", delays),
    ]
