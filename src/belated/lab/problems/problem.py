"""A problem is losses and delays for a number of arms and rounds. The same seed gives the same problem."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.problems.checks import blocks_told, checked_blocks, checked_reports, failures_told
from belated.lab.problems.delays import Delays
from belated.lab.problems.feedback import Feedback, delays_of
from belated.lab.problems.losses import Losses
from belated.lab.problems.reacting import Reacting
from belated.lab.problems.steps import StepGame
from belated.validation import whole_number

TEXTS = "A text such as 'bernoulli' is for lab.Comparison(arms=, rounds=), lab.sweep and the command line"


class Rows(NamedTuple):
    """A block of rounds, as the game plays them."""

    losses: Floats  # a row for each round
    delays: Integers  # one for each round, or a row with one for each arm
    reported: Floats  # the losses as they are reported


@final
@dataclass(frozen=True)
class Problem:
    """Losses and delays for `n_arms` and `n_rounds`.

    With `Losses` the losses are fixed before the game begins, and with `Delays` the delays. With `Feedback` delays
    depend on the arm or the loss, and `Reacting` losses depend on what was played (docs/problems.md).

    >>> from belated import lab
    >>> problem = lab.Problem(lab.Bernoulli(gap=0.2), lab.Fixed(3), n_arms=2, n_rounds=5)
    >>> problem.draw_delays(seed=1)
    array([3, 3, 3, 3, 3])
    """

    losses: Losses | Reacting
    delays: Delays | Feedback
    n_arms: int = 10
    n_rounds: int = 10_000

    def __post_init__(self) -> None:
        if not isinstance(self.losses, Losses | Reacting):
            raise _no_rule("losses", "lab.Bernoulli()", self.losses)
        if not isinstance(self.delays, Delays | Feedback):
            raise _no_rule("delays", "lab.Fixed(10)", self.delays)
        whole_number("n_arms", self.n_arms, 1)
        whole_number("n_rounds", self.n_rounds, 1)

    def loaded(self) -> "Problem":
        """The same problem with its files read into memory. It can then be played where the files are not."""
        return Problem(self.losses.loaded(), self.delays.loaded(), self.n_arms, self.n_rounds)

    def start(self, seed: int) -> StepGame:
        """A game that is played a round at a time.

        >>> from belated import FTRL, lab
        >>> problem = lab.Problem(lab.Bernoulli(gap=0.4), lab.Fixed(3), n_arms=2, n_rounds=200)
        >>> game, learner = problem.start(seed=1), FTRL(2, seed=1)
        >>> while not game.is_over:
        ...     for report in game.step(learner.ask().arm).reports:
        ...         learner.tell(report.round, report.loss)
        >>> game.round, game.regret < 40
        (200, True)
        """
        number = whole_number("seed", seed, 0)
        return StepGame(self.n_arms, self.n_rounds, lambda last_arm: self.rows(number, last_arm))

    @property
    def has_fixed_losses(self) -> bool:
        """Whether the losses are fixed before the game begins."""
        return isinstance(self.losses, Losses)

    @property
    def has_fixed_delays(self) -> bool:
        """Whether the delay of a round is fixed before the game begins, whatever is played and lost."""
        return isinstance(self.delays, Delays)

    @property
    def is_fixed(self) -> bool:
        """Whether both are fixed before the game begins."""
        return self.has_fixed_losses and self.has_fixed_delays

    @property
    def depends_on_horizon(self) -> bool:
        """Whether the first rounds of a longer game differ. Then regret at a checkpoint is not that of a short game.

        >>> from belated import lab
        >>> lab.Problem(lab.Bernoulli(), lab.Unbalanced()).depends_on_horizon
        True
        """
        if self.losses.depends_on_horizon or self.delays.depends_on_horizon:
            return True
        return self.losses.follows_delay and self.delays.typical is None and self.has_fixed_delays

    def draw_delays(self, seed: int) -> Integers:
        """The delays d_1..d_n of the game with this seed. With `Feedback` there are none before it is played."""
        if not isinstance(self.delays, Delays):
            raise InvalidInput(
                f"with {self.delays!r:.80} the delay of a round depends on what is played, so nobody can know the "
                "delays in advance. Play with learners that need to know nothing in advance"
            )
        with failures_told(self.delays, "it failed to draw the delays", seed):
            return delays_of(self.delays, self.n_arms, self.n_rounds, _generator(seed, 0))

    def loss_blocks(self, seed: int, delays: Integers) -> Iterator[Floats]:
        """The rows of the loss matrix of the game with this seed, a block at a time."""
        rule = self._fixed_losses()
        with failures_told(rule, "it failed to give the losses", seed):
            blocks = rule.blocks(self.n_arms, self.n_rounds, self._typical(delays), _generator(seed, 1))
        blocks = blocks_told(rule, "the losses", seed, blocks)
        return checked_blocks(rule, blocks, "losses", self.n_arms, self.n_rounds)

    def mean_blocks(self, seed: int, delays: Integers) -> Iterator[Floats] | None:
        """The means of the losses of the game with this seed, given what the rule draws before the game begins.

        None if the rule does not say its means.

        >>> from belated import lab
        >>> problem = lab.Problem(lab.Bernoulli(means=[0.2, 0.1]), lab.Fixed(3), n_arms=2, n_rounds=2)
        >>> next(problem.mean_blocks(1, problem.draw_delays(1))).tolist()
        [[0.2, 0.1], [0.2, 0.1]]
        """
        if not isinstance(self.losses, Losses):
            return None
        rule = self.losses
        with failures_told(rule, "it failed to give the means", seed):
            means = rule.mean_blocks(self.n_arms, self.n_rounds, self._typical(delays), _generator(seed, 1))
        if means is None:
            return None
        means = blocks_told(rule, "the means", seed, means)
        return checked_blocks(rule, means, "means", self.n_arms, self.n_rounds)

    def rows(self, seed: int, last_arm: Callable[[], int]) -> Iterator[Rows]:
        """All that happens in the game with this seed, a block at a time.

        Reacting losses ask for the arm of the round before. Their blocks are single rounds.
        """
        n_arms, n_rounds, early, late = self.n_arms, self.n_rounds, _generator(seed, 0), _generator(seed, 1)
        delays = self.draw_delays(seed) if self.has_fixed_delays else NOT_KNOWN
        if isinstance(self.losses, Reacting):
            losses = self.losses.rows(n_arms, n_rounds, late, last_arm)
            losses = blocks_told(self.losses.rule, "the losses", seed, losses)
        else:
            losses = self.loss_blocks(seed, delays)
        if isinstance(self.delays, Delays):
            return _with_delays(losses, delays)
        return (Rows(*block) for block in checked_reports(self.delays, losses, n_arms, n_rounds, early, seed))

    def reacting_blocks(self, seed: int, arms: Sequence[int]) -> Iterator[Floats]:
        """The losses that react in the game with this seed, if these arms are played. Nothing if they are fixed."""
        if isinstance(self.losses, Reacting):
            played = iter(arms)
            rows = self.losses.rows(self.n_arms, self.n_rounds, _generator(seed, 1), lambda: next(played))
            yield from blocks_told(self.losses.rule, "the losses", seed, rows)

    def _fixed_losses(self) -> Losses:
        if isinstance(self.losses, Losses):
            return self.losses
        raise InvalidInput(
            f"the losses of {self.losses!r:.80} react to what is played, so they are not known in advance. "
            "Play a game with problem.start(seed), or give the problem to lab.play"
        )

    def _typical(self, delays: Integers) -> int:
        typical = self.delays.typical
        if typical is None:
            reported = delays[delays < self.n_rounds]
            typical = int(np.median(reported)) if reported.size else 0
        return typical


def _no_rule(what: str, example: str, given: Any) -> InvalidInput:
    """The error for something that is no rule, with what to write in its place."""
    fix = TEXTS
    if isinstance(given, Path):
        fix = f"A file is lab.{what.title()}File(path)"
    elif hasattr(given, "__len__") and not isinstance(given, str):
        fix = f"Numbers of your own are lab.Given{what.title()}(array)"
    return InvalidInput(f"{what} must be a rule such as {example}, got {given!r:.80}. {fix}")


def as_problem(given: Any) -> Problem:
    """A problem. Refuses anything else, such as a name."""
    if isinstance(given, Problem):
        return given
    fix = "Make one with lab.Problem(losses, delays, n_arms, n_rounds), or with lab.from_literature(name) from a paper"
    raise InvalidInput(f"a lab.Problem is needed, got {given!r:.80}. {fix}")


NOT_KNOWN: Integers = np.zeros(0, np.int64)  # the delays, where they depend on what is played


def _with_delays(losses: Iterator[Floats], delays: Integers) -> Iterator[Rows]:
    start = 0
    for block in losses:
        yield Rows(block, delays[start : start + len(block)], block)
        start += len(block)


def _generator(seed: int, part: int) -> np.random.Generator:
    """Independent streams for delays (0) and losses (1). The learner's own stream is default_rng(seed)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,)))
