"""Examples and the README's code run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
BLOCKS = {
    f"{path.name}-{number}": block
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path.name not in ("service.md", "openfeature.md")  # test_quickstart.py and test_openfeature.py run them
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL), 1)
}


def run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout  # noqa: S603


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("late_feedback.py", r"^\{'blue': .*'green': .*'red': .*\}\n\d+\.\d+\n\d+\.\d+"),
        ("own_tuning.py", r"Cautious\(\) +certificate"),
        ("interrupted.py", "the same 50 decisions"),
        ("silent_option.py", r"^large +chosen"),  # the best one, although a silent one takes part
        ("small_games.py", r"resonant wave, d=100( +\d+ \+- +\d+){6}"),
    ],
)
def test_examples_run(example: str, expected: str) -> None:
    assert re.search(expected, run(f"examples/{example}"))


def test_the_example_log_can_be_replayed(tmp_path: Path) -> None:
    run("examples/make_log.py", str(tmp_path / "decisions.csv"))
    command = ["replay", str(tmp_path / "decisions.csv"), "--reward", "--out", str(tmp_path / "out")]
    assert "the best is always calm" in run("-c", "from belated.cli import main; main()", *command)


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {
        "late_feedback.py",
        "own_tuning.py",
        "interrupted.py",
        "silent_option.py",
        "small_games.py",
        "make_log.py",
        "language_models.py",  # needs a service. serve/test_language_models.py runs it.
        "visitors.py",  # needs a service. test_deployment.py runs it.
    }


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_code_in_the_documents_runs(block: str) -> None:
    run("-c", block)


def test_the_readme_shows_the_example_file() -> None:
    example = (ROOT / "examples" / "late_feedback.py").read_text()
    code = example.split('"""\n', 1)[1].strip()
    assert code in (ROOT / "README.md").read_text()
