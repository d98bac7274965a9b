"""A floor or holdout that grows while decisions wait. Charges still reach 1 in the order of the rounds."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from belated import FTRL
from belated.learner.ftrl import state_of
from belated.learner.mixing import Mix
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import AdaptiveExp3, Advanced, Means, Shadow, Simple, Tsallis, Tuning
from tests.support.oracles import literal_step, uncapped_certificate

TUNINGS: list[Tuning] = [Shadow(), Advanced(), Simple(), Tsallis(), AdaptiveExp3()]
NAMES = [type(tuning).__name__ for tuning in TUNINGS]
UP_AND_DOWN = [Mix(0.02), Mix(0.0, 0.3, 1), Mix(0.01), Mix(0.05, 0.5), Mix(), Mix(1 / 10), Mix(0.02, 0.2)]


class Literal:
    """The certificate of docs/theory/mixing.md without the bound n, with the charge of every round in a list."""

    def __init__(self, n_arms: int, tuning: Tuning) -> None:
        self.k, self.is_shadow, self.mix = n_arms, isinstance(tuning, Shadow), Mix()
        self.charges: list[float] = []
        self.unknown: set[int] = set()  # to the distribution in force
        self.told: set[int] = set()
        self.exposure = self.mix_cost = self.alpha = self.beta = 0.0

    def own(self) -> float:
        """The stability of a round with the present rates and mix."""
        alone = self.k / (self.alpha * math.sqrt(self.k) + (0 if self.is_shadow else 2 * self.beta))
        return min(1.0, alone / (1 - self.mix.mixed(self.k))) if self.mix.mixed(self.k) < 1 else 1.0

    def set_mix(self, mix: Mix) -> None:
        is_rising, self.mix = mix.mixed(self.k) > self.mix.mixed(self.k), mix
        for s in self.unknown if is_rising else ():
            self.charges[s] = max(self.charges[s], self.own())

    def decide(self, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta
        self.unknown -= self.told
        for s in self.unknown:
            step = min(1.0, literal_step(self.k, alpha, beta, is_shadow=self.is_shadow))
            self.charges[s] = min(1.0, self.charges[s] + step)
        self.unknown.add(len(self.charges))
        self.charges.append(self.own())
        self.mix_cost += self.mix.cost(self.k)
        self.exposure = max(self.exposure, sum(1 - self.charges[s] for s in self.unknown))

    def certificate(self) -> float:
        penalty = 2 * self.alpha * (math.sqrt(self.k) - 1) + self.beta * math.log(self.k)
        more = self.exposure + 1 if self.is_shadow else 0.0
        return penalty + sum(self.charges) + self.mix_cost + more


def rates(learner: "FTRL[int]") -> tuple[float, float]:
    clock = state_of(learner).clock[0]
    return float(clock["alpha"]), float(clock["beta"])


def are_in_order(learner: "FTRL[int]") -> bool:
    """Whether no waiting round's charge is ahead of an older one's."""
    state = state_of(learner)
    rows = state.ledger[: int(state.clock["rows"][0])]
    bases = rows["base"][(rows["probability"] > 0) & (rows["round"] > state.clock["capped"][0])]
    return bool((np.diff(bases) >= 0).all())


def test_what_a_shadow_risks_is_its_definition_after_a_floor() -> None:
    """Three older decisions wait when the floor comes."""
    learner, literal = FTRL(10, Shadow(), seed=0), Literal(10, Shadow())
    for t in range(2060):
        if t == 2003:
            state_of(learner).set_mix(Mix(0.09))
            literal.set_mix(Mix(0.09))
        round = learner.ask().round
        literal.decide(*rates(learner))
        if t < 2000:
            learner.tell(round, 0.5)
            literal.told.add(round - 1)
    assert literal.exposure > 2
    assert state_of(learner).clock["peak_uncharged"][0] == pytest.approx(literal.exposure, rel=1e-12)


@pytest.mark.parametrize("tuning", TUNINGS, ids=NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_is_its_definition_while_the_mix_changes(tuning: Tuning, seed: int) -> None:
    """Some decisions have just been reported when it changes, and some wait for ever."""
    k, generator = 10, np.random.default_rng([seed, 29])
    learner, literal, waiting = FTRL(k, tuning, seed=seed), Literal(k, tuning), list[int]()
    sums = []
    for t in range(450):
        if t % 60 == 37:
            mix = UP_AND_DOWN[(t // 60 + seed) % len(UP_AND_DOWN)]
            state_of(learner).set_mix(mix)
            literal.set_mix(mix)
        waiting.append(learner.ask().round)
        literal.decide(*rates(learner))
        while len(waiting) > 8 and generator.random() < 0.55:
            round = waiting.pop(int(generator.integers(3, len(waiting))))
            learner.tell(round, float(generator.random() < 0.5))
            literal.told.add(round - 1)
        assert are_in_order(learner)
        sums.append((uncapped_certificate(learner), literal.certificate()))
    ours, theirs = np.array(sums).T
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("mix", [Mix(0.05), Mix(0.0, 0.3, 2)])
@pytest.mark.parametrize("tuning", [Means(), Shadow(), Advanced()], ids=str)
def test_a_larger_mix_survives_a_snapshot(tuning: Tuning, mix: Mix) -> None:
    """Also while some of the waiting decisions have just been reported."""
    shared, open_, seq = SharedLearner(FTRL(10, tuning, seed=1), 0), list[int](), 0
    for _ in range(40):
        seq = entered(shared, seq + 1)
        open_.append(seq)
    for decision in open_[5:12]:
        seq += 1
        shared.tell(seq, decision, 0.25)
    seq += 1
    shared.set_mix(seq, mix)
    packed = msgspec.msgpack.encode(shared.state())
    again = SharedLearner.restore(msgspec.msgpack.decode(packed))
    assert msgspec.msgpack.encode(again.state()) == packed
    for copy in (shared, again):
        for number in range(seq + 1, seq + 30):
            entered(copy, number)
        assert are_in_order(copy.learner)
    assert msgspec.msgpack.encode(again.state()) == msgspec.msgpack.encode(shared.state())
    assert again.learner.certificate() == shared.learner.certificate()


def entered(shared: Any, seq: int) -> int:
    """Enter a decision that was drawn just now, and return its number."""
    x = shared.draw_context().x
    shared.enter([seq], seq - 1, [seq % 10], [float(x[seq % 10])], None)
    return seq


def test_a_smaller_mix_and_the_same_change_no_charge() -> None:
    learner = FTRL(10, Advanced(), seed=1)
    state = state_of(learner)
    state.set_mix(Mix(0.05))
    learner.ask(20)
    before = state.ledger["base"].tolist(), learner.certificate()
    for mix in (Mix(0.05), Mix(0.0, 0.5), Mix(0.01), Mix()):
        state.set_mix(mix)
    assert (state.ledger["base"].tolist(), learner.certificate()) == before
