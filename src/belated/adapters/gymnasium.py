"""A problem of the lab as an environment of Gymnasium.

>>> import gymnasium
>>> from belated import lab
>>> import belated.adapters.gymnasium  # registers the environment
>>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=200)
>>> environment = gymnasium.make("belated/DelayedBandit-v0", problem=problem)
>>> observation, info = environment.reset(seed=1)
>>> observation, reward, terminated, truncated, info = environment.step(2)
>>> reward, info["reports"]  # nothing has arrived yet
(0.0, [])
"""

from typing import Any, ClassVar, final

import numpy as np

from belated.arrays import Floats
from belated.errors import InvalidInput
from belated.extras import missing_package
from belated.lab import Problem
from belated.lab.problems.steps import Report, StepGame
from belated.validation import truth, whole_number

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_package("gymnasium")) from error


@final
class DelayedBandit(gymnasium.Env):  # type: ignore[misc]  # its types are not needed to run
    """A game of a problem. An action is an arm, and an episode has the rounds of the problem.

    problem:        what is played
    delayed_reward: the reward of a step is the sum of the rewards that arrived. False makes it the reward of the arm
                    that was played, also if nobody would know it yet. Rewards are 1 - loss

    observation[0]: how many reports of each arm arrived at the end of the round
    observation[1]: the sum of their rewards
    info:           "reports" that arrived, each with its round, arm and loss, the "round", and the loss "suffered". An
                    agent must not learn from that one. The last step also has the "regret"

    `reset(seed=s)` begins the game `problem.start(s)`. Without a seed, a new one is drawn.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, problem: Problem, *, delayed_reward: bool = True) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInput(f"problem must be a lab.Problem, got {problem!r:.80}")
        self.problem, self.delayed_reward = problem, truth("delayed_reward", delayed_reward)
        self.action_space = gymnasium.spaces.Discrete(problem.n_arms)
        shape = (2, problem.n_arms)
        self.observation_space = gymnasium.spaces.Box(0.0, float(problem.n_rounds), shape, np.float64)
        self._game: StepGame | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin a game."""
        super().reset(seed=None if seed is None else whole_number("seed", seed, 0))
        self._game = self.problem.start(int(self.np_random.integers(2**31 - 1)) if seed is None else seed)
        return self._observed([])[0], {"reports": [], "round": 0}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Play an arm."""
        game = self._game
        if game is None:
            raise InvalidInput("no game is under way. Call reset() first")
        step = game.step(action)
        observation, arrived = self._observed(step.reports)
        info = {"reports": step.reports, "round": step.round, "suffered": step.suffered}
        is_over = game.is_over
        if is_over:
            info["regret"] = game.regret
        return observation, arrived if self.delayed_reward else 1.0 - step.suffered, is_over, False, info

    def _observed(self, reports: list[Report]) -> tuple[Floats, float]:
        """The observation, and the sum of the rewards in it."""
        observation, arrived = np.zeros((2, self.problem.n_arms)), 0.0
        for report in reports:
            reward = 1.0 - report.loss
            arrived += reward
            observation[0, report.arm] += 1.0
            observation[1, report.arm] += reward
        return observation, arrived


gymnasium.register("belated/DelayedBandit-v0", "belated.adapters.gymnasium:DelayedBandit")
