"""The oracle of the adapters: a policy that is played by hand, with reports that come late."""

from collections.abc import Callable

from belated import Learner

LATE = 7  # rounds


def reward_of(arm: int, t: int) -> float:
    """Some rewards from 0 to 1. The last of the first three arms is the best."""
    return float((t * 7 + arm) % 3 <= arm)


def by_hand(pull: Callable[[], int], update: Callable[[int, float], object], rounds: int = 300) -> list[int]:
    """The arms of a policy that learns each reward `LATE` rounds after its pull."""
    arms: list[int] = []
    for t in range(rounds):
        arms.append(int(pull()))
        if t >= LATE:
            update(arms[t - LATE], reward_of(arms[t - LATE], t - LATE))
    return arms


def through(learner: Learner, rounds: int = 300) -> list[int]:
    """The same game through ask and tell."""
    decisions = []
    for t in range(rounds):
        decisions.append(learner.ask())
        if t >= LATE:
            earlier = decisions[t - LATE]
            learner.tell(earlier, 1 - reward_of(earlier.arm, t - LATE))
    return [decision.arm for decision in decisions]
