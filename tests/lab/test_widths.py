"""Tables of the command line on narrow terminals, and in a pipe."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belated import cli
from belated.cli.application import FULL, Output
from belated.cli.reproduce import print_row
from belated.lab.comparisons.sweep_results import HEADINGS as SWEPT
from belated.lab.comparisons.tables import HEADINGS


def test_the_console_asks_for_its_width_whenever_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    console = Output()
    assert console.width == console.options.max_width == 80
    monkeypatch.setenv("COLUMNS", "33")
    assert console.width == console.options.max_width == 33
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((91, 20)))
    assert console.width == 91


def test_a_pipe_gets_full_width(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Output().width == FULL
    Output().print("word " * 1000, highlight=False)
    assert capfd.readouterr().out == "word " * 1000 + "\n"


LONG = "shadow:scale=2,switch_threshold=1"
GAME = ("--losses", "bernoulli:gap=0.25", "--arms", "2", "--rounds", "100", "--seeds", "2")


def invoke(width: int | None, *words: str) -> str:
    """What a command prints on a terminal of this width, or into a pipe."""
    environment = {"COLUMNS": None if width is None else str(width)}
    result = CliRunner().invoke(cli.app, list(words), catch_exceptions=False, env=environment)
    assert result.exit_code == 0, result.output
    return result.output


def unfolded(printed: str) -> set[str]:
    """Every cell and heading of the tables in a text. What was folded is whole again."""
    cells: set[str] = set()
    lines = printed.splitlines()
    for number, rule in enumerate(lines):
        if not rule.strip(" ─") and "─" in rule:
            head = next(n for n in range(number - 1, -1, -1) if not lines[n].strip())
            foot = next(n for n in range(number + 1, len(lines)) if not lines[n].strip())
            cells |= _cells(lines[head + 1 : number], lines[number + 1 : foot])
    return cells


def _cells(head: list[str], body: list[str]) -> set[str]:
    """The cells of a table. Two spaces in every line are between columns."""
    width = max(map(len, [*head, *body]))
    padded = [line.ljust(width) for line in [*head, *body]]
    empty = [all(line[n : n + 2] == "  " for line in padded) for n in range(width)]
    ends = [n for n in range(width) if empty[n]] + [width]
    cells: set[str] = {
        " ".join("".join(line[a:b]).strip() for line in padded[: len(head)]).strip() for a, b in pairwise([0, *ends])
    }
    for first in [n for n in range(len(head), len(padded)) if padded[n][:width].strip()]:
        for a, b in pairwise([0, *ends]):
            cells.add("".join(line[a:b].strip() for line in padded[first : first + 3]))
            cells.add("".join(line[a:b].strip() for line in padded[first : first + 2]))
            cells.add(padded[first][a:b].strip())
    return cells


@pytest.mark.parametrize("width", [60, 80, 100, None])
def test_a_comparison_shows_every_column_and_name(width: int | None) -> None:
    printed = invoke(width, "compare", "--algorithms", f"zs20-advanced,{LONG}", *GAME)
    assert "…" not in printed
    assert width is None or max(map(len, printed.splitlines())) <= width
    assert {"zs20-advanced", LONG, "nothing", *HEADINGS} <= unfolded(printed)


@pytest.mark.parametrize("width", [60, 80, 100, None])
def test_a_sweep_shows_every_column_and_name(tmp_path: Path, width: int | None) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        f'losses = "bernoulli:gap=0.25"\ndelays = ["fixed:d=20", "uniform:largest=123"]\n'
        f'algorithms = ["zs20-advanced", "{LONG}"]\nrounds = 100\nseeds = 2\n'
    )
    printed = invoke(width, "sweep", str(grid))
    assert "…" not in printed
    assert width is None or max(map(len, printed.splitlines())) <= width
    names = {"bernoulli:gap=0.25", "fixed:d=20", "uniform:largest=123", "zs20-advanced", LONG}
    assert {*"1234", *names, *SWEPT} <= unfolded(printed)


@pytest.mark.parametrize(("width", "most"), [(80, 80), (120, 120), (None, 120)])
def test_a_row_of_a_reproduction_is_folded(
    width: int | None, most: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    cells = (
        "feedback every 1000 rounds",
        "Thompson sampling [optimistic]",
        "12,345 ± 12 (read off)",
        "9,876.5 ± 1,234.5",
        "100",
        "shorter game",
    )
    print_row(cells)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= most
    words = " ".join(lines).split()
    assert "…" not in "".join(words)
    assert sorted(words) == sorted(" ".join(cells).split())
