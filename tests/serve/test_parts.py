"""Outcomes that are made of parts. A decision counts when all its parts have come, and each part counts once."""

import math
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from belated.serve.archive import choosing, erasing
from belated.serve.archive.settling import settle
from belated.serve.domain import ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.operating import Edit, Operation
from belated.serve.domain.parts import MAX_PARTS, Part
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import OutcomeChoice, Settings
from belated.serve.domain.still import still
from belated.serve.engine.requests import Create, Operate, Tell
from belated.serve.service.views import view
from belated.serve.store.removal import loaded
from belated.serve.store.verify import verify
from tests.support.engines import NO_STORE, Driven, counts, last_entry, state
from tests.support.memory_journal import MemoryJournal, MemoryStore
from tests.support.removals import state_of

PLAIN = {"quality": Part(weight=3.0), "cost": Part(0.0, 0.1, "lower"), "seconds": Part(0.0, 20.0, "lower", 1.0)}
FALLBACKS = {"quality": 0.0, "cost": 0.1, "seconds": 20.0}
SILENT = {name: msgspec.structs.replace(part, default=FALLBACKS[name]) for name, part in PLAIN.items()}
GOOD = {"quality": 0.8, "cost": 0.02, "seconds": 5.0}
WAIT = 100.0


def by_hand(values: dict[str, float]) -> float:
    """The score by definition: 0.6 for the quality, 0.2 for each of the others."""
    return math.fsum(
        [0.6 * values["quality"], 0.2 * (0.1 - values["cost"]) / 0.1, 0.2 * (20.0 - values["seconds"]) / 20.0]
    )


def told(driven: Driven, id: str, parts: dict[str, float], **more: Any) -> Any:
    """The status and revision, or the kind and revision of a refusal."""
    [answer] = driven.do(Tell([OutcomeReport(id, "parts", 0.0, parts=parts, **more)]))
    return (answer.kind, answer.revision) if isinstance(answer, Refusal) else tuple(answer)[:2]


def detail(driven: Driven, id: str, parts: dict[str, float]) -> str:
    [answer] = driven.do(Tell([OutcomeReport(id, "parts", 0.0, parts=parts)]))
    assert isinstance(answer, Refusal)
    return answer.detail


def outcome(driven: Driven, id: str) -> float | None:
    found = next(one for one in driven.decisions() if one.decision.nonce == nonce_of(id))
    return None if found.outcome is None else found.outcome.value


def nonce_of(id: str) -> int | None:
    wanted = ids.decode(id)
    assert wanted is not None
    return wanted.nonce


def end_waits(driven: Driven) -> None:
    driven.clock.advance(WAIT + 1)
    driven.engine.expire()


@pytest.fixture(params=["plain", "silent"])
def silent(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "silent")


@pytest.fixture
def one(driven: Driven) -> Decided:
    driven.create(parts=PLAIN, reward_wait=WAIT)
    return driven.decide()[0]


def test_the_parts_may_come_in_any_order_and_count_once_all_are_there(driven: Driven) -> None:
    driven.create(parts=PLAIN)
    orders = list(permutations(GOOD))
    for order, decided in zip(orders, driven.decide(size=len(orders)), strict=True):
        said = [told(driven, decided.id, {name: GOOD[name]}) for name in order]
        assert said == [("partial", 0), ("partial", 1), ("applied", 2)]
        assert outcome(driven, decided.id) == pytest.approx(by_hand(GOOD), abs=1e-15)
    assert counts(driven) == {"decisions": 6, "reported": 6}
    assert driven["layout"].evidence.reports == 6
    assert verify(driven.engine.journal).problems == []


def test_parts_in_one_request_and_under_one_report_id_join(driven: Driven, one: Decided) -> None:
    reports = [
        OutcomeReport(one.id, "parts", 0.0, parts={name: value}, report_id="answer 7") for name, value in GOOD.items()
    ]
    assert driven.tell_all([*reports, reports[0]]) == ["partial", "partial", "applied", "duplicate"]
    assert driven.tell_all(reports) == ["duplicate"] * 3
    other = driven.decide()[0]
    assert told(driven, other.id, {"cost": 0.02}, report_id="answer 7")[0] == "conflict"


def test_a_part_teaches_nothing_while_others_are_missing(driven: Driven, one: Decided) -> None:
    experiment = driven["layout"]
    before = experiment.distribution().tolist(), experiment.costs(), experiment.evidence.reports, counts(driven)
    told(driven, one.id, {"cost": 0.1, "seconds": 20.0})
    assert (
        experiment.distribution().tolist(),
        experiment.costs(),
        experiment.evidence.reports,
        counts(driven),
    ) == before
    told(driven, one.id, {"quality": 0.0})
    assert experiment.evidence.totals[experiment.arms.index(one.arm)] == 1.0


def test_all_parts_may_come_in_one_report(driven: Driven, one: Decided) -> None:
    assert told(driven, one.id, GOOD) == ("applied", 0)
    assert told(driven, one.id, GOOD) == ("duplicate", 0)
    assert told(driven, one.id, {"cost": 0.02}) == ("duplicate", 0)


def test_the_ends_of_the_ranges_give_exactly_0_and_1(driven: Driven) -> None:
    weights = {str(number): Part(-0.3, 0.1 * (number + 1), weight=0.1 + number / 7) for number in range(MAX_PARTS)}
    driven.create(parts=weights)
    best, worst = driven.decide(size=2)
    told(driven, best.id, {name: part.highest for name, part in weights.items()})
    told(driven, worst.id, {name: part.lowest for name, part in weights.items()})
    assert (outcome(driven, best.id), outcome(driven, worst.id)) == (1.0, 0.0)


def test_repeated_parts_change_nothing(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02})
    before = state(driven)
    assert told(driven, one.id, {"cost": 0.02}) == ("duplicate", 0)
    assert told(driven, one.id, {"cost": 0.03}) == ("conflict", 0)
    assert "was reported with cost 0.02, now 0.03" in detail(driven, one.id, {"cost": 0.03, "quality": 1.0})
    assert state(driven) == before, "not even the new part of a refused report counts"


def test_a_report_may_repeat_a_part_and_bring_another(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02})
    assert told(driven, one.id, {"cost": 0.02, "seconds": 5.0}) == ("partial", 1)
    assert told(driven, one.id, GOOD) == ("applied", 2)


def test_amendments_replace_one_part_and_late_copies_change_nothing(driven: Driven, one: Decided) -> None:
    assert told(driven, one.id, {"cost": 0.02}) == ("partial", 0)
    assert told(driven, one.id, {"cost": 0.04}, amend=True) == ("amended", 1)
    assert told(driven, one.id, {"cost": 0.06}, amend=True) == ("conflict", 1), "it was amended, so say which"
    assert told(driven, one.id, {"quality": 0.8, "seconds": 5.0}) == ("applied", 2)
    assert told(driven, one.id, {"cost": 0.06}, amend=True, revision=9) == ("conflict", 2)
    assert told(driven, one.id, {"cost": 0.02}, amend=True, revision=0) == ("superseded", 2), "a late copy"
    assert told(driven, one.id, {"cost": 0.06}, amend=True, revision=1) == ("amended", 3), "other parts do no harm"
    assert told(driven, one.id, {"cost": 0.04}, amend=True, revision=1) == ("superseded", 3)
    assert outcome(driven, one.id) == pytest.approx(by_hand({**GOOD, "cost": 0.06}), abs=1e-15)
    assert driven["layout"].evidence.reports == 1
    assert verify(driven.engine.journal).problems == []


def test_a_retry_with_a_report_id_from_before_an_amendment_is_a_duplicate(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02}, report_id="bill 7")
    told(driven, one.id, {"cost": 0.04}, amend=True)
    assert told(driven, one.id, {"cost": 0.02}, report_id="bill 7") == ("duplicate", 1)
    assert told(driven, one.id, {"cost": 0.02}) == ("conflict", 1)


# -- waits -------------------------------------------------------------------------------------------------------------


def test_missing_parts_count_as_their_defaults_when_the_wait_ends(driven: Driven) -> None:
    driven.create(parts=SILENT, reward_wait=WAIT)
    nothing, some = driven.decide(size=2)
    told(driven, some.id, {"cost": 0.02, "seconds": 5.0})
    assert counts(driven) == {"decisions": 2}
    end_waits(driven)
    assert counts(driven) == {"decisions": 2, "expired": 2}
    assert outcome(driven, nothing.id) == 0.0
    assert outcome(driven, some.id) == pytest.approx(by_hand({**GOOD, "quality": 0.0}), abs=1e-15)
    assert told(driven, some.id, {"quality": 0.8}) == ("late", 2)
    assert outcome(driven, some.id) == pytest.approx(by_hand(GOOD), abs=1e-15)
    assert told(driven, nothing.id, {"quality": 0.8}) == ("late", 1), "the others still count as their defaults"
    assert told(driven, nothing.id, {"cost": 0.02}) == ("added", 2)
    assert outcome(driven, nothing.id) == pytest.approx(by_hand({**GOOD, "seconds": 20.0}), abs=1e-15)
    assert counts(driven) == {"decisions": 2, "expired": 2, "late": 2, "amended": 1}
    assert verify(driven.engine.journal).problems == []


def test_without_defaults_a_decision_ends_without_an_outcome(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02})
    end_waits(driven)
    assert (counts(driven), outcome(driven, one.id)) == ({"decisions": 1, "expired": 1}, None)
    assert told(driven, one.id, {"seconds": 5.0}) == ("partial", 2)
    end_waits(driven)
    assert counts(driven) == {"decisions": 1, "expired": 1}, "a wait ends once"
    assert told(driven, one.id, {"quality": 0.8}) == ("late", 3)
    assert outcome(driven, one.id) == pytest.approx(by_hand(GOOD), abs=1e-15)
    assert verify(driven.engine.journal).problems == []


def test_a_wait_ends_only_for_decisions_that_miss_parts(driven: Driven, one: Decided) -> None:
    other = driven.decide()[0]
    told(driven, one.id, {"cost": 0.02})
    told(driven, other.id, GOOD)
    end_waits(driven)
    assert counts(driven) == {"decisions": 2, "reported": 1, "expired": 1}


def test_the_default_of_all_parts_is_provisional_and_silence_is_an_answer(driven: Driven) -> None:
    experiment = driven.create(parts=SILENT, reward_wait=WAIT)
    assert experiment.settings.is_provisional
    assert experiment.settings.provisional_loss == 1.0
    assert experiment.reporting is None
    assert experiment.evidence.assumed == 1.0


# -- restarts and several servers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshot", [False, True])
def test_parts_survive_a_restart(driven: Driven, one: Decided, *, snapshot: bool) -> None:
    told(driven, one.id, {"cost": 0.02})
    before = state(driven)
    driven.restart(snapshot=snapshot)
    assert state(driven) == before
    assert told(driven, one.id, {"cost": 0.03}) == ("conflict", 0)
    assert told(driven, one.id, {"quality": 0.8, "seconds": 5.0}) == ("applied", 1)
    assert outcome(driven, one.id) == pytest.approx(by_hand(GOOD), abs=1e-15)


def two_servers() -> tuple[Driven, Driven]:
    store, folder = MemoryStore(), Path("/nowhere")
    one = Driven(folder, opening=lambda: MemoryJournal(store))
    return one, Driven(folder, clock=one.clock, seed=2, opening=lambda: MemoryJournal(store))


def assert_same(one: Driven, two: Driven) -> None:
    """Both servers have the same state when they have read everything."""
    for server in (one, two):
        server.engine.catch_up()
    assert state_of(one.engine.fold) == state_of(two.engine.fold)


def test_two_servers_put_one_outcome_together() -> None:
    one, two = two_servers()
    one.create(parts=PLAIN, reward_wait=WAIT)
    decided = one.decide()[0]
    two.engine.catch_up()  # so that both take it for a decision without an outcome
    assert told(one, decided.id, {"cost": 0.02}) == ("partial", 0)
    assert told(two, decided.id, {"cost": 0.02}) == ("duplicate", 0)
    assert told(two, decided.id, {"cost": 0.05}) == ("conflict", 0)
    assert told(two, decided.id, {"quality": 0.8}) == ("partial", 1)
    assert told(one, decided.id, {"seconds": 5.0}) == ("applied", 2)
    assert_same(one, two)
    assert outcome(two, decided.id) == pytest.approx(by_hand(GOOD), abs=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_on_two_servers_gives_what_was_said(seed: int, *, silent: bool) -> None:
    """Against a model that only remembers what was said of each decision, and when its wait has ended."""
    generator, servers = np.random.default_rng(seed), two_servers()
    declared = SILENT if silent else PLAIN
    servers[0].create(parts=declared, reward_wait=WAIT)
    servers[1].engine.catch_up()
    said: dict[str, dict[str, float]] = {}
    made: dict[str, float] = {}
    over = set[str]()
    for _ in range(120):
        server = servers[generator.integers(2)]
        match generator.choice(["decide", "tell", "end", "read", "restart"], p=[0.2, 0.65, 0.05, 0.05, 0.05]):
            case "decide":
                decided = server.decide()[0]
                said[decided.id], made[decided.id] = {}, server.clock.now / 1e6
            case "tell" if said:
                id = str(generator.choice(list(said)))
                names = generator.choice(list(declared), generator.integers(1, 4), replace=False).tolist()
                values = {name: GOOD[name] * float(generator.choice([0.5, 1.0, 1.0])) for name in names}
                differs = any(said[id].get(name, value) != value for name, value in values.items())
                status, _ = told(server, id, values)
                assert (status == "conflict") == differs, status
                if not differs:
                    said[id].update(values)
            case "end":
                server.clock.advance(WAIT / 3)
                server.engine.catch_up()
                server.engine.expire()
                over |= {
                    id for id in said if made[id] + WAIT <= server.clock.now / 1e6 and len(said[id]) < len(declared)
                }
            case "read":
                server.engine.catch_up()
            case "restart":
                server.restart(snapshot=bool(generator.integers(2)))
    assert_same(*servers)
    found = {decision: outcome(servers[0], decision) for decision in said}
    for id, values in said.items():
        whole = {**(FALLBACKS if silent and id in over else {}), **values}
        assert found[id] == (pytest.approx(by_hand(whole), abs=1e-15) if len(whole) == len(declared) else None)
    check_sums(servers[0], said)
    assert verify(servers[0].engine.journal).problems == []


def check_sums(driven: Driven, said: dict[str, dict[str, float]]) -> None:
    """The numbers of each option are those of what was said of its decisions."""
    experiment = driven["layout"]
    arms = {one.decision.nonce: one.decision.arm or 0 for one in driven.decisions()}
    sums = experiment.parts
    assert sums is not None
    for arm in range(len(experiment.arms)):
        own = [values for id, values in said.items() if arms[nonce_of(id)] == arm]
        for index, name in enumerate(experiment.settings.declared_parts):
            values = [one[name] for one in own if name in one]
            assert sums.counts[arm][index] == len(values)
            assert sums.totals[arm][index] == pytest.approx(sum(values), abs=1e-12)
    known = [one.outcome.value for one in driven.decisions() if one.outcome and one.outcome.value is not None]
    assert sum(experiment.evidence.totals) == pytest.approx(sum(1 - value for value in known), abs=1e-12)


# -- what leaves the store ---------------------------------------------------------------------------------------------


def test_a_decision_with_some_parts_waits_and_is_not_archived(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02})
    waiting = choosing.first_waiting(driven.engine.journal, driven["layout"], driven.engine.fold.seq)
    assert waiting is not None
    assert waiting.seq == driven.decisions()[0].decision.seq
    end_waits(driven)
    assert choosing.first_waiting(driven.engine.journal, driven["layout"], driven.engine.fold.seq) is None


def test_a_decision_with_some_parts_is_given_up_when_it_is_erased(driven: Driven, one: Decided) -> None:
    told(driven, one.id, {"cost": 0.02})
    journal = driven.engine.journal
    assert erasing.known(journal, erasing.decoded([one.id])).open == 1
    fold = loaded(journal)
    assert settle(journal, driven.decisions(), fold.tail.short_mark(), driven.clock.now) == 1
    assert last_entry(driven).kind is EntryKind.REMOVED
    driven.engine.catch_up()
    assert counts(driven) == {"decisions": 1, "removed": 1}
    assert told(driven, one.id, {"quality": 1.0})[0] == "not_found"
    assert verify(journal).problems == []


# -- while it runs -----------------------------------------------------------------------------------------------------


def test_frozen_decisions_take_parts_that_count_in_no_average(driven: Driven) -> None:
    driven.create(parts=PLAIN)
    driven.do(Operate("layout", Operation("frozen", "a")))
    frozen = driven.decide()[0]
    assert told(driven, frozen.id, {"cost": 0.02}) == ("partial", 0)
    assert told(driven, frozen.id, {"quality": 0.8, "seconds": 5.0}) == ("applied", 1)
    sums = driven["layout"].parts
    assert sums is not None
    assert sums.counts == [[0] * 3] * 3
    assert driven["layout"].operations.aside.known == 1


def test_an_arm_that_joins_has_parts_too(driven: Driven) -> None:
    driven.create(arms=("a",), parts=PLAIN)
    driven.change(add=("b",), retire=("a",))
    told(driven, driven.decide()[0].id, GOOD)
    arms = {arm.name: arm for arm in view(driven["layout"], NO_STORE, driven.clock.now).arms}
    shown = msgspec.to_builtins(arms["b"].parts)
    assert shown == {name: {"reports": 1, "mean": value} for name, value in GOOD.items()}
    assert msgspec.to_builtins(arms["a"].parts)["cost"] == {"reports": 0, "mean": None}


def test_a_copy_for_the_page_does_not_change(driven: Driven, one: Decided) -> None:
    copied = still(driven["layout"]).experiment
    told(driven, one.id, GOOD)
    assert copied.parts is not None
    assert copied.parts.counts == [[0] * 3] * 3


def test_an_experiment_without_parts_has_the_state_of_an_older_release(driven: Driven) -> None:
    driven.create()
    assert "parts" not in driven["layout"].state()
    driven.restart(snapshot=True)
    assert driven["layout"].parts is None
    [decided] = driven.decide()
    assert told(driven, decided.id, GOOD) == ("invalid", None)
    assert "takes a reward, got parts" in detail(driven, decided.id, GOOD)


def test_a_failed_experiment_keeps_its_parts_readable(
    driven: Driven, one: Decided, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(driven, one.id, {"cost": 0.02})

    def broken(*_: object) -> None:
        raise ArithmeticError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "apply_decisions", broken)
        driven.decide()
    assert driven["layout"].failure is not None
    shown = view(driven["layout"], NO_STORE, driven.clock.now)
    assert list(shown.parts) == list(PLAIN)
    driven.restart(snapshot=True)
    assert driven["layout"].failure is not None


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_report_of_something_else_says_what_to_send(driven: Driven, one: Decided) -> None:
    [refused] = driven.do(Tell([OutcomeReport(one.id, "reward", 0.5)]))
    assert "takes parts, got a reward" in refused.detail
    assert '"parts": {"quality":0,"cost":0,"seconds":0}' in refused.detail
    assert detail(driven, one.id, {"qualty": 1.0}) == (
        "'layout' has no part 'qualty'. Its parts are quality, cost, seconds."
    )
    wider = '"parts": {"cost": {"lowest": 0, "highest": 3, "better": "lower"}, ...}'
    assert wider in detail(driven, one.id, {"cost": 3.0})
    for value in (math.nan, math.inf):
        assert told(driven, one.id, {"cost": value})[0] == "invalid"
    assert counts(driven) == {"decisions": 1}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"parts": PLAIN, "outcome": OutcomeChoice(0.0, 5.0)}, "Leave outcome out"),
        ({"parts": SILENT}, "Give a reward_wait too"),
        ({"parts": PLAIN, "reward_wait": 1.0, "default_outcome": 0.0}, "each part has a default of its own"),
        ({"parts": {**PLAIN, "cost": SILENT["cost"]}, "reward_wait": 1.0}, "the part 'quality' has no default"),
        ({"parts": PLAIN, "several": "sum"}, "parts and several do not go together"),
        ({"parts": {"a ": Part()}}, "1 to 100 printable characters, without spaces around them, got 'a '"),
        ({"parts": {"": Part()}}, "without spaces around them, got ''"),
        ({"parts": {"x" * 101: Part()}}, "1 to 100 printable characters"),
        ({"parts": {"cost": Part(1.0, 1.0)}}, "parts.cost: lowest must be less than highest"),
        ({"parts": {"cost": Part(default=2.0)}, "reward_wait": 1.0}, "parts.cost: default must lie between 0 and 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(driven: Driven, settings: dict[str, Any], expected: str) -> None:
    result = driven.do(Create(Settings("layout", ["a", "b"], **settings)))
    assert isinstance(result, Refusal)
    assert expected in result.detail


def test_the_wait_can_be_edited_and_the_defaults_stay(driven: Driven) -> None:
    driven.create(parts=SILENT, reward_wait=WAIT)
    decided = driven.decide()[0]
    for edit in (Edit(default_outcome=0.5), Edit(reward_wait=None)):
        refused = driven.do(Operate("layout", Operation("edited", settings=edit)))
        assert isinstance(refused, Refusal), refused
    driven.do(Operate("layout", Operation("edited", settings=Edit(reward_wait=10.0))))
    driven.clock.advance(11)
    driven.engine.expire()
    assert outcome(driven, decided.id) == 0.0
