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
    monkeypatch.setattr(Progress, "tell", staticmethod(progress.to_stderr))  # or a service may have begun its log
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


def lines_of(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A file for errors."""
    terminal_of(monkeypatch)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    return file


def test_who_waits_for_the_compiler_is_told_without_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    file = lines_of(monkeypatch)
    with while_busy("stirring"):
        time.sleep(0.2)
    assert file.getvalue() == ""
    with while_busy("stirring", in_lines=True):
        time.sleep(0.2)
    assert file.getvalue() == "stirring after 0 s\n"


def test_a_notebook_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    file = lines_of(monkeypatch)
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    with Progress("cooking", 2) as bar:
        time.sleep(0.1)
        bar.advance(1)
    assert file.getvalue() == "cooking: 1 of 2 after 0 s\n"
