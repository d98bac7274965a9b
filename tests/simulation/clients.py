"""Clients that ask, report, amend and administer, and repeat what was not answered."""

from itertools import count
from random import Random
from typing import Final, NamedTuple, final

from belated.serve.domain.messages import OutcomeReport, ReportStatus, SubjectStatus
from belated.serve.domain.operating import Edit, Operation
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, Settings, TuningChoice
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Operate, Request, Result, Tell
from tests.simulation.faults import CURSED, CURSED_ARMS
from tests.simulation.network import Call

TUNINGS: Final = ("means", "means", "shadow", "advanced", "simple", "tsallis", "adaptive_exp3")
VALUES: Final = (0.0, 0.25, 0.5, 1.0)
WAITS: Final = (1.0, 2.0, 5.0, 10.0)  # seconds
PATIENCE: Final = 40  # turns without an answer, after which a call is repeated
GIVEN_UP: Final = 0.1  # share of the repetitions that are given up instead
COMMON: Final = 6  # keys, and subjects, that all clients use
AMPLE: Final = OpenLimit("shop", 10**6)  # of a key, which all servers must count alike


def experiments(random: Random, *, is_one_cursed: bool) -> list[Settings]:
    """The experiments of a run: one with a default outcome, one that gives up, and one that waits for ever.

    One more has a learner that fails, if `is_one_cursed`.
    """
    chosen = [TuningChoice(random.choice(TUNINGS)) for _ in range(3)]
    sound = [
        Settings("hasty", ["a", "b"], tuning=chosen[0], reward_wait=2.0, default_outcome=0.0),
        Settings("strict", ["a", "b", "c"], tuning=chosen[1], reward_wait=10.0),
        Settings("endless", ["a", "b", "c"], tuning=chosen[2]),
    ][: random.choice((1, 2, 3))]
    return [*sound, Settings(CURSED, CURSED_ARMS)] if is_one_cursed else sound


def is_unavailable(result: Result) -> bool:
    """Whether a request, or a part of it, must be sent again."""
    all = result if isinstance(result, list) else [result]
    return any(isinstance(one, Refusal) and one.kind == "unavailable" for one in all)


class Made(NamedTuple):
    """A decision that some client knows of."""

    id: str
    experiment: str


class Known(NamedTuple):
    """What clients tell each other."""

    made: list[Made]
    existing: list[str]  # experiments that were created
    revisions: dict[str, int]  # by decision, the newest revision of its outcome that somebody was told


@final
class Client:
    """Has at most one call open, and repeats it until it is answered or given up. It never gives up when `patient`."""

    def __init__(self, number: int, random: Random, settings: list[Settings], world: Known) -> None:
        self._number, self._random, self._settings = number, random, settings
        self._made, self._existing, self._revisions = world
        self._numbers = count(1)
        self._sent_at = 0
        self.open: Call | None = None

    def act(self, turn: int, *, is_patient: bool) -> Call | None:
        """Return a call to send now, if there is one. A patient client only finishes what it began."""
        if self.open is None:
            if is_patient:
                return None
            self.open, self._sent_at = Call(self._number, next(self._numbers), self._next()), turn
            return self.open
        if turn < self._sent_at + PATIENCE:
            return None
        if not is_patient and (self._random.random() < GIVEN_UP or self._is_unsafe()):
            self.open = None
            return None
        if self._is_unsafe():
            self.open = None
        self._sent_at = turn
        return self.open

    def _is_unsafe(self) -> bool:
        """Whether a repetition could decide twice."""
        if self.open is None or not isinstance(self.open.request, Ask):
            return False
        return self.open.request.key is None and self.open.request.subject is None

    def take(self, call: Call, result: Result) -> None:
        """Take an answer. One that says `try again` is as good as none. So is one to an earlier call."""
        if call != self.open or is_unavailable(result):
            return
        self.open = None
        if isinstance(result, Refusal) and result.kind == "not_found" and isinstance(call.request, Ask):
            self._existing[:] = [name for name in self._existing if name != call.request.name]
        if isinstance(result, Answers):
            self._made += [Made(one.id, one.experiment.name) for one in result.decisions]
        elif isinstance(call.request, Create):
            self._existing.append(call.request.settings.name)
        elif isinstance(call.request, Tell) and isinstance(result, list):
            for report, answer in zip(call.request.reports, result, strict=True):
                self._learn(report, answer)

    def _learn(self, report: OutcomeReport, answer: ReportStatus | SubjectStatus | Refusal) -> None:
        if answer.revision is not None:
            decision_id = answer.decision_id if isinstance(answer, SubjectStatus) else report.decision_id
            self._revisions[decision_id] = answer.revision

    def _next(self) -> Request:
        missing = [one for one in self._settings if one.name not in self._existing]
        if missing:
            return Create(missing[0])
        if self._random.random() < 0.01:
            return Create(self._random.choice(self._settings))
        dice = self._random.random()
        if dice < 0.35 or not self._made:
            return self._ask()
        return self._tell() if dice < 0.88 else self._administer()

    def _ask(self) -> Ask:
        name, dice = self._random.choice(self._settings).name, self._random.random()
        if dice < 0.1:
            return Ask(name, subject=self._subject())
        if dice < 0.2:
            return Ask(name, self._random.choice((1, 3)), limit=AMPLE)
        if dice < 0.5:
            return Ask(name, 2, f"common-{self._random.randrange(COMMON)}")
        return Ask(name, self._random.choice((1, 1, 2, 4)), f"{self._number}-{next(self._numbers)}")

    def _subject(self) -> str:
        return f"subject-{self._random.randrange(COMMON)}"

    def _tell_of_subject(self) -> OutcomeReport:
        name, id = self._random.choice(self._settings).name, f"{self._number}-{next(self._numbers)}"
        value, subject = self._random.choice(VALUES), self._subject()
        return OutcomeReport("", "reward", value, report_id=id, experiment=name, subject=subject)

    def _tell(self) -> Tell:
        if self._random.random() < 0.05:
            return Tell([self._tell_of_subject()])
        recent = self._made[-12:]
        reports = []
        for _ in range(self._random.choice((1, 1, 2, 4))):
            id = self._random.choice(recent).id
            value, amend = self._random.choice(VALUES), self._random.random() < 0.4
            revision = self._revisions.get(id) if amend and self._random.random() < 0.8 else None
            reports.append(OutcomeReport(id, "reward", value, amend, revision))
        return Tell(reports)

    def _administer(self) -> ChangeArms | Close | Operate:
        name, arm = self._random.choice(self._settings).name, self._random.choice("abcd")
        if name == CURSED:
            return Close(name)
        dice = self._random.random()
        if dice < 0.05:
            return Close(name)
        if dice < 0.5:
            return Operate(name, self._operation(arm), f"key-{self._number}")
        return ChangeArms(name, ArmChange([arm], []) if dice < 0.8 else ArmChange([], [arm]))

    def _operation(self, arm: str) -> Operation:
        """What a team does with a running experiment. Pauses are short, because others resume soon."""
        edits = (
            Edit(floor=self._random.choice((0.0, 0.1, 0.25))),
            Edit(holdout=self._random.choice((0.0, 0.3)), control=None),
            Edit(holdout=0.2, control=arm),
            Edit(reward_wait=self._random.choice(WAITS)),
            Edit(reward_wait=2.0, default_outcome=self._random.choice(VALUES)),
        )
        return self._random.choice(
            (
                *(Operation("edited", settings=one) for one in edits),
                *(Operation("paused"), *[Operation("resumed")] * 3),
                *[Operation("frozen", self._random.choice((arm, None)))] * 2,
                *[Operation("unfrozen")] * 2,
                *([Operation("ended", self._random.choice((arm, None)))] if self._random.random() < 0.1 else []),
            )
        )
