"""The sums of an Evidence against brute force over all decisions."""

import copy
import math

import msgspec
import numpy as np
import pytest

from belated.errors import InvalidInput
from belated.verdicts import Evidence
from belated.verdicts.mixture import RATES, log_evidence
from belated.verdicts.verdict import against_all, tabulate
from tests.support.evidence import Everything, log_mixture


def play(seed: int, n: int, k: int, *, changes: bool = False, unknown: float = 0.0) -> Everything:
    """A game with wild distributions, random outcomes, delays, amendments and lost reports."""
    rng = np.random.default_rng(seed)
    game = Everything(Evidence.new(k), list(range(k)))
    n_arms, position = k, 0
    scores = np.zeros(k)
    for _ in range(n):
        if changes and rng.random() < 0.04:
            n_arms += int(rng.random() < 0.5)
            active = sorted(rng.choice(n_arms, max(2, n_arms - 2), replace=False).tolist())
            game.change_arms(active, n_arms)
            scores = np.zeros(n_arms)
        scores += rng.normal(0, 0.4, n_arms)
        x = np.exp(scores[game.active])
        x /= x.sum()
        distribution = dict(zip(game.active, x.tolist(), strict=True))
        arm = int(rng.choice(game.active, p=x))
        position += int(rng.integers(1, 4))
        game.decide(position, arm, {} if rng.random() < unknown else distribution, distribution[arm])
        for one in game.decisions:
            if (one.outcome is None and rng.random() < 0.15) or (one.outcome is not None and rng.random() < 0.005):
                game.report(one.position, float(rng.choice([0.0, 1.0, rng.random()])))
    return game


Game = tuple[int, int, int, bool, float]
GAMES: list[Game] = [
    (1, 60, 2, False, 0.0),
    (2, 90, 3, False, 0.2),
    (3, 120, 4, True, 0.1),
    (4, 250, 2, True, 0.3),
    (5, 160, 20, False, 0.1),
]


@pytest.mark.parametrize("game", GAMES)
def test_the_evidence_of_every_pair_is_that_of_brute_force(game: Game) -> None:
    everything = play(*game[:3], changes=game[3], unknown=game[4])
    evidence, active = everything.evidence, everything.active
    assert any(one.outcome is None for one in everything.decisions)
    assert any(one.distribution and not one.is_counted for one in everything.decisions) == (game[2] == 20)
    table = tabulate(evidence, np.array(active))
    for place, i in enumerate(active):
        pairs = against_all(table, place)
        lead = log_evidence(pairs.lead)
        lag = log_evidence(pairs.lag)
        for at, j in enumerate(active):
            if i == j:
                continue
            ahead, behind = everything.better(i, j), everything.better(j, i)
            if ahead.size == 0:
                assert pairs.sizes[at] == 0
                continue
            assert lead[at] == pytest.approx(log_mixture(ahead.exponents), abs=1e-9)
            assert lag[at] == pytest.approx(log_mixture(behind.exponents), abs=1e-9)
            assert pairs.lead.bound[at] == pytest.approx(ahead.bound)
            assert pairs.sizes[at] == pytest.approx(ahead.size)


@pytest.mark.parametrize("game", GAMES)
def test_a_limit_is_where_the_evidence_reaches_its_level(game: Game) -> None:
    everything = play(*game[:3], changes=game[3], unknown=game[4])
    evidence = everything.evidence
    k, low_level = evidence.n_arms, math.log(evidence.n_arms / 0.2)
    high_level = math.log(
        k * (k - 1) / 0.2
    )  # over all leaders of an arm, both ends fail with 0.2 (k - 1) / k + 0.2 / k
    verdict = evidence.verdict(0.8)
    assert verdict.leader is not None
    for one in verdict.comparisons:
        ahead, behind = everything.better(verdict.leader, one.arm), everything.better(one.arm, verdict.leader)
        for sums, limit, level in ((ahead, one.low, low_level), (behind, -one.high, high_level)):
            if abs(limit) < 1:
                moved = [e - rate * limit * sums.size for e, rate in zip(sums.exponents, RATES, strict=True)]
                assert log_mixture(moved) == pytest.approx(level, abs=1e-6)
        assert one.sure == pytest.approx(max(0.0, 1 - evidence.n_arms * math.exp(-log_mixture(ahead.exponents))))


@pytest.mark.parametrize("game", GAMES)
def test_the_interval_of_every_mean_is_that_of_brute_force(game: Game) -> None:
    everything = play(*game[:3], changes=game[3], unknown=game[4])
    checked = 0
    for arm, interval in enumerate(everything.evidence.means(0.8)):
        own = [one for one in everything.decisions if one.arm == arm]
        known = [one.outcome for one in own if one.outcome is not None]
        if interval is None:
            assert not known
            continue
        assert (interval.known, interval.open) == (len(known), len(own) - len(known))
        assert interval.mean == pytest.approx(np.mean(known))
        for limit, is_flipped in ((interval.low, False), (1 - interval.high, True)):
            sums = everything.mean(arm, is_flipped=is_flipped)
            middles = sum((1 - one.mean) if is_flipped else one.mean for one in own)
            moved = [e + rate * (middles - limit * len(own)) for e, rate in zip(sums.exponents, RATES, strict=True)]
            if 0 < limit < 1:
                assert log_mixture(moved) == pytest.approx(math.log(2 / 0.2), abs=1e-6)
                checked += 1
    assert checked or game[1] < 250


def test_the_swing_is_what_open_decisions_can_change() -> None:
    game = play(8, 100, 2)
    [one] = game.evidence.verdict().comparisons
    leader = game.evidence.verdict().leader
    assert leader is not None
    firsts = []
    for kind in (0.0, 1.0):  # all open ones are good for the leader and bad for the other, and the other way round
        end = copy.deepcopy(game)
        for waiting in [each for each in game.decisions if each.outcome is None]:
            end.report(waiting.position, kind if waiting.arm == leader else 1 - kind)
        pairs = against_all(tabulate(end.evidence, np.arange(2)), leader)
        firsts.append(pairs.lead.first[1 - leader] / pairs.sizes[1 - leader])
        assert end.evidence.verdict().comparisons[0].swing == pytest.approx(0, abs=1e-12)
    assert 0 < one.swing < 2
    assert one.swing == pytest.approx(firsts[0] - firsts[1])


@pytest.mark.parametrize(("k", "spread", "longest"), [(40, 2.0, 12), (3, 0.3, 400)])
def test_a_batch_may_be_split_anywhere(k: int, spread: float, longest: int) -> None:
    rng = np.random.default_rng(5)
    whole, split = Evidence.new(k), Evidence.new(k)
    position, x = 0, np.full(k, 1 / k)
    for _ in range(160):
        x = x**0.8 * np.exp(rng.normal(0, spread, k))
        x /= x.sum()
        size, cut = rng.integers(1, longest, 2).tolist()
        positions, arms = list(range(position, position + size)), rng.choice(k, size, p=x).tolist()
        chances = [x[arm] for arm in arms]
        whole.decide_batch(positions, arms, chances, x)
        split.decide_batch(positions[:cut], arms[:cut], chances[:cut], x)
        split.decide_batch(positions[cut:], arms[cut:], chances[cut:], x.tolist())
        for at in rng.choice(size, size // 2, replace=False).tolist():
            for one in (whole, split):
                one.report(positions[at], arms[at], chances[at], float(at % 2))
        position += size
    assert len(whole.blocks) > 10
    assert any(block.paused is not None for block in whole.blocks) == (k == 40)
    assert whole == split


def test_a_block_may_begin_within_a_batch() -> None:
    whole, split = Evidence.new(2), Evidence.new(2)
    positions = range(60, 3060)
    for one in (whole, split):
        for position in range(60):
            one.decide(position, 1, *((0.5, (0.5, 0.5)) if position % 2 else (0.9, (0.1, 0.9))))
    whole.decide_batch(positions, [1] * 3000, [0.625] * 3000, (0.375, 0.625))
    for position in positions:
        split.decide(position, 1, 0.625, (0.375, 0.625))
    assert whole == split
    assert 60 < whole.blocks[-1].first < 3060
    assert [0.75, 1.0] in [block.lowest for block in whole.blocks]


def test_amending_is_the_same_as_having_known_before() -> None:
    first, second = Evidence.new(2), Evidence.new(2)
    for one, early in ((first, 1.0), (second, 0.25)):
        for position in range(40):
            one.decide(position, position % 2, 0.5, (0.5, 0.5) if position != 7 else None)
        for position in range(30):
            one.report(position, position % 2, 0.5, early if position in (3, 7) else 0.5)
    for position in (3, 7):
        first.amend(position, 1, 0.5, 1.0, 0.25)
    assert first.verdict() == second.verdict()
    assert first.means() == second.means()


def test_it_survives_being_stored() -> None:
    game = play(3, 120, 4, changes=True, unknown=0.2)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(msgspec.to_builtins(game.evidence)))
    back = msgspec.convert(stored, Evidence)
    assert back == game.evidence
    assert back.verdict() == game.evidence.verdict()


def test_nothing_is_left_of_the_open_sums_when_nothing_is_open() -> None:
    game = play(6, 200, 3)
    for one in game.decisions:
        if one.outcome is None:
            game.report(one.position, 0.3)
    for block in game.evidence.blocks:
        assert block.open_weights == block.open_squares == block.open_cubes == [0.0] * 3


def test_decisions_from_unknown_distributions_count_for_means_only() -> None:
    evidence = Evidence.new(2)
    evidence.decide(1, 0, 0.7, None)
    evidence.decide(2, 1, 0.4, None)
    evidence.decide(3, 1, 0.5, [0.5, 0.5])
    evidence.decide(4, 0, 0.4, None)
    for position, arm, chance in ((1, 0, 0.7), (2, 1, 0.4), (3, 1, 0.5), (4, 0, 0.4)):
        evidence.report(position, arm, chance, 1.0)
    assert evidence.verdict().left_out == 3
    assert [one and one.known for one in evidence.means()] == [2, 2]
    assert sum(sum(block.weights) for block in evidence.blocks) == 1
    assert (evidence.gap_starts, evidence.gap_ends) == ([1, 4], [2, 4])


def test_few_blocks_remain_however_wild_the_distribution() -> None:
    rng = np.random.default_rng(7)
    for k in (2, 50):
        evidence = Evidence.new(k)
        for position in range(20_000):
            x = rng.dirichlet([0.3] * k) * 0.999 + 0.001 / k
            arm = int(rng.choice(k, p=x))
            evidence.decide(position, arm, x[arm], x)
        room = max(16, 320 // k)
        assert 20 < len(evidence.blocks) <= room * (1 + math.log(1 + 20_000 / room))


def test_a_verdict_needs_two_arms_and_an_outcome() -> None:
    evidence = Evidence.new(1)
    evidence.decide(1, 0, 1.0, [1.0])
    evidence.report(1, 0, 1.0, 0.0)
    assert evidence.verdict().leader is None
    evidence.change_arms([0, 1], 2)
    assert evidence.verdict().leader == 0
    assert evidence.verdict().comparisons[0][2:] == (-1.0, 1.0, 0.0, 0.0)
    empty = Evidence.new(3).verdict()
    assert (empty.leader, empty.sure, empty.is_decided, empty.known, empty.open) == (None, 0.0, False, 0, 0)
    assert Evidence.new(3).means() == [None, None, None]


def test_what_is_wrong_is_refused_and_changes_nothing() -> None:
    evidence = Evidence.new(2)
    evidence.decide(5, 0, 0.5, [0.5, 0.5])
    before = copy.deepcopy(evidence)
    for call, words in (
        (lambda: evidence.decide(5, 0, 0.5, [0.5, 0.5]), "positions must increase, got 5 after 5"),
        (lambda: evidence.decide(6, 2, 0.5, [0.5, 0.5]), "arm must be from 0 to 1, got 2"),
        (lambda: evidence.decide(6, 0, 0.4, [0.5, 0.5]), "drawn with 0.4, but has 0.5"),
        (lambda: evidence.decide(6, 0, 0.5, [0.5, 0.3, 0.2]), "needs 2 probabilities, got 3"),
        (lambda: evidence.report(4, 0, 0.5, 1.0), "no decision at position 4"),
        (lambda: evidence.report(6, 0, 0.5, 1.0), "no decision at position 6"),
        (lambda: evidence.report(5, 1, 0.5, 1.0), "no decision for arm 1 is open"),
        (lambda: evidence.report(5, 0, 0.5, 1.5), "loss must be a number from 0 to 1, got 1.5"),
        (lambda: evidence.change_arms([0, 0], 2), "different arms from 0 to 1"),
        (lambda: evidence.change_arms([0, 1], 1), "n_arms must be a whole number from 2"),
        (lambda: evidence.verdict(0.2), "confidence must be a number from 0.5"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    assert evidence == before


def test_an_assumed_outcome_centres_and_is_no_evidence() -> None:
    """Successes come at once and failures late. With the default known outcomes do not mislead the centre."""
    plain, assuming = Evidence.new(2), Evidence.new(2, assumed=1.0)
    losses = (np.random.default_rng(4).random(4000) > 0.1).astype(float).tolist()
    for position, loss in enumerate(losses):
        for evidence in (plain, assuming):
            evidence.decide(position, position % 2, 0.5, [0.5, 0.5])
            if loss == 0:
                evidence.report(position, position % 2, 0.5, loss)
    assert max(block.centre for block in plain.blocks[1:]) < 0.5
    assert min(block.centre for block in assuming.blocks[5:]) > 0.8
    assert (plain.reports, plain.totals) == (assuming.reports, assuming.totals)
    for position, loss in enumerate(losses):
        for evidence in (plain, assuming):
            if loss == 1:
                evidence.report(position, position % 2, 0.5, loss)
    narrow, wide = (evidence.verdict().comparisons[0] for evidence in (assuming, plain))
    assert narrow.high - narrow.low < 0.8 * (wide.high - wide.low)


def test_silence_counts_as_what_it_is_assumed_to_be_for_the_leader() -> None:
    """Arm 0 sells rarely and dear, arm 1 often and cheap. What did not sell is not reported."""
    plain, assuming = Evidence.new(2), Evidence.new(2, assumed=1.0)
    for position in range(400):
        arm, turn = position % 2, position // 2
        for evidence in (plain, assuming):
            evidence.decide(position, arm, 0.5, [0.5, 0.5])
            if turn % (10 if arm == 0 else 2) == 0:
                evidence.report(position, arm, 0.5, 0.5 if arm == 0 else 0.6)
    assert (plain.verdict().leader, assuming.verdict().leader) == (0, 1)
    assert not assuming.verdict().is_decided


def test_an_arm_without_outcomes_does_not_lead() -> None:
    """Not even if every known arm is worse than one of which nothing is known."""
    evidence = Evidence.new(3)
    for position in range(300):
        arm = position % 3
        evidence.decide(position, arm, 1 / 3, [1 / 3] * 3)
        if arm != 1:
            evidence.report(position, arm, 1 / 3, 0.9 if arm == 0 else 0.8)
    assert evidence.verdict().leader == 2
    evidence.change_arms([0, 1, 2, 3], 4)
    assert evidence.verdict().leader == 2
