"""What decisions and their outcomes say about the options, in sums that take O(1) to update."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from belated.errors import InvalidInput
from belated.validation import as_loss, whole_number
from belated.verdicts import verdict as looks
from belated.verdicts.blocks import LEAST, Block, is_over, n_allowed, new_block, ratios_of

CLOSE = 1e-9  # the probability of a decision and its entry in the distribution may differ by so much
HALF, ONE = 0.5, 1.0  # every mean includes one outcome of 1/2


@dataclass(slots=True)
class Evidence:
    """Plain data. A decision is known by its position, any whole number that increases from decision to decision.

    Outcomes are losses from 0 to 1. `arm` is an index into all arms that ever took part.

    >>> evidence = Evidence.new(2)
    >>> for position in range(200):
    ...     evidence.decide(position, position % 2, 0.5, [0.5, 0.5])
    ...     evidence.report(position, position % 2, 0.5, position % 2)
    >>> evidence.verdict().leader, evidence.verdict().is_decided
    (0, True)
    """

    active: list[int]  # the arms that take part now
    blocks: list[Block]
    is_changed: bool  # whether the arms have changed since the last decision
    last: int  # the position of the last decision, -1 before the first
    decisions: int
    reports: int  # outcomes known
    gap_starts: list[int]  # runs of decisions from unknown distributions: the positions of the first
    gap_ends: list[int]  # and of the last
    known: list[int]  # outcomes of each arm
    totals: list[float]  # their sum
    squares: list[float]  # the sum of (outcome - mean of the arm at the start of the block)^2
    cubes: list[float]  # and of its cube
    assumed: float | None = None  # the loss to expect of an open decision. It only makes intervals narrower

    @classmethod
    def new(cls, n_arms: int, assumed: float | None = None) -> Self:
        """Without decisions, between these many arms.

        Pass the loss of the default outcome as `assumed`, if silence means something. Known outcomes alone may then be
        far from the mean, because successes come first.
        """
        n = whole_number("n_arms", n_arms, 1)
        return cls(
            active=list(range(n)),
            blocks=[],
            is_changed=True,
            last=-1,
            decisions=0,
            reports=0,
            gap_starts=[],
            gap_ends=[],
            known=[0] * n,
            totals=[0.0] * n,
            squares=[0.0] * n,
            cubes=[0.0] * n,
            assumed=None if assumed is None else as_loss(assumed),
        )

    @property
    def n_arms(self) -> int:
        """How many arms ever took part."""
        return len(self.known)

    @property
    def counted(self) -> int:
        """Decisions that count for differences."""
        return sum(block.counted for block in self.blocks)

    def change_arms(self, active: Sequence[int], n_arms: int) -> None:
        """Go on with these arms, of n_arms that ever took part."""
        n = whole_number("n_arms", n_arms, self.n_arms)
        if sorted(set(active)) != sorted(active) or not all(0 <= arm < n for arm in active):
            raise InvalidInput(f"active must be different arms from 0 to {n - 1}, got {active!r:.80}")
        self.active, self.is_changed = list(active), True
        self.known.extend([0] * (n - len(self.known)))
        for sums in (self.totals, self.squares, self.cubes):
            sums.extend([0.0] * (n - len(sums)))

    def decide(self, position: int, arm: int, probability: float, distribution: Sequence[float] | Any) -> None:
        """Count a decision. The distribution is over the active arms, or None if it is not known."""
        self.decide_batch([position], [arm], [probability], distribution)

    def decide_batch(
        self,
        positions: Sequence[int],
        arms: Sequence[int],
        probabilities: Sequence[float],
        distribution: Sequence[float] | Any,
    ) -> None:
        """Count decisions that were drawn from one distribution. Splitting a batch does not change the result."""
        self._check(positions, arms)
        reference = [] if distribution is None else self._over_all_arms(distribution, arms, probabilities)
        ratios: list[float] = []
        if reference and self.blocks and not self.is_changed:
            ratios = ratios_of(reference, self.blocks[-1].reference)
        lowest, highest = min(ratios, default=1.0), max(ratios, default=1.0)
        for position, arm, probability in zip(positions, arms, probabilities, strict=True):
            if self._begins_block(reference, lowest, highest):
                self._begin_block(position, reference)
                ratios, lowest, highest = [], 1.0, 1.0
            block = self.blocks[-1]
            if not reference:
                self._leave_out(position)
            elif block.paused is None and lowest < LEAST:
                block.paused = position
            elif block.paused is None:
                if ratios:  # once is enough for the batch
                    block.lowest, ratios = list(map(min, block.lowest, ratios)), []
                _enter(block, arm, block.reference[arm] / probability)
            block.open[arm] += 1
            self.decisions += 1
            self.last = position

    def _check(self, positions: Sequence[int], arms: Sequence[int]) -> None:
        last = self.last
        for position, arm in zip(positions, arms, strict=True):
            if position <= last:
                raise InvalidInput(f"positions must increase, got {position} after {last}")
            if not 0 <= arm < self.n_arms:
                raise InvalidInput(f"arm must be from 0 to {self.n_arms - 1}, got {arm}. Call change_arms first")
            last = position

    def _over_all_arms(self, distribution: Any, arms: Sequence[int], probabilities: Sequence[float]) -> list[float]:
        values = distribution.tolist() if hasattr(distribution, "tolist") else list(distribution)
        if len(values) != len(self.active):
            raise InvalidInput(f"the distribution needs {len(self.active)} probabilities, got {len(values)}")
        whole = [0.0] * self.n_arms
        for arm, value in zip(self.active, values, strict=True):
            whole[arm] = value
        for arm, probability in zip(arms, probabilities, strict=True):
            if not 0 < probability <= 1 or abs(whole[arm] - probability) > CLOSE * probability:
                raise InvalidInput(
                    f"arm {arm} was drawn with {probability!r}, but has {whole[arm]!r} in the distribution. "
                    "Pass None if the distribution of a decision is not known"
                )
        return whole

    def _begins_block(self, reference: list[float], lowest: float, highest: float) -> bool:
        if self.is_changed:
            return True
        block = self.blocks[-1]
        if not reference:
            return False
        if not any(block.reference):  # the distribution of its first decision was not known
            return True
        share = (len(self.blocks) + 1) / n_allowed(self.n_arms, self.decisions)
        return is_over(block, lowest, highest, self.reports, self.decisions, share)

    def _begin_block(self, position: int, reference: list[float]) -> None:
        known, totals = self.known, self.totals
        if self.assumed is not None:
            waiting = self.open_by_arm()
            known = [n + more for n, more in zip(known, waiting, strict=True)]
            totals = [total + self.assumed * more for total, more in zip(totals, waiting, strict=True)]
        means = [(HALF + total) / (ONE + n) for total, n in zip(totals, known, strict=True)]
        centre = (HALF + sum(totals)) / (ONE + sum(known))
        self.blocks.append(new_block(position, self.reports, centre, means, reference or [0.0] * self.n_arms))
        self.is_changed = False

    def open_by_arm(self) -> list[int]:
        """How many decisions of each arm have no outcome."""
        counts = [0] * self.n_arms
        for block in self.blocks:
            for arm, n in enumerate(block.open):
                counts[arm] += n
        return counts

    def _leave_out(self, position: int) -> None:
        """Remember that the distribution of this decision was not known."""
        if self.gap_ends and self.gap_ends[-1] == self.last:
            self.gap_ends[-1] = position
        else:
            self.gap_starts.append(position)
            self.gap_ends.append(position)

    def n_blocks_until(self, position: int | None = None) -> int:
        """How many blocks begin at this position or before it, or all."""
        return len(self.blocks) if position is None else bisect_right(self.blocks, position, key=lambda one: one.first)

    def _find(self, position: int, arm: int) -> tuple[Block, bool]:
        """The block of a decision, and whether the decision counts for differences."""
        found = self.n_blocks_until(position) - 1
        if found < 0 or position > self.last:
            raise InvalidInput(f"there is no decision at position {position!r}. The last one is at {self.last}")
        block = self.blocks[found]
        if not 0 <= arm < len(block.means):
            raise InvalidInput(f"arm {arm!r} did not take part yet at position {position}")
        gap = bisect_left(self.gap_ends, position)
        is_unknown = gap < len(self.gap_ends) and self.gap_starts[gap] <= position
        return block, not is_unknown and (block.paused is None or position < block.paused)

    def report(self, position: int, arm: int, probability: float, loss: float) -> None:
        """Take in the outcome of a decision that has none yet. Pass its arm and probability as in `decide`."""
        outcome = as_loss(loss)
        block, is_counted = self._find(position, arm)
        if block.open[arm] == 0:
            raise InvalidInput(
                f"no decision for arm {arm} is open near position {position}. To change an outcome, amend"
            )
        block.open[arm] -= 1
        self.reports += 1
        self.known[arm] += 1
        self._add(block, arm, outcome, 1)
        if is_counted:
            weight = block.reference[arm] / probability
            block.weights[arm] += weight
            _add_powers(block, arm, weight * (outcome - block.centre), 1)
            _take_open(block, arm, weight)

    def amend(self, position: int, arm: int, probability: float, old: float, new: float) -> None:
        """Replace an outcome that was reported before."""
        before, after = as_loss(old), as_loss(new)
        block, is_counted = self._find(position, arm)
        self._add(block, arm, before, -1)
        self._add(block, arm, after, 1)
        if is_counted:
            weight = block.reference[arm] / probability
            _add_powers(block, arm, weight * (before - block.centre), -1)
            _add_powers(block, arm, weight * (after - block.centre), 1)

    def _add(self, block: Block, arm: int, outcome: float, sign: int) -> None:
        """Add an outcome to the sums of its arm, or take it off."""
        centred = outcome - block.means[arm]
        self.totals[arm] += sign * outcome
        self.squares[arm] += sign * centred**2
        self.cubes[arm] += sign * centred**3

    def copy(self) -> Self:
        """A copy that shares the blocks. Copy a block before it changes in one of them."""
        return replace(
            self,
            active=self.active.copy(),
            blocks=self.blocks.copy(),
            gap_starts=self.gap_starts.copy(),
            gap_ends=self.gap_ends.copy(),
            known=self.known.copy(),
            totals=self.totals.copy(),
            squares=self.squares.copy(),
            cubes=self.cubes.copy(),
        )

    def verdict(self, confidence: float = 0.95) -> looks.Verdict:
        """Which active arm is the best, and how sure that is. Takes O(arms x blocks) and changes nothing."""
        return looks.verdict(self, confidence)

    def means(self, confidence: float = 0.95) -> list[looks.MeanInterval | None]:
        """The mean outcome of each arm with its interval, or None for an arm without a known outcome."""
        return looks.means(self, confidence)


def _enter(block: Block, arm: int, weight: float) -> None:
    """Count an open decision for differences."""
    block.counted += 1
    block.open_weights[arm] += weight
    block.open_squares[arm] += weight**2
    block.open_cubes[arm] += weight**3


def _add_powers(block: Block, arm: int, term: float, sign: int) -> None:
    block.sums[arm] += sign * term
    block.squares[arm] += sign * term**2
    block.cubes[arm] += sign * term**3


def _take_open(block: Block, arm: int, weight: float) -> None:
    """Take a decision off the open ones. Nothing of the rounding stays after the last."""
    is_last = block.open[arm] == 0
    block.open_weights[arm] = 0.0 if is_last else max(0.0, block.open_weights[arm] - weight)
    block.open_squares[arm] = 0.0 if is_last else max(0.0, block.open_squares[arm] - weight**2)
    block.open_cubes[arm] = 0.0 if is_last else max(0.0, block.open_cubes[arm] - weight**3)
