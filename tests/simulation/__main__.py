"""`make soak` runs seeds for as long as you like. `python -m tests.simulation --seed N` replays one."""

import argparse
import sys
import time
import traceback

from tests.simulation.model import Violation
from tests.simulation.running import run, shrunk, soak

SAY_EVERY = 10.0  # seconds
SHOWN = 60  # lines of a trace


def main() -> None:
    """Replay a seed, or run many."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed and print what happened")
    parser.add_argument("--steps", type=int, help="repair everything after so many turns")
    parser.add_argument("--trace", action="store_true", help="print every step of a replay")
    parser.add_argument("--archives", action="store_true", help="replay with an operator who archives and erases")
    parser.add_argument("--parts", action="store_true", help="replay with outcomes that are made of parts")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run seeds")
    parser.add_argument("--first", type=int, default=1_000, help="the first seed to run")
    asked = parser.parse_args()
    if asked.seed is None:
        sys.exit(run_many(asked.first, asked.seconds))
    sys.exit(replay(asked.seed, asked.steps, whole=asked.trace, archives=asked.archives, has_parts=asked.parts))


def replay(seed: int, steps: int | None, *, whole: bool, archives: bool, has_parts: bool) -> int:
    """Run one seed and print its trace, or the end of it. Returns 1 if it fails."""
    trace: list[str] = []
    try:
        print(run(seed, steps, trace, archives=archives, has_parts=has_parts))  # noqa: T201
        failed = False
    except (Exception, Violation):  # noqa: BLE001  any error is a finding
        traceback.print_exc(file=sys.stdout)
        failed = True
    print(*(trace if whole else trace[-SHOWN:]), sep="\n")  # noqa: T201
    return int(failed)


def run_many(first: int, seconds: float) -> int:
    """Run seeds, and say now and then how far it is. Stops at the first that fails, and returns 1."""
    began = said = time.monotonic()
    seed = first
    try:
        for total in soak(first, seconds):
            seed = first + total.seeds
            if time.monotonic() > said + SAY_EVERY:
                said = time.monotonic()
                print(f"{said - began:6.0f} s  seeds {first} to {seed - 1}  {total.entries:,} entries", flush=True)  # noqa: T201
    except (Exception, Violation):  # noqa: BLE001  any error is a finding
        traceback.print_exc(file=sys.stdout)
        steps = shrunk(seed)
        if steps is not None:
            print(f"It also fails within {steps} steps: --seed {seed} --steps {steps} --trace")  # noqa: T201
        return 1
    print(f"{total.seeds:,} seeds, {total.turns:,} turns, {total.answers:,} answers, {total.entries:,} entries.")  # noqa: T201
    print("the service lost nothing that it acknowledged, nothing counted twice, all folds were equal")  # noqa: T201
    print(", ".join(f"{name} {count:,}" for name, count in total.happened.most_common()))  # noqa: T201
    return 0


if __name__ == "__main__":
    main()
