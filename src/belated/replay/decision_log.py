"""A decision log of your own: who was shown what, when, with which probability, and what came of it, when."""

import difflib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from belated.errors import InvalidInput
from belated.replay.cells import NUMBER, Floats, instants, kind_of, numbers
from belated.replay.tables import Column, LogTable, Stretch, open_table, refuse

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True)
class Columns:
    """What the columns of a log are called in the file."""

    time: str = "time"
    arm: str = "arm"
    outcome: str = "outcome"
    outcome_time: str = "outcome_time"
    probability: str = "probability"

    def __post_init__(self) -> None:
        names = [getattr(self, field.name) for field in fields(self)]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"the column {name!r} cannot be two things at once: {self!r}")


@final
@dataclass(frozen=True, eq=False)
class Log:
    """Decisions in order of time; times are in seconds, or in the file's own unit if they were numbers."""

    arm_names: tuple[str, ...]
    times: Floats
    arms: Integers  # indices into arm_names
    outcomes: Floats  # NaN: none has come
    outcome_times: Floats  # infinite: none has come
    probabilities: Floats | None = None
    places: tuple[str, Integers] | None = None  # "log.csv, line" and the line of every decision
    has_dates: bool = True  # False: times are numbers in a unit that only the file's owner knows

    @property
    def n_arms(self) -> int:
        """k."""
        return len(self.arm_names)

    def place(self, index: int) -> str:
        """Where a decision is in its file, for messages."""
        if self.places is None:
            return f"decision {index + 1}"
        return f"{self.places[0]} {self.places[1][index]}"


class _Part(NamedTuple):
    lines: Integers
    times: Floats
    arms: Integers
    outcomes: Floats
    outcome_times: Floats
    probabilities: Floats


def read(path: Path | str, columns: Columns | None = None) -> Log:
    """The log in a CSV or Parquet file (docs/replay.md); a malformed file is refused with the place of the error."""
    table = open_table(Path(path))
    names = _names(table, columns or Columns())
    codes: dict[str, int] = {}
    kind: str | None = None
    parts: list[_Part] = []
    for stretch in table.stretches:
        cells = {use: _column(table, stretch, name) for use, name in names.items()}
        kind = kind or _first_kind(cells["time"])
        parts.append(_part(cells, kind, codes))
    if not parts:
        raise InvalidInput(f"{table.path} has a header but no rows: a log needs decisions")
    if len(codes) < 2:
        raise InvalidInput(f"{table.path}: every row has the arm {next(iter(codes))!r}; a choice needs at least 2 arms")
    whole = _Part(*map(np.concatenate, zip(*parts, strict=True)))
    log = _assemble(table, codes, whole, has_probabilities="probability" in names)
    return replace(log, has_dates=kind != NUMBER)


def _assemble(table: LogTable, codes: dict[str, int], part: _Part, *, has_probabilities: bool) -> Log:
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
    )


def _sorted_names(names: list[str]) -> list[str]:
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def _names(table: LogTable, columns: Columns) -> dict[str, str]:
    """The file's name of each column; the probability may be missing unless it was asked for by a name of its own."""
    names: dict[str, str] = asdict(columns)
    if names["probability"] == Columns.probability not in table.header:
        del names["probability"]
    missing = {use: name for use, name in names.items() if name not in table.header}
    if missing:
        options = ", ".join(f"--{use}".replace("_", "-") for use in missing)
        raise InvalidInput(
            f"{table.path}: no column {', '.join(f'{name!r} for the {use}' for use, name in missing.items())}; "
            f"there are {', '.join(map(repr, table.header))}; {_near(table.header, list(missing.values()))}"
            f"rename them, or say what they are called: {options}, or Columns(...) in Python"
        )
    return names


def _near(header: list[str], missing: list[str]) -> str:
    """The nearest names there are."""
    lowered = {there.lower(): there for there in header}
    near = [lowered[key] for name in missing for key in difflib.get_close_matches(name.lower(), lowered, n=1)]
    return f"is it {' and '.join(map(repr, near))}? " if near else ""


def _column(table: LogTable, stretch: Stretch, name: str) -> Column:
    return Column(table, name, stretch.lines, stretch.columns[table.header.index(name)])


def _first_kind(times: Column) -> str:
    _refuse_empty(times)
    kind = kind_of(times.cells[0])
    if kind is None:
        refuse(times, 0, "is neither a finite number nor an ISO 8601 date-time such as 2024-05-01T12:30:00+02:00")
    return kind


def _refuse_empty(column: Column) -> None:
    if "" in column.cells:
        refuse(column, column.cells.index(""), f"every row needs its {column.name}")


def _part(cells: dict[str, Column], kind: str, codes: dict[str, int]) -> _Part:
    for use in ("time", "arm"):
        _refuse_empty(cells[use])
    times, outcome_times = (instants(cells[use], kind) for use in ("time", "outcome_time"))
    outcomes, arms = numbers(cells["outcome"]), cells["arm"].cells
    _check_outcomes(cells, times, outcomes, outcome_times)
    chances = _probabilities(cells["probability"]) if "probability" in cells else np.empty(0)
    numbered = np.array([codes.setdefault(name, len(codes)) for name in arms], np.int64)
    return _Part(np.array(cells["arm"].lines), times, numbered, outcomes, outcome_times, chances)


def _check_outcomes(cells: dict[str, Column], times: Floats, outcomes: Floats, outcome_times: Floats) -> None:
    has_value, has_time = np.isfinite(outcomes), np.isfinite(outcome_times)
    outcome, outcome_time = cells["outcome"], cells["outcome_time"]
    rule = "a row has both, or neither if nothing has come"
    for column, lacks in ((outcome, has_time & ~has_value), (outcome_time, has_value & ~has_time)):
        if lacks.any():
            other = outcome_time if column is outcome else outcome
            refuse(column, int(lacks.argmax()), f"column {other.name!r} has a value: {rule}")
    early = outcome_times < times
    if early.any():
        first = int(early.argmax())
        refuse(outcome_time, first, f"is before the decision itself, {cells['time'].cells[first]!r}")


def _probabilities(column: Column) -> Floats:
    rule = "must be the probability, in (0, 1], with which the logging system chose this arm"
    if "" in column.cells:
        refuse(column, column.cells.index(""), f"it {rule}")
    values = numbers(column)
    wrong: Any = ~((values >= 1e-300) & (values <= 1))
    if wrong.any():
        refuse(column, int(wrong.argmax()), rule)
    return values
