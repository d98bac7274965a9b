"""Pause, freeze, end and edit a running experiment, with a floor and a holdout."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Fold, Snapshot, restore
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.operating import Edit, Operation, Policy
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import OutcomeChoice, Settings
from belated.serve.engine.requests import Ask, ChangeArms, Close, Create, Operate
from belated.serve.service.descriptions import ExperimentView
from belated.serve.service.findings import ShowView
from belated.serve.service.views import totals, view
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import NO_STORE, Driven, state

HERE = "layout"


def operate(driven: Driven, event: Any, arm: str | None = None, name: str = HERE, **settings: Any) -> Any:
    """Operate an experiment. Returns the kind and the text of a refusal, or whether anything has changed."""
    edit = {"settings": Edit(**settings)} if settings else {}
    result = driven.do(Operate(name, Operation(event, arm, **edit), "4f2a"))
    return (result.kind, result.detail) if isinstance(result, Refusal) else result[1]


def refused(driven: Driven, name: str = HERE) -> str:
    result = driven.do(Ask(name))
    assert isinstance(result, Refusal)
    assert result.kind == "conflict"
    return result.detail


def entries(driven: Driven) -> list[Entry]:
    return driven.engine.journal.read(0, 10**6)


def decided(driven: Driven) -> list[Entry]:
    return [entry for entry in entries(driven) if entry.kind is EntryKind.DECIDED]


def shown(driven: Driven, name: str = HERE) -> ExperimentView:
    return view(driven[name], NO_STORE, driven.clock.now)


def teach(driven: Driven, n: int = 30, best: str = "b") -> None:
    for _ in range(n):
        [one] = driven.decide()
        driven.tell(one, float(one.arm == best))


def test_a_paused_experiment_takes_reports_and_makes_no_decisions(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    [keyed], [waiting] = driven.decide(key="k"), driven.decide()
    assert operate(driven, "paused") is True
    assert operate(driven, "paused") is False
    assert refused(driven).endswith("It takes reports, but makes no decisions until it is resumed.")
    assert driven.decide(key="k")[0].id == keyed.id  # a retry is no new decision
    before = driven[HERE].learner.certificate()
    assert driven.tell(waiting, 1.0) == "applied"
    driven.restart()
    assert shown(driven).state == "paused"
    assert driven.change(add=("d",))[1] is True  # it can still be changed
    assert operate(driven, "resumed") is True
    assert operate(driven, "resumed") is False
    assert len(driven.decide(size=5)) == 5
    assert before <= driven[HERE].learner.certificate()


def test_a_frozen_experiment_shows_one_arm_and_learns_nothing(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(reward_wait=60.0, default_outcome=0.0)
    teach(driven)
    [before] = driven.decide()
    learned = driven[HERE].shared.state()
    evidence = driven[HERE].evidence.copy()
    assert operate(driven, "frozen") is True  # to the best
    assert operate(driven, "frozen") is False
    assert driven[HERE].shared.state() == learned
    made = driven.decide(size=20)
    assert {(one.arm, one.probability) for one in made} == {("b", 1.0)}
    assert driven.tell(made[0], 1.0) == "applied"
    assert driven.tell(made[0], 0.5, amend=True) == "amended"
    driven.clock.advance(61)
    driven.engine.expire()
    driven.tell(made[1], 1.0)  # late
    found = shown(driven)
    assert (found.state, found.shown, found.decisions) == ("frozen", "b", 51)
    assert found.aside is not None
    assert (found.aside.decisions, found.aside.known) == (20, 20)
    assert found.aside.mean == pytest.approx(1.5 / 20)
    assert driven[HERE].learner.round == 31
    assert driven[HERE].evidence.decisions == evidence.decisions == 31
    assert found.costs.most == 31
    assert sum(arm.chosen for arm in found.arms) == 31
    assert operate(driven, "frozen", "c") is True
    assert driven.decide()[0].arm == "c"
    assert operate(driven, "unfrozen") is True
    assert driven.tell(before, 1.0) == "late"  # of the learner, so it teaches
    after = driven.decide(size=50)
    assert all(one.probability < 1 for one in after)
    assert {entry.policy for entry in decided(driven)} == {None, Policy.FROZEN}
    assert verify(driven.engine.journal).problems == []


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """A freeze between leaves no trace in the learner. Its numbers are those of a twin that was never frozen."""
    (tmp_path / "twin").mkdir()
    frozen, twin = Driven(tmp_path), Driven(tmp_path / "twin")
    for one in (frozen, twin):
        one.create()
        teach(one, 20)
    operate(frozen, "frozen", "a")
    frozen.decide(size=30)
    operate(frozen, "unfrozen")
    assert frozen[HERE].distribution().tolist() == twin[HERE].distribution().tolist()
    assert frozen[HERE].costs() == twin[HERE].costs()


def test_a_freeze_without_outcomes_needs_an_arm(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    kind, detail = operate(driven, "frozen")
    assert (kind, "Name the arm to show" in detail) == ("conflict", True)
    kind, detail = operate(driven, "frozen", "z")
    assert kind == "not_found"
    assert "It has ['a', 'b', 'c']" in detail
    assert operate(driven, "frozen", "a") is True
    result = driven.change(retire=("a",))
    assert result.kind == "conflict"
    assert "Unfreeze it before you retire it" in result.detail


def test_what_is_shown_to_all_has_all_of_the_next_decision(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    operate(driven, "frozen", "b")
    assert [(arm.name, arm.probability) for arm in shown(driven).arms] == [("a", 0.0), ("b", 1.0), ("c", 0.0)]
    measured = totals(driven["layout"], driven.clock())
    assert [arm.probability for arm in measured.arms or ()] == [0.0, 1.0, 0.0]
    operate(driven, "unfrozen")
    assert [arm.probability for arm in shown(driven).arms] == pytest.approx([1 / 3] * 3)


def test_a_closed_experiment_does_not_ask_to_be_resumed(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    operate(driven, "paused")
    driven.do(Close("layout"))
    assert "is closed" in refused(driven)


def test_a_pause_does_not_forget_a_freeze(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    operate(driven, "frozen", "a")
    operate(driven, "paused")
    assert "paused" in refused(driven)
    for event in ("unfrozen", "frozen"):
        refusal = operate(driven, event, "b" if event == "frozen" else None)
        assert refusal == ("conflict", "the experiment 'layout' is paused. Resume it first.")
    operate(driven, "resumed")
    assert shown(driven).state == "frozen"
    assert driven.decide()[0].arm == "a"


def test_a_winner_is_shown_from_then_on(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    teach(driven)
    [late] = driven.decide()
    assert operate(driven, "ended") is True
    found = shown(driven)
    assert (found.state, found.shown) == ("ended", "b")
    assert found.closed_at is not None
    assert found.show is not None
    assert found.show.name == "b"
    assert {one.arm for one in driven.decide(size=10)} == {"b"}
    before = driven[HERE].evidence.reports
    assert driven.tell(late, 1.0) == "applied"  # outcomes of earlier decisions still count
    assert driven[HERE].evidence.reports == before + 1
    assert operate(driven, "ended") is False
    assert operate(driven, "ended", "b") is False
    assert operate(driven, "ended", "a")[0] == "conflict"
    for event in ("paused", "resumed", "frozen", "unfrozen"):
        assert operate(driven, event)[0] == "conflict"
    assert operate(driven, "edited", floor=0.1)[0] == "conflict"
    assert driven.change(add=("z",)).kind == "conflict"
    assert {entry.policy for entry in decided(driven)[-10:]} == {Policy.WINNER}
    driven.restart(snapshot=True)
    assert driven.decide()[0].arm == "b"


def test_a_closed_experiment_may_get_a_winner(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    operate(driven, "frozen", "a")
    driven.close()
    assert "closed" in refused(driven)
    assert (shown(driven).state, shown(driven).shown, shown(driven).show) == ("closed", None, None)
    assert operate(driven, "ended", "c") is True
    assert driven.decide()[0].arm == "c"
    assert shown(driven).show == ShowView("c", decided=False)


@pytest.mark.parametrize(
    ("settings", "arms"),
    [({"floor": 0.1}, 4), ({"holdout": 0.25}, 3), ({"floor": 0.05, "holdout": 0.2, "control": "b"}, 3)],
)
def test_the_recorded_probability_is_the_mix_to_the_last_bit(
    tmp_path: Path, settings: dict[str, Any], arms: int
) -> None:
    (tmp_path / "plain").mkdir()
    mixed, plain = Driven(tmp_path), Driven(tmp_path / "plain")
    names = tuple("abcd"[:arms])
    mixed.create(arms=names, **settings)
    plain.create(arms=names)
    f, h, control = settings.get("floor", 0.0), settings.get("holdout", 0.0), settings.get("control")
    even = f if h == 0 else (1 - h) * f + (0.0 if control else h / arms)
    share = arms * f if h == 0 else h + (1 - h) * (arms * f)
    learner = plain[HERE].learner
    for step in range(100):
        x = learner.distribution().tolist()  # of a learner without a mix that is told the same
        expected = [even + (1 - share) * p + (h if name == control else 0.0) for name, p in zip(names, x, strict=True)]
        made = mixed.decide(size=3)
        assert [one.probability for one in made] == [expected[names.index(one.arm)] for one in made]
        assert mixed[HERE].shared.in_force.tolist() == expected
        told = [learner.record(names.index(one.arm), one.probability) for one in made]
        if learner.status.plays == "means":
            assert mixed[HERE].learner.status.means is not None
        for one, twin in zip(made, told, strict=True):
            outcome = float((step + names.index(one.arm)) % 3 == 0)
            mixed.tell(one, outcome)
            learner.tell(twin, reward=outcome)
        x_of_mixed = (mixed[HERE].distribution() - even) / (1 - share)
        if step > 5:  # a silent arm is found by p, which the twin does not know
            assert x_of_mixed.min() > -0.3


def test_groups_are_drawn_as_said(tmp_path: Path) -> None:
    """The holdout gets its share. Given the group, the arms have the distribution of the group."""
    driven = Driven(tmp_path)
    driven.create(floor=0.1, holdout=0.3, control="a")
    teach(driven, 60, best="c")
    p = driven[HERE].distribution()
    own = (p - [0.3, 0, 0]) / 0.7
    made = driven.decide(size=20_000)
    groups = [entry.policy for entry in decided(driven)[-20_000:]]
    held_out = [one.arm for one, group in zip(made, groups, strict=True) if group == Policy.HOLDOUT]
    rest = [one.arm for one, group in zip(made, groups, strict=True) if group is None]
    assert abs(len(held_out) - 6_000) < 4 * (20_000 * 0.3 * 0.7) ** 0.5
    assert set(held_out) == {"a"}
    for arm, chance in zip("abc", own, strict=True):
        assert abs(rest.count(arm) - len(rest) * chance) < 4 * (len(rest) * chance * (1 - chance)) ** 0.5 + 1
    assert {one.probability for one in made if one.arm == "a"} == {p[0]}  # whoever has drawn it


def test_the_gain_is_the_difference_of_the_groups(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(holdout=0.4)
    generator = np.random.default_rng(0)
    for _ in range(60):
        for one in driven.decide(size=10):
            if generator.random() < 0.95:  # some never report
                driven.tell(one, float(generator.random() < (0.9 if one.arm == "b" else 0.1)))
    found = shown(driven).holdout
    assert found is not None
    pairs = [(one.decision.policy, one.outcome) for one in driven.decisions()]
    learner, held_out = (
        [outcome.value or 0.0 for group, outcome in pairs if outcome is not None and group == wanted]
        for wanted in (None, Policy.HOLDOUT)
    )
    assert (found.share, found.control, found.decisions) == (0.4, None, 600)
    assert found.open == 600 - len(learner) - len(held_out)
    assert found.learner == pytest.approx(np.mean(learner))
    assert found.held_out == pytest.approx(np.mean(held_out))
    assert found.gain == pytest.approx(np.mean(learner) - np.mean(held_out), abs=0.02)
    assert 0 < (found.low or 0) < (found.gain or 0) < (found.high or 0)
    assert operate(driven, "edited", holdout=0.2) is True  # the groups begin anew
    again = shown(driven).holdout
    assert again is not None
    assert (again.share, again.decisions, again.gain) == (0.2, 0, None)
    driven.decide(size=50)
    assert operate(driven, "edited", floor=0.01) is True  # and go on with another floor
    again = shown(driven).holdout
    assert again is not None
    assert again.decisions == 50
    assert operate(driven, "edited", holdout=0) is True
    assert shown(driven).holdout is None


@pytest.mark.parametrize(("better", "success"), [("higher", 1.0), ("lower", 0.0)])
def test_the_averages_of_the_groups_count_silence_as_the_default(tmp_path: Path, better: Any, success: float) -> None:
    """If only successes are reported, both groups would look perfect, and learning would gain nothing."""
    driven, failure, word = Driven(tmp_path), 1 - success, "reward" if better == "higher" else "loss"
    outcome = OutcomeChoice(0, 1, better)
    driven.create(outcome=outcome, reward_wait=86_400.0, default_outcome=failure, holdout=0.2, control="a")
    generator = np.random.default_rng(1)
    for _ in range(30):
        for one in driven.decide(size=20):
            if generator.random() < (0.5 if one.arm == "b" else 0.1):
                assert driven.tell(one, success, word=word) == "applied"
    found = shown(driven).holdout
    assert found is not None
    pairs = [(one.decision.policy, one.outcome) for one in driven.decisions()]
    learner, held_out = (
        float(np.mean([failure if told is None else told.value or 0.0 for group, told in pairs if group == wanted]))
        for wanted in (None, Policy.HOLDOUT)
    )
    assert [found.learner, found.held_out] == pytest.approx([learner, held_out])
    gain = found.gain or 0.0
    assert gain == pytest.approx(abs(learner - held_out))
    assert gain > 0.2
    groups = driven[HERE].operations.groups
    assert groups is not None
    [compared] = groups.verdict().comparisons  # the interval is that of the verdict, as before
    assert sorted((abs(found.low or 0), abs(found.high or 0))) == sorted((abs(compared.low), abs(compared.high)))
    assert (found.low or 0) <= gain <= (found.high or 0)


def test_a_gain_of_nothing_is_zero(tmp_path: Path) -> None:
    """Neither -0.0 nor what rounding leaves."""
    driven = Driven(tmp_path)
    driven.create(holdout=0.5)
    assert [shown(driven).holdout.learner, shown(driven).holdout.gain] == [None, None]  # type: ignore[union-attr]
    for one in driven.decide(size=200):
        driven.tell(one, 0.7)
    found = shown(driven).holdout
    assert found is not None
    assert str(found.gain) == "0.0"


def test_settings_change_while_it_runs(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(reward_wait=60.0, default_outcome=0.0)
    [one] = driven.decide()
    assert operate(driven, "edited", reward_wait=600.0, description="checkout", floor=0.2) is True
    assert operate(driven, "edited", reward_wait=600.0) is False
    driven.clock.advance(100)
    assert driven.engine.expire() == 0  # the new wait is that of open decisions
    assert driven[HERE].counts.expired == 0
    assert operate(driven, "edited", reward_wait=50.0, default_outcome=0.5) is True
    driven.engine.expire()
    assert driven[HERE].counts.expired == 1
    outcome = driven.decisions()[0].outcome
    assert outcome is not None
    assert outcome.value == 0.5
    assert driven.tell(one, 1.0) == "late"
    assert driven.decide()[0].probability >= 0.2
    found = shown(driven)
    assert (found.description, found.floor, found.reward_wait, found.default_outcome) == ("checkout", 0.2, 50.0, 0.5)
    assert [event.event for event in found.events] == ["edited", "edited", "created"]
    assert found.events[0].by == "4f2a"
    assert found.events[0].details["settings"] == {"reward_wait": 50.0, "default_outcome": 0.5}
    same = Settings(HERE, ["a", "b", "c"], reward_wait=60.0, default_outcome=0.0)
    assert driven.do(Create(same))[1] is False  # a program that creates it at every start goes on


def test_a_default_may_come_later(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=10)
    assert driven[HERE].reporting is not None
    assert operate(driven, "edited", reward_wait=60.0, default_outcome=0.0) is True
    assert driven[HERE].reporting is None
    assert driven[HERE].learner.status.provisional == 1.0
    driven.decide(size=10)
    driven.clock.advance(61)
    driven.engine.expire()
    assert driven[HERE].counts.expired == 20
    driven.change(add=("d",))
    assert driven[HERE].learner.status.provisional == 1.0
    assert driven[HERE].settings.is_provisional


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"floor": 0.4}, r"at most 1/3, got 0\.4"),
        ({"control": "z", "holdout": 0.1}, "control must be one of the arms"),
        ({"control": "a"}, "Give a holdout too"),
        ({"default_outcome": 7.0}, "default_outcome"),
        ({"default_outcome": None}, "cannot be taken away"),
        ({"reward_wait": None}, "Give a reward_wait too"),
        ({}, "name at least one setting"),
    ],
)
def test_an_impossible_edit_is_refused_and_changes_nothing(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    driven = Driven(tmp_path)
    driven.create(reward_wait=60.0, default_outcome=0.0)
    before = state(driven)
    result = driven.do(Operate(HERE, Operation("edited", settings=Edit(**settings))))
    assert isinstance(result, Refusal)
    assert result.kind == "invalid"
    assert re.search(said, result.detail)
    assert state(driven) == before


def test_arms_must_fit_the_floor_and_the_control(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(floor=0.25, holdout=0.1, control="a")
    before = state(driven)
    assert driven.change(add=("d", "e")).kind == "invalid"
    assert driven.change(retire=("a",)).kind == "conflict"
    assert state(driven) == before
    assert driven.change(add=("d",))[1] is True
    assert driven[HERE].distribution().tolist() == pytest.approx([0.325, 0.225, 0.225, 0.225])
    assert driven.change(retire=("b",), add=("0",))[1] is True  # indices move
    assert driven[HERE].distribution()[0] == pytest.approx(0.325)


def test_costs_contain_the_mix(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    mixed, plain = Driven(tmp_path), Driven(tmp_path / "plain")
    mixed.create(floor=0.1, holdout=0.2)
    plain.create()
    for driven in (mixed, plain):
        for _ in range(40):
            [one] = driven.decide()
            driven.tell(one, 0.5)
    cost = 40 * (0.8 * 0.1 * 2 + 0.2 * (1 - 1 / 3))
    assert mixed[HERE].proven() == pytest.approx(plain[HERE].proven() + cost)


def test_decisions_that_missed_an_edit_cost_one_and_are_entered(tmp_path: Path) -> None:
    here = Driven(tmp_path)
    here.create(floor=0.2)
    there = Driven(tmp_path, clock=here.clock, seed=2)
    operate(here, "edited", floor=0.0, holdout=0.5)
    made = there.decide(size=7)  # it has not read of the edit
    assert {entry.policy for entry in decided(here)} == {None}
    here.engine.catch_up()
    there.engine.catch_up()
    assert here[HERE].more_proven == there[HERE].more_proven == 7.0
    assert here[HERE].learner.round == 7
    assert here[HERE].stale == 7
    groups = here[HERE].operations.groups
    assert groups is not None
    assert groups.decisions == 0
    here.tell(made[0], 1.0)
    there.engine.catch_up()
    assert here.engine.fold.snapshot() == there.engine.fold.snapshot()
    assert verify(here.engine.journal).problems == []


def test_a_server_that_has_not_read_of_it_goes_on_for_a_moment(tmp_path: Path) -> None:
    """The order of entries decides. Decisions drawn before the freeze was read teach, whenever they are written."""
    here = Driven(tmp_path)
    here.create(reward_wait=60.0)
    there = Driven(tmp_path, clock=here.clock, seed=2)
    operate(here, "frozen", "a")
    there.decide(size=3)
    there.engine.catch_up()
    there.decide(size=4)
    operate(here, "unfrozen")
    here.engine.catch_up()
    assert here[HERE].learner.round == 3
    assert here[HERE].operations.aside.decisions == 4
    operate(here, "edited", reward_wait=6_000.0)
    here.clock.advance(100)
    there.engine.expire()  # by the wait that it knows
    here.engine.catch_up()
    there.engine.catch_up()
    assert here[HERE].counts.expired in (0, 7)
    assert here.engine.fold.snapshot() == there.engine.fold.snapshot()


@pytest.mark.parametrize("default", [None, 0.75])
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_servers_agree_on_any_history_from_any_snapshot(tmp_path: Path, seed: int, default: float | None) -> None:
    generator, here = np.random.default_rng([seed, 99]), Driven(tmp_path)
    here.create(reward_wait=30.0, default_outcome=default, holdout=0.2)
    servers = here, Driven(tmp_path, clock=here.clock, seed=2)
    snapshots, tried = live_apart(servers, generator)
    for driven in servers:
        driven.engine.catch_up()
    now = here.engine.fold.snapshot()
    assert servers[1].engine.fold.snapshot() == now
    assert tried == {"paused", "resumed", "frozen", "unfrozen", "edited"}
    assert {entry.policy for entry in decided(here)} >= {None, Policy.HOLDOUT, Policy.FROZEN}
    fold = Fold()
    for entry in entries(here):
        fold.apply([entry])
    assert fold.snapshot() == now
    for snapshot in snapshots:
        fold = restore(snapshot)
        assert fold.snapshot() == snapshot
        fold.apply(here.engine.journal.read(fold.seq, 10**6))
        assert fold.snapshot() == now
    assert shown(here).failure is None
    here.engine.snapshot()
    assert verify(here.engine.journal).problems == []


def live_apart(servers: tuple[Driven, Driven], generator: np.random.Generator) -> tuple[list[Snapshot], set[str]]:
    """Let two servers do random things. Returns snapshots from all over the time, and what was tried."""
    made, snapshots, tried = list[Decided](), list[Snapshot](), set[str]()
    for step in range(150):
        driven = servers[int(generator.integers(2))]
        match generator.choice(
            ["decide", "tell", "wait", "arms", "read", "operate"], p=[0.3, 0.3, 0.05, 0.05, 0.1, 0.2]
        ):
            case "decide":
                result = driven.do(Ask(HERE, int(generator.integers(1, 5))))
                made += [] if isinstance(result, Refusal) else result.decisions
            case "tell" if made:
                picked = [made[index] for index in generator.integers(0, len(made), 4)]
                driven.tell_all([OutcomeReport(one.id, "reward", float(generator.random()), True) for one in picked])  # noqa: FBT003
            case "wait":
                driven.clock.advance(float(generator.uniform(0, 40)))
                driven.engine.expire()
            case "arms":
                histories.change_an_arm(driven, HERE, generator, fewest=1)
            case "read":
                driven.engine.catch_up()
            case "operate":
                tried.add(histories.operate_somehow(driven, HERE, generator))
        if step % 10 == 0:
            snapshots.append(driven.engine.fold.snapshot())
    return snapshots, tried


def test_the_event_of_a_change_of_arms_names_the_key(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.do(ChangeArms(HERE, histories.ArmChange(["d"], []), "77aa"))
    [event, _] = shown(driven).events
    assert (event.event, event.by) == ("arms", "77aa")
