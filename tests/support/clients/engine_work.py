"""Work for an engine, and a check for acknowledged writes that its store has lost."""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, final

import numpy as np

from belated.serve.domain import ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.settings import Settings
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Answers, Ask, Create, Tell
from belated.serve.store.journal import Journal, Key
from tests.support.clients.memory import Memory, disagreement
from tests.support.engines import informed

PATIENT = Settings("patient", ["blue", "green", "red"])
HASTY = Settings("hasty", ["left", "right"], reward_wait=5.0, default_outcome=0.0)
STEP = MICROSECONDS  # from one request to the next
BEGAN = 1_700_000_000 * MICROSECONDS


class Chosen(NamedTuple):
    """A decision was acknowledged."""

    id: str
    experiment: str
    arm: str
    probability: float
    round: int
    key: str
    position: int


class Sent(NamedTuple):
    """A report was sent."""

    id: str
    value: float


class Told(NamedTuple):
    """A report was acknowledged."""

    id: str
    value: float


class Admitted(NamedTuple):
    """A key was handed out."""

    id: str


Fact = Chosen | Sent | Told | Admitted


@final
class Work:
    """Sends requests of all kinds to an engine on this journal, one after the other. `facts` is what it acknowledged.

    It is a list, not a `Memory`, because a power cut goes back to an earlier fact.
    """

    def __init__(self, journal: Journal, random: Random, facts: list[Fact]) -> None:
        self._journal, self._random, self.facts = journal, random, facts
        self._time = BEGAN
        self.engine = Engine(journal, clock=self._now, generator=np.random.default_rng(random.randrange(2**32)))
        self._time = max(BEGAN, self.engine.fold.at)
        self._next = self.decide

    def _now(self) -> int:
        return self._time

    def create(self) -> None:
        """Create the two experiments, or find that they exist."""
        for settings in (PATIENT, HASTY):
            self.engine.process([Create(settings)])

    def choose(self) -> str:
        """Pick the next step and return its name."""
        steps = [self.decide, self.decide, self.report, self.report, self.expire, self.snapshot, self.admit]
        self._next = self._random.choice(steps)
        return self._next.__name__

    def do(self) -> None:
        """Do the step that was picked."""
        self._time += STEP
        self._next()

    def decide(self) -> None:
        """Send a few requests in one batch. One of them repeats an earlier one."""
        asked = []
        for _ in range(self._random.randint(1, 3)):
            name = self._random.choice(("patient", "hasty"))
            asked.append(Ask(name, self._random.choice((1, 1, 5)), f"{self._random.getrandbits(64):x}"))
        earlier = [fact for fact in self.facts if isinstance(fact, Chosen)]
        repeated = self._random.choice(earlier) if earlier else None
        if repeated is not None:
            size = sum(fact.key == repeated.key for fact in earlier)
            asked.append(Ask(repeated.experiment, size, repeated.key))
        for request, answer in zip(asked, self.engine.process(asked), strict=True):
            assert isinstance(answer, Answers), answer
            assert answer.replayed == (repeated is not None and request.key == repeated.key)
            if not answer.replayed:
                for position, one in enumerate(answer.decisions):
                    what = one.id, one.experiment.name, one.arm, one.probability, one.round
                    self.facts.append(Chosen(*what, request.key or "", position))

    def report(self) -> None:
        """Report some decisions, for the first time or amended. Then send the same again, which changes nothing."""
        known = [fact.id for fact in self.facts if isinstance(fact, Chosen)]
        sent = [Sent(id, self._random.random()) for id in self._random.sample(known, min(len(known), 4))]
        items = informed([OutcomeReport(one.id, "reward", one.value, amend=True) for one in sent], self._journal)
        self.facts += sent
        for expected in ({"applied", "late", "amended"}, {"duplicate"}):
            statuses: Any = self.engine.process([Tell(items)])[0]
            assert {one.status for one in statuses} <= expected, statuses
            self.facts += [Told(*one) for one in sent]

    def expire(self) -> None:
        """Let some waits end."""
        self._time += 2 * STEP
        self.engine.expire()

    def snapshot(self) -> None:
        """Save a snapshot."""
        self.engine.snapshot()

    def admit(self) -> None:
        """Create a key, as another process would."""
        id = f"{self._random.getrandbits(64):x}"
        self._journal.add_key(Key(id, b"", "admin", None, self._time))
        self.facts.append(Admitted(id))


def memory_of(facts: Sequence[Fact]) -> Memory:
    """Collect the reports among the facts."""
    memory = Memory()
    for fact in facts:
        if isinstance(fact, Sent):
            memory.keep_sent(*fact)
        elif isinstance(fact, Told):
            memory.keep_told(*fact)
    return memory


def lost(engine: Engine, facts: Sequence[Fact]) -> list[str]:
    """List acknowledged facts that are missing, changed or stored twice."""
    journal, memory = engine.journal, memory_of(facts)
    keys = {key.id for key in journal.keys()}  # noqa: SIM118
    found = [f"the key {fact.id}" for fact in facts if isinstance(fact, Admitted) and fact.id not in keys]
    found += [f"{fact}" for fact in facts if isinstance(fact, Chosen) and not is_kept(engine, fact)]
    told = memory.told.items()
    return found + [f"{said} of {id}" for id, said in told if not are_kept(journal, id, memory.sent[id], said)]


def is_kept(engine: Engine, fact: Chosen) -> bool:
    """Whether the decision is stored unchanged, and is the only one with its key and position."""
    experiment = engine.fold.by_name.get(fact.experiment)
    if experiment is None:
        return False
    asked = experiment.seq, fact.key
    under = [one for one in engine.journal.requested([asked]).get(asked, []) if one.position == fact.position]
    return [
        (ids.encode(one.at, one.seq, one.nonce or 0), experiment.arms[one.arm or 0], one.probability, one.round)
        for one in under
    ] == [(fact.id, fact.arm, fact.probability, fact.round)]


def are_kept(journal: Journal, id: str, sent: list[float], told: list[float]) -> bool:
    """Whether each acknowledged outcome is stored once, in order. Outcomes without an answer may be there too."""
    decoded = ids.decode(id)
    assert decoded is not None
    history = journal.history(decoded.seq)
    said = [one.value for one in history if one.kind is not EntryKind.EXPIRED]
    return (
        not disagreement(said, sent, told)
        and [one.revision for one in history] == list(range(len(history)))
        and sum(one.kind in (EntryKind.REPORTED, EntryKind.EXPIRED) for one in history) == 1
    )
