"""What a round costs through an adapter, against the policy itself, and what the policies make of late rewards."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from belated import FTRL, Learner, lab
from belated.adapters import coba, mabwiser, policies, river, smpybandits
from belated.adapters.gymnasium import DelayedBandit
from benchmarks.judging import best_of, judge

K, REPEATS = 10, 60
BAR = 1.3
Play = Callable[[int], None]


def timed(begin: Callable[[], Play], rounds: int) -> float:
    """Microseconds of processor time a round. Each time a new policy plays, because some grow slower with age."""
    play = begin()
    start = time.thread_time()
    play(rounds)
    return (time.thread_time() - start) / rounds * 1e6


def compare(
    name: str, direct: Callable[[], Play], adapted: Callable[[], Play], rounds: int, *, is_judged: bool
) -> None:
    """Both take turns. Each time is the best of many."""
    a, b = best_of(REPEATS, lambda: timed(direct, rounds), lambda: timed(adapted, rounds))
    if is_judged:
        judge(f"{name}: {a:.1f} us alone, adapted {b:.1f}", b / a, BAR, "x", at_most=True)
    else:
        print(f"          {name}: {a:.1f} us alone, adapted {b:.1f}, which is {b / a:.2f} x")


def through(make: Callable[[int, int], Learner]) -> Callable[[], Play]:
    """Ask and tell."""

    def begin() -> Play:
        learner = make(K, 1)

        def play(rounds: int) -> None:
            for _ in range(rounds):
                learner.tell(learner.ask(), 0.5)

        return play

    return begin


def by_hand(begin: Callable[[], tuple[Callable[[], int], Callable[[int, float], object]]]) -> Callable[[], Play]:
    """The policy's own two calls."""

    def started() -> Play:
        pull, update = begin()

        def play(rounds: int) -> None:
            for _ in range(rounds):
                update(pull(), 0.5)

        return play

    return started


def river_alone(policy: Any) -> Callable[[], Play]:
    """A policy of river, called directly."""

    def begin() -> Play:
        clone, arms = policy.clone({"seed": 1}), list(range(K))

        def play(rounds: int) -> None:
            for _ in range(rounds):
                clone.update(clone.pull(arms), 0.5)

        return play

    return begin


def smpybandits_alone(name: str) -> Callable[[], Play]:
    """A policy of SMPyBandits, called directly."""

    def begin() -> tuple[Any, Any]:
        policy = getattr(smpybandits.policies, name)(K)
        policy.startGame()
        return policy.choice, policy.getReward

    return by_hand(begin)


def mabwiser_alone(policy: Any) -> Callable[[], Play]:
    """A policy of MABWiser that knows every arm, called directly."""
    from mabwiser.mab import MAB  # noqa: PLC0415

    def begin() -> tuple[Any, Any]:
        mab = MAB(list(range(K)), policy, seed=1)
        mab.fit(list(range(K)), [0.5] * K)
        return mab.predict, lambda arm, reward: mab.partial_fit([arm], [reward])

    return by_hand(begin)


def mabwiser_fitted(policy: Any) -> Callable[[], Play]:
    """The same through the adapter, which begins with a report of every arm."""

    def begin() -> Play:
        learner = mabwiser.learner(policy)(K, 1)
        for _ in range(K):
            learner.tell(learner.ask(), 0.5)
        return through(lambda _k, _seed: learner)()

    return begin


def coba_alone(kind: Any) -> Callable[[], Play]:
    """A learner of coba, called directly."""

    def begin() -> Play:
        learner, actions = kind(seed=1), list(range(K))

        def play(rounds: int) -> None:
            for _ in range(rounds):
                action, probability = learner.predict(None, actions)
                learner.learn(None, action, 0.5, probability)

        return play

    return begin


def belated_alone() -> Play:
    """Belated's learner, called directly."""
    learner = FTRL(K, seed=1)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            learner.tell(learner.ask(), reward=0.5)

    return play


def belated_in_river() -> Play:
    """Belated's learner as a policy of river."""
    policy, arms = river.Policy(seed=1), list(range(K))
    policy.update(policy.pull(arms), 0.5)  # the learner begins here

    def play(rounds: int) -> None:
        for _ in range(rounds):
            policy.update(policy.pull(arms), 0.5)

    return play


def belated_in_coba() -> Play:
    """Belated's learner as a learner of coba."""
    learner, actions = coba.Learner(), list(range(K))
    learner.predict(None, actions)  # the learner begins here

    def play(rounds: int) -> None:
        for _ in range(rounds):
            action, probability, kwargs = learner.predict(None, actions)
            learner.learn(None, action, 0.5, probability, **kwargs)

    return play


def cost() -> None:
    """A round through each adapter, at most 1.3 times as long as the policy's own two calls."""
    from coba.learners import BanditEpsilonLearner, BanditUCBLearner, RandomLearner  # noqa: PLC0415
    from mabwiser.mab import LearningPolicy  # noqa: PLC0415
    from river import bandit, proba  # noqa: PLC0415

    print(f"\na round through an adapter, k = {K}")
    with np.errstate(all="ignore"):  # SMPyBandits divides by 0 and mends it afterwards
        learning: list[Any] = [bandit.UCB(1), bandit.Exp3(0.1), bandit.EpsilonGreedy(0.1), bandit.BayesUCB()]
        for policy in [*learning, bandit.ThompsonSampling(proba.Beta()), bandit.RandomPolicy()]:
            name, is_judged = type(policy).__name__, not isinstance(policy, bandit.RandomPolicy)
            alone, adapted = river_alone(policy), through(river.learner(policy))
            compare(f"river {name}", alone, adapted, 300, is_judged=is_judged)
        for name in ("UCB", "MOSS", "Exp3", "Thompson"):
            adapted = through(smpybandits.learner(name))
            compare(f"SMPyBandits {name}", smpybandits_alone(name), adapted, 100, is_judged=True)
        for one in (LearningPolicy.UCB1(), LearningPolicy.EpsilonGreedy()):
            name = type(one).__name__.lstrip("_")
            compare(f"MABWiser {name}", mabwiser_alone(one), mabwiser_fitted(one), 50, is_judged=True)
        for kind in (BanditUCBLearner, BanditEpsilonLearner, RandomLearner):
            is_judged = kind is not RandomLearner
            adapted = through(coba.learner(kind))
            compare(f"coba {kind.__name__}", coba_alone(kind), adapted, 200, is_judged=is_judged)
    compare("Belated in river", belated_alone, belated_in_river, 300, is_judged=True)
    compare("Belated in coba", belated_alone, belated_in_coba, 300, is_judged=True)
    print("          policies that learn nothing are not judged: numbering a round costs as much as their draw")


def in_steps(problem: lab.Problem) -> Play:
    """Belated's learner in a game that is played a round at a time."""
    game, learner = problem.start(1), FTRL(K, seed=1)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            for report in game.step(learner.ask().arm).reports:
                learner.tell(report.round, report.loss)

    return play


def in_gymnasium(problem: lab.Problem) -> Play:
    """The same through Gymnasium's environment."""
    environment, learner = DelayedBandit(problem), FTRL(K, seed=1)
    environment.reset(seed=1)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            for report in environment.step(learner.ask().arm)[4]["reports"]:
                learner.tell(report.round, report.loss)

    return play


def environment() -> None:
    """A round in Gymnasium's environment, beside the step interface that it is made of."""
    print(f"\na round of a game with a learner, k = {K}")
    problem = lab.Problem(lab.Bernoulli(gap=0.1), lab.Geometric(mean=20), K, 10_000)
    compare("in Gymnasium", lambda: in_steps(problem), lambda: in_gymnasium(problem), 500, is_judged=False)


def recorded_river(gamma: float) -> Callable[[int, int], Learner]:
    """river's Exp3 that weighs a reward with the probability of its own draw."""
    from river import bandit  # noqa: PLC0415

    def make(n_arms: int, seed: int) -> Learner:
        policy, arms = bandit.Exp3(gamma=gamma, seed=seed), list(range(n_arms))

        def pull() -> tuple[int, float, object]:
            arm = policy.pull(arms)
            return arm, policy._probabilities[arm], None

        def update(arm: int, reward: float, probability: float, _note: object) -> None:
            policy._probabilities[arm] = probability
            policy.update(arm, reward)

        return policies.ProbabilityLearner("recorded", n_arms, pull, update)

    return make


def changed_smpybandits(gamma: float, *, is_recorded: bool) -> Callable[[int, int], Learner]:
    """SMPyBandits' Exp3 without its visits in turn, as shipped or with the probability of the draw."""

    class Changed(smpybandits.policies.Exp3):  # type: ignore[misc, name-defined]
        """Says the recorded probability while it learns."""

        recorded: float | None = None

        @property
        def trusts(self) -> Any:
            now = super().trusts
            return now if self.recorded is None else np.full_like(now, self.recorded)

        def choice(self) -> int:
            return int(np.random.choice(self.nbArms, p=self.trusts))  # noqa: NPY002  (what the package uses)

    def make(n_arms: int, seed: int) -> Learner:
        policy = smpybandits.Policy(lambda k: Changed(k, gamma=gamma), n_arms, seed)

        def pull() -> tuple[int, float, object]:
            arm = policy.pull()
            return arm, float(policy.inner.trusts[arm]), None

        def update(arm: int, reward: float, probability: float, _note: object) -> None:
            policy.inner.recorded = probability if is_recorded else None
            policy.update(arm, reward)
            policy.inner.recorded = None

        return policies.ProbabilityLearner("changed", n_arms, pull, update)

    return make


def late_rewards() -> None:
    """Regret of Exp3 as two packages ship it, and with the probability of the draw in place of the latest one."""
    from river import bandit  # noqa: PLC0415

    gamma, delays = 0.1, (0, 50, 500, 1500)
    rows: dict[str, Callable[[int, int], Learner]] = {
        "river Exp3 as shipped": river.learner(bandit.Exp3(gamma=gamma)),
        "river Exp3, probability of the draw": recorded_river(gamma),
        "SMPyBandits Exp3 as shipped": smpybandits.learner("Exp3", gamma=gamma),
        "SMPyBandits Exp3 without visits in turn": changed_smpybandits(gamma, is_recorded=False),
        "SMPyBandits Exp3, probability of the draw": changed_smpybandits(gamma, is_recorded=True),
        "Belated, its default": lambda n_arms, seed: FTRL(n_arms, seed=seed),
    }
    print(f"\nregret after 4,000 rounds, k = 2, mean rewards 0.9 and 0.6, 20 games, feedback late by {delays}")
    means = {}
    for name, make in rows.items():
        games = [
            lab.play(make, lab.Problem(lab.Bernoulli(gap=0.3, mean=0.4), lab.Fixed(d), 2, 4000), seeds=range(20))
            for d in delays
        ]
        means[name] = [one.suffered[:, -1].mean() for one in games]
        widths = [1.96 * one.suffered[:, -1].std(ddof=1) / 20**0.5 for one in games]
        print(f"  {name:42}", "  ".join(f"{m:4.0f} +- {w:3.0f}" for m, w in zip(means[name], widths, strict=True)))
    for package, before in (("river", "as shipped"), ("SMPyBandits", "without visits in turn")):
        shipped, mended = means[f"{package} Exp3 {before}"], means[f"{package} Exp3, probability of the draw"]
        judge(
            f"{package} Exp3, 500 late: latest probability / that of the draw",
            shipped[2] / mended[2],
            1.5,
            "x",
            at_most=False,
        )
