"""Python code in a fresh process."""

import subprocess
import sys


def run_python(code: str) -> str:
    """Run the code and return its output."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
