"""Games of interpreted learners."""

from collections import defaultdict
from typing import Any, final

import numpy as np

from belated.arrays import Floats, Integers
from belated.bounds import clip
from belated.lab.games.guarded import Guarded
from belated.lab.problems.problem import Problem
from belated.learner.decisions import MakeLearner


@final
class Driver:
    """Plays anything with ask and tell, and checks it in every round.

    A learner with `needs_delay` gets the delay of the round in `ask`. If its `feedback` is "vector" it is told the
    losses of all arms, and if it is "sum" only the sum of the losses that arrive in a round. The expected loss of a
    learner without a `distribution` is the loss of the drawn arm. `name` stands for the learner in errors.
    """

    def __init__(
        self, make: MakeLearner, problem: Problem, delays: Integers, seed: int, name: str = "the learner"
    ) -> None:
        self.guarded = Guarded(make, problem.n_arms, seed, name)
        self.due: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        self.delays, self.clipped = delays.tolist(), clip(delays).tolist()
        self.arms = np.empty(delays.size, np.int32)
        self.t = 0

    @property
    def learner(self) -> Any:
        """The learner that plays."""
        return self.guarded.learner

    @property
    def log_evidence(self) -> float:
        """The evidence that the distribution does not fit the draws."""
        return self.guarded.log_evidence

    def play(self, losses: Floats) -> tuple[Floats, Floats]:
        """Play a round for each row. Returns <x_t, l_t> and the loss of the drawn arm."""
        losses, start, learner = np.ascontiguousarray(losses), self.t, self.guarded
        needs_delay, takes_all, n_rounds = learner.needs_delay, learner.feedback == "vector", len(self.delays)
        learner.begin(len(losses))
        for i, row in enumerate(losses):
            t = self.t
            arm = learner.decide(i, self.clipped[t]) if needs_delay else learner.decide(i)
            arrives = t + self.delays[t]
            if arrives < n_rounds:
                self.due[arrives].append((t + 1, row.copy() if takes_all else row.item(arm)))
            reports = self.due.pop(t, None)
            if reports is not None:
                learner.tell(reports)
            self.t += 1
        self.arms[start : self.t] = learner.arms
        return learner.weigh(losses)
