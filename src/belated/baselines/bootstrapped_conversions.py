"""Thompson sampling by bootstrap, for conversions that show only when they come.

GS24: M. Gigli, F. Stella. Bootstrap Your Conversions: Thompson Sampling for Partially Observable Delayed Rewards. UAI
2024, Algorithm 1 and Sections 2.2 and 2.3.
"""

from typing import Any, NamedTuple, final

import numpy as np

from belated.arrays import Floats, Integers
from belated.baselines.baseline import Baseline, one_hot
from belated.baselines.open_rounds import OpenRounds
from belated.baselines.seeds import generator_of
from belated.learner.decisions import Decision
from belated.validation import whole_number


class Points(NamedTuple):
    """Data points. A round that has not converted has waited for `waits` rounds, and one that has took as many."""

    arms: Integers
    waits: Integers
    has_converted: np.ndarray[Any, np.dtype[np.bool_]]


@final
class BootstrappedConversions(Baseline):
    """Fits conversion rates and delays to a fresh bootstrap sample in every round, and plays the best rate [read].

        sample  the data and `prior` artificial points, as many with replacement
        E step  w = p_i S(waits) / (1 - p_i + p_i S(waits)) for a round that has not converted, else w = 1
        M step  p_i = the mean of w over the points of arm i,  S(t) = P(delay > t) by Kaplan-Meier with the weights w
        A_t = argmax_i p_i

    A report of loss 0 is a conversion. A report of loss 1 teaches nothing, because no conversion and a late one look
    alike. Any other loss is replaced by a coin flip with that mean. The paper's artificial points are for contexts.
    Here each has a random arm, a reward that is a coin flip with a random mean, and a wait from 0 to `longest`. An arm
    without a point in the sample has a random rate. The E step begins with w = 1/2. The paper leaves these open.

    Needs independent, identically distributed losses, and delays that do not depend on the arm. It has no bound. Round
    t takes time in proportion to t, so it is not in the table of the lab.

    >>> learner = BootstrappedConversions(2, seed=1)
    >>> for _ in range(200):
    ...     decision = learner.ask()
    ...     if decision.arm == 1:  # the other arm never converts
    ...         learner.tell(decision, loss=0.0)
    >>> [learner.ask().arm for _ in range(3)]
    [1, 1, 1]
    """

    def __init__(
        self, n_arms: int, *, prior: int = 10, longest: int = 100, iterations: int = 10, seed: int | None = None
    ) -> None:
        self._n_arms, self._prior = whole_number("n_arms", n_arms, 1), whole_number("prior", prior, 0)
        self._longest, self._iterations = whole_number("longest", longest, 0), whole_number("iterations", iterations, 1)
        self._generator = generator_of(seed)
        self._arms, self._delays = np.zeros(64, np.int64), np.full(64, -1)  # -1 has not converted
        self._ahead: tuple[int, Any] | None = None  # the coming arm, and the generator's state after it is drawn
        self._rounds: OpenRounds[None] = OpenRounds()

    def ask(self) -> Decision:
        """Decide the next round."""
        arm, self._generator.bit_generator.state = self._look_ahead()
        self._ahead = None
        if self.round == self._arms.size:
            self._arms = np.append(self._arms, np.zeros_like(self._arms))
            self._delays = np.append(self._delays, np.full_like(self._delays, -1))
        self._arms[self.round] = arm
        return self._rounds.open(arm, 1.0, None)

    def _learn(self, round: int, loss: float) -> None:
        value, _ = self._rounds.close(round, loss)
        self._ahead = None
        if value == 0 or (value < 1 and self._generator.random() >= value):
            self._delays[round - 1] = self.round - round

    def distribution(self) -> Floats:
        """All probability on the next arm. The generator draws it and goes back to where it was."""
        return one_hot(self._n_arms, self._look_ahead()[0])

    def _look_ahead(self) -> tuple[int, Any]:
        if self._ahead is None:
            before = self._generator.bit_generator.state
            points = self._points()
            size = points.arms.size
            sample = self._generator.integers(max(size, 1), size=size)
            drawn = Points(points.arms[sample], points.waits[sample], points.has_converted[sample])
            rates = fit(drawn, self._generator.random(self._n_arms), self._iterations)[0]
            self._ahead = int(rates.argmax()), self._generator.bit_generator.state
            self._generator.bit_generator.state = before
        return self._ahead

    def _points(self) -> Points:
        """The rounds so far, and the artificial points."""
        t, prior, draw = self.round, self._prior, self._generator
        artificial = draw.integers(self._n_arms, size=prior)
        converts = draw.random(prior) < draw.random(prior)
        waits = draw.integers(self._longest + 1, size=prior)
        delays = self._delays[:t]
        waited = np.where(delays >= 0, delays, np.arange(t - 1, -1, -1))
        return Points(
            np.append(self._arms[:t], artificial),
            np.append(waited, waits),
            np.append(delays >= 0, converts),
        )


def fit(points: Points, missing: Floats, iterations: int) -> tuple[Floats, Floats]:
    """(p, S) by expectation maximisation. An arm without points has its rate from `missing`."""
    n_arms, n_times = missing.size, int(points.waits.max(initial=0)) + 1
    is_open = ~points.has_converted
    arms, waits = points.arms[is_open], points.waits[is_open]
    counts = np.bincount(points.arms, minlength=n_arms)
    converted = np.bincount(points.arms[points.has_converted], minlength=n_arms)
    events = np.bincount(points.waits[points.has_converted], minlength=n_times).astype(float)
    weights: Floats = np.full(arms.size, 0.5)
    rates: Floats = missing
    survival: Floats = np.ones(n_times)
    for _ in range(iterations):
        expected = converted + np.bincount(arms, weights, n_arms)
        rates = np.where(counts > 0, expected / np.maximum(counts, 1), missing)
        at_risk = np.cumsum((events + np.bincount(waits, weights, n_times))[::-1])[::-1]
        survival = np.asarray(np.cumprod(1 - events / np.where(events > 0, at_risk, 1.0)), np.float64)
        late = rates[arms] * survival[waits]
        weights = np.divide(late, 1 - rates[arms] + late, out=np.zeros_like(late), where=late > 0)
    return np.asarray(rates), survival
