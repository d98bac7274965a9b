"""Reads a decision log, which says what was chosen when, with which probability, and what came of it when."""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.replay import open_bandit
from belated.replay.declared_range import declares_range, names_in, range_in
from belated.replay.log_cells import NUMBER, instants, kind_of, numbers
from belated.replay.log_files import Column, LogTable, column_of, open_table, refuse
from belated.replay.open_rows import open_rows, says_status
from belated.suggestions import closest


@final
@dataclass(frozen=True)
class Columns:
    """The names of a log's columns in its file."""

    time: str = "time"
    arm: str = "arm"
    outcome: str = "outcome"
    outcome_time: str = "outcome_time"
    probability: str = "probability"

    def __post_init__(self) -> None:
        names = [getattr(self, field.name) for field in fields(self)]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"the column {name!r} cannot have two uses, got {self!r}")


@final
@dataclass(frozen=True, eq=False)
class Log:
    """Decisions in order of time. Times are in seconds, or in the file's own unit if they are plain numbers."""

    arm_names: tuple[str, ...]
    times: Floats
    arms: Integers  # indices into arm_names
    outcomes: Floats  # NaN if none has come
    outcome_times: Floats  # infinite if none has come
    probabilities: Floats | None = None
    locations: tuple[str, Integers] | None = None  # "log.csv, line" and the line number of each decision
    has_dates: bool = True  # False if times are plain numbers in an unknown unit
    declared: OutcomeRange | None = None  # the range of the outcomes, if the file itself says it
    is_open: NDArray[np.bool_] | None = None  # whether the outcome may still come, if the file itself says it
    expires: Floats | None = None  # and when the wait for it ends. Infinite if there is none
    remark: str | None = None  # what was assumed about a file in a format of others

    @property
    def n_arms(self) -> int:
        """k, the number of arms."""
        return len(self.arm_names)

    def location(self, index: int) -> str:
        """Where a decision is in its file, for error messages."""
        if self.locations is None:
            return f"decision {index + 1}"
        return f"{self.locations[0]} {self.locations[1][index]}"


class _Part(NamedTuple):
    lines: Integers
    times: Floats
    arms: Integers
    outcomes: Floats
    outcome_times: Floats
    probabilities: Floats
    is_open: NDArray[np.bool_]
    expires: Floats


def read(path: Path | str, columns: Columns | None = None) -> Log:
    """Read the log in a CSV or Parquet file. The format is described in docs/replay.md.

    A file of the Open Bandit Dataset is recognized by its columns.

    Raises InvalidInput for a malformed file and says where the error is.

    >>> import tempfile
    >>> rows = ["time,arm,outcome,outcome_time", "0,blue,1,5", "1,red,,", "2,blue,0,3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "decisions.csv"
    ...     _ = path.write_text("\\n".join(rows))
    ...     log = read(path)
    >>> log.arm_names, log.arms.tolist(), log.outcome_times.tolist()
    (('blue', 'red'), [0, 1, 0], [5.0, inf, 3.0])
    """
    table = open_table(Path(path))
    is_foreign = columns in (None, Columns()) and open_bandit.is_open_bandit(table.header)
    names = open_bandit.NAMES if is_foreign else _names(table, columns or Columns())
    codes: dict[str, int] = {}
    kind: str | None = None
    declared: OutcomeRange | None = None
    has_range, has_status = declares_range(table), says_status(table)
    parts: list[_Part] = []
    for chunk in table.chunks:
        cells = {use: column_of(table, chunk, name) for use, name in names.items()}
        kind = kind or _first_kind(cells["time"])
        if has_range:
            declared = range_in(table, chunk, declared)
        part = _part(cells, kind, codes)
        parts.append(part._replace(**open_rows(table, chunk, kind, cells["outcome"])._asdict()) if has_status else part)
    if not parts:
        raise InvalidInput(f"{table.path} has a header but no rows. A log needs decisions")
    if len(codes) < 2:
        raise InvalidInput(f"{table.path}: every row has the arm {next(iter(codes))!r}. A choice needs at least 2 arms")
    whole = _Part(*map(np.concatenate, zip(*parts, strict=True)))
    log = _assemble(table, codes, whole, has_probabilities="probability" in names, has_status=has_status)
    if is_foreign:
        log = replace(log, remark=open_bandit.REMARK)
        declared = open_bandit.CLICKS
    return replace(log, has_dates=kind != NUMBER, declared=declared)


def _assemble(table: LogTable, codes: dict[str, int], part: _Part, *, has_probabilities: bool, has_status: bool) -> Log:
    order = np.argsort(part.times, kind="stable")
    arm_names = _sorted_names(list(codes))
    rank = np.empty(len(codes), np.int64)
    rank[[codes[name] for name in arm_names]] = np.arange(len(codes))
    return Log(
        tuple(arm_names),
        part.times[order],
        rank[part.arms[order]],
        part.outcomes[order],
        part.outcome_times[order],
        part.probabilities[order] if has_probabilities else None,
        (f"{table.path}, {table.unit}", part.lines[order]),
        is_open=part.is_open[order] if has_status else None,
        expires=part.expires[order] if has_status else None,
    )


def _sorted_names(names: list[str]) -> list[str]:
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def _names(table: LogTable, columns: Columns) -> dict[str, str]:
    """The name of each column in the file. Only a probability column with the default name may be missing."""
    names: dict[str, str] = asdict(columns)
    if names["probability"] == Columns.probability not in table.header:
        del names["probability"]
    missing = {use: name for use, name in names.items() if name not in table.header}
    if missing:
        options = ", ".join(f"--{use}".replace("_", "-") for use in missing)
        raise InvalidInput(
            f"{table.path}: no column {', '.join(f'{name!r} for the {use}' for use, name in missing.items())}. "
            f"The columns are {', '.join(map(repr, table.header))}. {_near(table.header, list(missing.values()))}"
            f"Rename them, or give their names with {options} or, in Python, Columns(...)"
        )
    return names


def _near(header: list[str], missing: list[str]) -> str:
    """A suggestion with the most similar names in the header."""
    near = [found for name in missing for found in closest(name, header, n=1, cutoff=0.6)]
    return f"Did you mean {' and '.join(map(repr, near))}? " if near else ""


def _first_kind(times: Column) -> str:
    _refuse_empty(times)
    kind = kind_of(times.cells[0])
    if kind is None:
        refuse(times, 0, "is neither a finite number nor an ISO 8601 date-time such as 2024-05-01T12:30:00+02:00")
    return kind


def _refuse_empty(column: Column) -> None:
    if "" in column.cells:
        refuse(column, column.cells.index(""), f"Every row needs its {column.name}")


def _part(cells: dict[str, Column], kind: str, codes: dict[str, int]) -> _Part:
    for use in ("time", "arm"):
        _refuse_empty(cells[use])
    times, outcome_times = (instants(cells[use], kind) for use in ("time", "outcome_time"))
    outcomes, arms = numbers(cells["outcome"]), names_in(cells["arm"])
    _check_outcomes(cells, times, outcomes, outcome_times)
    chances = _probabilities(cells["probability"]) if "probability" in cells else np.empty(0)
    numbered = np.array([codes.setdefault(name, len(codes)) for name in arms], np.int64)
    lines, no_status = np.array(cells["arm"].lines), (np.empty(0, np.bool_), np.empty(0))
    return _Part(lines, times, numbered, outcomes, outcome_times, chances, *no_status)


def _check_outcomes(cells: dict[str, Column], times: Floats, outcomes: Floats, outcome_times: Floats) -> None:
    has_value, has_time = np.isfinite(outcomes), np.isfinite(outcome_times)
    outcome, outcome_time = cells["outcome"], cells["outcome_time"]
    rule = "A row has both, or neither if no outcome has come"
    for column, lacks in ((outcome, has_time & ~has_value), (outcome_time, has_value & ~has_time)):
        if lacks.any():
            other = outcome_time if column is outcome else outcome
            refuse(column, int(lacks.argmax()), f"Column {other.name!r} has a value. {rule}")
    early = outcome_times < times
    if early.any():
        first = int(early.argmax())
        refuse(outcome_time, first, f"is before the decision itself, {cells['time'].cells[first]!r}")


def _probabilities(column: Column) -> Floats:
    rule = "must be the probability, in (0, 1], with which the logging system chose this arm"
    if "" in column.cells:
        refuse(column, column.cells.index(""), f"It {rule}")
    values = numbers(column)
    wrong: Any = ~((values >= 1e-300) & (values <= 1))
    if wrong.any():
        refuse(column, int(wrong.argmax()), rule)
    return values
