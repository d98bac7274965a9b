"""A floor for every arm: the recorded probability, unbiased estimates, and what the certificates say."""

import math

import numpy as np
import pytest

from belated import FTRL
from belated.errors import InvalidInput, SnapshotError
from belated.learner.ftrl import state_of
from belated.learner.mixing import Mix
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning

TUNINGS: list[Tuning] = [Means(), Shadow(), Advanced(), Simple(), Tsallis(), AdaptiveExp3()]
NAMES = [type(tuning).__name__ for tuning in TUNINGS]


def twin(learner: "FTRL[int]") -> "FTRL[int]":
    """The same learner without its floor."""
    snapshot = learner.snapshot()
    del snapshot["mix"]
    return FTRL.restore({**snapshot, "version": 6})


@pytest.mark.parametrize("tuning", TUNINGS, ids=NAMES)
@pytest.mark.parametrize("refresh", [1, 7])
def test_every_probability_is_the_mix_to_the_last_bit(tuning: Tuning, refresh: int) -> None:
    floor, generator = 0.07, np.random.default_rng(3)
    learner = FTRL(4, tuning, seed=5, refresh=refresh, floor=floor)
    waiting = []
    for t in range(150):
        expected = [floor + (1 - 4 * floor) * x for x in twin(learner).distribution().tolist()]
        assert learner.distribution().tolist() == expected
        drawn = learner.ask(3) if t % 10 == 0 else [learner.ask()]
        assert all(one.probability == expected[one.arm] for one in drawn)
        waiting += drawn
        if len(waiting) > 12:
            one = waiting.pop(int(generator.integers(8)))
            learner.tell(one, float(generator.random() < [0.2, 0.5, 0.5, 0.8][one.arm]))


def test_arms_are_drawn_as_often_as_recorded() -> None:
    learner = FTRL(5, Tsallis(), seed=1, refresh=40_000, floor=0.05)
    for _ in range(300):
        one = learner.ask()
    for round in range(1, 301):
        learner.tell(round, 0.9 if round % 5 else 0.1)
    state_of(learner).clock["left"] = 0
    p = learner.distribution()
    drawn = learner.ask(40_000)
    assert one.probability > 0
    assert p.min() >= 0.05
    assert p.max() > 0.3
    counts = np.bincount([one.arm for one in drawn], minlength=5)
    assert (np.abs(counts - 40_000 * p) <= 5 * np.sqrt(40_000 * p * (1 - p))).all()


def test_a_floor_of_one_in_k_is_uniform() -> None:
    learner = FTRL(3, seed=1, floor=1 / 3)
    for _ in range(300):
        one = learner.ask()
        assert one.probability == pytest.approx(1 / 3)
        learner.tell(one, float(one.arm != 1))
    assert learner.certificate() <= 300
    assert FTRL(1, floor=0.5).ask().probability == 1


def test_no_floor_is_no_change() -> None:
    plain, zero = FTRL(3, seed=1), FTRL(3, seed=1, floor=0)
    for _ in range(200):
        assert plain.ask() == zero.ask()
    assert plain.snapshot() == zero.snapshot()
    assert plain.snapshot()["version"] == 6  # an older release can read it


@pytest.mark.parametrize("floor", [0.3, -0.1, math.nan, "much", 1.0])
def test_an_impossible_floor_is_refused(floor: float) -> None:
    with pytest.raises(InvalidInput, match=r"floor must be a probability that each of 4 arms can have, from 0 to 1/4"):
        FTRL(4, floor=floor)


def test_too_many_arms_for_the_floor_are_refused_and_change_nothing() -> None:
    learner = FTRL(["a", "b", "c"], seed=2, floor=0.25)
    for _ in range(50):
        learner.tell(learner.ask(), 0.5)
    before = learner.snapshot()
    with pytest.raises(InvalidInput, match="each of 5 arms"):
        learner.change_arms(add=["d", "e"])
    assert learner.snapshot() == before
    learner.change_arms(add=["d"])
    assert learner.distribution().tolist() == [0.25] * 4
    learner.change_arms(retire=["a", "b"])
    assert learner.distribution().min() >= 0.25
    assert learner.status.floor == 0.25


def test_it_survives_a_snapshot() -> None:
    learner = FTRL(3, seed=2, floor=0.1)
    for _ in range(100):
        learner.tell(learner.ask(), 0.5)
    again = FTRL.restore(learner.snapshot())
    assert again.snapshot() == learner.snapshot()
    assert again.certificate() == learner.certificate()
    assert [again.ask() for _ in range(20)] == [learner.ask() for _ in range(20)]
    assert "floor=0.1" in repr(again)
    for name, wrong in [("floor", 0.5), ("holdout", 2), ("control", 3), ("charge", -1), ("floor", "x")]:
        snapshot = learner.snapshot()
        snapshot["mix"][name] = wrong
        with pytest.raises(SnapshotError, match=r"mix|floor"):
            FTRL.restore(snapshot)
    with pytest.raises(SnapshotError, match="version"):
        FTRL.restore({**learner.snapshot(), "version": 6})


def mixed(learner: "FTRL[int]", mix: Mix) -> "FTRL[int]":
    """A learner with a holdout, as the service has them."""
    state_of(learner).set_mix(mix)
    return learner


def test_a_plain_learner_refuses_a_control() -> None:
    """`ask` would draw the holdout uniformly, and record another probability. A uniform holdout is drawn as it is."""
    snapshot = FTRL(3, Tsallis(), seed=2, floor=0.1).snapshot()
    snapshot["mix"].update(holdout=0.4, control=1)
    with pytest.raises(SnapshotError, match=r"always draws one arm, its control. Only the service and SharedLearner"):
        FTRL.restore(snapshot)
    for harmless in ({"holdout": 0.4, "control": -1}, {"holdout": 0.0, "control": 1}):
        snapshot["mix"].update(harmless)
        learner = FTRL.restore(snapshot)
        p = learner.distribution()
        assert all(one.probability == p[one.arm] for one in learner.ask(30))


def test_a_shared_learner_keeps_its_control() -> None:
    shared = SharedLearner(FTRL(3, seed=2), last=0)
    shared.set_mix(1, Mix(0.1, 0.4, 1))
    again = SharedLearner.restore(shared.state())
    assert again.mix == Mix(0.1, 0.4, 1)
    assert again.draw_context().x.tolist() == pytest.approx([0.2, 0.6, 0.2])


MIXES = [Mix(0.05), Mix(0.0, 0.3), Mix(0.02, 0.2, 1), Mix(0.1, 0.5), Mix(0.0, 0.9, 0)]


@pytest.mark.parametrize("mix", MIXES)
def test_the_parts_of_a_mix_add_up(mix: Mix) -> None:
    k, x = 3, np.array([0.7, 0.2, 0.1])
    uniform, control = np.full(k, 1 / k), np.eye(k)[mix.control]
    q = uniform if mix.control < 0 else control
    literal = (1 - mix.holdout) * (mix.floor + (1 - k * mix.floor) * x) + mix.holdout * q
    more = mix.holdout * (np.arange(k) == mix.control)
    assert np.allclose(mix.even(k) + (1 - mix.mixed(k)) * x + more, literal, rtol=0, atol=1e-15)
    generator = np.random.default_rng(0)
    for _ in range(2_000):  # whatever the losses, and whatever the tuning plays
        x, losses = generator.dirichlet(np.full(k, 0.2)), generator.random(k).round()
        p = (1 - mix.holdout) * (mix.floor + (1 - k * mix.floor) * x) + mix.holdout * q
        assert (p - x) @ losses <= mix.cost(k) + 1e-12


def play(learner: "FTRL[int]", losses: np.ndarray, delays: np.ndarray, generator: np.random.Generator) -> float:
    """Play a game and return the regret in expectation over each draw. The arms are drawn here, from the mix."""
    n, k = losses.shape
    regret, due, chosen = np.zeros(k), [[] for _ in range(n + 1)], np.arange(k)  # type: ignore[var-annotated]
    for t in range(n):
        p = learner.distribution()
        arm = int(generator.choice(chosen, p=p / p.sum()))
        decision = learner.record(arm, min(1.0, float(p[arm])))
        regret += p @ losses[t] - losses[t]
        if t + delays[t] < n:
            due[t + delays[t]].append((decision, losses[t, arm]))
        for one, loss in due[t]:
            learner.tell(one, loss)
    return float(regret.max())


def problem(name: str, n: int, k: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Losses and delays that are fixed in advance."""
    losses = (generator.random((n, k)) < np.linspace(0.1, 0.9, k)).astype(float)
    delays = generator.geometric(0.1, n)
    if name == "one arm is perfect":
        losses = np.ones((n, k))
        losses[:, 0] = 0
    elif name == "they swap":
        losses[:, 0], losses[:, 1:] = np.arange(n) % 200 < 100, np.arange(n)[:, None] % 200 >= 100
        delays = np.full(n, 50)
    elif name == "the best comes late":
        losses[: n // 2, 0], losses[n // 2 :, 0] = 1, 0
        delays = np.where(generator.random(n) < 0.3, n, 3)
    return losses, delays


@pytest.mark.parametrize("name", ["one arm is perfect", "they swap", "the best comes late", "coins"])
@pytest.mark.parametrize("tuning", TUNINGS, ids=NAMES)
def test_the_mean_regret_is_below_every_certificate(tuning: Tuning, name: str) -> None:
    n, k, generator = 300, 3, np.random.default_rng([len(name), n_of(tuning)])
    losses, delays = problem(name, n, k, generator)
    for mix in (Mix(0.05), Mix(0.02, 0.2, 1), Mix(0.1, 0.5)):
        results = []
        for _ in range(3):
            learner = mixed(FTRL(k, tuning), mix)
            regret = play(learner, losses, delays, generator)
            numbers = learner.certificate(), learner.certificate("any"), learner.measured_certificate()
            results.append((regret, *numbers, learner.regret_bound(0.999)))
        regret, proven, proven_any, measured, bound = np.mean(results, axis=0)
        spread = np.std(results, axis=0)[3]
        assert regret <= proven <= n * (1 + 1e-9) or not isinstance(tuning, Advanced | Simple | Tsallis)
        assert regret <= min(proven, proven_any)
        assert regret <= measured + 3 * spread
        assert regret <= bound


def n_of(tuning: Tuning) -> int:
    return NAMES.index(type(tuning).__name__)


@pytest.mark.parametrize("tuning", [Advanced(), Simple(), Tsallis(), AdaptiveExp3()], ids=str)
def test_the_certificate_grows_by_the_cost_of_the_mix(tuning: Tuning) -> None:
    """Against the formula of docs/theory/mixing.md, with the charges added up one by one."""
    n, k, d, mix = 1500, 3, 5, Mix(0.02, 0.1)
    learner, waiting = mixed(FTRL(k, tuning), mix), []
    rates = []
    for t in range(n):
        p = learner.distribution()
        waiting.append(learner.record(t % k, float(p[t % k])))
        rates.append((learner.status.alpha, learner.status.beta))
        if t >= d:
            learner.tell(waiting[t - d], 0.5)
    drift = [min(1.0, 1 / (4 * b)) if a == 0 else min(1.0, 1 / (b + a / 2)) for a, b in rates]
    charges = []
    for s, (a, b) in enumerate(rates):
        own = k / (a * math.sqrt(k) + 2 * b) / (1 - mix.mixed(k)) if a + b else math.inf
        charges.append(min(1.0, min(1.0, own) + sum(drift[s + 1 : s + 1 + d])))
    a, b = rates[-1]
    formula = 2 * a * (math.sqrt(k) - 1) + b * math.log(k) + sum(charges) + n * mix.cost(k)
    assert formula < n
    assert learner.certificate() == pytest.approx(formula, rel=1e-9)


@pytest.mark.parametrize("mix", [Mix(0.05), Mix(0.02, 0.2, 1), Mix(0.0, 0.3)])
@pytest.mark.parametrize("tuning", [Means(), Shadow(), Advanced()], ids=str)
def test_estimates_are_unbiased_on_forty_seeds(tuning: Tuning, mix: Mix) -> None:
    """The weighted mean of each arm, while the learner adapts."""
    n, k, rates, errors = 200, 3, np.array([0.2, 0.5, 0.7]), []
    for seed in range(40):
        generator = np.random.default_rng([seed, 7])
        learner, sums = mixed(FTRL(k, tuning), mix), np.zeros(k)
        for _ in range(n):
            p = learner.distribution()
            arm = int(generator.choice(k, p=p / p.sum()))
            loss = float(generator.random() < rates[arm])
            sums[arm] += loss / p[arm]
            learner.tell(learner.record(arm, float(p[arm])), loss)
        errors.append(sums / n - rates)
        if not isinstance(tuning, Means):
            assert np.allclose(learner.status.estimated_losses, sums)
    scale = np.std(errors, axis=0, ddof=1) / math.sqrt(40)
    assert (np.abs(np.mean(errors, axis=0)) <= 3 * scale).all()


def test_a_floor_hears_of_an_arm_that_improves() -> None:
    """With it a change of a rarely drawn arm is noticed. Both arms end equally often without it only by luck."""
    with_floor = [FTRL(2, seed=seed, floor=0.1) for seed in range(5)]
    for learner in with_floor:
        for t in range(2_000):
            one = learner.ask()
            best = 0 if t < 500 else 1
            learner.tell(one, 0.2 if one.arm == best else 0.8)
    assert all(learner.distribution()[1] > 0.85 for learner in with_floor)
