"""Plays a paper's games, and puts our numbers beside the published ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import numpy as np

from belated.arrays import Floats
from belated.lab.intervals import half_width, trimmed_half_width
from belated.lab.literature.records import Case, Paper, Published


class Verdict(StrEnum):
    """Whether the same system has the same regret here as in the paper."""

    AGREES = "agrees"  # the two 95% intervals and the error of reading explain the difference
    DIFFERS = "differs"
    BESIDE = "beside"  # only one of the two is known, so they stand side by side
    SHORTER = "shorter game"  # the game here is not as long as the published one


@final
@dataclass(frozen=True)
class Row:
    """A system in a case, as published and as played here. NaN where it is only one of the two."""

    paper: str
    case: str
    title: str
    system: str
    published: float
    reading: float  # the error of reading the published number, 0 if it was printed
    published_runs: int | None
    ours: float
    interval: float  # half the width of the 95% interval
    seeds: int
    rounds: int
    verdict: Verdict


def rows_of(paper: Paper, *, full: bool = False, seed: int = 0) -> Iterator[Row]:
    """Play the cases of a paper one after the other. Every row comes when it is played."""
    for case in paper.cases:
        known = {published.same_as for published in case.published}
        for published in case.published:
            yield _row(paper, case, published.same_as, published, full=full, seed=seed)
        for system in case.systems:
            if system not in known:
                yield _row(paper, case, system, None, full=full, seed=seed)


def _row(paper: Paper, case: Case, system: str | None, published: Published | None, *, full: bool, seed: int) -> Row:
    rounds = case.game.n_rounds if full or case.quick_rounds is None else case.quick_rounds
    n_seeds = 0 if system is None else _seeds(case, system, full=full)
    regrets = None if system is None else case.game.regrets(system, range(seed, seed + n_seeds), rounds)
    ours, interval = (math.nan, math.nan) if regrets is None else mean_of(regrets, case.trim)
    return Row(
        paper=paper.name,
        case=case.name,
        title=case.title,
        system=published.system if published else str(system),
        published=published.value if published else math.nan,
        reading=published.reading if published else 0.0,
        published_runs=case.runs,
        ours=ours,
        interval=interval,
        seeds=n_seeds,
        rounds=rounds,
        verdict=_verdict(case, published, regrets, rounds),
    )


def _seeds(case: Case, system: str, *, full: bool) -> int:
    return case.fewer.get(system, case.full_seeds) if full else case.seeds


def mean_of(regrets: Floats, trim: float) -> tuple[float, float]:
    """The mean and half its 95% interval. The share `trim` of the games is left out at either end, rounded down.

    The interval of a trimmed mean takes those games as if they were like the nearest that is kept (Yuen 1974).
    """
    if trim == 0:
        return float(regrets.mean()), float(half_width(regrets))
    n_games = len(regrets)
    left_out = math.floor(trim * n_games + 1e-9)  # for shares like 0.29, whose product is a little too small
    kept = np.sort(regrets)[left_out : n_games - left_out]
    return float(kept.mean()), trimmed_half_width(np.clip(regrets, kept[0], kept[-1]), len(kept))


def _verdict(case: Case, published: Published | None, ours: Floats | None, rounds: int) -> Verdict:
    if published is None or ours is None:
        return Verdict.BESIDE
    if rounds < case.game.n_rounds:
        return Verdict.SHORTER
    mean, half = mean_of(ours, case.trim)
    error = math.hypot(half, _published_half(published, case.runs, ours)) + published.reading
    return Verdict.AGREES if abs(mean - published.value) <= error else Verdict.DIFFERS


def _published_half(published: Published, runs: int | None, ours: Floats) -> float:
    """Half the 95% interval of a published mean. Without a printed deviation, its runs vary as ours do."""
    if runs is None:
        return 0.0
    deviation = float(ours.std(ddof=1)) if published.deviation is None else published.deviation
    return 1.96 * deviation / math.sqrt(runs)
