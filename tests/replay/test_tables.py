"""Tables on a terminal. Nothing is cut off."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from belated import OutcomeRange, replay
from belated.cli.tables import print_cells
from belated.replay import log_sections, log_study
from belated.reports import Table
from tests.support.replays import write_log

HEADER = ("policy", "SNIPS ± 95%", "best?", "effective outcomes", "mean weight", "IPS ± 95%")
NAMES = ("logged", "always recommendation-engine-v2-with-a-long-name", "always " + "x" * 90)
CELLS = ("0.0213,\N{NO-BREAK SPACE}0\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}0.0412", "yes", "1,234,567", "0.998")
ROWS = [(name, *CELLS, "123,456,789\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}12,345,678") for name in NAMES]


def printed(table: Table, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_cells(table, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 120, 300])
def test_no_cell_is_cut_off(width: int) -> None:
    lines = printed(Table("Mean outcome", HEADER, ROWS), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    for cell in ROWS[0]:
        assert text.count(cell) >= (3 if cell != "logged" else 1)
    letters = "".join(re.findall(r"[a-z0-9-]", "".join(line[:24] for line in lines)))
    assert letters.count("x") >= (0 if width > 80 else 90), "a long name is folded"
    for word in " ".join(HEADER).split():
        assert word in text


def test_columns_are_never_narrower_than_their_cells() -> None:
    """Rich narrows the widest column first, whatever it must hold, and cuts off what is beyond the edge."""
    cells = ("0.1029 ± 0.012", "yes", "2,458", "1.006", "0.1297 ± 0.0094")
    rows = [("always narrow", *(cell.replace(" ", "\N{NO-BREAK SPACE}") for cell in cells))]
    for width in range(40, 120):
        lines = printed(Table("", HEADER, rows), width)
        assert max(map(len, lines)) <= width
        assert all(cell in "\n".join(lines) for cell in rows[0])


def test_a_table_that_fits_is_one_table() -> None:
    assert sum("policy" in line for line in printed(Table("", HEADER, ROWS[:1]), 120)) == 1
    assert sum("policy" in line for line in printed(Table("", HEADER, ROWS[:1]), 80)) == 2


def test_the_essential_columns_come_first(tmp_path: Path) -> None:
    log = replay.read(write_log(tmp_path / "log.csv", 600))
    found = log_study.study(log, OutcomeRange(0, 1, better="higher"))
    assert log_sections.estimate_table(found).header[:3] == ("policy", "SNIPS ± 95%", "best?")
    assert max(map(len, printed(log_sections.estimate_table(found), 80))) <= 80
