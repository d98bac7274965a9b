"""What is shown while one step takes long."""

import io
import sys
import time

import pytest

from belated import progress
from belated.progress import Progress, while_busy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal for errors. A fixture could not make it, because pytest redirects them when a test begins."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.05)
    monkeypatch.setattr(Progress, "in_lines", False)  # a command in another test may have asked for lines
    return shown


def test_a_long_step_is_named_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with while_busy("stirring"):
        pass
    time.sleep(0.1)
    assert terminal.getvalue() == ""
    with while_busy("stirring"):
        time.sleep(0.2)
    assert "stirring" in terminal.getvalue()


def test_a_step_inside_longer_work_is_named_in_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with Progress("cooking", 2) as bar:
        with while_busy("stirring"):
            time.sleep(0.2)
        assert "stirring" in terminal.getvalue()
        bar.advance(1)
        assert bar._title == "cooking"


def test_without_rich_it_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    for name in [name for name in sys.modules if name == "rich" or name.startswith("rich.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    with while_busy("stirring"):
        time.sleep(0.2)
    assert terminal.getvalue() == "stirring ...\n"
