"""Results as data frames of polars and pandas."""

from typing import Any

import numpy as np

from belated.extras import needs
from belated.lab.comparisons.row import Row
from belated.lab.games.curves import MEASURES


def regrets(row: Row, *, depends_on_horizon: bool) -> dict[str, Any]:
    """A line for each seed and checkpoint, as columns.

    `is_partial` is true where the problem depends on n and the round is before the end. Such a regret is not that of a
    shorter game.
    """
    curves = row.curves
    n_seeds, n_points = curves.expected.shape
    is_partial = (curves.checkpoints < curves.checkpoints[-1]) & depends_on_horizon
    return {
        "algorithm": [row.algorithm.name] * (n_seeds * n_points),
        "seed": np.repeat(curves.seeds, n_points),
        "round": np.tile(curves.checkpoints, n_seeds),
        **{f"{measure}_regret": curves.of(measure).ravel() for measure in MEASURES},
        "is_suspicious": [curves.is_suspicious] * (n_seeds * n_points),
        "is_partial": np.tile(is_partial, n_seeds),
    }


def plays(row: Row) -> dict[str, Any]:
    """A line for each seed, checkpoint and arm, as columns."""
    curves = row.curves
    n_seeds, n_points, n_arms = curves.arms.shape
    return {
        "algorithm": [row.algorithm.name] * curves.arms.size,
        "seed": np.repeat(curves.seeds, n_points * n_arms),
        "round": np.tile(np.repeat(curves.checkpoints, n_arms), n_seeds),
        "arm": np.tile(np.arange(n_arms), n_seeds * n_points),
        "plays": curves.arms.ravel().astype(np.int64),
    }


def polars_frame(columns: dict[str, Any]) -> Any:
    """A polars DataFrame. What is not known is null."""
    with needs("lab"):
        import polars  # noqa: PLC0415  (only results need it)

    return polars.DataFrame(columns).with_columns(polars.selectors.float().fill_nan(None))


def pandas_frame(frame: Any) -> Any:
    """The same table in pandas, with plain columns. Numbers are int64 and float64. What is not known is NaN."""
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ModuleNotFoundError as error:
        hint = "Install it with `pip install pandas`, or use tidy(), which gives a polars DataFrame"
        raise ModuleNotFoundError(f"pandas is missing. {hint}", name="pandas") from error
    return pandas.DataFrame({name: _plain(frame[name]) for name in frame.columns})


def _plain(column: Any) -> Any:
    import polars  # noqa: PLC0415

    if column.dtype.is_numeric():
        return column.cast(polars.Float64).to_numpy() if column.null_count() else column.to_numpy()
    return column.to_list()
