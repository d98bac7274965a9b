"""What a learner on means knows of its arms, what it should know, and ways to provoke its later stages."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from belated import FTRL
from belated.kernels import ON_MEANS
from belated.kernels.means import COUNT, MISSING, SUM
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.messages import Decided
from belated.serve.domain.settings import ArmChange, TuningChoice
from tests.support.engines import LOSSES, Driven

STAGES = ("means", "shadow", "careful")
FEARLESS = TuningChoice("means", boldness=1000.0)  # hardly draws what looks worse


class Known(NamedTuple):
    """What is known of an arm."""

    reports: float
    losses: float  # their sum
    missing: float  # open or given up


def stage_of(learner: FTRL) -> str:
    """How a learner on means decides now."""
    return STAGES[int(learner._state.clock["means"]["stage"][0])]


def known(experiment: Experiment) -> dict[str, Known]:
    """What the learner knows of each arm that takes part."""
    rows = experiment.learner._state.policies[ON_MEANS][[COUNT, SUM, MISSING]].T.tolist()
    return {experiment.arms[arm]: Known(*row) for arm, row in zip(experiment.era.arms, rows, strict=True)}


class Told(NamedTuple):
    """A decision, whether its server knew of the arms, and its outcomes so far."""

    entry: Entry
    is_entered: bool
    outcomes: list[Entry]


class Life:
    """What an arm has done since it joined last. A learner with a single arm has no means, so then it begins anew."""

    def __init__(self, seq: int) -> None:
        self.joined = self.kept = seq
        self.carried: list[Told] = []  # decisions from before `kept` that were open then

    def begin_anew(self, seq: int, mine: list[Told]) -> None:
        self.carried = [one for one in mine if one.entry.seq > self.joined and not one.outcomes]
        self.kept = seq

    def known(self, experiment: Experiment, mine: list[Told]) -> Known:
        """A decision counts with its newest outcome, or with its first if it was carried over."""
        counted = [one.outcomes[-1:] for one in mine if one.entry.seq > self.kept]
        counted += [one.outcomes[:1] for one in self.carried]
        values = [outcome.value for outcomes in counted for outcome in outcomes if outcome.value is not None]
        return Known(len(values), sum(map(experiment.outcomes.loss, values)), len(counted) - len(values))


def literal(experiment: Experiment, journal: Iterable[Entry]) -> dict[str, Known]:
    """What it should know, by the journal alone. Decisions whose server did not know of the arms do not count."""
    lives, changed = {name: Life(experiment.seq) for name in experiment.settings.arms}, experiment.seq
    told: dict[int, Told] = {}

    def of(name: str) -> list[Told]:
        return [one for one in told.values() if one.is_entered and experiment.arms[one.entry.arm or 0] == name]

    for entry in journal:
        if entry.experiment != experiment.seq:
            continue
        if entry.kind is EntryKind.DECIDED:
            told[entry.seq] = Told(entry, (entry.seen or 0) >= changed, [])
        elif entry.kind is EntryKind.ARMS:
            change, changed = msgspec.json.decode(entry.body or b"", type=ArmChange), entry.seq
            if len(lives) == 1:
                [(name, life)] = lives.items()
                life.begin_anew(entry.seq, of(name))
            staying = {name: life for name, life in lives.items() if name not in change.retire}
            lives = staying | {name: Life(entry.seq) for name in change.add}
        elif entry.decision is not None:
            told[entry.decision].outcomes.append(entry)
    return {name: life.known(experiment, of(name)) for name, life in lives.items()}


def assert_known(experiment: Experiment, journal: Iterable[Entry]) -> None:
    """Compare what the learner knows with what it should."""
    if len(experiment.era.arms) == 1:
        return
    ours, theirs = known(experiment), literal(experiment, journal)
    assert ours.keys() == theirs.keys()
    for name, one in ours.items():
        assert one == pytest.approx(tuple(theirs[name]), abs=1e-9), name


def provoke(driven: Driven, stage: str, name: str = "layout") -> None:
    """Create an experiment with arms a and b, and bring it to this stage."""
    driven.create(name, ("a", "b"), outcome=LOSSES, tuning=FEARLESS)
    {"means": lambda *_: None, "shadow": hand_over, "careful": raise_alarm}[stage](driven, name)
    assert stage_of(driven[name].learner) == stage


def tell_loss(driven: Driven, decision: Decided, loss: float) -> None:
    """Report a loss from 0 to 1 in the units of the experiment."""
    outcomes = decision.experiment.outcomes
    assert driven.tell(decision, outcomes.value(loss), word=outcomes.word) == "applied"


def hand_over(driven: Driven, name: str = "layout") -> None:
    """Report losses in waves until the learner notices that the world moves."""
    for number in range(400):
        [decision] = driven.decide(name)
        if stage_of(driven[name].learner) == "shadow":
            return
        tell_loss(driven, decision, float(number // 20 % 2))


class Last:
    """A generator with which the last arm is drawn, however rarely that happens."""

    def random(self, size: int) -> NDArray[np.float64]:
        return np.full(size, 1 - 1e-9)


def raise_alarm(driven: Driven, name: str = "layout") -> None:
    """Let the last arm look worse, so that it is hardly ever drawn, and then let it be drawn and be perfect."""
    generator, last = driven.engine.asking.generator, driven[name].arms[driven[name].era.arms[-1]]
    for _ in range(12):
        [decision] = driven.decide(name)
        tell_loss(driven, decision, 1.0 if decision.arm == last else 0.9)
    driven.engine.asking.generator = Last()  # type: ignore[assignment]
    for one in driven.decide(name, 20):
        assert one.probability < 0.1
        tell_loss(driven, one, 0.0)
    driven.engine.asking.generator = generator
    driven.decide(name)
