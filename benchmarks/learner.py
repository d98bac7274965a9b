"""Speed of ask and tell and of the kernel alone, start-up, and memory."""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

import belated
from belated import kernels
from belated.arrays import Floats
from belated.learner.ftrl import state_of
from belated.learner.rounds import make_room
from benchmarks.judging import best_of, judge, memory_of, timed


def ours(n_arms: int, delay: int, tuning: belated.tunings.Tuning | None = None) -> Callable[[int], None]:
    """Belated's learner, by default the default one, with feedback `delay` rounds late."""
    learner = belated.FTRL(n_arms, tuning, seed=1)
    learner.ask(delay)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            round = learner.ask().round
            learner.tell(round - delay, 0.5)

    return play


def pymab(n_arms: int) -> Callable[[int], None]:
    """PyMAB's Exp3, written in Rust."""
    from pymab.policies.adversarial import EXP3Policy  # noqa: PLC0415

    policy, generator = EXP3Policy(n_arms=n_arms, gamma=0.1), np.random.default_rng(1)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            policy.update(action=policy.select_action(rng=generator), reward=0.5)

    return play


def river(n_arms: int) -> Callable[[int], None]:
    """River's Exp3, written in Python."""
    from river import bandit  # noqa: PLC0415

    arms: list[int | str] = list(range(n_arms))

    def play(rounds: int) -> None:
        policy = bandit.Exp3(gamma=0.1, seed=1)  # anew each time: its weights overflow after 15,722 rounds
        for _ in range(rounds):
            policy.update(policy.pull(arms), 0.5)

    return play


def ask_and_tell() -> None:
    """One decision and one report from Python, against PyMAB's Exp3 (Rust) and river's."""
    print("\nask + tell from Python, us a round")
    for n_arms, times_river in [(10, 1.5), (100, 5.0), (1000, 15.0)]:
        contestants = ours(n_arms, 0), ours(n_arms, 100), pymab(n_arms)
        a, b, c, d = best_of(
            40,
            *(partial(timed, 1000, play) for play in contestants),
            partial(timed, max(100, 10_000 // n_arms), river(n_arms)),
        )
        print(f"  k = {n_arms}: belated {a:.2f}, with feedback 100 rounds late {b:.2f}, PyMAB {c:.2f}, river {d:.2f}")
        judge(f"k = {n_arms}: times as fast as PyMAB 2.0.1 Exp3", c / a, 1.0, "x", at_most=False)
        judge(f"k = {n_arms}: times as fast as river 0.26 Exp3", d / a, times_river, "x", at_most=False)


@kernels.compiled_first
def warm_rounds(
    clocks: kernels.Records,
    ledger: kernels.Records,
    policies: kernels.Policies,
    bets: Floats,
    cdf: Floats,
    uniforms: Floats,
) -> None:
    """Whole rounds with feedback 100 rounds late, with rates, argmin, draw, clock and a report."""
    n_arms = policies.shape[2]
    for i in range(uniforms.shape[0]):
        clock = clocks[0]
        alpha = math.sqrt(clock.round + 1)
        beta = math.sqrt((clock.backlog + clock.counted - clock.late_counted) / math.log(n_arms))
        kernels.solve_and_decide(clocks, ledger, policies, cdf, np.inf, uniforms[i], alpha, beta, 1)
        kernels.report(clocks, ledger, policies, bets, False, clock.round - 100, uniforms[i])  # noqa: FBT003


def kernel_alone() -> None:
    """A warm round of the kernel at k = 1000, against np.exp of 1,000 doubles."""
    print("\nkernel alone, k = 1000, feedback 100 rounds late, beta as in ZS20's tunings")
    n_arms, rounds = 1000, 1000
    learner = belated.FTRL(n_arms, belated.tunings.Simple(), seed=1)
    learner.ask(100)
    generator, doubles, out = np.random.default_rng(1), np.random.default_rng(2).random(1000), np.empty(1000)

    def round_of_kernel() -> float:
        state = state_of(learner)
        make_room(state, 2 * rounds)
        uniforms = generator.random(rounds)
        return timed(
            rounds, lambda _: warm_rounds(state.clock, state.ledger, state.policies, state.bets, state.cdf, uniforms)
        )

    def exponential() -> float:
        def play(rounds: int) -> None:
            for _ in range(rounds):
                np.exp(doubles, out=out)

        return timed(rounds, play)

    round_of_kernel()
    kernel, exp = best_of(30, round_of_kernel, exponential)
    print(f"  one round {kernel:.2f} us, np.exp of 1,000 doubles {exp:.2f} us")
    judge("one warm round, in np.exp's", kernel / exp, 10.0, "x", at_most=True)


def in_fresh_process(code: str) -> float:
    """Seconds printed by a fresh interpreter."""
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def import_time() -> None:
    """`import belated` against `import numpy`."""
    print("\nimport, fresh processes")
    template = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    numpy, own = best_of(
        15,
        lambda: in_fresh_process(template.format("import numpy")),
        lambda: in_fresh_process(template.format("import belated")),
    )
    print(f"  import numpy {numpy * 1e3:.1f} ms, import belated {own * 1e3:.1f} ms")
    judge("import belated, in import numpy's", own / numpy, 1.3, "x", at_most=True)


def never_reported(rounds: int = 10_000_000) -> None:
    """Memory and speed when no feedback ever comes."""
    print(f"\n{rounds:,} decisions whose feedback never comes, k = 10")
    learner = belated.FTRL(10, seed=1)

    def ask(learner: belated.FTRL, rounds: int) -> float:
        def play(rounds: int) -> None:
            for _ in range(rounds):
                learner.ask()

        return timed(rounds, play)

    ask(learner, 10_000)
    before = memory_of()
    while learner.round < rounds:
        ask(learner, 10_000)
        if sys.stderr.isatty():
            print(f"\r  {learner.round:,}", end="", file=sys.stderr, flush=True)
    grown = (memory_of(what="VmHWM") - before) / learner.outstanding
    judge("peak memory for each outstanding decision", grown, 64, "bytes", at_most=True)
    fresh, old = best_of(30, lambda: ask(belated.FTRL(10, seed=1), 10_000), lambda: ask(learner, 10_000))
    print(f"  ask: {fresh:.2f} us in the first 10,000 rounds, {old:.2f} us after {rounds:,}")
    judge("ask at the end, in asks at the start", old / fresh, 1.1, "x", at_most=True)
