"""The published systems, each compared with a literal transcription of its rule."""

import copy
import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from belated import FTRL, BelatedError, Decision, lab
from belated.arrays import Floats
from belated.baselines import (
    BOLD,
    SOLID,
    BZCBBDoubling,
    Composite,
    DelayedUCB1,
    Doubling,
    Masoudian2024,
    OneArm,
    Queued,
    Skipper,
    ThompsonSampling,
    TsallisReducedVariance,
    UniformRandom,
    WaitingDoubling,
    doubling,
    masoudian_2024,
)
from belated.baselines.doubling_epochs import Epoch
from belated.baselines.seeds import Seeds, generator_of
from belated.bounds import clip
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.learner.decisions import as_round
from belated.tunings import Tsallis, outstanding_counts
from tests.support.bandits import coins, play_known, random_delays, regret
from tests.support.catalogue import BASELINES, NOT_LEARNING, Maker
from tests.support.oracles import exact_argmin, play

every_baseline = pytest.mark.parametrize(
    "make", [*BASELINES.values(), *NOT_LEARNING.values()], ids=[*BASELINES.keys(), *NOT_LEARNING.keys()]
)


class Recorder:
    """A base that draws the arms in turn and records what it is told."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms, self.round = n_arms, 0
        self.told: list[tuple[int, float]] = []

    @property
    def outstanding(self) -> int:
        return self.round - len(self.told)

    def ask(self) -> Decision:
        self.round += 1
        return Decision(self.round, self.round % self.n_arms, 1 / self.n_arms)

    def tell(self, decision: Decision | int, loss: float) -> None:
        assert 0 <= loss <= 1
        self.told.append((as_round(decision), loss))

    def distribution(self) -> Floats:
        return np.full(self.n_arms, 1 / self.n_arms)


# --- all of them


@every_baseline
def test_the_distribution_is_that_of_the_coming_draw_and_looking_changes_nothing(make: Maker) -> None:
    looked, blind = make(4, 9), make(4, 9)
    for t in range(1, 250):
        x = looked.distribution()  # type: ignore[attr-defined]
        assert x.shape == (4,)
        assert x.min() >= 0
        assert x.sum() == pytest.approx(1)
        decision = looked.ask()
        assert decision == blind.ask()
        assert decision.probability == pytest.approx(x[decision.arm], rel=1e-12)
        assert looked.round == t  # type: ignore[attr-defined]
        for s in {t - 3, t - 3 - t % 2} if t > 4 and t % 5 else ():
            for learner in (looked, blind):
                try:
                    learner.tell(s, (s % 4) / 4)
                except DuplicateReport:
                    continue
    assert looked.outstanding == blind.outstanding > 0


@every_baseline
@pytest.mark.parametrize(
    ("round", "loss"),
    [
        (1, -0.1),
        (1, math.nan),
        (1, "0.5"),
        (1, 2),
        ("1", 0.5),
        (True, 0.5),
        (np.int64(-3), 0.5),
        (0, 0.5),
        (9, 0.5),
        (4, 0.5),
    ],
)
def test_refusals_have_the_words_of_ftrl(make: Maker, round: int, loss: float) -> None:
    errors = []
    for learner in (FTRL(3, seed=1), make(3, 1)):
        with pytest.raises(UnknownRound, match="Rounds so far: none"):
            learner.tell(1, 0.5)
        for _ in range(8):
            learner.ask()
        learner.tell(4, 0.5)
        with pytest.raises(BelatedError) as caught:
            learner.tell(round, loss)
        errors.append((type(caught.value), str(caught.value)))
        assert learner.outstanding == 7
    assert errors[0] == errors[1]


@every_baseline
def test_settings_are_checked(make: Maker) -> None:
    for n_arms in (0, -1, 2.0, "3"):
        with pytest.raises(InvalidInput, match="n_arms"):
            make(n_arms, 1)  # type: ignore[arg-type]
    for seed in (-1, 0.5, "1"):
        with pytest.raises(InvalidInput, match="seed"):
            make(3, seed)  # type: ignore[arg-type]


def test_other_settings_are_checked() -> None:
    for attempt in (
        lambda: OneArm(3, 3),
        lambda: OneArm(3, -1),
        lambda: Skipper(3, 0),
        lambda: Skipper(3, 5).ask(-1),
        lambda: Doubling(3).ask(1.5),  # type: ignore[arg-type]
        lambda: Doubling(3).distribution(-1),
        lambda: Composite(3, 1),
        lambda: BOLD(3, Tsallis()),  # type: ignore[arg-type]
        lambda: TsallisReducedVariance(3, paper_rates=1),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput):
            attempt()


# --- uniform random, one arm


def test_uniform_random_is_uniform() -> None:
    learner = UniformRandom(4, seed=3)
    counts = np.bincount([learner.ask().arm for _ in range(4000)], minlength=4)
    assert ((counts - 1000) ** 2 / 1000).sum() < 16.3  # chi-squared, 3 degrees of freedom, 0.1%


def test_one_arm_has_no_regret_if_it_is_the_best() -> None:
    losses = coins(200, (0.7, 0.2, 0.5), 1)
    assert regret(play(OneArm(3, 1), [0] * 200, losses), losses) == 0


# --- Tsallis-INF with reduced variance


@pytest.mark.parametrize("paper_rates", [False, True])
def test_reduced_variance_is_the_formula(paper_rates: bool) -> None:
    scale, threshold = (0.5, 16) if paper_rates else (1, 1)
    n, k = 150, 3
    learner, losses = TsallisReducedVariance(k, paper_rates=paper_rates, seed=4), coins(n, (0.1, 0.6, 0.9), 4)
    total, arrivals, centred, negative = np.zeros(k), deque[Floats](), 0, False
    arms: list[int] = []
    for t in range(1, n + 1):
        x = np.array([float(value) for value in exact_argmin(total.tolist(), scale * math.sqrt(t), 0.0, 20)])
        np.testing.assert_allclose(learner.distribution(), x, rtol=1e-9)
        arms.append(learner.ask().arm)
        drawn = np.arange(k) == arms[-1]
        centre = 0.5 * (x >= threshold / t)
        arrivals.append(drawn * (losses[t - 1] - centre) / x + centre)
        centred += int((centre > 0).sum())
        if t > 2:  # a delay of 2
            total += arrivals.popleft()
            learner.tell(t - 2, losses[t - 3, arms[t - 3]])
        negative |= bool(total.min() < 0)
    assert 0 < centred < n * k  # both kinds of estimate
    assert negative  # and the least estimate is not 0


def test_reduced_variance_estimates_are_unbiased() -> None:
    learner = TsallisReducedVariance(3, seed=1)
    for t in range(1, 60):
        learner.tell(t, [0.2, 0.5, 0.9][learner.ask().arm])
    x, loss, mean = learner.distribution(), np.array([0.3, 0.4, 0.8]), np.zeros(3)
    seen: set[int] = set()
    for seed in range(200):
        twin = copy.deepcopy(learner)
        twin._policy._generator = np.random.default_rng(seed)
        arm = twin.ask().arm
        if arm not in seen:
            before = twin._policy.losses.copy()
            twin.tell(60, loss[arm])
            mean += x[arm] * (twin._policy.losses - before)
            seen.add(arm)
    assert seen == {0, 1, 2}
    np.testing.assert_allclose(mean, loss, rtol=1e-9)


# --- Delayed-UCB1


def test_delayed_ucb_plays_the_largest_index_of_what_it_has_seen() -> None:
    n, k = 400, 3
    losses, delays = coins(n, (0.3, 0.5, 0.6), 2), random_delays(n, 30, 2)
    arms = [decision.arm for decision in play(DelayedUCB1(k), delays, losses)]
    by_index = 0
    for t in range(1, n + 1):
        rewards: list[list[float]] = [[], [], []]
        for s in range(1, t):
            if s + delays[s - 1] < t:
                rewards[arms[s - 1]].append(1 - losses[s - 1, arms[s - 1]])
        if all(rewards):
            index = [sum(seen) / len(seen) + math.sqrt(2 * math.log(t) / len(seen)) for seen in rewards]
            assert index[arms[t - 1]] == pytest.approx(max(index), rel=1e-12)
            by_index += 1
        else:
            assert not rewards[arms[t - 1]]
    assert by_index > 350
    assert arms[:3] == [0, 1, 2]


# --- QPM-D


@pytest.mark.parametrize("seed", range(4))
def test_queued_is_the_paper_algorithm(seed: int) -> None:
    """QPM-D written down with the queues read at the start of a round."""
    n, k = 500, 3
    losses, delays = coins(n, (0.3, 0.5, 0.6), seed), random_delays(n, 40, seed)

    def make(k: int, seed: int) -> FTRL | DelayedUCB1:
        return DelayedUCB1(k) if seed % 2 else FTRL(k, Tsallis(), seed=seed)

    learner, base = Queued(k, make, seed=seed), make(k, Seeds(seed)[0])
    queues: list[deque[float]] = [deque() for _ in range(k)]
    pick, due, arms = base.ask(), dict[int, list[int]](), []
    for t in range(1, n + 1):
        while queues[pick.arm]:
            base.tell(pick.round, queues[pick.arm].popleft())
            pick = base.ask()
        arm = learner.ask().arm
        arms.append(arm)
        assert arm == pick.arm
        assert learner.queued[arm] == 0  # never an arm with unread feedback
        assert learner.queued == [len(queue) for queue in queues]
        due.setdefault(t + delays[t - 1], []).append(t)
        for s in due.pop(t, []):
            queues[arms[s - 1]].append(losses[s - 1, arms[s - 1]])
            learner.tell(s, losses[s - 1, arms[s - 1]])
    assert sum(learner.queued) > 0


# --- Thompson sampling


@pytest.mark.parametrize("fractional", [False, True])
def test_thompson_is_the_paper_algorithm(fractional: bool) -> None:
    """The pseudo-code for losses, with Algorithm 2 of Chapelle & Li for coins and of Agrawal & Goyal for fractions."""
    n, k, seed = 400, 3, 6
    losses, delays = coins(n, (0.3, 0.5, 0.6), seed), random_delays(n, 30, seed)
    if fractional:
        losses = 0.8 * losses + 0.1
    learner = ThompsonSampling(k, seed=seed)
    decisions = play(learner, delays, losses)
    generator, failures, successes = np.random.default_rng(seed), [0] * k, [0] * k
    arms: list[int] = []
    for t in range(1, n + 1):
        theta = [generator.beta(failures[i] + 1, successes[i] + 1) for i in range(k)]
        arms.append(theta.index(min(theta)))
        for s in range(1, t + 1):
            if s + delays[s - 1] == t:
                loss = losses[s - 1, arms[s - 1]]
                if (generator.random() < loss) if fractional else (loss == 1):
                    failures[arms[s - 1]] += 1
                else:
                    successes[arms[s - 1]] += 1
    assert decisions == [Decision(t, arm, 1.0) for t, arm in enumerate(arms, 1)]
    assert (np.array(learner.posterior()) - 1).tolist() == [failures, successes]
    assert sum(failures) + sum(successes) == n - learner.outstanding < n


def test_thompson_counts_the_observed_rounds_in_any_order() -> None:
    learner = ThompsonSampling(3, seed=1)
    arms = [learner.ask().arm for _ in range(40)]
    late = copy.deepcopy(learner)
    told = np.random.default_rng(1).permutation(40)[:25].tolist()
    for order, twin in ((told, learner), (told[::-1], late)):
        for s in order:
            twin.tell(s + 1, s % 2)
        ones, zeros = ([sum(arms[s] == i and s % 2 == loss for s in told) for i in range(3)] for loss in (1, 0))
        assert np.array(twin.posterior()).tolist() == [[1 + count for count in ones], [1 + count for count in zeros]]
        assert twin.outstanding == 15
    assert learner.ask() == late.ask()  # whole losses need no coin


@pytest.mark.parametrize("loss", [0.02, 0.3, 0.75])
def test_thompson_coins_have_the_mean_of_the_loss(loss: float) -> None:
    learner, n = ThompsonSampling(1, seed=2), 5000
    for _ in range(n):
        learner.tell(learner.ask(), loss)
    (a,), (b,) = learner.posterior()
    assert a + b == n + 2
    assert abs(a - 1 - n * loss) < 4 * math.sqrt(n * loss * (1 - loss))


def test_thompson_plays_each_arm_as_often_as_it_is_the_best() -> None:
    """P(theta_i is the least) = integral of f_i times the product of 1 - F_j over j != i, on a fine grid."""
    learner, n, x = ThompsonSampling(3, seed=3), 5000, (np.arange(20_000) + 0.5) / 20_000
    for _ in range(20):
        decision = learner.ask()
        learner.tell(decision, decision.round % (decision.arm + 2) == 0)
    density = np.array([x ** (a - 1) * (1 - x) ** (b - 1) for a, b in zip(*learner.posterior(), strict=True)])
    density /= density.sum(axis=1, keepdims=True)
    above = 1 - density.cumsum(axis=1) + density / 2
    best = np.array([(density[i] * np.delete(above, i, axis=0).prod(axis=0)).sum() for i in range(3)])
    assert best.sum() == pytest.approx(1, abs=1e-6)
    assert best.min() > 0.02
    counts = np.bincount([learner.ask().arm for _ in range(n)], minlength=3)
    assert ((counts - n * best) ** 2 / (n * best)).sum() < 13.8  # chi-squared, 2 degrees of freedom, 0.1%


def test_thompson_looks_ahead_without_a_trace() -> None:
    looked, blind = ThompsonSampling(4, seed=4), ThompsonSampling(4, seed=4)
    changed = 0
    for t in range(1, 200):
        before = looked.distribution()
        for learner in (looked, blind):
            if t > 5:
                learner.tell(t - 5, 0.4)
        after = looked.distribution()
        changed += bool((after != before).any())
        decision = looked.ask()
        assert decision == blind.ask()
        assert after[decision.arm] == 1
    assert changed > 20  # the coming arm knows the last report


def test_the_expected_loss_of_thompson_is_that_of_the_arm_it_plays() -> None:
    problem = lab.Problem(lab.Sine(), lab.Geometric(5), n_arms=3, n_rounds=300)
    curves = lab.play("thompson", problem, range(2))
    np.testing.assert_array_equal(curves.expected, curves.suffered)


# --- BOLD


def test_bold_has_as_many_instances_as_were_ever_missing_and_one() -> None:
    for seed, longest in ((0, 0), (1, 3), (2, 50)):
        delays = random_delays(300, longest, seed)
        learner = BOLD(3, seed=seed)
        play(learner, delays, coins(300, (0.2, 0.5, 0.8), seed))
        assert learner.instances == outstanding_counts(clip(delays)).max() + 1


def test_bold_is_its_base_without_delays_and_interleaved_bases_with_a_fixed_delay() -> None:
    losses = coins(300, (0.2, 0.5, 0.8), 1)
    decisions = play(BOLD(3, seed=5), [2] * 300, losses)
    for lane in range(3):  # instance i has rounds i, i + 3, ... to itself, and its feedback in time
        base = FTRL(3, Tsallis(), seed=Seeds(5)[lane])
        own = play(base, [0] * 100, losses[lane::3])
        assert [decision[1:] for decision in own] == [decision[1:] for decision in decisions[lane::3]]


# --- Skipper


def test_skipper_keeps_long_delays_from_the_base() -> None:
    base = Recorder(3)
    learner = Skipper(3, 4, lambda *_: base, seed=1)
    delays = random_delays(100, 8, 1)
    play_known(learner, delays, np.tile([0.0, 0.5, 1.0], (100, 1)))
    kept = [t for t, delay in enumerate(delays, 1) if delay < 4]
    assert learner.skipped == 100 - len(kept) > 0
    assert base.round == len(kept)
    arrived = sorted((t + delays[t - 1], t) for t in kept if t + delays[t - 1] <= 100)
    assert [round for round, _ in base.told] == [kept.index(t) + 1 for _, t in arrived]
    assert [loss for _, loss in base.told] == [(round % 3) / 2 for round, _ in base.told]


# --- doubling


def literal_epochs(k: int, delays: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """(w, len, |S|, D_beta) of TCS19 in every round, with every sum computed from the definition."""
    w, start, rows = 0, 1, []
    for t in range(1, len(delays) + 1):
        while True:
            beta = math.sqrt(2**w) / (4 * math.e * math.log(k))
            inside = delays[start - 1 : t]
            kept = [delay for delay in inside if delay < beta]
            skipped = len(inside) - len(kept)
            if max(skipped**2, (math.e * k * len(inside) / 2 + sum(kept)) * math.log(k)) <= 2**w:
                break
            w, start = w + 1, t
        rows.append((w, len(inside), skipped, sum(kept)))
    return rows


def literal_waiting_epochs(k: int, delays: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The same with the waiting time instead of the delay, computed from the definition."""
    w, start, rows = 0, 1, []
    for t in range(1, len(delays) + 1):
        while True:
            beta = math.sqrt(2**w) / (4 * math.e * math.log(k))
            out = [(u, s) for u in range(start, t + 1) for s in range(start, u) if s + delays[s - 1] >= u]
            skipped = {s for u, s in out if u - s >= beta}
            waited = sum(u - s < beta for u, s in out)
            length = t - start + 1
            if max(len(skipped) ** 2, (math.e * k * length / 2 + waited) * math.log(k)) <= 2**w:
                break
            w, start = w + 1, t
        rows.append((w, length, len(skipped), waited))
    return rows


@pytest.mark.parametrize(("k", "longest"), [(2, 0), (2, 3), (2, 40), (5, 40), (30, 2)])
def test_doubling_epochs_are_the_definition(k: int, longest: int) -> None:
    delays = random_delays(150, longest, 7)
    known, waiting = Doubling(k, seed=1), WaitingDoubling(k, seed=1)
    seen: dict[str, list[Epoch]] = {"known": [], "waiting": []}
    due: dict[int, list[int]] = {}
    for t, delay in enumerate(delays, 1):
        known.ask(delay)
        waiting.ask()
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            known.tell(s, 0.5)
            waiting.tell(s, 0.5)
        seen["known"].append(known.epoch)
        seen["waiting"].append(waiting.epoch)
    assert [epoch[1:] for epoch in seen["known"]] == literal_epochs(k, delays)
    assert [epoch[1:] for epoch in seen["waiting"]] == literal_waiting_epochs(k, delays)
    assert known.epoch.w > 4
    for learner, kind in ((known, "known"), (waiting, "waiting")):
        last = [a for a, b in pairwise(seen[kind]) if b.w > a.w] + [seen[kind][-1]]  # each epoch at its end
        lk = math.log(k)
        charges = [
            e.skipped + math.sqrt(2**e.w) + lk / math.sqrt(2**e.w) * (k * e.length / 2 + e.backlog / 4) for e in last
        ]
        assert all(charge <= 3 * math.sqrt(2**e.w) + 1e-9 for charge, e in zip(charges, last, strict=True))
        assert learner.charged == pytest.approx(sum(charges))
        assert doubling.bound(k, delays, known=kind == "known") == pytest.approx(sum(charges))


def test_doubling_learns_within_an_epoch_and_forgets_with_it() -> None:
    k = 2
    learner = Doubling(k, seed=1)
    while learner.epoch.w < 10:
        learner.ask()
    first = learner.round
    assert learner.ask(10**6).round == first + 1  # beta = 32 / (4 e ln 2) = 4.2: skipped
    learner.tell(first + 1, 1.0)
    np.testing.assert_allclose(learner.distribution(), 0.5, rtol=1e-12)
    learner.tell(first - 1, 1.0)  # of an older epoch
    np.testing.assert_allclose(learner.distribution(), 0.5, rtol=1e-12)
    decision = learner.ask(4)
    learner.tell(decision.round, 1.0)
    weight = math.exp(-math.log(2) / 32 * 1.0 / decision.probability)
    assert learner.distribution()[decision.arm] == pytest.approx(weight / (1 + weight))
    while learner.epoch.w < 11:
        learner.ask()
    np.testing.assert_allclose(learner.distribution(), 0.5, rtol=1e-12)


def test_waiting_doubling_drops_what_it_no_longer_waits_for() -> None:
    learner = WaitingDoubling(2, seed=1)
    while learner.epoch.w < 10:
        learner.tell(learner.ask().round, 0.0)
    first = learner.ask().round
    for _ in range(4):  # ages 1 to 4 are below beta = 4.2
        learner.tell(learner.ask().round, 0.0)
    assert learner.epoch.skipped == 0
    early, late = copy.deepcopy(learner), learner
    early.tell(first, 1.0)
    assert abs(early.distribution()[0] - 0.5) > 0.01
    late.tell(late.ask().round, 0.0)
    assert late.epoch.skipped == 1
    late.tell(first, 1.0)
    np.testing.assert_allclose(late.distribution(), 0.5, rtol=1e-12)


def test_bzcbb_epochs_are_the_definition() -> None:
    n, k = 400, 3
    delays = random_delays(n, 12, 3)
    missing = np.cumsum(outstanding_counts(clip(delays)) + 1)
    learner, due, epochs = BZCBBDoubling(k, seed=1), dict[int, list[int]](), []
    for t, delay in enumerate(delays, 1):
        before = learner.epoch
        fresh = math.floor(math.log2(missing[t - 1])) + 1 > before
        if fresh:
            np.testing.assert_allclose(learner.distribution(), 1 / 3)
        arm, probability = learner.ask()[1:]
        epochs.append(learner.epoch)
        due.setdefault(t + delay, []).append(t)
        for s in due.pop(t, []):
            x = learner.distribution()
            learner.tell(s, 1.0)
            assert (epochs[s - 1] == epochs[-1]) or (learner.distribution() == x).all()  # older samples are dropped
        if fresh and delay == 0:  # the first step of an epoch shows its rate
            step = math.exp(-math.sqrt(math.log(3) / 2 ** epochs[-1]) / probability)
            if learner._coming().bit_length() == epochs[-1]:
                assert learner.distribution()[arm] == pytest.approx(step / (step + 2))
    assert epochs == [math.floor(math.log2(total)) + 1 for total in missing]
    assert [2 ** (e - 1) <= m < 2**e for e, m in zip(epochs, missing, strict=True)] == [True] * n


# --- composite anonymous feedback


@pytest.mark.parametrize("d", [2, 5])
def test_composite_updates_by_the_schedule_with_the_sum(d: int) -> None:
    n, k = 600, 3
    base = Recorder(k)
    learner = Composite(k, d, lambda *_: base, seed=8)
    losses, delays = np.random.default_rng(8).random((n, k)), random_delays(n, d - 1, 8)
    arms = [decision.arm for decision in play(learner, delays, losses)]
    totals = [0.0] * (n + 1)
    for t, delay in enumerate(delays, 1):
        if t + delay <= n:
            totals[t + delay] += losses[t - 1, arms[t - 1]]
    generator, last = generator_of(Seeds(8)[1]), 0
    expected: list[tuple[int, float]] = []
    for t in range(1, n):
        update = generator.random() < 1 / (2 * (2 * d - 1)) and t - last >= 2 * d - 1
        if update:
            expected.append((len(expected) + 1, sum(totals[t - d + 1 : t + 1]) / (2 * d)))
            own = [losses[s - 1, arms[t - 1]] for s in range(t - 2 * d + 2, t + 1)]
            assert expected[-1][1] <= sum(own) / (2 * d) + 1e-12  # made of this arm's losses alone
            last = t
        else:
            assert arms[t] == arms[t - 1]
    assert [round for round, _ in base.told] == [round for round, _ in expected]
    np.testing.assert_allclose([loss for _, loss in base.told], [loss for _, loss in expected], rtol=1e-12)
    assert learner.updates == len(expected) > n / (9 * d)
    assert all(b - a >= 2 * d - 1 for a, b in pairwise(np.flatnonzero(np.diff(arms)).tolist()))


def test_composite_uses_the_sum_only() -> None:
    """The same totals, reported under other rounds, give the same decisions."""
    one, other = Composite(3, 4, seed=2), Composite(3, 4, seed=2)
    assert Composite.feedback == "sum"
    for t in range(1, 300):
        assert one.ask() == other.ask()
        if t % 2 == 0:
            one.tell(t, 0.75)
            one.tell(t - 1, 0.25)
            other.tell(t - 1, 0.5)
            other.tell(t, 0.5)
    assert one.updates > 10


# --- SOLID


def test_solid_is_hedge() -> None:
    k = 4
    for delay in (0, 3):
        learner, losses = SOLID(k, seed=1), np.random.default_rng(1).random((200, k))
        work = 0
        for t in range(1, 201):
            known = max(0, t - 1 - delay)
            work += 1 + 2 * (t - 1 - known)
            weights = np.exp(-math.sqrt(math.log(k) / work) * losses[:known].sum(axis=0))
            np.testing.assert_allclose(learner.distribution(), weights / weights.sum(), rtol=1e-10)
            assert learner.ask().round == t
            if t > delay:
                learner.tell_vector(t - delay, losses[t - delay - 1])
        assert learner.outstanding == delay
        if delay == 0:
            assert work == 200  # eta_t = sqrt(ln k / t)


def test_solid_refuses_what_is_no_vector_of_losses() -> None:
    learner = SOLID(3, seed=1)
    assert (SOLID.feedback, learner.n_arms) == ("vector", 3)
    for _ in range(3):
        learner.ask()
    learner.tell_vector(2, [0, 1, True])
    x = learner.distribution()
    with pytest.raises(InvalidInput, match="all arms"):
        learner.tell(1, 0.5)
    for losses in (0.5, [0.5, 0.5], [0, 0, 1.1], [0, 0, math.nan], ["0", "0", "0"], [[0], [0, 1], 0], None):
        with pytest.raises(InvalidInput, match="3 numbers from 0 to 1"):
            learner.tell_vector(1, losses)  # type: ignore[arg-type]
    for round, error in ((0, UnknownRound), (4, UnknownRound), (2, DuplicateReport), (1.0, InvalidInput)):
        with pytest.raises(error):
            learner.tell_vector(round, [0, 0, 0])  # type: ignore[arg-type]
    assert learner.outstanding == 2
    assert (learner.distribution() == x).all()
    assert copy.deepcopy(learner).ask() == learner.ask()
    assert SOLID(1, seed=1).ask() == Decision(1, 0, 1.0)


# --- Masoudian, Zimmert, Seldin 2024


@pytest.mark.parametrize(("k", "seed"), [(2, 1)])  # tests/system has more arms
def test_masoudian_is_the_paper_algorithm(k: int, seed: int) -> None:
    """The definition in quadratic time, which sums over all earlier rounds in every round."""
    n = 400
    rng = np.random.default_rng(seed)
    delays, losses = np.where(rng.random(n) < 0.1, 40, rng.integers(0, 4, n)).tolist(), rng.random((n, k))
    learner = Masoudian2024(k, seed=seed)
    counts = dict.fromkeys(range(1, n + 1), True)
    backlog: list[int] = [0]
    decisions: list[Decision] = []
    estimates, lk, damped, dropped, total = np.zeros(k), math.log(k), 0, 0, 0
    for t in range(1, n + 1):
        total += sum(counts[s] for s in range(1, t) if s + delays[s - 1] >= t)
        backlog.append(total)
        for s in range(1, t):
            if s + delays[s - 1] >= t and t - s > math.sqrt(total / (49 * k ** (2 / 3) * lk)):
                counts[s] = False
        if t % 25 == 0:
            x = exact_argmin(estimates.tolist(), math.sqrt(t), 7 * math.sqrt(total / lk), 20)
            np.testing.assert_allclose(learner.distribution(), [float(value) for value in x], rtol=1e-9)
        decisions.append(learner.ask())
        assert learner.backlog == total
        for s in range(1, t + 1):
            if s + delays[s - 1] != t:
                continue
            arm, probability = decisions[s - 1][1:]
            learner.tell(s, losses[s - 1, arm])
            if not counts[s]:
                dropped += 1
                continue
            gained = backlog[t] - backlog[s]
            exploration = math.exp(-backlog[t] / gained) if gained else 0.0
            assert masoudian_2024.implicit_exploration(backlog[s], backlog[t]) == pytest.approx(exploration, abs=0)
            assert exploration <= math.exp(-24.5 * k ** (2 / 3) * lk)
            damped += exploration > 0
            estimates[arm] += losses[s - 1, arm] / max(probability, exploration)
        np.testing.assert_allclose(learner.estimated_losses, estimates, rtol=1e-12)
    assert dropped > 20
    assert damped > 20


def test_masoudian_explores_implicitly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert masoudian_2024.implicit_exploration(0, 5) == pytest.approx(math.exp(-1))
    assert masoudian_2024.implicit_exploration(3, 3) == 0
    assert masoudian_2024.implicit_exploration(90, 100) == pytest.approx(math.exp(-10))
    learner = Masoudian2024(100, seed=1)  # x = 1/100 < lambda = 1/e
    first = learner.ask()
    learner.ask()  # D_2 = 1; the skip of round 1 comes in this very round, and drops it
    learner.tell(first.round, 1.0)
    assert learner.estimated_losses.sum() == 0
    for exploration, estimate in ((0.6, 1 / 0.6), (0.2, 2.0)):  # x = 1/2
        monkeypatch.setattr(masoudian_2024, "implicit_exploration", lambda *_, value=exploration: value)
        learner = Masoudian2024(2, seed=1)
        learner.tell(learner.ask().round, 1.0)
        assert learner.estimated_losses.sum() == pytest.approx(estimate)


# --- what the contract's short game does not show


@pytest.mark.parametrize("name", ["bold", "bzcbb doubling", "masoudian 2024"])
def test_the_slow_ones_learn_too(name: str) -> None:
    n = {"bold": 1000, "bzcbb doubling": 2900, "masoudian 2024": 8000}[name]  # bzcbb restarts at D + n = 2^15
    losses = np.tile([0.9, 0.1, 0.9], (n, 1))
    arms = [decision.arm for decision in play(NOT_LEARNING[name](3, 5), [10] * n, losses)]
    assert np.mean(np.array(arms[-300:]) == 1) > 0.6
