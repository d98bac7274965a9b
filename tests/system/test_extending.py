"""The learner and the store of docs/extending.md pass the contracts, and broken ones fail."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEARNER, STORE = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
MEMORY = (
    STORE.replace(
        "from belated.serve.store.sqlite.journal import SQLiteJournal", "from tests.support import memory_journal"
    )
    .replace("def open_store(self, tmp_path):", "def open_store(self):\n        store = memory_journal.MemoryStore()")
    .replace('SQLiteJournal(tmp_path / "belated.db")', "memory_journal.MemoryJournal(store)")
)


def run_pytest(folder: Path, code: str) -> str:
    """Run pytest on this code only, without the settings of Belated's tests. Returns the output."""
    (folder / "test_mine.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", "test_mine.py"]
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment).stdout  # noqa: S603


@pytest.mark.parametrize("code", [LEARNER, STORE, MEMORY], ids=["learner", "store", "memory"])
def test_what_keeps_the_contract_passes(tmp_path: Path, code: str) -> None:
    output = run_pytest(tmp_path, code)
    assert re.search(r"\d+ passed in", output), output
    assert "failed" not in output


BROKEN = {
    "a report counts twice": (LEARNER, "raise DuplicateReport(number)", "return", "test_a_bad_report_is_refused"),
    "it never learns": (LEARNER, "self._losses[arm] += value", "pass", "test_it_learns_which_arm_is_best"),
    "nothing is unique": (
        MEMORY,
        "class TestStore",
        "memory_journal.unique = lambda entry: None\n\n\nclass TestStore",
        "test_what_is_there_already_or_comes_twice_is_a_conflict",
    ),
    "no fixture": (STORE, "def open_store", "def other", "must override the fixture open_store"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_contract_fails(tmp_path: Path, name: str) -> None:
    code, old, new, words = BROKEN[name]
    assert old in code
    output = run_pytest(tmp_path, code.replace(old, new))
    assert words in output, output
    assert re.search(r"\d+ (failed|error)", output)
