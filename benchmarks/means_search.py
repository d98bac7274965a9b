"""How Means was chosen, by comparing designs on problems of their own (`python -m benchmarks.means_search`).

The chosen design is kernels/means.py, written here once more with every choice as a parameter. The search stops if
both do not play the same games. docs/theory/means.md explains the rules.

    boldness   x_i is in proportion to exp(-boldness n_i kl_i)
    neutral    a mean includes neutral + missing sqrt(its reports not yet here) reports of the average arm
    floor      an arm has a probability of at least floor / sqrt(k t)
    runs       a fresh shadow decides once residuals that are some `run` reports apart have products that add up to
               more than (runs + growth ln(1 + reports)) sqrt(calm + their squares). The weight of a residual is
               n / (n + doubt), for an arm with n reports
    centred    1 if the shadow learns from centred estimates, where x (rounds of the shadow) is at least `sure`
    paid_back  1 if the arms below get their share of the centre in every round, which makes the estimates unbiased
    alarm      the lead that raises it, in sqrt(k t)
    by_lead    how much of the lead, divided by t, is played uniformly
    switch     the careful policy of the shadow decides once its savings are beyond so many deviations
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from belated import kernels, lab
from belated.arrays import Floats, Integers
from belated.kernels import LOSSES, ON_MEANS, X
from belated.kernels import means as chosen
from belated.kernels.arithmetic import lowest, total
from belated.kernels.compiling import Policies, Record, Records
from belated.kernels.game import Links
from belated.kernels.means import COUNT, MISSING, SUM
from belated.kernels.shadow import BOLD, CAREFUL, bold_advantage, is_careful_ahead, measure
from belated.learner.state import blank
from belated.tunings import Advanced, Means, Shadow, Simple, Tsallis, schedule
from benchmarks.shadow import families
from benchmarks.shadow_search import Made, problems, trap, walk
from benchmarks.worlds import Coins, MeansRule, Moving, geometric_mean, mean_regret, switching, thompson

N, SHORT, SEEDS, SIZES = 20_000, 5000, (11, 12, 13, 14), (2, 10, 50)


class Design(NamedTuple):
    """The choices, by default the chosen ones."""

    boldness: float = Means().boldness
    neutral: float = chosen.NEUTRAL
    missing: float = 0.0
    floor: float = chosen.FLOOR
    runs: float = chosen.RUNS
    growth: float = chosen.GROWTH
    calm: float = chosen.CALM
    run: float = chosen.RUN
    doubt: float = chosen.YOUNG
    centred: float = 1.0
    sure: float = chosen.SURE
    paid_back: float = 1.0
    alarm: float = chosen.ALARM
    by_lead: float = chosen.DOUBT
    switch: float = Means().switch_threshold


DESIGN = np.dtype([(name, np.float64) for name in Design._fields])
DESIGNS = {
    "chosen": Design(),
    "boldness 1": Design(boldness=1.0),
    "boldness 2": Design(boldness=2.0),
    "neutral 1 + sqrt(missing)": Design(neutral=1.0, missing=1.0),
    "no floor": Design(floor=0.0),
    "floor not raised by the lead": Design(by_lead=0.0),
    "runs beyond 4 deviations": Design(runs=4.0, growth=0.0),
    "runs of 16 reports": Design(run=16.0),
    "runs with more calm": Design(calm=16.0),
    "plain estimates in the shadow": Design(centred=0.0),
    "centred estimates, not paid back": Design(paid_back=0.0),
    "centred from half as rare": Design(sure=chosen.SURE / 2),
    "alarm at a third": Design(alarm=chosen.ALARM / 3),
    "careful from 1.5 deviations": Design(switch=1.5),
}


@kernels.compiled_first
def _mix(design: Record, clock: Record, means: Floats, t: int) -> None:
    chosen._hush(clock, means)
    x, mass = means[X], total(means[X])
    share = min(1.0, design.floor * math.sqrt(x.shape[0] / t) + design.by_lead * max(0.0, clock.means.lead) / t)
    for i in range(x.shape[0]):
        x[i] = (1 - share) / mass * x[i] + share / x.shape[0]


@kernels.compiled_first
def _solve_means(design: Record, clock: Record, means: Floats) -> None:
    """Write the weights of the arms by their means into the row X."""
    x, seen = means[X], 0
    for i in range(x.shape[0]):
        count, loss = chosen._count(clock, means, i)
        x[i] = loss / max(count, 1.0)
        seen += count > 0
    neutral = total(x) / seen if seen > 0 else 0.5
    for i in range(x.shape[0]):
        count, loss = chosen._count(clock, means, i)
        extra = design.neutral + design.missing * math.sqrt(means[MISSING, i])
        x[i] = (loss + extra * neutral) / (count + extra)
    q = lowest(x)
    for i in range(x.shape[0]):
        count, _ = chosen._count(clock, means, i)
        extra = design.neutral + design.missing * math.sqrt(means[MISSING, i])
        u = (2 * q + x[i]) / 3
        kl = (x[i] - q) * (x[i] - q) / (2 * u * (1 - u) + 1e-12)
        x[i] = kernels.exp(-min(chosen.FARTHEST, design.boldness * (count + extra) * kl))


@kernels.compiled_first
def _choose_stage(design: Record, clock: Record, policies: Policies, t: int, backlog: int) -> int:
    """Solve for round t. Returns the row that is played."""
    state, means = clock.means, policies[ON_MEANS]
    if state.stage < chosen.CAREFUL_STAGE and state.is_over:
        chosen._begin(clock, policies, chosen.CAREFUL_STAGE, t, backlog)
    elif state.stage == chosen.MEANS_STAGE and state.is_moving:
        chosen._begin(clock, policies, chosen.SHADOW_STAGE, t, backlog)
    chosen._count_draws(clock, means, policies[clock.shadow.played, X], t)
    clock.shadow.played = ON_MEANS
    if state.stage == chosen.MEANS_STAGE:
        _solve_means(design, clock, means)
        _mix(design, clock, means, t)
        return ON_MEANS
    alpha, beta = math.sqrt(t - state.start), state.scale * math.sqrt(backlog - state.start_backlog)
    chosen._lift(policies)
    kernels.argmin(policies[CAREFUL], alpha, beta, clock.solves)
    if state.stage == chosen.CAREFUL_STAGE:
        policies[BOLD, X] = policies[CAREFUL, X]
        clock.shadow.played = CAREFUL
        return CAREFUL
    kernels.argmin(policies[BOLD], alpha, 0.0, clock.solves)
    means[X] = policies[CAREFUL if is_careful_ahead(clock.shadow) else BOLD, X]
    _mix(design, clock, means, t)
    return ON_MEANS


@kernels.compiled_first
def _watch(design: Record, clock: Record, means: Floats, arm: int, loss: float) -> None:
    """Add up the products of neighbouring residuals."""
    state, count = clock.means, means[COUNT, arm]
    residual = (loss - (means[SUM, arm] + 2 * chosen.centre(clock)) / (count + 2)) * count / (count + design.doubt)
    product = residual * state.run
    state.products, state.squares = state.products + product, state.squares + product * product
    state.run = state.run * (1 - 1 / design.run) + residual
    threshold = design.runs + design.growth * math.log(1.0 + clock.reported)
    if state.products > threshold * math.sqrt(design.calm + state.squares):
        state.is_moving = 1


@kernels.compiled_first
def _learn_in_shadow(design: Record, clock: Record, policies: Policies, s: int, drawn: Floats) -> None:
    """Take the report of round s into the estimates. `drawn` has its arm, probability, advantage, centre and loss."""
    state, arm, centre, loss = clock.means, int(drawn[0]), drawn[3], drawn[4]
    is_centred = state.stage == chosen.SHADOW_STAGE and design.centred > 0
    is_sure = is_centred and drawn[1] * (s + 1 - state.start) >= design.sure
    for j in range(ON_MEANS):
        policies[j, LOSSES, arm] += (loss - centre if is_sure else loss) / drawn[1]
        for i in range(policies.shape[2]):  # with the probabilities of now, because those of then are not kept
            if is_centred and design.paid_back > 0 and policies[ON_MEANS, X, i] * (s + 1 - state.start) < design.sure:
                policies[j, LOSSES, i] -= centre
    measure(clock, loss, drawn[2])


@kernels.compiled_first
def _learn(design: Record, clock: Record, policies: Policies, s: int, drawn: Floats, t: int, allowed: float) -> None:
    """Take in the report of round s, which comes at the end of round t. The alarm is raised beyond what is allowed."""
    state, means, arm, loss = clock.means, policies[ON_MEANS], int(drawn[0]), drawn[4]
    means[LOSSES, arm] += (loss - drawn[3]) / drawn[1]
    state.centres += drawn[3]
    if not state.is_over:
        state.lead = clock.suffered + loss - state.centres - chosen._lowest_estimate(means)
        state.is_over = state.lead > allowed
    if state.stage > chosen.MEANS_STAGE and s >= state.start:
        _learn_in_shadow(design, clock, policies, s, drawn)
    _watch(design, clock, means, arm, loss)
    chosen._remember(means, arm, loss)
    chosen._hear(clock, policies, arm, clock.reported + 1, t + 1)
    state.longest = max(float(t - s), state.longest * (1 - chosen.FADES))
    clock.reported, clock.suffered = clock.reported + 1, clock.suffered + loss


@kernels.compiled_first
def play(
    designs: Records,
    clocks: Records,
    policies: Policies,
    losses: Floats,
    uniforms: Floats,
    first: Links,
    following: Links,
    backlog: Integers,
) -> float:
    """The sum of <x_t, l_t> over a whole game."""
    (n, k), design, clock, paid = losses.shape, designs[0], clocks[0], 0.0
    cdf, drawn = np.empty(-(-k // kernels.BLOCK)), np.empty((n, 5))
    for t in range(n):
        x = policies[_choose_stage(design, clock, policies, t + 1, backlog[t]), X]
        clock.solves += 1
        kernels.normalise(x, cdf)
        arm = kernels.draw(x, cdf, uniforms[t])
        drawn[t, 0], drawn[t, 1], drawn[t, 4] = arm, x[arm], losses[t, arm]
        drawn[t, 2], drawn[t, 3] = bold_advantage(policies, arm, x[arm]), chosen.centre(clock)
        policies[ON_MEANS, MISSING, arm] += 1
        paid += kernels.expectation(x, losses[t])
        allowed = design.alarm * math.sqrt(k * (t + 1)) + math.sqrt(backlog[t] * math.log(k)) + k
        s = first[t]
        while s >= 0:
            _learn(design, clock, policies, s, drawn[s], t, allowed)
            s = following[s]
    return paid


def regrets(problem: lab.Problem, seed: int, designs: tuple[Design, ...] = tuple(DESIGNS.values())) -> list[float]:
    """The regret of every design in one game."""
    delays, k = problem.draw_delays(seed), problem.n_arms
    losses = np.ascontiguousarray(np.vstack(list(problem.loss_blocks(seed, delays))))
    uniforms, backlog = np.random.default_rng(seed).random(problem.n_rounds), schedule(Means(), k, delays).backlog
    (first, following), best = kernels.arrivals(delays), float(losses.sum(axis=0).min())
    settings = [(np.array([design], DESIGN), *blank(k, Means(switch_threshold=design.switch))) for design in designs]
    return [play(*setting, losses, uniforms, first, following, backlog) - best for setting in settings]


def check() -> None:
    """Stop if the chosen design is not what the library plays, while the world stands still, moves and swings."""
    for losses in (Coins(0.5, 0.1), lab.Shifting(0.3, 6), lab.Wave()):
        problem = lab.Problem(losses, lab.Geometric(50), 5, N)
        ours, library = regrets(problem, 1, (Design(),))[0], mean_regret(Means(), problem, [1])
        if abs(ours - library) > 1e-6:
            raise SystemExit(f"{losses}: this search has {ours} where kernels/means.py has {library}. Make them alike")


def drift(turns: float) -> MeansRule:
    """Means that swing slowly, each arm with a phase of its own."""
    return lambda k, n, rng: 0.5 + 0.3 * np.sin(2 * np.pi * (np.arange(n)[:, None] / n * turns + rng.random(k)))


def riser(k: int, n: int, _generator: np.random.Generator) -> Floats:
    """The second arm becomes the best after a third of the game. The best until then stays as it is."""
    means = np.full((n, k), 0.6)
    means[:, 0], means[n // 3 :, 1] = 0.5, 0.35
    return means


def groups() -> Iterator[tuple[str, list[lab.Problem]]]:
    """Worlds that stand still, that move, the shadow's own search problems, and the short games of shadow.py."""
    waits = lab.NoDelay(), lab.Geometric(100), lab.Fixed(1000)
    rates = ((0.05, 0.03), (0.5, 0.1), (0.7, 0.2), (0.95, 0.05), (0.3, 0.1), (0.9, 0.3))
    switches = switching(2, 0.3, 0.5), switching(5, 0.2, 0.5), switching(20, 0.3, 0.5)
    rules = *map(Moving, (*switches, drift(1), drift(4), riser)), Made(walk), Made(trap)
    for k in SIZES:
        yield "still", [lab.Problem(Coins(*rate), wait, k, N) for rate in rates for wait in waits]
    for k in SIZES:
        yield "moving", [lab.Problem(rule, wait, k, N) for rule in rules for wait in waits[:2]]
    for k in SIZES:
        yield "hard", [lab.Problem(*world, k, N) for world in problems(N).values()]
    for k in (*SIZES, 200):
        yield "families", [lab.Problem(*world, k, SHORT) for world in families(SHORT).values()]


def ratios(group: str, problem: lab.Problem) -> Floats:
    """The regret of every design over its best rival's. At least sqrt(n) each, unless the world stands still."""
    rivals: dict[str, tuple[Any, ...]] = {"still": (thompson,), "moving": (Tsallis(), Shadow())}
    players = rivals.get(group, (Tsallis(), Simple(), Advanced()))
    best = min(mean_regret(player, problem, SEEDS) for player in players)
    least = 5.0 if group == "still" else math.sqrt(problem.n_rounds)
    mean = np.mean([regrets(problem, seed) for seed in SEEDS], axis=0)
    return np.asarray(np.maximum(mean, least) / max(best, least))


def main() -> None:
    """Print the worst ratio and the geometric mean of each design, for each group and number of arms."""
    check()
    print("ratio to Thompson sampling (still), to the best of blind and shadow (moving), and to the best of blind,")
    print(f"simple and advanced (hard, and families with n = {SHORT:,}). Worst, geometric mean")
    letters = dict(zip("abcdefghijklmnop", DESIGNS, strict=False))
    print("\n".join(f"  {letter}  {name}" for letter, name in letters.items()))
    print(f"  {'':16}" + "".join(f"{letter:>12}" for letter in letters))
    for group, found in groups():
        with ThreadPoolExecutor(2) as pool:
            table = np.array(list(pool.map(lambda problem, group=group: ratios(group, problem), found)))
        cells = (f"{column.max():6.2f}{geometric_mean(column):6.2f}" for column in table.T)
        print(f"  {group:8} k = {found[0].n_arms:3}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
