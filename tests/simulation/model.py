"""What may be true at any moment, written without the code that it judges."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import msgspec

from belated.errors import HistoryLost, StoreError
from belated.serve.domain import aliases, ids
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.domain.messages import Decided, OutcomeReport, ReportStatus, SubjectStatus
from belated.serve.domain.operating import Operation
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import ArmChange, stored_settings
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Operate, Result, Tell
from tests.simulation import parted
from tests.simulation.database import Database
from tests.simulation.faults import CURSED
from tests.simulation.network import Call
from tests.simulation.operated import Operated, operated
from tests.support.memory_journal import EVENTS

if TYPE_CHECKING:
    from tests.simulation.servers import Server

SKEW = MICROSECONDS  # by which a clock may be wrong
KINDS = {"applied": EntryKind.REPORTED, "late": EntryKind.LATE, "amended": EntryKind.AMENDED}


class Violation(BaseException):
    """Something happened that must not. No handler of the service may catch it."""


def require(is_true: object, what: str) -> None:
    """Raise a Violation unless something is true."""
    if not is_true:
        raise Violation(what)


@final
class Model:
    """What clients sent, what servers acknowledged, and the states that servers had."""

    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database, self._clock = database, clock
        self.writer: Server | None = None  # the server that goes on now, if any
        self.answers: dict[tuple[str, str], list[tuple[Any, ...]]] = {}  # by experiment and key, the first answer
        self.keyless: dict[int, Entry] = {}  # decisions without a key that were acknowledged
        self.asked: Counter[str] = Counter()  # decisions without a key that servers were asked for, by experiment
        self.sizes: dict[tuple[str, str], int] = {}
        self.written: dict[int, int] = {}  # when entries were committed
        self.sent_for: dict[tuple[str, bytes], list[OutcomeReport]] = {}  # by experiment and alias, as `sent`
        self.sent: dict[str, list[OutcomeReport]] = {}  # by decision, the reports that reached a server
        self.statuses: Counter[tuple[str, str]] = Counter()  # by decision
        self.created: dict[str, int] = {}  # experiments that were acknowledged, and when that was first
        self.closing: set[str] = set()  # experiments that somebody wanted to close
        self.operating: set[str] = set()  # experiments that somebody wanted to pause, freeze, end or edit
        self.marks: dict[int, bytes] = {}  # by entry, the state that some server had after it
        self.losses = 0  # how often history was lost
        self._lost: list[tuple[int, Entry]] = []  # entries that were lost, with the number of the loss
        self._truth = Truth(database, self)
        database.begun = self._begun
        database.committed = self._committed
        database.removed = self._removed
        self.state_of: Callable[[Fold], bytes] = lambda fold: fold.snapshot().state

    # -- the database --------------------------------------------------------------------------------------------------

    def _begun(self, entries: Sequence[Entry]) -> None:
        """Dates are true, and no wait ends early. A decision is drawn only from history that can no longer change."""
        assert self.writer is not None
        now, since = self._clock(), self.writer.since
        for entry in entries:
            require(entry.at <= now + SKEW, f"an entry is dated {entry.at - now} us ahead")
            require(entry.at >= since - SKEW, f"an entry is dated {since - entry.at} us before its server began it")
            if entry.kind is EntryKind.EXPIRED:
                assert self.writer.engine is not None  # it ends waits by what it has read
                known = self._operated(entry.experiment, self.writer.engine.fold.seq)
                left = (entry.decided_at or 0) + (known.wait or 0) - now
                require(left <= SKEW, f"the wait of decision {entry.decision} ends {left} us early")
                is_fine = known.has_parts or entry.value == known.default  # parts are audited with their history
                require(is_fine, f"the wait of {entry.decision} ends with {entry.value}")
            if entry.kind is EntryKind.DECIDED:
                seen = entry.seen or 0
                require(seen <= self._database.settled(), f"a decision has seen entry {seen}, which is not settled")
                self._check_drawn(entry, self._operated(entry.experiment, seen))

    def _operated(self, experiment: int, until: int) -> Operated:
        return operated(self._database.of_experiment(experiment, 0, 10**9, EVENTS), until)

    def _check_drawn(self, entry: Entry, known: Operated) -> None:
        """Nothing is decided in a pause, and while one option is shown to all, it is shown to all."""
        require(known.can_decide, f"a decision was drawn from a state after {entry.seen} that makes none: {known}")
        is_aside = entry.policy in (2, 3)
        require(is_aside == (known.shown is not None), f"{entry} does not fit {known}")
        if is_aside:
            require(known.arms[entry.arm or 0] == known.shown and entry.probability == 1, f"{entry} shows {known}")
            require((entry.policy == 3) == known.has_ended, f"{entry} has another policy than {known}")

    def _committed(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            require(entry.seen is None or entry.seen < entry.seq, f"entry {entry.seq} has seen {entry.seen}")
            self.written[entry.seq] = self._clock()
            if entry.kind is EntryKind.DECIDED and entry.alias is not None:
                self._check_turn(entry)
        if self.writer is not None:
            require(
                not self._has_lost(self.writer),
                f"server {self.writer.number} writes on top of a state that is not the journal's",
            )

    def _turns(self, experiment: int, alias: bytes | None) -> list[Entry]:
        """The decisions of a subject that are in the journal, in their order."""
        places = self._database.aliases.get((experiment, alias or b""), [])
        return [self._database.entries[seq] for _, seq in places]

    def _check_turn(self, entry: Entry) -> None:
        """A subject is decided anew only after its arm was retired, if all are or were shown one, and once."""
        before = [one for one in self._turns(entry.experiment, entry.alias) if one.seq != entry.seq]
        if before:
            newest = before[-1]
            require(
                entry.position == (newest.position or 0) + 1, f"decision {entry.seq} is not the next of its subject"
            )
            is_another = entry.policy in (2, 3) and entry.arm != newest.arm  # frozen, or ended with a winner
            is_unfrozen = newest.policy == 2 and entry.policy not in (2, 3)
            require(
                is_another or is_unfrozen or self._was_retired(newest),
                f"a subject was decided anew, although arm {newest.arm} takes part",
            )

    def _was_retired(self, decision: Entry) -> bool:
        """Whether the arm of a decision was ever retired."""
        if self.losses:
            return True  # nobody knows what the arms were before
        events = self._database.of_experiment(decision.experiment, 0, 10**9, EVENTS)
        arms, retired = list[str](), set[str]()
        for one in events:
            if one.kind is EntryKind.CREATED:
                arms += stored_settings(one.body or b"").arms
            elif one.kind is EntryKind.ARMS:
                change = msgspec.json.decode(one.body or b"", type=ArmChange)
                arms += [name for name in change.add if name not in arms]
                retired.update(change.retire)
        return arms[decision.arm or 0] in retired

    def _removed(self, entries: Sequence[Entry]) -> None:
        """Decisions were archived or erased. Their keys may be used again."""
        gone = {id_of(entry) for entry in entries if entry.kind is EntryKind.DECIDED}
        self.answers = {key: said for key, said in self.answers.items() if not gone & {one[0] for one in said}}

    def _has_lost(self, server: "Server") -> bool:
        """Whether a server has applied entries that are lost now, so that its state is not the journal's."""
        return self.losses > 0 and server.engine is not None and not self._truth.has(server.engine.fold)

    def confirmed(self, server: "Server") -> None:
        """A server has just found that nothing was lost."""
        require(
            not self._has_lost(server), f"server {server.number} does not notice that its state is not the journal's"
        )

    def forget(self, lost: Sequence[Entry]) -> None:
        """A failover has lost these entries. What was acknowledged of them is gone, and everybody may know."""
        self.losses += 1
        self._lost += [(self.losses, entry) for entry in lost]
        self._truth.forget()
        gone = {id_of(entry) for entry in lost if entry.kind is EntryKind.DECIDED}
        self.answers = {key: said for key, said in self.answers.items() if not gone & {one[0] for one in said}}
        self.keyless = {seq: one for seq, one in self.keyless.items() if id_of(one) not in gone}
        self.created = {name: at for name, at in self.created.items() if name in self._database.names}
        told = {(entry.decision, entry.nonce) for entry in lost if entry.decision is not None}
        for id, status in list(self.statuses):
            if id in gone or _place(id) in told:
                del self.statuses[id, status]
        first = min((entry.seq for entry in lost), default=None)
        self.marks = {seq: state for seq, state in self.marks.items() if first is None or seq < first}

    def _lost_since(self, losses: int) -> list[Entry]:
        return [entry for number, entry in self._lost if number > losses]

    # -- servers -------------------------------------------------------------------------------------------------------

    def observe(self, fold: Fold) -> None:
        """All servers have the same state after the same entry. After a loss, one may not have noticed that yet."""
        if self.losses and not self._truth.has(fold):
            return
        require(fold.seq <= self._database.last(), f"a state is at entry {fold.seq}, which does not exist")
        state = self.state_of(fold)
        require(self.marks.setdefault(fold.seq, state) == state, f"two states after entry {fold.seq}")

    def failed(self, server: "Server", error: StoreError) -> None:
        """A server may fail for good only if its disk does, or if history was lost that it knew of."""
        known = None if server.journal is None else server.journal.newest
        is_gone = known is not None and self._database.ever(known.seq) != known
        is_lost = self.losses > 0 and (is_gone or self._has_lost(server) or server.losses < self.losses)
        removal = self._database.removal
        is_behind = removal is not None and (server.engine is None or server.engine.fold.seq < removal.entry)
        is_lost = is_lost or is_behind or (self.losses > 0 and any(e.kind is EntryKind.BASE for _, e in self._lost))
        require(server.has_broken_disk or is_lost, f"server {server.number} failed for good: {error}")
        is_said = isinstance(error, HistoryLost) or server.has_broken_disk
        require(is_said, f"server {server.number} does not say that history was lost: {error}")

    def delivered(self, call: Call) -> None:
        """A call has reached a server, which may or may not answer it."""
        request = call.request
        if isinstance(request, Ask):
            if request.subject is not None:
                pass  # it decides once, however often it is delivered
            elif request.key is None:
                self.asked[request.name] += request.size
            else:
                self.sizes[request.name, request.key] = request.size
        elif isinstance(request, Tell):
            for report in request.reports:
                if report.subject is None:
                    self.sent.setdefault(report.decision_id, []).append(report)
                else:
                    self.sent_for.setdefault(_name_of(report), []).append(report)
        elif isinstance(request, Close):
            self.closing.add(request.name)
        elif isinstance(request, Operate):
            self.operating.add(request.name)

    def answered(self, call: Call, result: Result, since: int, losses: int) -> None:
        """A server has answered, and whoever hears it relies on it.

        It has begun at `since`, when so many losses had occurred. It may answer with what was lost later, and without
        what others were told later.
        """
        lost = self._lost_since(losses)
        if isinstance(result, Refusal):
            self._refused(call, result, since)
        elif isinstance(call.request, Ask):
            assert isinstance(result, Answers)
            self._decided(call.request, result.decisions, lost, since)
        elif isinstance(call.request, Tell):
            assert isinstance(result, list)
            for report, status in zip(call.request.reports, result, strict=True):
                self._told(report, status, lost, since)
        else:
            assert isinstance(call.request, Create | ChangeArms | Close | Operate)
            is_there = self._is_done(call.request, result)
            require(is_there or lost, f"{call.request} was acknowledged but is not in the journal")
            if isinstance(call.request, Create) and is_there:
                self.created.setdefault(call.request.settings.name, self._clock())

    def _is_done(self, request: Create | ChangeArms | Close | Operate, result: Result) -> bool:
        """Whether the journal has what was asked for."""
        name = request.settings.name if isinstance(request, Create) else request.name
        events = self._database.of_experiment(self._database.names.get(name, 0), 0, 10**9, EVENTS)
        if isinstance(request, Create):
            return bool(events)
        if isinstance(request, Operate):
            return not result[1] or any(_is_of(request, one) for one in events)  # type: ignore[index]
        if isinstance(request, Close):
            return any(one.kind is EntryKind.CLOSED for one in events)
        created = [stored_settings(one.body or b"").arms for one in events if one.kind is EntryKind.CREATED]
        changes = [msgspec.json.decode(one.body or b"", type=ArmChange) for one in events if one.kind is EntryKind.ARMS]
        added = {arm for arms in (*created, *(one.add for one in changes)) for arm in arms}
        retired = {arm for one in changes for arm in one.retire}
        return added.issuperset(request.change.add) and retired.issuperset(request.change.retire)

    def _refused(self, call: Call, refusal: Refusal, since: int) -> None:
        request, kind = call.request, refusal.kind
        name = request.settings.name if isinstance(request, Create) else getattr(request, "name", "")
        is_new = self.created.get(name, since) >= since
        is_fine = {
            "unavailable": True,
            "failed": name == CURSED,
            "not_found": isinstance(request, ChangeArms | Operate) or (is_new and not isinstance(request, Tell)),
            "conflict": (
                (name in self.closing or name in self.operating) and isinstance(request, Ask | ChangeArms | Operate)
            )
            or self._is_retired(request),
            "invalid": isinstance(request, ChangeArms | Operate)
            or (isinstance(request, Ask) and self._is_broken(request)),
        }
        require(is_fine.get(kind), f"{request} was refused: {refusal.detail}")

    def _is_retired(self, request: object) -> bool:
        """Whether the key of a request was used for an arm that was retired."""
        if not isinstance(request, Ask) or request.key is None:
            return False
        number, known = self._database.names.get(request.name), (*self._database.history(), *self._all_lost())
        made = [one for one in known if (one.experiment, one.request) == (number, request.key)]
        return any(map(self._was_retired, made))

    def _all_lost(self) -> list[Entry]:
        return [entry for _, entry in self._lost]

    def _is_broken(self, request: Ask) -> bool:
        """Whether decisions of its key were removed, so that others may be left alone."""
        number = self._database.names.get(request.name)
        return any((one.experiment, one.request) == (number, request.key) for one in self._database.gone.values())

    def _decided(self, request: Ask, decisions: list[Decided], lost: list[Entry], since: int) -> None:
        require(len(decisions) == request.size, f"{len(decisions)} decisions, asked for {request.size}")
        for one in decisions:
            entry = self._entry(one.id, lost)
            require(entry is not None, f"decision {one.id} was acknowledged but is not in the journal")
            assert entry is not None
            arm = one.experiment.arms.index(one.arm)
            said = one.experiment.seq, arm, one.probability, one.round, one.at, request.key
            kept = entry.experiment, entry.arm, entry.probability, entry.round, entry.at, entry.request
            require(said == kept, f"a decision was answered as {said}, but the journal has {kept}")
            if self._database.entries.get(entry.seq) != entry:
                return  # a failover has lost it meanwhile, or it was removed
            if request.subject is not None:
                require(entry.alias == aliases.of_subject(request.name, request.subject), "the subject of another")
                later = [one for one in self._turns(entry.experiment, entry.alias) if self.written[one.seq] < since]
                newest = max((one.position or 0 for one in later), default=0)
                require((entry.position or 0) >= newest, f"decision {entry.seq} is not the newest of its subject")
            elif request.key is None:
                require(entry.seq not in self.keyless, f"decision {entry.seq} was given to two callers")
                self.keyless[entry.seq] = entry
        if request.key is not None:
            said_before = [(one.id, one.arm, one.probability, one.round, one.at) for one in decisions]
            first = self.answers.setdefault((request.name, request.key), said_before)
            require(first == said_before, f"the key {request.key} got {first}, then {said_before}")

    def _entry(self, id: str, lost: list[Entry]) -> Entry | None:
        """The entry of a decision, in the journal or among those that were lost."""
        seq = _place(id)[0]
        all = [self._database.ever(seq), *(one for one in lost if one.seq == seq)]
        return next((one for one in all if one is not None and id_of(one) == id), None)

    def _told(
        self, report: OutcomeReport, answer: ReportStatus | SubjectStatus | Refusal, lost: list[Entry], since: int
    ) -> None:
        if report.subject is not None:
            if isinstance(answer, Refusal):
                self._not_told_of(report, answer, since)
                return
            assert isinstance(answer, SubjectStatus)
            report, answer = msgspec.structs.replace(report, decision_id=answer.decision_id), ReportStatus(*answer[:2])
        id = report.decision_id
        decision = self._entry(id, lost)
        if isinstance(answer, Refusal):
            self._not_told(report, answer, decision)
            return
        assert isinstance(answer, ReportStatus)
        require(decision is not None, f"{report} was {answer.status}, but there is no such decision")
        kept = [one for one in self._database.history() if one.decision == _place(id)[0]]
        is_kept, is_lost = (any(_is_said(report, answer, one) for one in some) for some in (kept, lost))
        require(is_kept or is_lost, f"{report} was {answer}, but the journal has {kept}")
        self.statuses[id, answer.status] += not is_lost

    def _not_told(self, report: OutcomeReport, refusal: Refusal, decision: Entry | None) -> None:
        id = report.decision_id
        is_fine = {
            "unavailable": True,
            "conflict": any(parted.contradicts(one, report) for one in (*self.sent[id], *self._sent_for(decision)))
            or (self.losses > 0 and report.revision is not None),  # it may be of an outcome that is lost
            "not_found": self._entry(id, []) is None or self._has_left(_place(id)[0]),
            "failed": decision is not None and decision.experiment == self._database.names.get(CURSED),
        }
        require(is_fine.get(refusal.kind), f"{report} was refused: {refusal.detail}")

    def _sent_for(self, decision: Entry | None) -> list[OutcomeReport]:
        """The reports by subject that may have been about a decision."""
        if decision is None or decision.alias is None:
            return []
        return [one for (_, alias), sent in self.sent_for.items() if alias == decision.alias for one in sent]

    def _not_told_of(self, report: OutcomeReport, refusal: Refusal, since: int) -> None:
        name, alias = _name_of(report)
        made = self._turns(self._database.names.get(name, 0), alias)
        known = [one for one in made if self.written[one.seq] < since and not self._has_left(one.seq)]
        is_fine = {
            "unavailable": True,
            "conflict": True,  # somebody has reported another outcome
            "not_found": not known,
            "failed": name == CURSED,
        }
        require(is_fine.get(refusal.kind), f"{report} was refused: {refusal.detail}")

    def _has_left(self, decision: int) -> bool:
        """Whether a decision was archived or erased, or was about to be."""
        noted = (*self._database.history(), *(entry for _, entry in self._lost))
        is_noted = any(one.decision == decision and one.kind is EntryKind.REMOVED for one in noted)
        return decision in self._database.gone or is_noted


@final
class Truth:
    """The states that the journal itself gives, after each of its entries."""

    def __init__(self, database: Database, model: Model) -> None:
        self._database, self._model = database, model
        self.forget()

    def forget(self) -> None:
        """Forget everything, because entries were lost."""
        self._fold = Fold()
        self._states = dict[int, bytes]()

    def has(self, fold: Fold) -> bool:
        """Whether a state is that of the journal after the same entry. No sound state is after one that may follow."""
        if fold.seq > self._database.settled():
            return False
        state_of = self._model.state_of
        self._states.setdefault(0, state_of(Fold()))
        for entry in self._database.history(self._fold.seq):
            if entry.seq <= fold.seq:
                self._fold.apply([entry])
                self._states[entry.seq] = state_of(self._fold)
        return self._states.get(fold.seq) == state_of(fold)


def _is_of(request: Operate, entry: Entry) -> bool:
    """Whether an event is what was asked for."""
    if entry.kind is not EntryKind.OPERATED or (entry.drawn or b"").decode() != request.by:
        return False
    done = msgspec.json.decode(entry.body or b"", type=Operation)
    is_arm = request.operation.arm is None or done.arm == request.operation.arm
    return done.event == request.operation.event and is_arm and done.settings == request.operation.settings


def _is_said(report: OutcomeReport, answer: ReportStatus, entry: Entry) -> bool:
    """Whether the answer to a report is about this outcome."""
    is_same = (entry.decision, entry.nonce) == _place(report.decision_id) and entry.revision == answer.revision
    if answer.status == "duplicate" and report.report_id is not None and entry.alias is not None:
        is_own = entry.alias == aliases.of_report(entry.experiment, report.report_id)
        if is_own and parted.says(report, entry):
            return True  # another report may have amended it since
    if answer.status == "superseded":
        return is_same and report.amend and report.revision is not None and report.revision < answer.revision
    kinds = {KINDS[answer.status]} if answer.status in KINDS else set(KINDS.values())
    if report.parts is not None:
        kinds = parted.KINDS.get(answer.status, {EntryKind.EXPIRED, *KINDS.values(), EntryKind.PARTIAL})
    return is_same and entry.kind in kinds and parted.says(report, entry)


def _name_of(report: OutcomeReport) -> tuple[str, bytes]:
    """The experiment and the alias of a report by subject."""
    name = report.experiment or ""
    return name, aliases.of_subject(name, report.subject or "")


def _place(id: str) -> tuple[int, int]:
    """The number and the nonce of a decision."""
    decoded = ids.decode(id)
    assert decoded is not None
    return decoded.seq, decoded.nonce


def id_of(entry: Entry) -> str:
    """The id of a decision."""
    return ids.encode(entry.at, entry.seq, entry.nonce or 0)
