"""What may be true at any moment, written without the code that it judges."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

from belated.errors import StoreError
from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import stored_settings
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.requests import Answers, Ask, ChangeArms, Close, Create, Result, Tell
from tests.simulation.database import Database
from tests.simulation.faults import CURSED
from tests.simulation.network import Call

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
        self.sent: dict[int, list[OutcomeReport]] = {}  # by decision, the reports that reached a server
        self.statuses: Counter[tuple[int, str]] = Counter()  # by decision
        self.created: set[str] = set()
        self.closing: set[str] = set()  # experiments that somebody wanted to close
        self.marks: dict[int, bytes] = {}  # by entry, the state that some server had after it
        self.lost: dict[int, Entry] = {}  # entries that a failover has lost
        database.begun = self._begun
        database.committed = self._committed

    # -- the database --------------------------------------------------------------------------------------------------

    def _begun(self, entries: Sequence[Entry]) -> None:
        """Dates are true, and no wait ends early. A decision is drawn only from history that can no longer change."""
        assert self.writer is not None
        now, since = self._clock(), self.writer.since
        for entry in entries:
            require(entry.at <= now + SKEW, f"an entry is dated {entry.at - now} us ahead")
            if entry.kind is EntryKind.EXPIRED:
                created = self._database.entries[entry.experiment]
                wait = round((stored_settings(created.body or b"").reward_wait or 0) * MICROSECONDS)
                left = (entry.decided_at or 0) + wait - now
                require(left <= SKEW, f"the wait of decision {entry.decision} ends {left} us early")
            if entry.kind is EntryKind.DECIDED:
                is_before = entry.at < since - SKEW and self.writer.jump >= 0
                require(not is_before, f"a decision is dated {since - entry.at} us before its server began it")
                seen = entry.seen or 0
                require(seen <= self._database.settled(), f"a decision has seen entry {seen}, which is not settled")

    def _committed(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            require(entry.seen is None or entry.seen < entry.seq, f"entry {entry.seq} has seen {entry.seen}")
        if self.lost and self.writer is not None:
            self._check_history(self.writer, entries[0].seq)

    def _check_history(self, server: "Server", first: int) -> None:
        """After a loss, no server may write anything on top of what was lost."""
        assert server.engine is not None
        fold, again = server.engine.fold, Fold()
        again.apply(self._database.after(0, min(fold.seq, first - 1), 10**9))
        require(
            again.snapshot() == fold.snapshot(), f"server {server.number} writes after entry {fold.seq}, which is lost"
        )

    def forget(self, lost: Sequence[Entry]) -> None:
        """A failover has lost these entries. What was acknowledged of them is gone, and everybody may know."""
        self.lost.update((entry.seq, entry) for entry in lost)
        gone = {_id(entry) for entry in lost if entry.kind is EntryKind.DECIDED}
        self.answers = {key: said for key, said in self.answers.items() if not gone & {one[0] for one in said}}
        self.keyless = {seq: one for seq, one in self.keyless.items() if _id(one) not in gone}
        self.created = {name for name in self.created if name in self._database.names}
        for entry in lost:
            if entry.decision is not None:
                for status in KINDS:
                    self.statuses.pop((entry.decision, status), None)
        self.marks = {seq: state for seq, state in self.marks.items() if seq < min(self.lost, default=seq + 1)}

    # -- servers -------------------------------------------------------------------------------------------------------

    def observe_end(self, fold: Fold) -> None:
        """A server is gone. After a loss, it may not have noticed that yet."""
        if not self.lost:
            self.observe(fold)

    def observe(self, fold: Fold) -> None:
        """All servers have the same state after the same entry."""
        require(fold.seq <= self._database.last() or self.lost, f"a state is at entry {fold.seq}, which does not exist")
        state = fold.snapshot().state
        require(self.marks.setdefault(fold.seq, state) == state, f"two states after entry {fold.seq}")

    def failed(self, server: "Server", error: StoreError) -> None:
        """A server may fail for good only if its disk does, or if history was lost."""
        require(server.has_broken_disk or self.lost, f"server {server.number} failed for good: {error}")

    def delivered(self, call: Call) -> None:
        """A call has reached a server, which may or may not answer it."""
        request = call.request
        if isinstance(request, Ask):
            if request.key is None:
                self.asked[request.name] += request.size
            else:
                self.sizes[request.name, request.key] = request.size
        elif isinstance(request, Tell):
            for report in request.reports:
                self.sent.setdefault(_seq(report.decision_id), []).append(report)
        elif isinstance(request, Close):
            self.closing.add(request.name)

    def answered(self, call: Call, result: Result) -> None:
        """A server has answered, and whoever hears it relies on it."""
        if isinstance(result, Refusal):
            self._refused(call, result)
        elif isinstance(call.request, Ask):
            assert isinstance(result, Answers)
            self._decided(call.request, result.decisions)
        elif isinstance(call.request, Tell):
            assert isinstance(result, list)
            for report, status in zip(call.request.reports, result, strict=True):
                self._told(report, status)
        else:
            name = call.request.settings.name if isinstance(call.request, Create) else call.request.name
            is_there = name in self._database.names
            require(is_there or self.lost, f"the experiment {name} was acknowledged but does not exist")
            self.created |= {name} if is_there else set()

    def _refused(self, call: Call, refusal: Refusal) -> None:
        request, kind = call.request, refusal.kind
        name = request.settings.name if isinstance(request, Create) else getattr(request, "name", "")
        if kind == "unavailable" or name == CURSED:
            return
        is_fine = {
            "not_found": name not in self.created or isinstance(request, ChangeArms),
            "conflict": name in self.closing and isinstance(request, Ask | ChangeArms),
            "invalid": isinstance(request, ChangeArms),
        }
        require(is_fine.get(kind), f"{request} was refused: {refusal.detail}")

    def _decided(self, request: Ask, decisions: list[Decided]) -> None:
        require(len(decisions) == request.size, f"{len(decisions)} decisions, asked for {request.size}")
        for one in decisions:
            entry = self._entry(one.id)
            arm = one.experiment.arms.index(one.arm)
            said = one.experiment.seq, arm, one.probability, one.round, one.at, request.key
            kept = entry.experiment, entry.arm, entry.probability, entry.round, entry.at, entry.request
            require(said == kept, f"a decision was answered as {said}, but the journal has {kept}")
            if self._database.entries.get(entry.seq) != entry:
                return  # a failover has lost it meanwhile
            if request.key is None:
                require(entry.seq not in self.keyless, f"decision {entry.seq} was given to two callers")
                self.keyless[entry.seq] = entry
        if request.key is not None:
            said_before = [(one.id, one.arm, one.probability, one.round, one.at) for one in decisions]
            first = self.answers.setdefault((request.name, request.key), said_before)
            require(first == said_before, f"the key {request.key} got {first}, then {said_before}")

    def _entry(self, id: str) -> Entry:
        """The committed entry of a decision."""
        seq = _seq(id)
        for entry in (self._database.entries.get(seq), self.lost.get(seq)):
            if entry is not None and _id(entry) == id:
                return entry
        raise Violation(f"decision {id} was acknowledged but is not in the journal")

    def _told(self, report: OutcomeReport, answer: object) -> None:
        status = getattr(answer, "status", answer)  # with or without more about it
        seq = _seq(report.decision_id)
        kept = [self._database.entries[one] for one in self._database.outcomes.get(seq, [])]
        lost = [entry for entry in self.lost.values() if entry.decision == seq]
        if not isinstance(status, str):
            assert isinstance(status, Refusal)
            is_other = any(one.value != report.value for one in self.sent[seq])
            is_fine = {"unavailable": True, "conflict": is_other, "not_found": seq in self.lost}
            decision = self._database.entries.get(seq)
            is_cursed = decision is not None and decision.experiment == self._database.names.get(CURSED)
            require(is_cursed or is_fine.get(status.kind), f"{report} was refused: {status.detail}")
            return
        kinds = [KINDS[status]] if status in KINDS else list(KINDS.values())
        is_kept, is_lost = (
            any(one.kind in kinds and one.value == report.value for one in some) for some in (kept, lost)
        )
        require(is_kept or is_lost, f"{report} was {status}, but the journal has {kept}")
        self.statuses[seq, status] += not is_lost


def _seq(id: str) -> int:
    decoded = ids.decode(id)
    assert decoded is not None
    return decoded.seq


def _id(entry: Entry) -> str:
    return ids.encode(entry.at, entry.seq, entry.nonce or 0)
