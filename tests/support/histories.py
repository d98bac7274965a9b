"""Random histories of an engine, with everything that can happen to experiments."""

import numpy as np

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.operating import Edit, Operation
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.settings import ArmChange, OutcomeChoice
from belated.serve.engine.requests import Operate
from tests.support.engines import Driven, informed

__all__ = ["ArmChange"]

NAMES = ("waiting", "patient")
RARE = {EntryKind.CLOSED, EntryKind.BASE, EntryKind.REMOVED, EntryKind.OPERATED}
KINDS = set(EntryKind) - RARE  # what a long history has
WORDS = {"waiting": "reward", "patient": "loss"}


def begin(driven: Driven) -> None:
    """Create two experiments. The waits of the first one end, and the second waits forever."""
    driven.create("waiting", ("a", "b", "c"), reward_wait=30.0, default_outcome=-1.0, outcome=OutcomeChoice(-1, 3))
    driven.create("patient", ("a", "b", "c", "d"), outcome=OutcomeChoice(0, 1, "lower"))


LIMIT = OpenLimit("shop", 10**6)


def live(driven: Driven, generator: np.random.Generator, steps: int, limit: OpenLimit | None = LIMIT) -> None:
    """Continue a history by random steps. Some decisions count for a key with this limit."""
    known: list[Decided] = []
    for _ in range(steps):
        name = NAMES[generator.integers(2)]
        match generator.choice(
            ["decide", "batch", "tell", "amend", "wait", "arms"], p=[0.35, 0.1, 0.35, 0.1, 0.07, 0.03]
        ):
            case "decide":
                known += driven.decide(name, limit=limit)
            case "batch":
                known += driven.decide(name, int(generator.integers(1, 40)))
            case "tell" | "amend" as what if known:
                picked = [known[index] for index in generator.integers(0, len(known), 5)]
                reports = [report(one, generator, amend=what == "amend") for one in picked]
                driven.tell_all(informed(reports, driven.engine.journal))
            case "wait":
                driven.clock.advance(float(generator.exponential(10)))
                driven.engine.expire()
            case "arms":
                change_an_arm(driven, name, generator)


def report(decision: Decided, generator: np.random.Generator, *, amend: bool) -> OutcomeReport:
    outcome = decision.experiment.settings.outcome
    value = float(generator.uniform(outcome.lowest, outcome.highest))
    return OutcomeReport(decision.id, WORDS[decision.experiment.name], value, amend)


def change_an_arm(driven: Driven, name: str, generator: np.random.Generator, fewest: int = 2) -> None:
    """Retire an arm or add one, possibly a retired one."""
    active = [driven[name].arms[arm] for arm in driven[name].era.arms]
    if len(active) > fewest and generator.random() < 0.5:
        driven.change(name, retire=(active[generator.integers(len(active))],))
    else:
        driven.change(name, add=tuple(arm for arm in ["abcdef"[generator.integers(6)]] if arm not in active))


def an_operation(generator: np.random.Generator, arms: list[str]) -> Operation:
    """Pause, resume, freeze, unfreeze or edit. Some of it is impossible, and is refused."""
    arm = arms[generator.integers(len(arms))]
    match generator.choice(["paused", "resumed", "frozen", "unfrozen", "edited"], p=[0.1, 0.3, 0.1, 0.2, 0.3]):
        case "frozen":
            return Operation("frozen", arm)
        case "edited":
            edits = [
                Edit(floor=float(generator.uniform(0, 0.3))),
                Edit(holdout=float(generator.choice([0.0, 0.25])), control=None),
                Edit(holdout=0.3, control=arm),
                Edit(reward_wait=float(generator.uniform(10, 60))),
                Edit(default_outcome=float(generator.random())),
                Edit(description=arm),
            ]
            return Operation("edited", settings=edits[generator.integers(len(edits))])
        case event:
            return Operation(str(event))  # type: ignore[arg-type]


def operate_somehow(driven: Driven, name: str, generator: np.random.Generator) -> str:
    """Operate an experiment. Returns what was tried."""
    operation = an_operation(generator, driven[name].arms)
    driven.do(Operate(name, operation, "4f2a"))
    return operation.event
