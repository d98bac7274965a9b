"""Play a whole grid of comparisons."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belated.errors import RepeatWarning, UnfinishedWarning
from belated.folders import as_path
from belated.lab.comparisons import dask_games
from belated.lab.comparisons import sweep as games
from belated.lab.comparisons.grid import as_grid
from belated.lab.comparisons.sweep_results import SweepResults
from belated.lab.games.mismatch import warn_of

if TYPE_CHECKING:
    from distributed import Client


def sweep(
    grid: Mapping[str, Any] | Path | str,
    *,
    workers: int = 1,
    client: "Client | None" = None,
    folder: Path | str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SweepResults:
    """Play every combination of a grid, and return one tidy table.

    The grid has the settings of a `Comparison`. Where it has a list, every value is tried. Any other name is a
    parameter. It stands in braces in the losses, the delays or the algorithms. A path is that of a TOML file.

    The games are played as by `compare`, by threads or on a Dask `client`. With a `folder`, every finished game is kept
    there at once and is not played again. After Ctrl-C the results contain what finished all seeds, and an
    UnfinishedWarning says how much is missing. A MismatchWarning names a learner whose distribution does not fit the
    arms that it draws, and a RepeatWarning one whose seed does not give the same game again.

    >>> from belated import lab
    >>> grid = {"losses": "bernoulli:gap={gap}", "gap": [0.1, 0.2], "delays": ["none", "fixed:d=20"]}
    >>> swept = lab.sweep({**grid, "algorithms": ["means", "uniform"], "arms": [2, 4], "rounds": 100, "seeds": 2})
    >>> len(swept.results)  # 2 gaps, 2 delays and 2 numbers of arms
    8
    >>> swept.tidy().columns[:5]
    ['losses', 'delays', 'arms', 'rounds', 'gap']
    """
    points = as_grid(grid).points()
    run = games.on_threads(workers) if client is None else dask_games.on_dask(client, tell)
    wanted = [point.comparison for point in points]
    results = games.sweep(wanted, run, None if folder is None else as_path("folder", folder), tell)
    if not any(one.rows for one in results):
        raise KeyboardInterrupt
    if unfinished := sum(len(one.unfinished) for one in results):
        lines = sum(len(one.comparison.players) for one in results)
        what = f"interrupted. The results lack {unfinished} of {lines} algorithms on a problem"
        warnings.warn(what, UnfinishedWarning, stacklevel=2)
    warn_of(warning for one in results for warning in one.warnings)
    warn_of((warning for one in results for warning in one.unrepeatable), RepeatWarning)
    return SweepResults(points, results)
