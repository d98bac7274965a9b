"""Games in which the delays or the losses are not fixed beforehand (docs/problems.md)."""

import math
from collections.abc import Iterator
from functools import cache
from typing import final

import numpy as np

from belated import kernels
from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.lab.algorithms import Game
from belated.lab.games.guarded import Guarded
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import NoDelay
from belated.lab.problems.feedback import LostByArm
from belated.lab.problems.problem import Problem, Rows
from belated.lab.problems.reproducible import Reactions
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import FTRL
from belated.learner.state import blank, blank_bets, blank_ledger
from belated.proper import proper_patience, proper_rates
from belated.tunings import Advanced, Exp3, Means, RootTuning, Shadow, Tsallis, Tuning, schedule

COMPILED = (Means, Shadow, Advanced, Tsallis, Exp3)  # a subclass may have other rates, which depend on what is played
AT_ONCE = 1000  # rounds of an interpreted game, so that it notices Ctrl-C and shows its progress


def game_of(
    player: Tuning | MakeLearner | Game, problem: Problem, seed: int, name: str
) -> tuple[Game, Iterator[Floats]]:
    """The game of a player, and blocks for it. If losses react, the game itself fills the blocks in."""
    if isinstance(player, Tuning):
        if problem.has_fixed_losses and problem.n_arms > 1 and type(player) in COMPILED:
            game = CompiledFeedback(player, problem, seed)
            return game, game.blocks()
        tuning = player
        player = lambda n_arms, seed: FTRL(n_arms, tuning, seed=seed)  # noqa: E731
    if isinstance(player, Game):
        raise InvalidInput("a game of your own can be played only where losses and delays are fixed before it begins")
    return StepDriver(player, problem, seed, name), _blank_blocks(problem)


@cache
def warm_up() -> None:
    """Load or compile the kernel, so that no game is charged for it."""
    one_round = Problem(Bernoulli(), LostByArm(NoDelay(), (0.0, 0.0)), 2, 1)
    game = CompiledFeedback(Tsallis(), one_round, 0)
    game.play(next(game.blocks()))


def _blank_blocks(problem: Problem) -> Iterator[Floats]:
    for start in range(0, problem.n_rounds, AT_ONCE):
        yield np.empty((min(AT_ONCE, problem.n_rounds - start), problem.n_arms))


@final
class StepDriver:
    """Plays anything with ask and tell through the step interface, and writes the losses into the given rows."""

    def __init__(self, make: MakeLearner, problem: Problem, seed: int, name: str) -> None:
        self.guarded = Guarded(make, problem.n_arms, seed, name)
        if self.guarded.needs_delay or self.guarded.feedback == "vector":
            raise InvalidInput(
                f"{name} needs the delay of a round or the losses of all arms. It can be played only where losses and "
                "delays are fixed before the game begins"
            )
        self.arms = np.empty(problem.n_rounds, np.int32)
        self.game = problem.start(seed)
        self.reactions = None if problem.has_fixed_losses else Reactions(problem, seed)

    @property
    def log_evidence(self) -> float:
        """The evidence that the distribution does not fit the draws."""
        return self.guarded.log_evidence

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row, and fill the row in. Returns <x_t, l_t> and the loss of the drawn arm."""
        learner, start = self.guarded, self.game.round
        learner.begin(len(losses))
        for i in range(len(losses)):
            step = self.game.step(learner.decide(i))
            losses[i] = self.game.losses
            if step.reports:
                learner.tell([(round, loss) for round, _, loss in step.reports])
        self.arms[start : start + len(losses)] = learner.arms
        if self.reactions is not None:
            self.reactions.add(losses)
            if self.game.is_over:
                self.reactions.check(self.arms.tolist())
        return learner.weigh(losses)


@final
class CompiledFeedback:
    """A game of a tuning whose delays depend on the arm or the loss."""

    def __init__(self, tuning: Tuning, problem: Problem, seed: int) -> None:
        n, k = problem.n_rounds, problem.n_arms
        self.tuning, self.n_arms, self.t = tuning, k, 0
        self.source, self.rows = problem.rows(seed, lambda: 0), list[Rows]()
        is_root = isinstance(tuning, RootTuning)
        rates = schedule(tuning, k, np.zeros(1 if is_root else n, np.int64))  # without delays: they do not matter here
        empty = np.empty(0)
        self.alpha, self.beta = (empty, empty) if is_root else (rates.alpha, rates.beta)
        self.scale = tuning.scale if isinstance(tuning, RootTuning) else 0.0
        self.generator = np.random.default_rng(seed)
        self.clock, self.policies = blank(k, tuning)
        self.ledger, self.bets = blank_ledger(), blank_bets(k)
        self.cdf = np.empty(-(-k // kernels.BLOCK))
        self.first, self.following, self.last = (np.full(n, -1, np.int32) for _ in range(3))
        self.arms, self.reports = np.empty(n, np.int32), np.empty(n)

    def blocks(self) -> Iterator[Floats]:
        """The losses. `play` takes the delays of the same rows."""
        for rows in self.source:
            self.rows.append(rows)
            yield rows.losses

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        rows = self.rows.pop()
        expected, suffered = np.empty(len(losses)), np.empty(len(losses))
        uniforms, done = self.generator.random(len(losses)), 0
        while done < len(losses):
            played = self._play(rows, uniforms, expected, suffered, done)
            done += played
            if done < len(losses):
                self._make_room()
        return expected, suffered

    def _play(self, rows: Rows, uniforms: Floats, expected: Floats, suffered: Floats, done: int) -> int:
        """Play the rest of the rows, or until the ledger is full."""
        played: int = kernels.play_feedback_block(
            self.t,
            np.ascontiguousarray(rows.losses[done:], np.float64),
            np.ascontiguousarray(rows.delays[done:], np.int64),
            np.ascontiguousarray(rows.reported[done:], np.float64),
            self.alpha,
            self.beta,
            self.scale,
            math.log(self.n_arms),
            proper_patience(self.tuning, self.n_arms),
            bool(self.tuning.discard),
            uniforms[done:],
            self.clock,
            self.ledger,
            self.policies,
            self.bets,
            self.cdf,
            self.first,
            self.following,
            self.last,
            self.arms,
            self.reports,
            expected[done:],
            suffered[done:],
        )
        self.t += played
        return played

    def _make_room(self) -> None:
        """Double the ledger. It is not full if the kernel has stopped at improper rates, and this says so."""
        clock, rows = self.clock[0], int(self.clock["rows"][0])
        if rows <= self.ledger.size // 2:
            counted = int(clock["counted"] - clock["late_counted"])
            rates = self.tuning.rates(self.n_arms, self.t + 1, counted, int(clock["backlog"]) + counted)
            proper_rates(self.tuning, self.t + 1, (float(clock["alpha"]), float(clock["beta"])), rates)
        self.ledger = np.concatenate([self.ledger, np.zeros_like(self.ledger)])
