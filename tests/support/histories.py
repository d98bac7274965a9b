"""Random histories of an engine, with everything that can happen to experiments."""

import numpy as np

from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.settings import OutcomeChoice
from tests.support.engines import Driven, informed

NAMES = ("waiting", "patient")
KINDS = set(EntryKind) - {EntryKind.CLOSED, EntryKind.BASE, EntryKind.REMOVED}  # what a long history has
WORDS = {"waiting": "reward", "patient": "loss"}


def begin(driven: Driven) -> None:
    """Create two experiments. The waits of the first one end, and the second waits forever."""
    driven.create("waiting", ("a", "b", "c"), reward_wait=30.0, default_outcome=-1.0, outcome=OutcomeChoice(-1, 3))
    driven.create("patient", ("a", "b", "c", "d"), outcome=OutcomeChoice(0, 1, "lower"))


def live(driven: Driven, generator: np.random.Generator, steps: int) -> None:
    """Continue a history by random steps."""
    known: list[Decided] = []
    for _ in range(steps):
        name = NAMES[generator.integers(2)]
        match generator.choice(
            ["decide", "batch", "tell", "amend", "wait", "arms"], p=[0.35, 0.1, 0.35, 0.1, 0.07, 0.03]
        ):
            case "decide":
                known += driven.decide(name)
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
