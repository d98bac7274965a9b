"""The published rules give their published rates. A rule that is not proper is refused."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from belated import FTRL
from belated.errors import ImproperRule, InvalidInput
from belated.tunings import AdaptiveExp3, Advanced, Exp3, Means, Shadow, Simple, Tsallis, Tuning, schedule
from tests.support.catalogue import TUNINGS, Own
from tests.support.oracles import rates_of

K, LOG_K = 5, math.log(5)


@pytest.mark.parametrize(
    ("tuning", "alpha", "beta"),
    [
        (Simple(), 3.0, math.sqrt(2 * 70 / LOG_K)),
        (Simple(scale=0.5), 3.0, 0.5 * math.sqrt(2 * 70 / LOG_K)),
        (Advanced(), 3.0, math.sqrt(70 / LOG_K)),
        (Advanced(scale=3.0), 3.0, 3 * math.sqrt(70 / LOG_K)),
        (Tsallis(), 3.0, 0.0),
        (Exp3(eta=0.25), 0.0, 4.0),
        (AdaptiveExp3(), 0.0, math.sqrt((K * 9 + 2 * 70) / LOG_K)),
    ],
)
def test_rates_are_the_published_ones(tuning: Tuning, alpha: float, beta: float) -> None:
    assert tuning.rates(K, 9, 4, 70) == pytest.approx((alpha, beta), rel=1e-15)


def test_the_advanced_patience_is_its_beta() -> None:
    for scale in (0.5, 1.0, 4.0):
        tuning = Advanced(scale=scale)
        assert tuning.patience(K) * math.sqrt(70) == pytest.approx(tuning.rates(K, 9, 4, 70)[1])
    assert Simple().patience(K) == math.inf


@pytest.mark.parametrize("name", TUNINGS)
def test_a_schedule_has_the_rates_of_the_live_learner(name: str) -> None:
    delays = (np.random.default_rng(1).geometric(0.2, 300) - 1).tolist()
    learner, live = FTRL(K, TUNINGS[name], seed=1), []
    due: dict[int, list[int]] = {}
    for t, delay in enumerate(delays, 1):
        learner.ask()
        live.append(rates_of(learner))
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.5)
    planned = schedule(TUNINGS[name], K, delays)
    assert live == list(zip(planned.alpha.tolist(), planned.beta.tolist(), strict=True))


class Scripted(Tuning):
    """Rates from a list."""

    def __init__(self, *rates: Any) -> None:
        self.script = rates

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return self.script[round - 1]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "wrong",
    [
        (1.0, 1.5),
        (0.5, 2.0),
        (1.0, -1.0),
        (1.0, math.nan),
        (math.nan, 2.0),
        (1.0, math.inf),
        (1e16, 2.0),
        ("a", 2.0),
        (None, None),
        3.0,
        (1.0,),
        (1.0, 2.0, 3.0),
        (10**400, 2.0),
        {"alpha": 1.0, "beta": 2.0},
    ],
)
def test_a_rule_that_is_not_proper_is_refused_and_nothing_changes(wrong: Any) -> None:
    learner = FTRL(3, Scripted((1.0, 2.0), wrong), seed=1)
    learner.ask()
    before = learner.snapshot()
    for attempt in (learner.ask, lambda: learner.ask(5), learner.distribution):
        with pytest.raises(ImproperRule, match=r"in round 2 after \(1\.0, 2\.0\)"):
            attempt()
    assert learner.snapshot() == before
    with pytest.raises(ImproperRule, match="in round 2 after"):
        schedule(Scripted((1.0, 2.0), wrong), 3, [0, 0])


def test_no_regularizer_at_all_is_refused() -> None:
    with pytest.raises(ImproperRule, match="sum at least"):
        FTRL(3, Scripted((0.0, 0.0)), seed=1).ask()


def test_rates_may_be_any_numbers() -> None:
    learner = FTRL(3, Scripted((1, np.float32(2)), (np.int64(1), 2)), seed=1)
    learner.ask()
    learner.ask()
    assert rates_of(learner) == (1.0, 2.0)


class Impatient(Own):
    """A rule with a given patience."""

    def __init__(self, waits: Any) -> None:
        self.waits = waits

    def patience(self, n_arms: int) -> float:
        return self.waits  # type: ignore[no-any-return]


@pytest.mark.parametrize("patience", [None, "long", -1.0, math.nan])
def test_a_patience_that_is_no_number_is_refused(patience: Any) -> None:
    with pytest.raises(ImproperRule, match="has the patience"):
        FTRL(3, Impatient(patience))
    with pytest.raises(ImproperRule, match="has the patience"):
        schedule(Impatient(patience), 3, [0])


def test_a_patience_of_your_own_skips() -> None:
    assert schedule(Impatient(0), 3, [9, 9, 9, 9]).backlog.tolist() == [0, 1, 2, 3]  # each counts for one round


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "a", None, True, 10**400])
def test_settings_must_be_positive(value: Any) -> None:
    for make in (Simple, Advanced, AdaptiveExp3):
        with pytest.raises(InvalidInput, match="scale must be a positive finite number"):
            make(scale=value)
    with pytest.raises(InvalidInput, match="eta must be a positive finite number"):
        Exp3(eta=value)


def test_settings_are_plain_values() -> None:
    tuning = Advanced(scale=np.float32(2), discard=np.True_)  # type: ignore[arg-type]
    assert (type(tuning.scale), type(tuning.discard)) == (float, bool)
    with pytest.raises(InvalidInput, match="discard must be True or False"):
        Advanced(discard="no")  # type: ignore[arg-type]


def test_your_own_rule_plays() -> None:
    own, simple = FTRL(4, Own(), seed=1), FTRL(4, Simple(scale=2.0), seed=1)
    for t in range(1, 100):
        assert own.ask() == simple.ask()
        if t > 5:
            own.tell(t - 5, 0.3)
            simple.tell(t - 5, 0.3)


@pytest.mark.parametrize("delays", [[], [[1]], [0.5], ["a"], [1, -1], None])
def test_bad_delays_are_refused(delays: Any) -> None:
    with pytest.raises(InvalidInput, match="delays must"):
        schedule(Simple(), 3, delays)


class AtOnce(Tuning):
    """A rule for arrays, from two functions of the arguments."""

    elementwise = True

    def __init__(self, alpha: Any, beta: Any) -> None:
        self.alpha, self.beta = alpha, beta

    def rates(
        self, n_arms: int, round: int, outstanding: int, backlog: int, sqrt: Any = math.sqrt
    ) -> tuple[float, float]:
        known = SimpleNamespace(t=round, o=outstanding, d=backlog, sqrt=sqrt)
        return self.alpha(known), self.beta(known)


def root(game: Any) -> Any:
    return game.sqrt(game.t)


def play(learner: Any, delays: list[int]) -> None:
    due: dict[int, list[int]] = {}
    for t, delay in enumerate(delays, 1):
        learner.ask()
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            learner.tell(s, 0.5)


@pytest.mark.parametrize("alpha", [root, lambda g: 0.0 * g.t])
@pytest.mark.parametrize(
    "beta",
    [
        lambda g: g.t / 10 - 0.5,
        lambda g: 1 / g.t,
        lambda g: 1.0 * g.o,  # falls when reports come
        lambda g: -1.0 * g.t,
        lambda g: g.t + math.nan,
        lambda g: g.t * math.inf,
        lambda g: g.t * 1e16,
    ],
)
def test_an_elementwise_rule_is_refused_where_the_learner_refuses_it(alpha: Any, beta: Any) -> None:
    delays = [3, 0, 2, 0, 0, 1, 0, 0]
    learner = FTRL(3, AtOnce(alpha, beta), seed=1)
    with pytest.raises(ImproperRule) as live:
        play(learner, delays)
    with pytest.raises(ImproperRule) as planned:
        schedule(AtOnce(alpha, beta), 3, delays)
    message = str(live.value).replace("np.float64(nan)", "nan")
    assert message.split(" gave ")[1] == str(planned.value).split(" gave ")[1]


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (lambda g: math.sqrt(g.t), "do not take arrays"),
        (lambda g: 1.0 if g.t < 9 else 2.0, "do not take arrays"),
        (lambda g: g.sqrt(g.t)[:3] if np.ndim(g.t) else g.sqrt(g.t), "must be two arrays of 40 numbers"),
        (lambda g: g.sqrt(g.t) + (np.ndim(g.t) == 0), "arrays and numbers must give the same"),
        (lambda g: np.arange(40) + 1.0 if np.ndim(g.t) else float(g.t * g.t), "arrays and numbers must give"),
    ],
)
def test_an_elementwise_rule_agrees_with_itself(alpha: Any, message: str) -> None:
    with pytest.raises(ImproperRule, match=message):
        schedule(AtOnce(alpha, root), 3, [2] * 40)


def test_an_elementwise_rule_needs_a_regularizer_in_every_round() -> None:
    with pytest.raises(ImproperRule, match="sum at least"):
        schedule(AtOnce(lambda _: 0.0, lambda g: g.t - 1.0), 3, [2] * 40)


def test_an_elementwise_rule_may_give_a_number_for_all_rounds() -> None:
    planned = schedule(AtOnce(lambda *_: 0, lambda *_: 2), 3, [2] * 5)
    assert planned.alpha.tolist() == [0.0] * 5
    assert planned.beta.tolist() == [2.0] * 5


class Counting(Tuning):
    """A rule that remembers, so its rates differ from game to game."""

    calls = 0

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        self.calls += 1
        return float(self.calls), 0.0


def test_a_rule_with_a_memory_is_refused() -> None:
    with pytest.raises(ImproperRule, match="may depend on nothing but their arguments"):
        schedule(Counting(), 3, [2] * 40)


@pytest.mark.parametrize("kind", [Means, Shadow, Advanced])
def test_rates_that_are_compiled_cannot_be_changed_by_a_subclass(kind: Any) -> None:
    """A kernel would go on with the rates of its parent."""

    def rates(_self: Any, _n_arms: int, round: int, *_counts: int) -> tuple[float, float]:
        return math.sqrt(round), 1.0

    with pytest.raises(InvalidInput, match=f"Mine changes the rates of {kind.__name__}.*Inherit from .*Tuning"):
        type("Mine", (kind,), {"rates": rates})
    with pytest.raises(InvalidInput, match="Mine changes the rates"):
        type("Mine", (type("Mixin", (), {"rates": rates}), kind), {})
    assert isinstance(type("Mine", (kind,), {})(), kind)
