"""Runs a Python command in which a writer hangs for good: `hanging.py TRIGGER python -m MODULE ...`.

One process does so, once the file TRIGGER is there. It takes the file away.
"""

import runpy
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from belated.serve.engine import writer
from belated.serve.engine.engine import Engine


def main(trigger: Path, module: str, *arguments: str) -> None:
    """Run the module."""
    writer.HANG_TIMEOUT = 0.5  # type: ignore[misc]
    process = Engine.process

    def hang(self: Engine, *given: Any, **named: Any) -> Any:
        with suppress(FileNotFoundError):
            trigger.unlink()
            Event().wait()
        return process(self, *given, **named)

    Engine.process = hang  # type: ignore[method-assign]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[4:])
