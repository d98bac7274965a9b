"""Play the games of a plan."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from belated.errors import InvalidInput
from belated.lab.plans.games import GameEndings, play
from belated.lab.plans.results import RUNNING, STOPPED, PlanResults, PlanRow
from belated.lab.plans.settings import PlanSettings
from belated.progress import Progress
from belated.validation import whole_number


def plan(settings: PlanSettings, *, workers: int = 1) -> PlanResults:
    """Find by simulation how many decisions an experiment needs until it is decided (docs/plan.md).

    The results do not depend on `workers`, the number of processes. A script that asks for more than one needs
    `if __name__ == "__main__":`, as multiprocessing does.

    >>> from belated import lab
    >>> wanted = lab.PlanSettings(2, base_rate=0.2, difference=0.5, per_day=100, most=500, games=3, tuning="uniform")
    >>> [(row.player, row.right, row.undecided) for row in lab.plan(wanted).rows]
    [('uniform', 1.0, 0.0)]
    """
    if not isinstance(settings, PlanSettings):
        raise InvalidInput(f"give a lab.PlanSettings, got {settings!r:.80}")
    wanted = whole_number("workers", workers, 1)
    tasks = [(settings, player, game) for game in range(settings.games) for player in settings.players]
    played: dict[str, list[GameEndings]] = {player: [] for player in settings.players}
    with Progress("planned experiments", len(tasks)) as progress, _games(tasks, wanted) as endings:
        for (_, player, _), ending in zip(tasks, endings, strict=True):
            played[player].append(ending)
            progress.advance(1)
    return PlanResults(settings, tuple(row for player in played for row in _rows(settings, player, played[player])))


@contextmanager
def _games(tasks: list[tuple[PlanSettings, str, int]], workers: int) -> Iterator[Iterator[GameEndings]]:
    """The endings in the order of the tasks. Games are plain Python, so threads would not help."""
    if workers == 1:
        yield (play(*task) for task in tasks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield pool.map(play, *zip(*tasks, strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _rows(settings: PlanSettings, player: str, games: list[GameEndings]) -> list[PlanRow]:
    """With a delay there are two ways to look, without one they are the same."""
    stopped = PlanRow(settings, player, STOPPED, tuple(game.stopped for game in games))
    running = PlanRow(settings, player, RUNNING, tuple(game.running for game in games))
    return [running] if settings.wait_decisions == 0 else [stopped, running]
