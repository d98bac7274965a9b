"""How figures are measured and judged."""

import re
import time
from collections.abc import Callable
from pathlib import Path

missed: list[str] = []


def judge(name: str, value: float, bar: float, unit: str, *, at_most: bool) -> None:
    """Print the figure, the bar, and whether it is met."""
    met = value <= bar if at_most else value >= bar
    print(f"  {'ok    ' if met else 'MISSED'}  {name:58} {value:9.2f} {unit:8} ({'<=' if at_most else '>='} {bar:g})")
    if not met:
        missed.append(name)


def memory_of(pid: int | str = "self", what: str = "VmRSS") -> int:
    """Bytes in memory now, or the peak with VmHWM. ru_maxrss would include the peak of the parent process."""
    [kilobytes] = re.findall(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024


def best_of(repeats: int, *contestants: Callable[[], float]) -> list[float]:
    """The least time of each contestant over some repeats, taking turns."""
    times = [[contestant() for contestant in contestants] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def timed(rounds: int, play: Callable[[int], None]) -> float:
    """Microseconds a round."""
    start = time.perf_counter()
    play(rounds)
    return (time.perf_counter() - start) / rounds * 1e6
