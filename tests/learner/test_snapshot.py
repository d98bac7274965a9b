"""Snapshots are plain data and continue exactly. Damaged ones are refused."""

import copy
import json
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL
from belated.errors import ImproperRule, SnapshotError
from belated.learner.outcomes import OutcomeRange
from belated.tunings import Advanced, Means, Shadow, Simple, Tuning
from tests.support.catalogue import TUNINGS, Own


def play_on(learner: FTRL, rounds: int) -> list[tuple[Any, ...]]:
    """Play rounds with late, lost and unordered feedback. Returns everything observable on the way."""
    trace: list[tuple[Any, ...]] = []
    for t in range(learner.round + 1, learner.round + rounds + 1):
        trace.append((*learner.ask(), learner.certificate(), learner.status.backlog, learner.outstanding))
        if t % 3 and t > 40:
            learner.tell(t - 17 - t % 5 * 3, (t % 11) / 11) if _is_open(learner, t - 17 - t % 5 * 3) else None
        if t % 50 == 0:
            learner.ask(0)
    trace.append((learner.status.estimated_losses.tolist(), learner.distribution().tolist()))
    return trace


def _is_open(learner: FTRL, round: int) -> bool:
    rows = learner._state.ledger[: int(learner._state.clock["rows"][0])]
    return bool((rows["probability"][rows["round"] == round] > 0).any())


@pytest.mark.parametrize("name", TUNINGS)
@pytest.mark.parametrize("refresh", [6])  # tests/system has 1
def test_an_interrupted_run_continues_bit_for_bit(name: str, refresh: int) -> None:
    tuning = TUNINGS[name]
    whole = FTRL(5, tuning, seed=3, refresh=refresh)
    broken = FTRL(5, tuning, seed=3, refresh=refresh)
    own = tuning if isinstance(tuning, Own) else None
    for rounds in (0, 1, 2, 100, 131, 300):
        text = json.dumps(broken.snapshot(), allow_nan=False)
        broken = FTRL.restore(json.loads(text), own)
        assert json.dumps(broken.snapshot()) == text
        assert play_on(broken, rounds) == play_on(whole, rounds)


def test_a_careful_shadow_continues_in_the_middle_of_a_distribution() -> None:
    """100 arms are drawn by blocks of the distribution in force, here the careful one's."""
    whole, broken = (FTRL(100, Shadow(scale=1.0, switch_threshold=0.01), seed=3, refresh=50) for _ in range(2))
    careful = 0
    for _ in range(60):
        broken = FTRL.restore(json.loads(json.dumps(broken.snapshot())))
        careful += broken.status.beta > 0
        assert play_on(broken, 17) == play_on(whole, 17)
    assert careful > 5


def test_taking_a_snapshot_changes_nothing() -> None:
    watched, other = FTRL(4, seed=1), FTRL(4, seed=1)
    for _ in range(30):
        watched.snapshot()
        assert play_on(watched, 7) == play_on(other, 7)


@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda learner: pickle.loads(pickle.dumps(learner))])  # noqa: S301
def test_copies_and_pickles_are_independent_and_equal(clone: Callable[[FTRL], FTRL]) -> None:
    learner = FTRL(4, Own(), seed=1)
    play_on(learner, 90)
    twin = clone(learner)
    first = play_on(twin, 60)
    assert play_on(learner, 60) == first


def test_it_holds_only_what_every_json_library_can_read() -> None:
    learner = FTRL(3, seed=1)
    learner.ask(20)

    def check(value: Any) -> None:
        if isinstance(value, dict):
            for key, entry in value.items():
                assert type(key) is str
                check(entry)
        elif isinstance(value, list):
            for entry in value:
                check(entry)
        else:
            assert type(value) in (str, int, float, bool)
            assert type(value) is not int or abs(value) < 2**53

    check(learner.snapshot())


@pytest.fixture
def snapshot() -> dict[str, Any]:
    learner = FTRL(3, Advanced(), seed=1, refresh=4)
    for round in [decision.round for decision in learner.ask(30)][::2]:
        learner.tell(round, 0.5)
    learner.ask()
    learner.tell(2, 0.5)
    return json.loads(json.dumps(learner.snapshot()))  # type: ignore[no-any-return]


@pytest.mark.parametrize("wrong", [None, 3, "{}", [], {}, {"format": "other"}, np.zeros(3)])
def test_the_wrong_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(SnapshotError, match="not a snapshot of a learner"):
        FTRL.restore(wrong)


def test_the_wrong_version_is_refused(snapshot: dict[str, Any]) -> None:
    with pytest.raises(SnapshotError, match="the snapshot has version 99, but this release reads version 6"):
        FTRL.restore({**snapshot, "version": 99})


def test_a_snapshot_of_the_version_before_is_refused() -> None:
    """It was written in November 2026."""
    old = json.loads((Path(__file__).parent / "data" / "snapshot-version-2.json").read_text())
    said = r"the snapshot has version 2, but this release reads version 6\. Restore it with the release that wrote it"
    with pytest.raises(SnapshotError, match=said):
        FTRL.restore(old)


def test_names_and_the_range_of_outcomes_are_kept() -> None:
    learner = FTRL(["blue", "green"], seed=1, outcomes=OutcomeRange(0, 50))
    learner.tell(learner.ask(), reward=20)
    twin: FTRL[str] = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    assert twin.status.arms == ("blue", "green")
    assert twin.status.outcomes == OutcomeRange(0, 50)
    assert [twin.ask() for _ in range(50)] == [learner.ask() for _ in range(50)]
    assert twin.snapshot() == learner.snapshot()


CLOCK: dict[str, list[Any]] = {
    "round": [-1, 5, 2**60],
    "left": [5, 10**6],
    "solves": [-1, 0, 1, 10**6],
    "backlog": [-1, 2**63 - 1],
    "skipped": [-1, 10**9],
    "capped": [-1, 10**9],
    "alpha": [-1.0, 1e16],
    "beta": [-1.0, 1e16],
    "drift": [-1.0, 1e9],
    "charge": [-1.0, 1e9],
    "base": [-1e9, 1e9],
    "late_base": [-1e9, 1e9],
    "reported": [-1, 10**9],
    "suffered": [-1.0, 1e9],
    "peak_uncharged": [-1.0, 1e9],
}
LEDGER: dict[str, list[Any]] = {
    "round": [[10**6] * 16, [-1] * 16, [1] * 16, []],
    "arm": [[3] * 16, [-1] * 16, [], [0.5] * 16],
    "probability": [[1.5] * 16, [-1000] * 16, [0] * 16, [5e-324] * 16, []],
}


def damage(snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One thing wrong at a time."""
    assert len(snapshot["ledger"]["round"]) == 16
    cases = {}
    for key in snapshot.keys() - {"format", "version"}:
        cases[f"no {key}"] = {name: value for name, value in snapshot.items() if name != key}
        cases[f"{key} is text"] = {**snapshot, key: "text"}
    wrong: list[tuple[str, dict[str, list[Any]]]] = [("clock", CLOCK), ("ledger", LEDGER)]
    for part, fields in wrong:
        for field, values in fields.items():
            for value in [*values, "x", None, 2**80]:
                cases[f"{part}.{field} = {value}"] = {**snapshot, part: {**snapshot[part], field: value}}
    for row in ("estimated_losses", "x", "v", "y"):
        for name, values in {"short": [], "NaN": [math.nan], "negative": [-1.0]}.items():
            cases[f"{name} {row}"] = {**snapshot, row: [*values, *snapshot[row][1:]]}
    for name, uniforms in {"above": [1.0], "below": [-0.1], "text": ["x"]}.items():
        cases[f"uniforms {name}"] = {**snapshot, "uniforms": uniforms}
    cases["version True"] = {**snapshot, "version": True}
    cases["a generator that stands still"] = {**snapshot, "generator": {**snapshot["generator"], "inc": "0x0"}}
    cases["no arms"] = {**snapshot, "arms": 0}
    cases["one arm twice"] = {**snapshot, "arms": ["a", "b", "a"]}
    cases["no arms at all"] = {**snapshot, "arms": []}
    cases["an impossible range"] = {**snapshot, "outcomes": {"lowest": 1, "highest": 0}}
    cases["another range"] = {**snapshot, "outcomes": {"shape": "round"}}
    cases["another generator"] = {**snapshot, "generator": {**snapshot["generator"], "name": "MT19937"}}
    cases["an unknown tuning"] = {**snapshot, "tuning": {"name": "Magic"}}
    cases["a tuning with odd settings"] = {**snapshot, "tuning": {"name": "Advanced", "scale": -1}}
    return cases


def test_damage_to_a_shadow_is_refused() -> None:
    data = FTRL(3, Shadow(), seed=1).snapshot()
    shadow = data["shadow"]
    for field, value in {"alarm": 1, "played": 2, "squares": -1.0}.items():  # alarmed, but not careful
        with pytest.raises(SnapshotError, match="shadow is out of range or contradicts the rest"):
            FTRL.restore({**data, "shadow": {**shadow, field: value}})
    for field in ("savings", "squares", "alarm", "played"):
        for damaged in ("x", None, 2**80):
            with pytest.raises(SnapshotError, match="damaged"):
                FTRL.restore({**data, "shadow": {**shadow, field: damaged}})
        with pytest.raises(SnapshotError, match="damaged"):
            FTRL.restore({**data, "shadow": {name: one for name, one in shadow.items() if name != field}})
    with pytest.raises(SnapshotError, match="damaged: shadow"):
        FTRL.restore({name: value for name, value in data.items() if name != "shadow"})


def assert_refused(data: dict[str, Any], damage: object) -> None:
    try:
        FTRL.restore(data)
    except SnapshotError as error:
        assert "damaged" in str(error)  # noqa: PT017
    else:
        pytest.fail(f"accepted: {damage}")


def on_means(stage: str) -> FTRL:
    """A learner on means in one of its three stages."""
    learner = FTRL(3, Means(), seed=1)
    for t in range(300 if stage != "means" else 28):
        decision = learner.ask()
        if t % 7:
            learner.tell(decision, float((t // 30 + decision.arm) % 2))
    if stage == "alarm":
        for _ in range(3):
            learner.tell(learner.record(0, 0.0005), 0.0)
        learner.ask(5)
    assert learner._state.clock["means"]["stage"][0] == ("means", "moving", "alarm").index(stage)
    return learner


DAMAGED_MEANS: dict[str, list[Any]] = {
    **{name: [-1, 3, 10**9, 0.5] for name in ("stage", "leader", "is_moving", "is_over")},
    **{name: [-1, 10**9, 0.5] for name in ("start", "start_backlog", "told", "known", "settled", "solved")},
    "longest": [-1.0, 2.0**60],
    **{name: [-1.0, 1e301] for name in ("lost", "over_open")},
    "over_round": [-1, 10**9, 0.5],
    **{name: [-1.0, 1e301] for name in ("alpha", "beta", "squares")},
    **{name: [1e301, -1e301] for name in ("run", "products", "lead")},
    "centres": [-1.0, 1e9],
    "lowest": [-1e9, 0.125],
}
DAMAGED_ROWS: dict[str, list[float]] = {
    "estimates": [-1e9, -1e301],
    "x": [-0.5, 0.9, 2.0],
    "count": [-1.0, 0.0],
    "sum": [-1.0, 1e9],
    "drawn": [-1e300, 1e300],
    "mark": [0.5, 1e9],
    "missing": [-1.0],
    "lost_own": [-1e301, 1e301],
}


@pytest.mark.parametrize("stage", ["means", "moving", "alarm"])
def test_damage_to_means_is_refused(stage: str) -> None:
    data = json.loads(json.dumps(on_means(stage).snapshot()))
    means = data["means"]
    assert {*DAMAGED_MEANS, *DAMAGED_ROWS} == set(means)
    FTRL.restore(data)
    cases: list[dict[str, Any]] = []
    for name, values in DAMAGED_MEANS.items():
        cases += [{**means, name: value} for value in [*values, "x", None, 2**80]]
    for name, numbers in DAMAGED_ROWS.items():
        odd: list[Any] = [[value, *means[name][1:]] for value in [*numbers, math.nan, "x", None]]
        cases += [{**means, name: row} for row in [*odd, means[name][1:], "x", 3]]
    cases += [{name: value for name, value in means.items() if name != missing} for missing in means]
    for damaged in cases:
        assert_refused({**data, "means": damaged}, {name: damaged.get(name) for name in means})
    with pytest.raises(SnapshotError, match="damaged: means must be a dictionary"):
        FTRL.restore({name: value for name, value in data.items() if name != "means"})
    shadow = data["shadow"]
    for wrong in ({"alarm": 1 - shadow["alarm"]}, {"played": 0}, {"played": 3 - shadow["played"]}):
        assert_refused({**data, "shadow": {**shadow, **wrong}}, wrong)


@pytest.mark.parametrize("stage", ["means", "moving", "alarm"])
@pytest.mark.parametrize("refresh", [1, 5])
def test_every_stage_continues_bit_for_bit(stage: str, refresh: int) -> None:
    whole = FTRL.restore({**on_means(stage).snapshot(), "refresh": refresh})
    broken = FTRL.restore(json.loads(json.dumps(whole.snapshot())))
    for rounds in (1, 2, 40, 131):
        text = json.dumps(broken.snapshot(), allow_nan=False)
        broken = FTRL.restore(json.loads(text))
        assert json.dumps(broken.snapshot()) == text
        assert play_on(broken, rounds) == play_on(whole, rounds)
        assert broken.measured_certificate() == whole.measured_certificate()


def test_a_large_lead_can_be_restored() -> None:
    """A decision from elsewhere with a tiny probability raises the alarm early, and the lead is in the certificate."""
    learner = FTRL(3, Means(), seed=1)
    learner.tell(learner.record(0, 1e-9), 0.0)
    learner.ask()
    again = FTRL.restore(json.loads(json.dumps(learner.snapshot())))
    assert again.status.plays == "careful"
    assert again.ask() == learner.ask()


def changed() -> FTRL[Any]:
    """A learner whose arms have changed, with open decisions from before."""
    learner: FTRL[Any] = FTRL(4, Means(), seed=1)
    learner.ask(20)
    for round in range(1, 20, 3):
        learner.tell(round, 0.5)
    learner.change_arms(add=1, retire=[0])
    learner.ask(5)
    return learner


def test_damage_to_a_stretch_is_refused() -> None:
    data = json.loads(json.dumps(changed().snapshot()))
    stretch, earlier = data["stretch"], data["stretch"]["earlier"]
    FTRL.restore(data)
    wrong: dict[str, list[Any]] = {
        "offset": [-1, 3, 0.5, "x", None],
        "earlier": ["x", {}, None, {"rounds": earlier["rounds"]}, {"arms": earlier["arms"]}],
        **{name: [-1.0, math.nan, math.inf, "x", None] for name in ("proven", "measured", "head_start")},
        "kept_since": [[0, 0, 0], [0, 0, 0, 21], [-1, 0, 0, 20], ["x"] * 4, [0.5] * 4, 7, None],
    }
    cases = [{**stretch, name: value} for name, values in wrong.items() for value in values]
    n = len(earlier["rounds"])
    rounds: list[Any] = [[0], [1] * n, earlier["rounds"][::-1], [*earlier["rounds"][:-1], 99], ["x"] * n, [0.5] * n]
    arms: list[Any] = [[0], [-2] * n, [4] * n, ["x"] * n, [0.5] * n]
    cases += [{**stretch, "earlier": {**earlier, "rounds": value}} for value in rounds]
    cases += [{**stretch, "earlier": {**earlier, "arms": value}} for value in arms]
    cases += [{name: value for name, value in stretch.items() if name != missing} for missing in stretch]
    for damaged in cases:
        assert_refused({**data, "stretch": damaged}, damaged)


def test_damage_to_numbered_arms_is_refused() -> None:
    data = changed().snapshot()
    assert data["arms"] == [1, 2, 3, 4]
    assert data["arms_ever"] == 5
    wrong: list[dict[str, Any]] = [
        *(
            {"arms": arms}
            for arms in ([1, 2, 3, 5], [1, 2, 2, 4], [4, 3, 2, 1], [-1, 2, 3, 4], [1, 2, 3], [1, "b", 3, 4])
        ),
        *({"arms_ever": born} for born in (4, -1, "5", None, 5.0, True)),
    ]
    for damaged in wrong:
        assert_refused({**data, **damaged}, damaged)


def test_damage_to_a_provisional_outcome_is_refused() -> None:
    learner = FTRL(3, Means(), seed=1, provisional=0.75)
    learner.ask(9)
    data = learner.snapshot()
    assert FTRL.restore(data).status.provisional == 0.75
    wrong: list[Any] = [-0.5, 1.5, math.nan, "x", None, [0.5], True]
    for value in wrong:
        assert_refused({**data, "provisional": value}, value)
    with pytest.raises(SnapshotError, match=r"it is provisional, but its tuning is Advanced\("):
        FTRL.restore({**FTRL(3, Advanced(), seed=1).snapshot(), "provisional": 0.5})


def paths(data: dict[str, Any], *above: str) -> list[tuple[str, ...]]:
    """The keys of a dictionary and of those inside it, each with the keys above it."""
    found = []
    for key, value in data.items():
        found.append((*above, key))
        found += paths(value, *above, key) if isinstance(value, dict) else []
    return found


OPTIONAL = ("outcomes", "provisional", "stretch", "arms_ever")  # a learner without them is a learner too


@pytest.mark.parametrize("tuning", [Means(), Shadow(), Advanced(), Simple()], ids=repr)
def test_a_snapshot_without_one_of_its_keys_is_refused(tuning: Tuning) -> None:
    learner: FTRL[Any] = FTRL(4, tuning, seed=1, outcomes=OutcomeRange(0, 50))
    learner.ask(20)
    learner.change_arms(add=1, retire=[0])
    learner.tell(learner.ask(5)[0], reward=10)
    snapshot = json.loads(json.dumps(learner.snapshot()))
    for path in paths(snapshot):
        if path[0] == "outcomes" or path in {(name,) for name in OPTIONAL}:
            continue
        damaged = json.loads(json.dumps(snapshot))
        part = damaged
        for key in path[:-1]:
            part = part[key]
        del part[path[-1]]
        with pytest.raises(SnapshotError):
            FTRL.restore(damaged)


def test_damage_is_refused_with_a_reason(snapshot: dict[str, Any]) -> None:
    FTRL.restore(snapshot)
    for name, damaged in damage(snapshot).items():
        try:
            FTRL.restore(damaged)
        except SnapshotError as error:
            assert re.search(r"damaged|not built in|PCG64|version True", str(error)), name  # noqa: PT017  (the name tells which)
        else:
            pytest.fail(f"accepted: {name}")


def test_a_tuning_of_your_own_must_be_passed_again(snapshot: dict[str, Any]) -> None:
    data = FTRL(3, Own(), seed=1).snapshot()
    with pytest.raises(SnapshotError, match="'own:Own', which is not built in: pass it to restore"):
        FTRL.restore(data)
    assert isinstance(FTRL.restore(data, Own()).status.tuning, Own)
    with pytest.raises(SnapshotError, match="made with the tuning"):
        FTRL.restore(snapshot, Simple())
    with pytest.raises(SnapshotError, match="made with the tuning"):
        FTRL.restore(snapshot, Advanced(scale=2.0))


class Powered(Tuning):
    """Not a dataclass, and not all of its attributes are plain."""

    def __init__(self, power: float, table: tuple[int, ...] = ()) -> None:
        self.power, self.table = power, table

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return float(round) ** self.power, 0.0


def test_a_tuning_of_your_own_is_not_taken_for_a_built_in_one_of_its_name() -> None:
    namesake = type("Simple", (Own,), {})()
    with pytest.raises(SnapshotError, match="'own:Simple', which is not built in"):
        FTRL.restore(FTRL(3, namesake, seed=1).snapshot())


def test_the_attributes_of_a_tuning_of_your_own_are_compared() -> None:
    data = json.loads(json.dumps(FTRL(3, Powered(0.5, (1, 2)), seed=1).snapshot()))
    assert repr(FTRL.restore(data, Powered(0.5, (1, 2))).status.tuning) == "Powered(power=0.5, table=(1, 2))"
    for other in (Powered(0.4, (1, 2)), Powered(0.5)):
        with pytest.raises(SnapshotError, match="made with the tuning"):
            FTRL.restore(data, other)


def test_an_improper_rule_of_the_caller_is_not_called_a_damaged_snapshot() -> None:
    patience = 1.0

    class Moody(Tuning):
        def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
            return math.sqrt(round), 0.0

        def patience(self, n_arms: int) -> float:
            return patience

    snapshot = FTRL(3, Moody(), seed=1).snapshot()
    patience = -1.0
    with pytest.raises(ImproperRule, match="patience"):
        FTRL.restore(snapshot, Moody())
