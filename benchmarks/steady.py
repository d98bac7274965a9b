"""Steady speed against an earlier revision of Belated, which is taken from git. Both take turns in the same run.

The revision is the last one that compiled every kernel before its first use, or that of BELATED_BEFORE.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.decision_service import KEYED, MANY_OPEN, load
from benchmarks.judging import judge
from tests.support.service import Served

ROOT = Path(__file__).parents[1]
BEFORE = os.environ.get("BELATED_BEFORE", "f509fbd")
BAR = 0.97
PAIRS, GAMES, LOADS = 60, 15, 9  # how often they take turns
# Runs in a process of each revision. The first seconds are for what is loaded or compiled in the background. It
# measures the time of the processor, because other programs may run too. Of games it takes the fastest of six, because
# the revisions draw other losses from a seed, and a game with an alarm takes longer.
PLAYER = """
import json, sys, time
import belated
from belated import lab

learners = {}

def ask_and_tell(k, delay, rounds):
    if (k, delay) not in learners:
        learners[k, delay] = belated.FTRL(k, seed=1)
        learners[k, delay].ask(delay)
        began = time.perf_counter()
        while time.perf_counter() < began + 3:
            ask_and_tell(k, delay, rounds)
    learner = learners[k, delay]
    began = time.process_time()
    for _ in range(rounds):
        round = learner.ask().round
        learner.tell(round - delay, 0.5)
    return time.process_time() - began

def game(tuning, k, rounds):
    problem = lab.Problem(lab.Bernoulli(gap=0.1), lab.Geometric(mean=100), k, rounds)
    player, found = getattr(belated.tunings, tuning)(), []
    for seed in range(1, 7):
        began = time.process_time()
        lab.play(player, problem, [seed])
        found.append(time.process_time() - began)
    return min(found)

for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(globals()[name](*arguments), flush=True)
"""


def unpack(folder: Path) -> dict[str, str]:
    """Put the earlier revision into a folder. Returns what makes a process use it."""
    command = ["git", "archive", BEFORE, "src"]
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")
    return environment(folder / "src")


def environment(source: Path) -> dict[str, str]:
    """Variables of a process that uses this source, and keeps its compiled kernels beside it."""
    others = {name: value for name, value in os.environ.items() if name not in ("BELATED_KERNELS", "NUMBA_CACHE_DIR")}
    return {**others, "PYTHONPATH": str(source)}


@contextmanager
def sources() -> Iterator[list[dict[str, str]]]:
    """The environments of both revisions, this one first."""
    own = environment(ROOT / "src")
    subprocess.run([sys.executable, "-P", "-m", "belated.warming"], env=own, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        yield [own, unpack(Path(folder))]


@contextmanager
def player(variables: dict[str, str]) -> Iterator[Callable[..., float]]:
    """A process that plays when it is asked, and says how long it took."""
    command = [sys.executable, "-P", "-c", PLAYER]
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        requests: Any = process.stdin
        answers: Any = process.stdout

        def play(*request: Any) -> float:
            requests.write(json.dumps(request) + "\n")
            requests.flush()
            return float(answers.readline())

        yield play
        requests.close()


def in_turns(repeats: int, contestants: Sequence[Callable[[], float]]) -> list[list[float]]:
    """What each gives, over and over. Every second time in the other order, because the first may warm the other."""
    found: list[list[float]] = [[] for _ in contestants]
    for repeat in range(repeats):
        for index in (range(len(contestants)), reversed(range(len(contestants))))[repeat % 2]:
            found[index].append(contestants[index]())
    return found


def judge_times(what: str, repeats: int, contestants: Sequence[Callable[[], float]]) -> None:
    """The least time of each, as a ratio."""
    now, before = map(min, in_turns(repeats, contestants))
    judge(f"{what}: speed / that of {BEFORE}", before / now, BAR, "", at_most=False)


def speed() -> None:
    """Ask and tell from Python, and whole games."""
    print(f"\nsteady speed of ask + tell and of games, against {BEFORE}")
    with sources() as both, ExitStack() as stack:
        players = [stack.enter_context(player(variables)) for variables in both]
        for n_arms, delay in [(10, 0), (10, 100), (100, 100), (1000, 100)]:
            rounds = 2000 if n_arms < 1000 else 500
            asked = [partial(play, "ask_and_tell", n_arms, delay, rounds) for play in players]
            in_turns(1, asked)
            judge_times(f"ask + tell, k = {n_arms}, delay {delay}", PAIRS, asked)
        for tuning, n_arms, rounds in [("Means", 10, 100_000), ("Advanced", 10, 100_000), ("Means", 1000, 5000)]:
            played = [partial(play, "game", tuning, n_arms, rounds) for play in players]
            in_turns(1, played)
            judge_times(f"games of {tuning}, k = {n_arms}", GAMES, played)


@contextmanager
def served(variables: dict[str, str]) -> Iterator[Served]:
    """A service of this revision, with an experiment."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.clear()
        os.environ.update(variables)
        try:
            service = Served(Path(folder), *MANY_OPEN)
        finally:
            os.environ.clear()
            os.environ.update(before)
        with service:
            service.post("/v1/experiments", {"name": "layout", "arms": ["blue", "green", "red"]})
            yield service


def service() -> None:
    """Durable decisions with a key each, 32 connections. The median of pairs, because a disk is not steady."""
    print(f"\nservice: single decisions with keys, against {BEFORE}")
    with sources() as both, ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "post.lua")
        script.write_text(KEYED)
        urls = [f"{stack.enter_context(served(one)).url}/v1/experiments/layout/decisions" for one in both]
        loads = [lambda url=url: load(url, script)[0] for url in urls]
        in_turns(1, loads)
        now, before = in_turns(LOADS, loads)
    print(f"  {max(now):,.0f} a second, before {max(before):,.0f}")
    ratio = median(one / other for one, other in zip(now, before, strict=True))
    judge(f"decisions of the service: speed / that of {BEFORE}", ratio, BAR, "", at_most=False)
