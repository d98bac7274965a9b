"""Play a comparison and rank the algorithms."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belated.errors import RepeatWarning, UnfinishedWarning
from belated.folders import as_path
from belated.lab.comparisons import dask_games, sweep
from belated.lab.comparisons.comparison import Comparison, as_comparison
from belated.lab.comparisons.results import Results
from belated.lab.games.mismatch import warn_of

if TYPE_CHECKING:
    from distributed import Client


def compare(
    comparison: Comparison | Mapping[str, Any] | Path | str,
    *,
    workers: int = 1,
    client: "Client | None" = None,
    folder: Path | str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Results:
    """Play every algorithm on the problem and rank them by mean regret.

    The comparison is a `Comparison`, a mapping with its settings, or the path of a TOML file with them. The games are
    played by `workers` threads, or by the workers of a Dask `client`. No result depends on which. With a `folder`,
    every finished game is kept there at once and is not played again. `tell` gets a message about games that were kept.

    After Ctrl-C the results contain the algorithms that finished all seeds, and an UnfinishedWarning names the others.
    A MismatchWarning names a learner whose distribution does not fit the arms that it draws, and a RepeatWarning one
    whose seed does not give the same game again.

    >>> from belated import lab
    >>> wanted = lab.Comparison(("tsallis-inf", "zs20-simple"), "wave", "fixed:d=20", arms=4, rounds=800, seeds=2)
    >>> results = lab.compare(wanted)
    >>> [row.algorithm.name for row in results.rows]
    ['zs20-simple', 'tsallis-inf']
    >>> results.tidy().columns[:3]
    ['algorithm', 'seed', 'round']

    `results.write("folder")` writes the tables and the figure, and `results.figure("regret.png")` only the figure.
    """
    wanted = as_comparison(comparison)
    run = sweep.on_threads(workers) if client is None else dask_games.on_dask(client, tell)
    [results] = sweep.sweep([wanted], run, None if folder is None else as_path("folder", folder), tell)
    if not results.rows:
        raise KeyboardInterrupt
    if not results.is_whole:
        lacking = f"The results lack {', '.join(results.unfinished)}, because not all of its seeds are finished"
        warnings.warn(f"interrupted. {lacking}", UnfinishedWarning, stacklevel=2)
    warn_of(results.warnings)
    warn_of(results.unrepeatable, RepeatWarning)
    return results
