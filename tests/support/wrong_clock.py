"""Runs a Python command whose clock is wrong: `wrong_clock.py OFFSET python -m MODULE ...`.

The file OFFSET has the error in seconds. A test may change it at any time.
"""

import runpy
import sys
import time
from pathlib import Path


def main(offset: Path, module: str, *arguments: str) -> None:
    """Run the module with the wrong clock."""
    right = time.time_ns
    time.time_ns = lambda: right() + round(float(offset.read_text()) * 1e9)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[4:])
