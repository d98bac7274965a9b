"""Every command and every file of settings in the documents is one."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from belated import cli, lab
from belated.lab.comparisons.comparison import as_comparison
from belated.lab.comparisons.grid import as_grid

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MINE = """
from belated import FTRL
from belated.tunings import Simple

class MyLearner:
    def __init__(self, n_arms, *, seed, rate=1.0):
        self.inner = FTRL(n_arms, Simple(rate), seed=seed)
        self.ask, self.tell = self.inner.ask, self.inner.tell

    def ask(self): ...
    def tell(self, round, loss): ...
"""


CALL = re.compile(r"(?:# )?\s*(?:sudo -u belated )?(?:\S*/)?belated ([a-z].*?)(?=\s+[#&|<>]|$)")


def commands() -> list[tuple[str, str]]:
    """The page and the words of each call of `belated`, without comments and without where its output goes."""
    found = []
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = block.replace("\\\n", " ").splitlines() if language in ("", "sh", "bash", "toml") else []
            found += [(page.name, call[1]) for call in map(CALL.match, lines) if call]
    return found


FOUND = commands()
OF_THE_LAB = [words for _, words in FOUND if re.match("compare|list|sweep", words) and "--dask" not in words]


def parsed(words: list[str]) -> Any:
    """The context of a command, which refuses what it does not know. Nothing is run."""
    command: Any = get_command(cli.app)
    context = command.make_context("belated", list(words))
    while True:
        name, command, words = command.resolve_command(context, words)
        if not hasattr(command, "commands"):
            return command.make_context(name, words, parent=context)


def test_the_commands_are_found() -> None:
    assert len(FOUND) > 50
    pages = {"README.md", "lab.md", "players.md", "reproduction.md", "sweeps.md", "service.md", "deployment.md"}
    assert pages <= {page for page, _ in FOUND}
    assert {words.partition(" ")[0] for words in OF_THE_LAB} == {"compare", "list", "sweep"}


@pytest.mark.parametrize(("page", "words"), FOUND)
def test_a_command_can_be_called(page: str, words: str) -> None:
    assert page.endswith(".md")
    parsed(shlex.split(words))


def test_a_command_that_is_none_is_noticed() -> None:
    for words in ("compare --alorithms bold", "comparison", "keys crate", "compare one.toml two.toml"):
        with pytest.raises(Exception, match=r"No such|Got unexpected"):
            parsed(words.split())


@pytest.mark.parametrize("words", sorted(set(OF_THE_LAB)))
def test_a_command_of_the_lab_runs(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, but for few rounds."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    Path("mine.py").write_text(MINE)
    for page in PAGES:
        for name, text in named_files(page).items():
            Path(name).write_text(re.sub(r"rounds = [\d_]+", "rounds = 20", text))
    small = ["--rounds", "20", "--seeds", "2", "--workers", "1"] if words.startswith("compare") else []
    result = CliRunner().invoke(cli.app, [*shlex.split(words), *small], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def named_files(page: Path) -> dict[str, str]:
    """The blocks of settings of a page, by the name that their page calls them."""
    names = {"lab.md": "unbalanced.toml", "sweeps.md": "grid.toml"}
    blocks = [block for language, block in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "toml"]
    return dict.fromkeys([names[page.name]], *blocks) if page.name in names else {}


def test_the_settings_of_the_documents_are_settings(tmp_path: Path) -> None:
    files = {name: text for page in PAGES for name, text in named_files(page).items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert as_comparison(tmp_path / "unbalanced.toml").rounds == 128_000
    points = as_grid(tmp_path / "grid.toml").points()
    assert len(points) == 12  # three rules of losses, two delays, two numbers of arms
    for point in points:
        assert isinstance(point.comparison, lab.Comparison)
        assert len(point.comparison.players) == 3
