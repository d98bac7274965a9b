"""Replicas that lag. Tests what each one knows and when, and compares copies with literal ones."""

from collections import defaultdict
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL, kernels, lab
from belated.errors import DuplicateReport, InvalidInput, UnknownRound
from belated.lab.games.compiled import Compiled, CompiledShadow
from belated.lab.games.interpreted import Driver
from belated.lab.games.replicas import Apart, OneJournal
from belated.replicated.lag import rates_of
from belated.tunings import Advanced, Means, Shadow, Simple, Tsallis, Tuning
from tests.replicated.test_shared_learner import Event, Replica, fold
from tests.support.oracles import play as play_single

TUNINGS = [Shadow(), Advanced()]
WITH_MEANS = [Means(), *TUNINGS]
DELAYS: dict[str, lab.Delays] = {
    "geometric": lab.Geometric(6.0),
    "lost": lab.Lost(0.1, 4),
    "pareto": lab.Pareto(1.0),
    "at once": lab.NoDelay(),
}


def knows(delays: list[int], deciders: tuple[int, ...], lag: int, s: int, t: int) -> bool:
    """Whether the replica that decides round t has heard the report of round s, a round at a time."""
    heard = s + delays[s]  # at the end of this round its own replica has it
    for _ in range(0 if deciders[s] == deciders[t] else lag):
        heard += 1
    return heard < t


@pytest.mark.parametrize(("replicas", "lag"), [(2, 1), (3, 2)])
def test_replicated_delays_are_what_a_replica_knows(replicas: int, lag: int) -> None:
    """All ways to distribute 6 rounds occur with the right frequency. NEVER stays NEVER."""
    given, draws = [0, 1, 0, 3, lab.NEVER, 0], 4000
    ways = list(product(range(replicas), repeat=6))
    rule = lab.Replicated(lab.GivenDelays(np.array(given)), replicas, lag)
    drawn = np.array([lab.Problem(lab.Wave(), rule, 2, 6).draw_delays(seed) for seed in range(draws)])
    for s, t in combinations(range(6), 2):
        share = np.mean([knows(given, way, lag, s, t) for way in ways])
        assert np.mean(s + drawn[:, s] < t) == pytest.approx(share, abs=4.5 * 0.5 / np.sqrt(draws)), (s, t)
    assert (drawn[:, 4] == lab.NEVER).all()
    assert {int(delay) for delay in drawn[:, 0]} == {0, lag}


def draw(rule: lab.Delays) -> NDArray[np.int64]:
    return lab.Problem(lab.Wave(), rule, 4, 500).draw_delays(3)


@pytest.mark.parametrize("rule", DELAYS.values(), ids=DELAYS)
def test_without_lag_or_others_the_delays_are_those_inside(rule: lab.Delays) -> None:
    plain = draw(rule)
    for same in (lab.Replicated(rule, 1, 50), lab.Replicated(rule, 8, 0), lab.Lagged(rule, 0)):
        np.testing.assert_array_equal(draw(same), plain)
        assert same.typical == rule.typical
    for never in (lab.Lagged(lab.Lost(1.0), 50), lab.Replicated(lab.Lost(1.0), 2, 50)):
        assert (never.draw(4, 500, np.random.default_rng(1)) == lab.NEVER).all()
    later = draw(lab.Lagged(rule, 50))
    np.testing.assert_array_equal(later, np.where(plain == lab.NEVER, lab.NEVER, plain + 50))
    mixed = draw(lab.Replicated(rule, 4, 50))
    assert ((mixed == plain) | (mixed == later)).all()
    assert np.mean(mixed[plain < lab.NEVER] != plain[plain < lab.NEVER]) == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize("tuning", WITH_MEANS, ids=repr)
@pytest.mark.parametrize("rule", [DELAYS["lost"]], ids=["lost"])
def test_without_lag_or_others_the_game_is_the_plain_one_bit_for_bit(tuning: Tuning, rule: lab.Delays) -> None:
    problem = lab.Problem(lab.Bernoulli(0.3), rule, 3, 400)
    plain = lab.certify(tuning, problem, [1, 2], checkpoints=[100])
    curves = lab.play(tuning, problem, [1, 2], checkpoints=[100])
    for replicas, lag in ((1, 30), (4, 0)):
        certified = lab.replicas.play(tuning, problem, [1, 2], replicas=replicas, lag=lag, checkpoints=[100])
        for ours, theirs in zip(certified, plain, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        apart = lab.replicas.play_apart(tuning, problem, [1, 2], replicas=replicas, lag=lag, checkpoints=[100])
        np.testing.assert_array_equal(apart.expected, curves.expected)
        np.testing.assert_array_equal(apart.suffered, curves.suffered)


def setting(seed: int, k: int = 3, n: int = 150) -> tuple[list[int], NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    delays = np.where(generator.random(n) < 0.1, lab.NEVER, generator.integers(0, 9, n))
    return delays.tolist(), generator.random((n, k))


def drawn_arm(x: NDArray[np.float64], uniform: float) -> int:
    cdf = np.empty(1)
    kernels.accumulate(x, cdf)
    return int(kernels.draw(x, cdf, uniform))


@pytest.mark.parametrize("tuning", [*WITH_MEANS, Simple()], ids=repr)
@pytest.mark.parametrize("lag", [1, 5, 40])
def test_one_journal_is_the_story_of_copies_that_fold_it(tuning: Tuning, lag: int) -> None:
    """Compares three copies, which fold only on their turn, with the one learner that represents them."""
    (delays, losses), generator = setting(lag), np.random.default_rng(lag)
    ours = OneJournal(3, tuning, seed=7, replicas=3, lag=lag)
    decisions = play_single(ours, delays, losses)

    uniforms = np.random.default_rng(7)
    copies = [Replica(3, tuning) for _ in range(3)]
    journal, due, ends = list[Event](), defaultdict[int, list[Event]](list), [0]
    for t, delay in enumerate(delays, 1):
        copy = copies[int(generator.integers(3))]
        copy.catch_up(journal, ends[max(0, t - 1 - lag)])
        x, bold_advantages, drawn = copy.shared.draw_context()
        arm = drawn_arm(x, uniforms.random())
        journal.append(Event(len(journal) + 1, copy.seen, arm, float(x[arm]), drawn, float(bold_advantages[arm])))
        due[t + delay].append(Event(0, decision=len(journal), loss=float(losses[t - 1, arm])))
        for report in due.pop(t, []):
            journal.append(report._replace(seq=len(journal) + 1))
        ends.append(len(journal))
        assert decisions[t - 1] == (t, arm, float(x[arm]))
    last = copies[0]
    fold(last.shared, [event for event in journal if event.seq > last.seen])
    assert ours.certificate() == last.shared.learner.certificate()
    assert ours.measured_certificate() == last.shared.learner.measured_certificate()
    assert ours.outstanding == last.shared.learner.outstanding


@pytest.mark.parametrize("tuning", [*WITH_MEANS, Simple()], ids=repr)
@pytest.mark.parametrize(("replicas", "lag"), [(2, 3), (3, 20)])
def test_apart_each_copy_knows_its_own_at_once_and_the_others_later(tuning: Tuning, replicas: int, lag: int) -> None:
    """A new learner decides every round again, and knows only what the deciding replica knew."""
    delays, losses = setting(lag, n=60)
    decisions = play_single(Apart(3, tuning, seed=7, replicas=replicas, lag=lag), delays, losses)
    deciders = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(2,)))
    by = [int(deciders.integers(replicas)) for _ in delays]
    for t, uniform in enumerate(np.random.default_rng(7).random(60)):
        anew = FTRL(3, tuning, seed=0)
        for u in range(t):
            anew.record(decisions[u].arm, decisions[u].probability)
            for s in range(u + 1):
                if s + delays[s] + (0 if by[s] == by[t] else lag) == u:
                    anew.tell(s + 1, float(losses[s, decisions[s].arm]))
        x = anew.distribution()
        assert decisions[t].arm == drawn_arm(x, uniform)
        assert decisions[t].probability == pytest.approx(float(x[decisions[t].arm]), rel=1e-10)


@pytest.mark.parametrize("tuning", [*TUNINGS, Simple(), Tsallis()], ids=repr)
@pytest.mark.parametrize("lag", [7])  # tests/system has the others
def test_one_journal_is_a_single_learner_that_is_told_later_and_has_older_rates(tuning: Tuning, lag: int) -> None:
    """Lag acts like delay. With its old rates, every decision equals that of the compiled game with delays d + lag."""
    delays, losses = setting(lag, k=4, n=800)
    ours = OneJournal(4, tuning, seed=7, replicas=2, lag=lag)
    problem = lab.Problem(lab.GivenLosses(losses), lab.GivenDelays(np.array(delays)), 4, 800)
    game, rates = Driver(lambda _k, _seed: ours, problem, np.array(delays), 7), []
    expected, suffered = np.empty((2, 800))
    for t in range(800):
        rates.append(rates_of(ours._look().drawn, tuning, 4))
        expected[t], suffered[t] = (values[0] for values in game.play(losses[t : t + 1]))

    assert isinstance(problem.delays, lab.Delays)
    later = lab.Problem(problem.losses, lab.Lagged(problem.delays, lag), 4, 800)
    single: Compiled | CompiledShadow
    if isinstance(tuning, Shadow):
        single = CompiledShadow(tuning, later, later.draw_delays(0), 7)
        single.allowed[:] = 1e9  # no alarm, as there
    else:
        single = Compiled(tuning, later, later.draw_delays(0), 7)
    assert not ours.whole()._state.clock["shadow"]["alarm"][0]
    usual = single.alpha.copy(), single.beta.copy()
    single.alpha[:], single.beta[:] = np.array(rates).T
    same = single.play(losses)
    np.testing.assert_array_equal(suffered, same[1])
    np.testing.assert_allclose(expected, same[0], rtol=1e-8)
    np.testing.assert_array_equal(single.alpha[lag:], usual[0][: 800 - lag])  # those of the rounds that it knows of
    assert (single.beta[lag + 1 :] >= usual[1][: 800 - lag - 1] * 0.99).all()
    assert (single.beta[lag + 100 :] <= usual[1][lag + 100 :] * 1.01).all()  # Algorithm 2 may skip a little later


@pytest.mark.parametrize("losses", [lab.Bernoulli(0.5), lab.Wave(half_period=40)], ids=["still", "wave"])
def test_both_certificates_of_means_stay_above_the_regret(losses: lab.Losses) -> None:
    """tests/system/lab has other tunings."""
    problem = lab.Problem(losses, lab.Lost(0.05, 10), 2, 600)
    played = lab.replicas.play(Means(), problem, range(4), lag=20, checkpoints=[50, 600])
    regret = played.regret.mean(axis=0)
    assert (played.proven.mean(axis=0) >= regret).all()
    assert (played.measured.mean(axis=0) >= regret).all()


@pytest.mark.parametrize("kind", [OneJournal, Apart])
def test_reports_that_cannot_be_are_refused(kind: type[OneJournal] | type[Apart]) -> None:
    learner = kind(2, Shadow(), seed=0, replicas=2, lag=3)
    learner.ask()
    learner.tell(1, 0.5)
    with pytest.raises(DuplicateReport):
        learner.tell(1, 0.5)
    with pytest.raises(UnknownRound):
        learner.tell(2, 0.5)
    learner.ask()
    with pytest.raises(InvalidInput):
        learner.tell(2, 1.5)
    assert learner.outstanding == 1


def test_settings_that_cannot_be_are_refused() -> None:
    problem = lab.Problem(lab.Sine(1500.0), lab.Geometric(3.0), 4, 1500)
    for play in (lab.replicas.play, lab.replicas.play_apart):
        with pytest.raises(InvalidInput, match="replicas must be a whole number"):
            play(Shadow(), problem, [1], replicas=0)
        with pytest.raises(InvalidInput, match="lag must be a whole number"):
            play(Shadow(), problem, [1], lag=-1)
        with pytest.raises(InvalidInput, match="tuning must be a"):
            play("shadow", problem, [1])  # type: ignore[arg-type]
