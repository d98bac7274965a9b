"""What lag between replicas costs, and how far the effective delay explains it.

`python -m benchmarks.lag` prints a table, and `make figures` draws it. It takes about six minutes on two cores, because
every copy is played.
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import belated
from belated import bounds, lab
from belated.lab.intervals import half_width

N_ARMS, N_ROUNDS, SEEDS = 10, 20_000, range(8)
DELAY = lab.Geometric(10)
LOSSES: dict[str, lab.Losses] = {"coin flips": lab.Bernoulli(0.3), "sine": lab.Sine(period=2000.0)}
TUNINGS: dict[str, belated.tunings.Tuning] = {
    "Means": belated.tunings.Means(),
    "Advanced": belated.tunings.Advanced(),
}
LAGS = (20, 100, 250, 500)
JOURNAL = 0  # in place of a number of replicas, for any number above 1 that fold one journal


class Regret(NamedTuple):
    """The mean at the end of the game, and half the width of its 95% interval."""

    mean: float
    half: float


class Point(NamedTuple):
    """A setting with its copies, a single learner with their effective delay, and certificates if there are any."""

    losses: str
    tuning: str
    replicas: int  # JOURNAL, or copies that know their own events at once
    lag: int
    delay: float  # the effective one, on average
    copies: Regret
    single: Regret
    measured: float = 0.0
    proven: float = 0.0
    proven_single: float = 0.0


def problem(losses: str, delays: lab.Delays) -> lab.Problem:
    """The measured problem with these delays."""
    return lab.Problem(LOSSES[losses], delays, N_ARMS, N_ROUNDS)


def single_learner(losses: str, tuning: str, delays: lab.Delays) -> Regret:
    """On the same losses, compiled."""
    curves = lab.play(TUNINGS[tuning], problem(losses, delays), SEEDS, checkpoints=[N_ROUNDS])
    return Regret(float(curves.mean[-1]), float(curves.interval[-1]))


def point(setting: tuple[str, str, int, int]) -> Point:
    """Play the games of a setting."""
    losses, tuning, replicas, lag = setting
    games = TUNINGS[tuning], problem(losses, DELAY), SEEDS
    if replicas == JOURNAL:
        played = lab.replicas.play(*games, lag=lag, checkpoints=[N_ROUNDS])
        regret = Regret(float(played.regret.mean()), float(half_width(played.regret)[-1]))
        later = lab.Lagged(DELAY, lag)
        proven = bounds.certificate(N_ARMS, problem(losses, later).draw_delays(0), TUNINGS[tuning])
        certificates = float(played.measured.mean()), float(played.proven.mean()), proven
        return Point(*setting, DELAY.mean + lag, regret, single_learner(losses, tuning, later), *certificates)
    curves = lab.replicas.play_apart(*games, replicas=replicas, lag=lag, checkpoints=[N_ROUNDS])
    regret = Regret(float(curves.mean[-1]), float(curves.interval[-1]))
    mixed = lab.Replicated(DELAY, replicas, lag)
    return Point(*setting, DELAY.mean + lag * (1 - 1 / replicas), regret, single_learner(losses, tuning, mixed))


def points() -> list[Point]:
    """Copies with one journal, and on the coin flips also copies apart."""
    settings = [
        (losses, tuning, replicas, lag)
        for losses in LOSSES
        for tuning in TUNINGS
        for replicas in ((JOURNAL, 2, 4, 8) if losses == "coin flips" else (JOURNAL,))
        for lag in ((0, *LAGS) if replicas == JOURNAL else LAGS)
    ]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(point, settings))
    print_table(found)
    return found


def print_table(points: Sequence[Point]) -> None:
    """Regret of the copies beside that of the single learner, and the certificates."""
    print(f"\nlag: {N_ARMS} arms, {N_ROUNDS:,} rounds, feedback {DELAY.mean:g} rounds late, {len(SEEDS)} games")
    print("  losses      tuning    replicas   lag  delay        regret       single  measured  proven  single's")
    for one in points:
        name = "a journal" if one.replicas == JOURNAL else f"{one.replicas} apart"
        cells = "".join(f"{mean:8,.0f} +-{half:3,.0f}" for mean, half in (one.copies, one.single))
        certificates = f"{one.measured:10,.0f}{one.proven:8,.0f}{one.proven_single:10,.0f}" if one.proven else ""
        print(f"  {one.losses:12}{one.tuning:10}{name:10}{one.lag:4}{one.delay:7,.1f}{cells}{certificates}")


if __name__ == "__main__":
    points()
