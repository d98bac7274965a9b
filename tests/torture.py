"""`make torture`: the tests of durability at full scale, one after another, with a table at the end.

`python -m tests.torture kills power` runs only these. `--scale 0.01` runs a hundredth of each. The checks are those of
the tests, so any loss, repetition or difference is an AssertionError, and the program exits with 1.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks import decision_service
from benchmarks.judging import missed
from tests.serve.test_engine_model import AfterAlarm, AfterHandOver, Engines
from tests.support.postgres import TEMPLATE, Cluster
from tests.support.service import Served
from tests.support.standby import Twins
from tests.system.serve import test_disk, test_kill, test_power, test_replicas_kill, test_subjects

KILLS: Final = 2_000
KILLS_OF_ONE_STORE: Final = 50
CUTS: Final = 2_000
OPERATIONS: Final = 500
STEPS_FOR_OPERATIONS: Final = 60  # requests that cause at least so many operations
RUNS: Final = 2_000
STEPS: Final = 50
RUNS_AT_ONCE: Final = 50
CRASHES: Final = 50  # of PostgreSQL, each with five kills of servers
FAILOVER_EVERY: Final = 2  # crashes
CRASHES_OF_ONE_STORE: Final = 10
CALLS: Final = 100_000  # of subjects
KILLS_AMONG_CALLS: Final = 20
DECISIONS: Final = 10_000_000
SAY_EVERY: Final = 15.0  # seconds

Say = Callable[[int], None]


class Result(NamedTuple):
    """What was done, and what was kept."""

    done: str
    kept: str


def later(say: Say, done: int) -> Say:
    """Add to what is said."""
    return lambda more: say(done + more)


def kills(scale: float, say: Say) -> Result:
    """SIGKILL under load, on one server with SQLite."""
    most, done, kept = round(KILLS * scale), 0, 0
    while done < most:
        number = min(KILLS_OF_ONE_STORE, most - done)
        with tempfile.TemporaryDirectory() as folder, Served(Path(folder)) as served:
            crowd = test_kill.kill_under_load(served, number, done, later(say, done))
        done += number
        kept += sum(len(client.memory.decisions) for client in crowd.clients)
    return Result(f"{done:,} kills", f"{kept:,} decisions")


def power(scale: float, say: Say) -> Result:
    """Power cuts of a simulated disk, at any operation."""
    most, during, number = round(CUTS * scale), Counter[str](), 0
    while during.total() < most:
        for cut, found in test_power.damages(1000 + number):
            assert found == [], (number, found)
            during[cut.during] += 1
            say(during.total())
        number += 1
    return Result(f"{during.total():,} cuts", ", ".join(f"{count} in {name}" for name, count in during.most_common(4)))


def disk(scale: float, say: Say) -> Result:
    """An I/O error at each of the first operations of a disk, once and for good, and a power cut after it."""
    most, refused = round(OPERATIONS * scale), 0
    for number in range(1, most + 1):
        for lasts in (False, True):
            fault = test_disk.Fault(None, number, test_disk.BROKEN, lasts=lasts)
            is_over, is_refused = test_disk.meet(fault, "IOError", number, STEPS_FOR_OPERATIONS)
            assert not is_over, f"there were fewer than {number} operations"
            refused += is_refused
        say(number)
    return Result(f"{most:,} operations, twice", f"{refused:,} refused a request")


def model(scale: float, say: Say) -> Result:
    """Histories of random requests, compared with a model of dictionaries."""
    most, done = round(RUNS * scale), 0
    machines = Engines, AfterHandOver, Engines, AfterAlarm
    chosen = settings(
        max_examples=RUNS_AT_ONCE,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    while done < most:
        machine = machines[done // RUNS_AT_ONCE % len(machines)]
        ends = Counter[str]()

        class Counted(machine):  # type: ignore[valid-type, misc]
            def teardown(self, ends: Counter[str] = ends) -> None:
                super().teardown()
                ends["runs"] += 1

        run_state_machine_as_test(seed(done)(Counted), settings=chosen)
        done += ends["runs"]
        say(done)
    return Result(f"{done:,} runs of {STEPS} steps", "all answers as predicted")


def replicas(scale: float, say: Say) -> Result:
    """Kills of three servers on one PostgreSQL, crashes of PostgreSQL, and failovers to its standby."""
    most, total = round(CRASHES * scale), test_replicas_kill.Survived(0, 0, 0, 0)
    for done in range(0, most, CRASHES_OF_ONE_STORE):
        crashes = min(CRASHES_OF_ONE_STORE, most - done)
        twins = Twins()
        try:
            with tempfile.TemporaryDirectory() as folder:
                more = test_replicas_kill.torment(twins, Path(folder), crashes, FAILOVER_EVERY, later(say, done))
        finally:
            twins.remove()
        total = test_replicas_kill.Survived(*map(sum, zip(total, more, strict=True)))
    what = f"{total.kills} kills, {total.crashes} crashes, {total.failovers} failovers"
    return Result(what, f"{total.decisions:,} decisions")


def memory(scale: float, say: Say) -> Result:
    """Decisions of which 30% are never reported. Memory stays flat."""
    decisions = max(2_000_000, round(DECISIONS * scale))
    sizes = decision_service.memory_over(decisions)
    assert not missed, missed
    say(decisions)
    return Result(f"{decisions:,} decisions", f"{sizes[0]:.0f} MB after 1,000,000, {sizes[-1]:.0f} MB at the end")


def subjects(scale: float, say: Say) -> Result:
    """Kills of three servers on one PostgreSQL, while the same subjects ask again and again."""
    cluster = Cluster()
    try:
        cluster.create("subjects", TEMPLATE)
        with tempfile.TemporaryDirectory() as folder:
            calls, kills = max(100, round(CALLS * scale)), max(1, round(KILLS_AMONG_CALLS * scale))
            answers, met = test_subjects.ask_and_kill(cluster.url("subjects"), Path(folder), calls, kills, say)
    finally:
        cluster.remove()
    return Result(f"{kills} kills", f"{answers:,} answers to {met:,} subjects")


ORDEALS: Final = {one.__name__: one for one in (kills, power, disk, model, replicas, subjects, memory)}


def speaker(name: str) -> Say:
    """Says now and then how far an ordeal is."""
    began = said = time.monotonic()

    def say(done: int) -> None:
        nonlocal said
        if time.monotonic() > said + SAY_EVERY:
            said = time.monotonic()
            print(f"  {name}: {done:,} after {said - began:.0f} s", flush=True)  # noqa: T201

    return say


def main() -> None:
    """Run the named ordeals, or all of them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(ORDEALS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of the full counts")
    asked = parser.parse_args()
    if unknown := set(asked.names) - ORDEALS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}. Choose from {', '.join(ORDEALS)}.")
    rows, failed = list[str](), False
    for name in asked.names or ORDEALS:
        print(f"{name}: {ORDEALS[name].__doc__}", flush=True)  # noqa: T201
        began = time.monotonic()
        try:
            done, kept = ORDEALS[name](asked.scale, speaker(name))
            lost = "0 lost, 0 twice"
        except (AssertionError, LookupError, RuntimeError) as error:
            done, kept, lost, failed = "failed", f"{type(error).__name__}: {error}"[:500], "SOMETHING IS WRONG", True
        rows.append(f"| {name} | {done} | {kept} | {lost} | {time.monotonic() - began:,.0f} s |")
        print(rows[-1], flush=True)  # noqa: T201
    print("\n| ordeal | done | kept | wrong | time |\n|---|---|---|---|---|", *rows, sep="\n")  # noqa: T201
    sys.exit(failed)


if __name__ == "__main__":
    main()
