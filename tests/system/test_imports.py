"""Dask is loaded only for sweeps on it."""

import re
from pathlib import Path

from tests.support.processes import run_python

ROOT = Path(__file__).parents[2]


def test_dask_is_loaded_only_for_sweeps_on_it() -> None:
    compare = "sys.argv = ['belated', 'compare', '--algorithms', 'dew', '--rounds', '50', '--seeds', '1']"
    for work in (
        "import belated, belated.serve.process.run, belated.lab, belated.paper, belated.replay",
        f"{compare}; from belated.cli import main\ntry: main()\nexcept SystemExit: pass",
    ):
        loaded = run_python(f"import sys; {work}\nprint({{'dask', 'distributed'}} & set(sys.modules))")
        assert loaded.endswith("set()"), work
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text().splitlines():
            if re.match(r"\s*(from|import) (dask|distributed)\b", line):
                assert line.startswith("    "), f"{path}: {line}"  # inside a function, or for types only
