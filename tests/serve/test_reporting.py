"""Options that report at different rates are noticed, and only they."""

import math
from collections.abc import Iterator
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from belated.serve.domain.observations import EDGES
from belated.serve.domain.reporting import (
    FALSE_ALARMS,
    FEW_BLOCKS,
    LEAST,
    MOST_BLOCKS,
    SEVERAL,
    SMALLEST_BLOCK,
    TILTS,
    Block,
    Reporting,
    compare,
    evidences,
)
from belated.serve.domain.timestamps import MICROSECONDS
from tests.support.reporters import World, turned, watched

MARGINS = [(2, 1, 1), (5, 2, 3), (12, 4, 11), (20, 1, 10), (30, 25, 6), (30, 10, 29)]  # n, c, m


def law(n: int, c: int, m: int) -> dict[int, Fraction]:
    """How many of m reports among n decisions belong to c of them, if all are equally likely."""
    ways = {o: math.comb(c, o) * math.comb(n - c, m - o) for o in range(c + 1) if 0 <= m - o <= n - c}
    return {o: Fraction(number, math.comb(n, m)) for o, number in ways.items()}


def evidence(blocks: list[tuple[int, int, int, int]]) -> float:
    """The evidence against the first of two arms. A block is n, c, m, o."""
    chosen = np.array([[c, n - c] for n, c, _, _ in blocks], float).reshape(-1, 2)
    reported = np.array([[o, m - o] for _, _, m, o in blocks], float).reshape(-1, 2)
    return float(evidences(chosen, reported)[0])


@pytest.mark.parametrize(("n", "c", "m"), MARGINS)
def test_the_evidence_is_that_of_the_formula(n: int, c: int, m: int) -> None:
    """Mean and variance are summed over the whole law, in fractions."""
    chances = law(n, c, m)
    mean = sum(o * chance for o, chance in chances.items())
    variance = sum((o - mean) ** 2 * chance for o, chance in chances.items())
    for o in chances:
        terms = [math.exp(t * float(2 * (mean - o)) - (math.exp(t) - 1 - t) * float(2 * variance)) for t in TILTS]
        assert evidence([(n, c, m, o)] * 2) == pytest.approx(math.log(sum(terms) / len(terms)), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "m"), MARGINS)
def test_chance_multiplies_the_evidence_by_at_most_one(n: int, c: int, m: int) -> None:
    """By Ville's inequality this is all that a limit for any number of looks needs."""
    for before in ([], [(40, 20, 20, 5)], [(40, 20, 20, 15)]):
        average = sum(float(chance) * math.exp(evidence([*before, (n, c, m, o)])) for o, chance in law(n, c, m).items())
        assert average <= math.exp(evidence(before)) * (1 + 1e-12)


def test_the_difference_is_that_of_the_others_at_the_same_time() -> None:
    """The first arm reports a half as often in both blocks. It seems to report more often if they are mixed."""
    found = compare(np.array([[100.0, 1000.0], [1000.0, 100.0]]), np.array([[10.0, 200.0], [450.0, 90.0]]))
    assert found[0].less == pytest.approx(0.5)
    assert [one[:2] for one in found] == [(1100, 460), (1100, 290)]
    assert found[0].is_warned
    assert not found[1].is_warned


def test_a_small_difference_is_not_worth_a_warning() -> None:
    chosen = np.array([[1e6, 1e6]])
    assert not compare(chosen, np.array([[0.9e6 * (1 - LEAST + 0.001), 0.9e6]]))[0].is_warned
    assert compare(chosen, np.array([[0.9e6 * (1 - LEAST - 0.001), 0.9e6]]))[0].is_warned


@pytest.mark.parametrize(
    ("chosen", "reported"),
    [
        ([], []),
        ([[0, 0]], [[0, 0]]),
        ([[1, 0]], [[1, 0]]),
        ([[50, 50]], [[0, 0]]),
        ([[50, 0], [0, 50]], [[0, 0], [0, 50]]),
    ],
    ids=["no block", "nothing", "one decision", "no report", "never at the same time"],
)
def test_what_cannot_be_compared_is_not(chosen: list[list[int]], reported: list[list[int]]) -> None:
    shape = len(chosen), 2
    for one in compare(np.array(chosen, float).reshape(shape), np.array(reported, float).reshape(shape)):
        assert one.less is None
        assert one.evidence == pytest.approx(0)
        assert not one.is_warned


def test_many_options_need_more_evidence() -> None:
    for others in (1, 99):
        chosen = np.array([[40.0, *[40.0 / others] * others]])
        [one, *_] = compare(chosen, np.array([[8.0, *[30.0 / others] * others]]))
        assert 6 > one.evidence > math.log(2 / FALSE_ALARMS)
        assert one.is_warned == (others == 1)


# -- blocks ---------------------------------------------------------------------------------------------------------


def test_blocks_are_bounded_and_count_all() -> None:
    generator, reporting, made = np.random.default_rng(1), Reporting.new(3), list[tuple[int, int, int]]()
    seq = 0
    for number in range(5000):
        seq += int(generator.integers(1, 4))
        arm = int(generator.integers(3))
        reporting.decide(seq, 1000 * number, arm)
        made.append((seq, 1000 * number, arm))
        assert len(reporting.blocks) <= MOST_BLOCKS
    reports = [made[index] for index in generator.permutation(5000)[:2000]]
    for decision, _, arm in reports:
        reporting.report(decision, arm, 0, is_late=False)
    limits = [*(block.first for block in reporting.blocks[1:]), seq + 1]
    for block, limit in zip(reporting.blocks, limits, strict=True):
        inside = [one for one in made if block.first <= one[0] < limit]
        told = set(reports).intersection(inside)
        assert len(inside) <= 5000 * 2 / FEW_BLOCKS
        assert block.last_at == inside[-1][1]
        assert block.chosen == [sum(one[2] == arm for one in inside) for arm in range(3)]
        assert block.reported == [sum(one[2] == arm for one in told) for arm in range(3)]


def test_the_cost_of_a_merge_is_that_of_the_formula_and_bounds_the_shift() -> None:
    for one, two in pairs(np.random.default_rng(1), 200):
        k, l = sum(one.chosen), sum(two.chosen)  # noqa: E741
        rates = Fraction(sum(one.reported), k), Fraction(sum(two.reported), l)
        apart = [Fraction(own, k) - Fraction(other, l) for own, other in zip(one.chosen, two.chosen, strict=True)]
        weight = Fraction(k * l, k + l)
        cost = weight * (sum(by * by for by in apart) + (rates[0] - rates[1]) ** 2)
        assert one.unlike(two) == float(cost)
        both = one.join(two)
        for arm in range(3):
            expected = [Fraction(part.chosen[arm] * sum(part.reported), sum(part.chosen)) for part in (one, two, both)]
            assert abs(expected[0] + expected[1] - expected[2]) <= cost / 2


def pairs(generator: np.random.Generator, number: int) -> Iterator[tuple[Block, Block]]:
    """Random neighbours."""
    for _ in range(number):
        chosen = generator.integers(1, 30, size=(2, 3))
        reported = generator.integers(0, chosen + 1)
        yield (
            Block(1, 1, chosen[0].tolist(), reported[0].tolist()),
            Block(2, 2, chosen[1].tolist(), reported[1].tolist()),
        )


@pytest.mark.parametrize("is_told_later", [False, True], ids=["at once", "after all decisions"])
def test_merged_blocks_do_not_accuse_when_choices_and_reports_change_together(is_told_later: bool) -> None:
    """First all options are chosen and few reports come. Then it is one favourite, and most reports come."""
    reporting = turned(np.random.default_rng(1), 200_000, at=2000, is_told_later=is_told_later)
    assert len(reporting.blocks) <= MOST_BLOCKS
    assert [one.is_warned for one in reporting.compare(10**9, 0.0)] == [False] * 3


def test_blocks_are_merged_alike_after_a_snapshot() -> None:
    generator = np.random.default_rng(1)
    one, two = Reporting.new(3), Reporting.new(3)
    for seq in range(5000):
        arm = int(generator.integers(3))
        is_told = generator.random() < 0.5
        if seq % 700 == 0:
            two = msgspec.msgpack.decode(msgspec.msgpack.encode(two), type=Reporting)
        for reporting in (one, two):
            reporting.decide(seq, seq, arm)
            if is_told:
                reporting.report(seq, arm, 3, is_late=False)
    assert one == two


def test_a_block_has_room_for_every_arm() -> None:
    assert (Reporting.new(2).size, Reporting.new(900).size) == (SMALLEST_BLOCK, 900)
    reporting = Reporting.new(900)
    reporting.add_arm()
    assert reporting.size == 901


def test_an_arm_joins_blocks_that_exist() -> None:
    reporting = Reporting.new(1)
    reporting.decide(1, 0, 0)
    reporting.add_arm()
    reporting.decide(2, 0, 1)
    reporting.report(2, 1, 4, is_late=True)
    [block] = reporting.blocks
    assert (block.chosen, block.reported) == ([1, 1], [0, 1])
    assert reporting.delays[1][4] == 1
    assert reporting.late == [0, 1]


def delayed(*buckets: list[int], late: int = len(EDGES)) -> Reporting:
    """For each arm, the buckets of the delays of its reports. They come after the wait from the bucket `late` on."""
    reporting = Reporting.new(len(buckets))
    for arm, own in enumerate(buckets):
        for bucket in own:
            reporting.decide(1, 0, arm)
            reporting.report(1, arm, bucket, is_late=bucket >= late)
    return reporting


def test_a_decision_is_judged_after_several_times_the_delays_of_the_slowest_arm() -> None:
    assert delayed([], []).judged_after(None) is None
    assert delayed([4] * 10, []).judged_after(None) == SEVERAL * EDGES[5]
    assert delayed([4] * 1000, [8] * 10).judged_after(None) == SEVERAL * EDGES[9]
    assert delayed([4] * 99, [3] * 99 + [8]).judged_after(None) == SEVERAL * EDGES[5]  # one slow report is not the rule
    assert delayed([len(EDGES) - 1]).judged_after(None) == SEVERAL * 2 * EDGES[-1]


def test_a_wait_says_when_to_judge_unless_reports_often_come_after_it() -> None:
    assert delayed([], []).judged_after(60.0) == 60.0
    assert delayed([4] * 10, [7] * 10).judged_after(60.0) == 60.0
    assert delayed([4] * 1000, [15] * 5, late=10).judged_after(60.0) == SEVERAL * EDGES[16]
    assert delayed([4] * 10, [15] + [4] * 19, late=10).judged_after(60.0) == 60.0
    assert delayed([4] * 10, [15] + [4] * 18, late=10).judged_after(60.0) == SEVERAL * EDGES[16]


def test_a_wait_may_lie_between_two_edges() -> None:
    """All delays are between half an hour and an hour. It matters whether they are longer than the wait."""
    assert delayed([4] * 10, [14] * 10, late=14).judged_after(31 * 60.0) == SEVERAL * 3600
    assert delayed([4] * 10, [14] * 10).judged_after(59 * 60.0) == 59 * 60.0


def test_time_is_in_seconds() -> None:
    reporting = Reporting.new(2)
    for seq in range(100):
        reporting.decide(seq, 0, seq % 2)
        if seq % 2:
            reporting.report(seq, 1, 4, is_late=False)
    age = round(SEVERAL * EDGES[5] * MICROSECONDS)
    assert [reporting.compare(at, None)[0].is_warned for at in (age - 1, age)] == [False, True]


@pytest.mark.parametrize("number", [1, 5])
def test_decisions_that_a_wrong_clock_dated_ahead_are_judged_with_those_after_them(number: int) -> None:
    reporting = Reporting.new(2)
    for seq in range(200):
        reporting.decide(seq, 10**18 if 50 <= seq < 50 + number else 0, seq % 2)
        if seq % 2:
            reporting.report(seq, 1, 4, is_late=False)
    found = reporting.compare(round(SEVERAL * EDGES[5] * MICROSECONDS), None)
    assert [one.decisions for one in found] == [100, 100]
    assert [one.is_warned for one in found] == [True, False]


# -- the chance of an alarm. tests/system/serve has more runs ---------------------------------------------------------


@pytest.mark.parametrize("world", [World(), World(slower=(1.0, 5.0, 1.0), drift=0.5)], ids=["equal", "slower"])
def test_equal_options_are_not_accused(world: World) -> None:
    for seed in range(3):
        assert watched(world, np.random.default_rng(seed), 1500).first == {}


@pytest.mark.parametrize(("chance", "within"), [(0.49, 1500), (0.0, 400)], ids=["30% lost", "never"])
def test_an_option_that_reports_less_is_noticed(chance: float, within: int) -> None:
    world = World(chances=(0.7, chance, 0.7), share=1 / 3)
    for seed in range(3):
        seen = watched(world, np.random.default_rng(seed), within)
        assert list(seen.first) == [1]
        assert seen.at_end == {1}
