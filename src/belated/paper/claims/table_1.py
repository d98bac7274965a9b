"""Claim 7 is ZS20's Table 1. It plays every system on uniform, unbalanced and heavy-tailed delays."""

from typing import NamedTuple

from belated import lab
from belated.lab.algorithms import Algorithm, setting_of
from belated.paper.claim import OBLIVIOUS, SEVERITY, Check, Claim, ClaimKind, Effort, Finding, Verdict, judge_mean
from belated.paper.grid import worst_arm
from belated.reports import Figure, Table, bars, columns_of

DELAYS: dict[str, lab.Delays] = {
    "uniform: 20": lab.Fixed(20),
    "unbalanced": lab.Unbalanced(),
    "heavy tail: Pareto": lab.Pareto(1.0),
}
NAMED = 3  # exceptions in the text of the check. The table shows all of them
SHOWN = 9  # systems in the figure, which need nothing in advance


class SystemResult(NamedTuple):
    """The result of a system on one kind of delay."""

    algorithm: Algorithm
    delays: str
    regret: float
    half: float
    bound: float | None
    worst: float  # what the worst arm loses
    verdict: Verdict | None  # of regret <= bound

    @property
    def is_informative(self) -> bool:
        """Whether the worst arm breaks the bound."""
        return self.bound is not None and self.bound < self.worst


def measure(algorithm: Algorithm, name: str, problem: lab.Problem, effort: Effort) -> SystemResult:
    """Play a system that is given what it needs in advance."""
    seeds = effort.seeds(4, 16)
    curves = effort.play(algorithm, problem, seeds)
    bounds = [algorithm.bound(setting_of(problem, seed)) for seed in seeds]
    known = [bound for bound in bounds if bound is not None]
    has_bound = len(known) == len(bounds)
    verdict = judge_mean(curves.expected[:, -1] - known, 0.0) if has_bound else None
    bound = sum(known) / len(known) if has_bound else None
    worst = float(worst_arm(problem, seeds).mean())
    return SystemResult(algorithm, name, float(curves.mean[-1]), float(curves.interval[-1]), bound, worst, verdict)


def cell(row: SystemResult) -> str:
    """The regret with its interval and its bound, for a table."""
    regret = f"{row.regret:,.0f} ± {row.half:,.0f}"
    if row.bound is None:
        return regret
    compared = f"{regret} {'≤' if row.regret <= row.bound else '>'} {row.bound:,.0f}"
    return compared if row.is_informative else f"{compared} (says nothing)"


def figure(systems: dict[str, list[SystemResult]]) -> Figure:
    """A figure of the systems that need nothing, sorted by their worst regret."""
    free = [name for name, rows in systems.items() if rows[0].algorithm.needs == "nothing"]
    best = sorted(free, key=lambda name: max(row.regret for row in systems[name]))[:SHOWN]
    rows = [(name, row.delays, row.regret, row.half) for name in best for row in systems[name]]
    columns = columns_of(("system", "delays", "regret", "half width"), rows)
    draw = bars("regret", "system", "delays", half="half width")
    return Figure("table-1", "Systems that need nothing in advance", columns, draw)


def table(title: str, systems: dict[str, list[SystemResult]]) -> Table:
    """A table of every system, what it needs in advance, and its regret."""
    rows = [
        (name, rows[0].algorithm.citation, rows[0].algorithm.needs, *map(cell, rows)) for name, rows in systems.items()
    ]
    return Table(title, ("system", "from", "needs in advance", *DELAYS), rows, is_text=True)


def judge(systems: dict[str, list[SystemResult]]) -> Check:
    """Check that every regret is at most the system's own bound, where the worst arm is not."""
    bounded = [row for rows in systems.values() for row in rows if row.verdict is not None]
    judged = [row for row in bounded if row.is_informative]
    beyond = [f"{row.algorithm.name} on {row.delays}" for row in judged if row.verdict is not Verdict.HOLDS]
    worst = max((row.verdict for row in judged if row.verdict is not None), key=SEVERITY.index)
    named = ", ".join(beyond[:NAMED])
    exceptions = f"{len(beyond)}, first {named}" if len(beyond) > NAMED else named or "none"
    counts = f"{len(bounded)} pairs of system and delays have a bound, {len(judged)} of them below what the worst arm"
    text = f"{counts} loses. Beyond it or undecided: {exceptions}"
    return Check("Every system keeps its own bound", text, worst)


def investigate(effort: Effort) -> Finding:
    """Play all systems of the lab except the yardsticks against a constrained adversary."""
    k, n = 3, effort.pick(2_500, 20_000)
    problems = {name: lab.Problem(lab.Constrained(gap=0.9), rule, k, n) for name, rule in DELAYS.items()}
    published = [algorithm for algorithm in lab.ALGORITHMS if algorithm.mark != "-"]
    systems = {
        algorithm.name: [measure(algorithm, name, problem, effort) for name, problem in problems.items()]
        for algorithm in effort.watch(published)
    }
    informative = sum(row.is_informative for rows in systems.values() for row in rows)
    return Finding(
        f"{len(systems)} systems on {len(DELAYS)} kinds of delay, {informative} pairs have a bound below what the "
        "worst arm loses, none is exceeded",
        [judge(systems)],
        [figure(systems)],
        [table(f"Regret ± 95% interval ≤ its bound, if it has one (gap 0.9, k = {k}, n = {n:,})", systems)],
        (
            "solid sees the losses of all arms, and composite sees only sums. Neither can be compared with the others "
            "directly. Systems that need stochastic losses do not have them here. A bound that "
            "is not below what the worst arm loses says nothing here and is not judged.",
        ),
    )


CLAIM = Claim(
    "table-1",
    "Table 1: every system, and what it needs",
    ClaimKind.MEASUREMENT,
    (
        "Earlier systems need the horizon, the total delay, the largest delay, or each delay when its round is "
        "played. ZS20 needs none of these. Each system gets what it needs and plays against an adversary whose best "
        "arm stays the same while all losses jump up and down.",
    ),
    investigate,
    f"{OBLIVIOUS} Each system gets in advance what its own analysis needs.",
    cost=19,
)
