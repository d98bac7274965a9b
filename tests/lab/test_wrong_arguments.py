"""Wrong arguments of comparisons and their results are refused before any work, with errors that name them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belated import lab
from belated.errors import InvalidInput
from belated.folders import as_path

SETTINGS: dict[str, Any] = {"algorithms": ["uniform", "zs20-simple"], "rounds": 50, "seeds": 2}


@pytest.fixture(scope="module")
def results() -> lab.Results:
    return lab.compare(SETTINGS)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda r: r.to_latex(3), "^the caption must be text, got 3$"),
        (lambda r: r.to_latex("A table", 3), "^the label must be text, got 3$"),
        (lambda r: r.to_latex(label=b"tab"), "^the label must be text, got b'tab'$"),
        (lambda r: r.figure(None), "^the path of a figure must be text or a Path, got None$"),
        (lambda r: r.figure(b"regret.png"), "^the path of a figure must be text or a Path, got b'regret.png'$"),
        (lambda r: r.figure("a\0.png"), r"^the path of a figure must have no zero byte, got 'a\\x00.png'$"),
        (lambda r: r.figure("a.png", scale=["log"]), r"^unknown scale .*Did you mean log"),
        (lambda r: r.write(3), "^folder must be text or a Path, got 3$"),
    ],
)
def test_of_results(results: lab.Results, use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        use(results)


@pytest.mark.parametrize("play", [lab.compare, lab.sweep], ids=["compare", "sweep"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folder": 3}, "^folder must be text or a Path, got 3$"),
        ({"folder": "a\0b"}, "^folder must have no zero byte"),
        ({"client": "tcp://x"}, r"^client must be a Dask client, such as Client\('tcp://.*got 'tcp://x'$"),
    ],
)
def test_of_what_plays(play: Any, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        play(SETTINGS, **arguments)


@pytest.mark.parametrize("play", [lab.compare, lab.sweep], ids=["compare", "sweep"])
def test_of_a_file_of_settings(play: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^the path of a TOML file must have no zero byte"):
        play("wave\0.toml")


def test_of_a_written_sweep() -> None:
    with pytest.raises(InvalidInput, match=r"^folder must be text or a Path, got None$"):
        lab.sweep({**SETTINGS, "rounds": 20}).write(None)  # type: ignore[arg-type]


def test_texts_and_paths_are_taken(results: lab.Results, tmp_path: Path) -> None:
    class Own:
        def __fspath__(self) -> str:
            return str(tmp_path / "own")

    for folder in (str(tmp_path / "text"), tmp_path / "path", Own()):
        assert results.write(folder) == as_path("folder", folder)  # type: ignore[arg-type]
        assert (as_path("folder", folder) / "table.tex").exists()
