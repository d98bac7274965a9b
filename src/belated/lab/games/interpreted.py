"""Games of interpreted learners."""

from collections import defaultdict
from typing import Any, final

import numpy as np

from belated import kernels
from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.lab.problems.problem import Problem
from belated.learner.decisions import MakeLearner
from belated.learner.ftrl import check_plain


@final
class Driver:
    """Plays anything with ask and tell.

    A learner with `needs_delay` gets the delay of the round in `ask`. If its `feedback` is "vector" it is told the
    losses of all arms, and if it is "sum" only the sum of the losses that arrive in a round. The expected loss of a
    learner without a `distribution` is the loss of the drawn arm.
    """

    def __init__(self, make: MakeLearner, problem: Problem, delays: Integers, seed: int) -> None:
        self.learner: Any = make(problem.n_arms, seed)
        check_plain(self.learner, "a game")
        self.needs_delay = getattr(self.learner, "needs_delay", False)
        self.feedback = getattr(self.learner, "feedback", "loss")
        self.has_distribution = hasattr(self.learner, "distribution")
        self.due: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        self.delays, self.clipped = delays.tolist(), clip(delays).tolist()
        self.t = 0

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        expected, suffered = np.empty(len(losses)), np.empty(len(losses))
        for i, row in enumerate(np.ascontiguousarray(losses)):
            arrives = self.t + self.delays[self.t]
            known = (self.clipped[self.t],) if self.needs_delay else ()
            x = self.learner.distribution(*known) if self.has_distribution else None
            decision = self.learner.ask(*known)
            suffered[i] = row[decision.arm]
            expected[i] = suffered[i] if x is None else kernels.expectation(x, row)
            if arrives < len(self.delays):
                report = row.copy() if self.feedback == "vector" else float(suffered[i])
                self.due[arrives].append((decision.round, report))
            self.tell(self.due.pop(self.t, []))
            self.t += 1
        return expected, suffered

    def tell(self, reports: list[tuple[int, Any]]) -> None:
        """Report what arrives at the end of a round."""
        if self.feedback == "sum":
            if reports:
                self.learner.tell_sum(sum(loss for _, loss in reports))
            return
        tell = self.learner.tell_vector if self.feedback == "vector" else self.learner.tell
        for round, report in reports:
            tell(round, report)
