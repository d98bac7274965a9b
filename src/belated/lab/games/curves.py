"""Regret at checkpoints, and which arms were played."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, final, get_args

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Floats, Integers
from belated.errors import InvalidInput
from belated.lab.algorithms import Game
from belated.lab.games.mismatch import is_suspicious
from belated.lab.intervals import half_width
from belated.scalars import as_float
from belated.suggestions import unknown_name
from belated.validation import whole_number

Counts = NDArray[np.int32]
Measure = Literal["expected", "suffered", "pseudo", "dynamic"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class Played(NamedTuple):
    """One game at its checkpoints. Four kinds of regret, as in `Curves`, and how often each arm was played.

    `evidence` says how strongly the suffered losses contradict the expected ones (games/mismatch.py).
    """

    expected: Floats
    suffered: Floats
    pseudo: Floats
    dynamic: Floats
    arms: Counts  # a row for each checkpoint, a column for each arm
    evidence: float = 0.0
    is_repeatable: bool = True  # a new learner with the same seed plays the same arms (games/repeating.py)
    saw_all: bool = False  # the losses of all arms, so the lower bound does not hold for it


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Regret at checkpoints, with a row for each seed.

    `expected` and `suffered` are against the arm with the least loss up to the checkpoint. `expected` takes <x_t, l_t>
    as the learner's loss, which is the expectation over its draws. `suffered` takes the loss of the drawn arm.

    `pseudo` and `dynamic` take the mean of the drawn arm's loss in place of the loss. `pseudo` is against the arm that
    is best in expectation up to the checkpoint, `dynamic` against the best arm of each round in expectation. Both are
    NaN if the rule for the losses does not say its means.

    `arms` counts how often each arm was played, by seed, checkpoint and arm.
    """

    seeds: Integers
    checkpoints: Integers
    expected: Floats
    suffered: Floats
    pseudo: Floats
    dynamic: Floats
    arms: Counts
    seconds: float
    is_whole: bool = True  # False after Ctrl-C, when only the finished seeds are here
    evidence: Floats | None = None  # of each game that the distribution does not fit the draws (games/mismatch.py)
    is_repeatable: bool = True  # False if a new learner with the same seed plays other arms (games/repeating.py)

    @property
    def mean(self) -> Floats:
        """Mean expected regret at each checkpoint."""
        return np.asarray(self.expected.mean(axis=0))

    @property
    def interval(self) -> Floats:
        """Half the width of the 95% confidence interval of the mean, by Student's t. NaN for a single seed."""
        return half_width(self.expected)

    def of(self, measure: Measure) -> Floats:
        """The regret of every seed at every checkpoint by its name: expected, suffered, pseudo or dynamic."""
        if measure not in MEASURES:
            raise unknown_name("regret", str(measure), MEASURES)
        regret: Floats = getattr(self, measure)
        return regret

    def quantile(self, share: float, of: Measure = "expected") -> Floats:
        """The regret that this share of the seeds stays below, at each checkpoint. 0.5 is the median."""
        if not 0 <= as_float(share) <= 1:
            raise InvalidInput(f"a quantile must lie in [0, 1], such as 0.9, got {share!r}")
        return np.asarray(np.quantile(self.of(of), share, axis=0))

    @property
    def shares(self) -> Floats:
        """The share of the rounds up to each checkpoint in which each arm was played, on average over the seeds."""
        return np.asarray(self.arms.mean(axis=0) / self.checkpoints[:, None])

    @property
    def is_suspicious(self) -> bool:
        """Whether expected and suffered regret differ beyond chance. An honest learner has it once in a million."""
        return self.evidence is not None and is_suspicious(self.evidence)

    @property
    def has_distribution(self) -> bool:
        """Whether the learner says its distribution. Without one, the expected regret is the suffered one."""
        return self.evidence is None or bool(np.isfinite(self.evidence).all())

    @property
    def rounds_per_second(self) -> float:
        """Rounds played in a second of one core's time."""
        return float(len(self.seeds) * self.checkpoints[-1] / self.seconds)


def curves_of(
    seeds: Sequence[int], at: Integers, games: Sequence[Played], seconds: float, *, is_whole: bool = True
) -> Curves:
    """The curves of several games with the same checkpoints."""
    *regrets, arms, evidence, same, _ = map(np.array, zip(*games, strict=True))
    expected, suffered, pseudo, dynamic = regrets
    return Curves(
        np.array(seeds), at, expected, suffered, pseudo, dynamic, arms, seconds, is_whole, evidence, bool(same.all())
    )


def default_checkpoints(n_rounds: int, count: int = 50) -> Integers:
    """Up to 2 `count` rounds from 1 to n, evenly spaced on a logarithmic and on a linear scale."""
    n, points = whole_number("n_rounds", n_rounds, 1), whole_number("count", count, 1)
    spaced = np.append(np.geomspace(1, n, points), np.linspace(1, n, points))
    return np.unique(np.round(spaced).astype(np.int64))


def as_checkpoints(checkpoints: Sequence[int] | None, n_rounds: int) -> Integers:
    """The given checkpoints in order and the last round, or the default ones."""
    if checkpoints is None:
        return default_checkpoints(n_rounds)
    if not isinstance(checkpoints, Iterable):
        raise InvalidInput(f"checkpoints must be a list of rounds, got {checkpoints!r}")
    return np.unique([*(whole_number("a checkpoint", round, 1, n_rounds) for round in checkpoints), n_rounds])


def follow(
    game: Game, blocks: Iterator[Floats], means: Iterator[Floats] | None, n_arms: int, checkpoints: Integers
) -> Played:
    """Play all blocks. Takes the sums that regret is made of at each checkpoint. `means` are those of the losses."""
    t, totals = 0, np.zeros(4 + 2 * n_arms)  # of the learner's four, each arm's losses, and each arm's means
    at_checkpoints, rows = list[Floats](), None if means is None else _Rows(means)
    for block in blocks:
        expected, suffered = game.play(block)
        ends = checkpoints[(checkpoints > t) & (checkpoints <= t + len(block))] - t
        starts = np.append(0, ends[ends < len(block)])
        drawn = game.arms[t : t + len(block)]
        of_means = np.zeros((starts.size, 2 + n_arms))
        if rows is not None:
            of_means = _sums_of_means(rows.take(len(block)), drawn, starts)
        columns = (expected[:, None], suffered[:, None], block)
        learner, best = np.split(np.hstack([np.add.reduceat(column, starts, axis=0) for column in columns]), [2], 1)
        sums = totals + np.cumsum(np.hstack([learner, of_means[:, :2], best, of_means[:, 2:]]), axis=0)
        at_checkpoints.extend(sums[: len(ends)])
        totals = sums[-1]
        t += len(block)
    reached = np.array(at_checkpoints)
    realised = reached[:, :2] - reached[:, 4 : 4 + n_arms].min(axis=1, keepdims=True)
    pseudo = reached[:, 2] - reached[:, 4 + n_arms :].min(axis=1)
    dynamic = reached[:, 2] - reached[:, 3]
    if rows is None:
        pseudo, dynamic = np.full((2, checkpoints.size), np.nan)
    return Played(realised[:, 0], realised[:, 1], pseudo, dynamic, counts_of(game.arms[:t], n_arms, checkpoints))


def counts_of(arms: NDArray[np.integer], n_arms: int, checkpoints: Integers) -> Counts:
    """How often each arm was played up to each checkpoint."""
    pieces = np.split(arms, checkpoints[:-1])
    return np.cumsum([np.bincount(piece, minlength=n_arms) for piece in pieces], axis=0, dtype=np.int32)


def _sums_of_means(means: Floats, drawn: Counts, starts: Integers) -> Floats:
    """For each piece of a block the sums of the drawn arms' means, of the least means, and of each arm's means."""
    lengths = np.diff(np.append(starts, len(means)))[:, None]
    if means.strides[0] == 0:  # the same means in all rows
        of_drawn, least, of_arms = means[0][drawn], means[0].min() * lengths, means[0] * lengths
    else:
        of_drawn = means[np.arange(len(means)), drawn]
        least = np.add.reduceat(np.ascontiguousarray(means.T).min(axis=0), starts)[:, None]
        of_arms = np.add.reduceat(means, starts, axis=0)
    return np.hstack([np.add.reduceat(of_drawn, starts)[:, None], least, of_arms])


class _Rows:
    """Rows of blocks, as many as are asked for."""

    def __init__(self, blocks: Iterator[Floats]) -> None:
        self.blocks, self.rest = blocks, np.empty((0, 0))

    def take(self, count: int) -> Floats:
        """The next rows."""
        parts, missing = list[Floats](), count
        while missing:
            if not len(self.rest):
                self.rest = next(self.blocks)
            parts.append(self.rest[:missing])
            self.rest, missing = self.rest[missing:], missing - len(parts[-1])
        return parts[0] if len(parts) == 1 else np.vstack(parts)
