"""The engine agrees with a model made of dictionaries on every answer, whatever the order of requests.

The learner of one experiment begins in a later stage of a learner on means, if a subclass says so.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from belated.serve.domain import ids
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import TuningChoice
from belated.serve.engine.requests import Answers, Ask
from belated.serve.http.documents import id_of
from belated.serve.store.journal import entries
from belated.serve.store.verify import verify
from tests.support.engines import Driven
from tests.support.means import FEARLESS, assert_known, hand_over, raise_alarm, stage_of

WAITS = {"short": 5.0, "long": 100.0, "endless": None}
DEFAULTS = {"short": 0.0, "long": None, "endless": None}
NAMES, ARMS = st.sampled_from(sorted(WAITS)), st.sampled_from("abcd")
KEYS, VALUES = st.sampled_from([None, "k1", "k2", "k3"]), st.sampled_from([0.0, 0.25, 1.0])


class Model:
    """What should be true after each step."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[tuple[str, float | None]]] = {}  # by decision, all its reports
        self.made: dict[str, tuple[str, int]] = {}  # by decision, its experiment and time
        self.requests: dict[tuple[str, str], list[str]] = {}
        self.shown: dict[str, str] = {}  # by decision with a key, its arm
        self.arms = {name: {"a", "b"} for name in WAITS}
        self.closed: set[str] = set()

    def refusal(self, name: str, size: int, earlier: list[str] | None) -> str:
        """Why a request with the key of earlier decisions is refused, or one without any."""
        if not earlier:
            assert name in self.closed
            return "conflict"
        if len(earlier) != size:
            return "invalid"
        assert not {self.shown[id] for id in earlier} <= self.arms[name]  # an arm was retired
        return "conflict"

    def tell(self, id: str, value: float, *, amend: bool) -> str:
        if id not in self.outcomes:
            return "not_found"
        said = self.outcomes[id]
        if not said:
            said.append(("reported", value))
            return "applied"
        if said[-1][0] == "expired":
            said.append(("late", value))
            return "late"
        if said[-1][1] == value:
            return "duplicate"
        if not amend:
            return "conflict"
        said.append(("amended", value))
        return "amended"

    def expire(self, now: int) -> None:
        for id, (name, at) in self.made.items():
            wait = WAITS[name]
            if wait is not None and not self.outcomes[id] and now - at >= wait * 1e6:
                self.outcomes[id].append(("expired", DEFAULTS[name]))

    def counts(self, name: str) -> dict[str, int]:
        mine = [self.outcomes[id] for id, (own, _) in self.made.items() if own == name]
        kinds = [kind for said in mine for kind, _ in said]
        counted = {kind: kinds.count(kind) for kind in ("reported", "expired", "late", "amended")}
        return {"decisions": len(mine), **counted}


class Engines(RuleBasedStateMachine):
    """Does the same to the engine and to the model."""

    stage = "means"
    decisions: Bundle[str] = Bundle("decisions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.driven, self.model = Driven(self.folder), Model()
        for name, wait in WAITS.items():
            tuning = FEARLESS if name == "endless" else TuningChoice()
            self.driven.create(name, ("a", "b"), reward_wait=wait, default_outcome=DEFAULTS[name], tuning=tuning)

    @initialize(target=decisions)
    def begin(self) -> Any:
        """Bring the learner of one experiment to the stage, and let the model know what happened."""
        {"means": lambda *_: None, "shadow": hand_over, "careful": raise_alarm}[self.stage](self.driven, "endless")
        assert stage_of(self.driven["endless"].learner) == self.stage
        for decision, outcome in self.driven.decisions("endless"):
            id = id_of(decision)
            self.model.made[id] = "endless", decision.at
            self.model.outcomes[id] = [] if outcome is None else [("reported", outcome.value)]
        return multiple(*list(self.model.made)[-20:])

    @rule(target=decisions, name=NAMES, size=st.sampled_from([1, 1, 2, 5]), key=KEYS)
    def decide(self, name: str, size: int, key: str | None) -> Any:
        result = self.driven.do(Ask(name, size, key))
        earlier = self.model.requests.get((name, key or ""))
        if isinstance(result, Refusal):
            assert result.kind == self.model.refusal(name, size, earlier)
            return multiple()
        assert isinstance(result, Answers)
        made = [one.id for one in result.decisions]
        assert {one.arm for one in result.decisions} <= self.model.arms[name]
        assert len(set(made)) == size
        if result.replayed:
            assert made == earlier
            return multiple()
        assert not earlier
        assert name not in self.model.closed
        if key is not None:
            self.model.requests[name, key] = made
            self.model.shown.update({one.id: one.arm for one in result.decisions})
        self.model.outcomes.update({id: [] for id in made})
        self.model.made.update(dict.fromkeys(made, (name, self.driven.clock.now)))
        return multiple(*made)

    @rule(told=st.lists(st.tuples(decisions, VALUES, st.booleans()), min_size=1, max_size=4))
    def tell(self, told: list[tuple[str, float, bool]]) -> None:
        for id, value, amend in told:
            assert self.driven.tell(id, value, amend=amend) == self.model.tell(id, value, amend=amend)

    @rule(id=decisions, bit=st.integers(0, ids.NONCE_BITS - 1))
    def tell_unknown(self, id: str, bit: int) -> None:
        wanted = ids.decode(id)
        assert wanted is not None
        wrong = ids.encode(0, wanted.seq, wanted.nonce ^ 1 << bit)
        assert self.driven.tell(wrong, 0.25) == self.model.tell(wrong, 0.25, amend=False) == "not_found"

    @rule(seconds=st.sampled_from([0.001, 1.0, 5.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.driven.clock.advance(seconds)
        self.driven.engine.expire()
        self.model.expire(self.driven.clock.now)

    @rule(name=NAMES, arm=ARMS, joins=st.booleans())
    def change_arms(self, name: str, arm: str, joins: bool) -> None:
        arms = self.model.arms[name]
        result = self.driven.change(name, add=(arm,) if joins else (), retire=() if joins else (arm,))
        if name in self.model.closed:
            assert result.kind == "conflict"
        elif not joins and arms == {arm}:
            assert result.kind == "invalid"
        elif not joins and arm not in self.driven[name].arms:
            assert result.kind == "not_found"
        else:
            assert result[1] == (joins != (arm in arms))  # whether anything has changed
            self.model.arms[name] = arms | {arm} if joins else arms - {arm}

    @rule(name=st.sampled_from(["short", "endless"]), wanted=st.integers(0, 3))
    def close(self, name: str, wanted: int) -> None:
        if wanted == 0:  # rarely, because little can happen afterwards
            self.driven.close(name)
            self.model.closed.add(name)

    @rule(snapshot=st.booleans())
    def restart(self, snapshot: bool) -> None:
        self.driven.restart(snapshot=snapshot)

    @invariant()
    def agree(self) -> None:
        for name in WAITS:
            experiment, model = self.driven[name], self.model
            counts = {kind: getattr(experiment.counts, kind) for kind in model.counts(name)}
            assert counts == model.counts(name)
            assert {experiment.arms[arm] for arm in experiment.era.arms} == model.arms[name]
            assert (experiment.closed_at is not None) == (name in model.closed)
            newest = [found.outcome and found.outcome.value for found in self.driven.decisions(name)]
            mine = [id for id, (own, _) in model.made.items() if own == name]
            assert newest == [model.outcomes[id][-1][1] if model.outcomes[id] else None for id in mine]

    def teardown(self) -> None:
        for id, said in self.model.outcomes.items():
            wanted = ids.decode(id)
            assert wanted is not None
            assert [one.value for one in self.driven.engine.journal.history(wanted.seq)] == [value for _, value in said]
        for name in ("short", "long"):
            assert_known(self.driven[name], entries(self.driven.engine.journal))
        self.driven.engine.snapshot()  # so that the live state is compared too
        assert verify(self.driven.engine.journal).problems == []
        self.driven.engine.journal.close()
        shutil.rmtree(self.folder)


class AfterHandOver(Engines):
    """The same, while the world moves."""

    stage = "shadow"


class AfterAlarm(Engines):
    """The same, after an alarm."""

    stage = "careful"


SETTINGS = settings(
    max_examples=4,  # tests/system/serve tries many more
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

TestEngine = Engines.TestCase
TestAfterHandOver, TestAfterAlarm = AfterHandOver.TestCase, AfterAlarm.TestCase
TestEngine.settings = SETTINGS
TestAfterHandOver.settings = TestAfterAlarm.settings = settings(SETTINGS, max_examples=1)
