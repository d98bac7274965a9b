"""What must be true at the end, when everything has been repaired and everybody has caught up."""

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from belated.errors import SnapshotError
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold, Snapshot, restore
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.operating import Policy
from belated.serve.domain.settings import ArmChange, stored_settings
from belated.serve.engine.engine import Engine
from belated.serve.store.verify import verify
from tests.simulation import parted
from tests.simulation.database import Database
from tests.simulation.faults import CURSED
from tests.simulation.journal import SimulatedJournal
from tests.simulation.model import KINDS, SKEW, Model, id_of, require
from tests.simulation.operated import operated
from tests.support.memory_journal import EVENTS

ALL = 10**9


def audit(database: Database, model: Model, engines: Sequence[Engine]) -> None:
    """Check everything. Raises a Violation."""
    entries = database.history()
    check_states(entries, model, engines)
    check_store(database, model)
    fold = engines[0].fold
    for number, experiment in fold.experiments.items():
        own = [entry for entry in entries if entry.experiment == number]
        require(experiment.failure is None or experiment.name == CURSED, f"{experiment.name} has failed")
        check_counts(experiment, own)
        check_events(experiment, own)
        check_waits(experiment.name, own, database)
        check = check_parts if experiment.settings.declared_parts else check_outcomes
        check(experiment.name, own, model, database.gone)
        if experiment.settings.declared_parts:
            check_sums(experiment, own)
        removed = {entry.request for entry in own if entry.seq in database.gone}
        check_keys(experiment.name, [entry for entry in own if entry.request not in removed - {None}], model)
        check_keyless(experiment.name, own, model)
        check_subjects(experiment.name, own, database.gone)
    for (name, key), said in model.answers.items():
        kept = [database.entries[seq] for seq in database.requests.get((database.names[name], key), [])]
        require(len(kept) == len(said), f"the key {key} of {name} was answered, but has {len(kept)} decisions")


def check_store(database: Database, model: Model) -> None:
    """Verify finds nothing wrong, except that one experiment has failed, and snapshots that no start uses."""
    if model.losses:
        for seq, snapshot in list(database.snapshots.items()):
            if not is_of_history(snapshot, database):
                del database.snapshots[seq]
    found = verify(SimulatedJournal(database))
    problems = [one for one in found.problems if not one.startswith(f"the experiment {CURSED!r} has failed")]
    require(not problems, f"verify finds {problems}")
    require(found.unchecked == 0 or found.base is not None, f"verify could not check {found.unchecked} decisions")


def is_of_history(snapshot: Snapshot, database: Database) -> bool:
    """Whether a start would use a snapshot."""
    try:
        return database.holds(restore(snapshot).tail.mark())
    except SnapshotError:
        return False


def check_states(entries: Sequence[Entry], model: Model, engines: Sequence[Engine]) -> None:
    """Every state that any server ever had, and saved, is the fold of the journal from its beginning."""
    marks, fold = dict(model.marks), Fold()
    require(marks.pop(0, model.state_of(Fold())) == model.state_of(Fold()), "the state before all entries is empty")
    for entry in entries:
        fold.apply([entry])
        if entry.seq in marks:
            require(marks.pop(entry.seq) == model.state_of(fold), f"a server had another state after {entry.seq}")
    require(not marks, f"a server had a state after {sorted(marks)}, where there is no entry")
    for engine in engines:
        require(engine.fold.seq == fold.seq, f"a server is at entry {engine.fold.seq}, the journal at {fold.seq}")
        require(engine.fold.snapshot() == fold.snapshot(), f"a server differs from the journal after {fold.seq}")


def check_counts(experiment: Experiment, own: Sequence[Entry]) -> None:
    """Counts are those of the entries."""
    kinds = Counter(entry.kind for entry in own)
    names = {"decisions": EntryKind.DECIDED, "reported": EntryKind.REPORTED, "expired": EntryKind.EXPIRED}
    names |= {"late": EntryKind.LATE, "amended": EntryKind.AMENDED, "removed": EntryKind.REMOVED}
    for name, kind in names.items():
        counted = getattr(experiment.counts, name)
        require(counted == kinds[kind], f"{experiment.name} counts {counted} {name}, the journal has {kinds[kind]}")
    if experiment.failure is not None:
        return  # the rest of its state is gone
    aside = [entry for entry in own if entry.policy in (2, 3)]
    own = [entry for entry in own if entry.policy not in (2, 3)]
    n_aside = sum(entry.kind is EntryKind.DECIDED for entry in aside)
    require(experiment.operations.aside.decisions == n_aside, "decisions that showed one option to all")
    require(experiment.learned == len([one for one in own if one.kind is EntryKind.DECIDED]), "learned decisions")
    chosen = Counter(entry.arm for entry in own if entry.kind is EntryKind.DECIDED)
    require(experiment.chosen == [chosen[arm] for arm in range(len(experiment.arms))], "decisions by arm")
    told = Counter(entry.arm for entry in own if entry.kind in (EntryKind.REPORTED, EntryKind.LATE))
    require(experiment.reports == [told[arm] for arm in range(len(experiment.arms))], "reports by arm")


def check_events(experiment: Experiment, own: Sequence[Entry]) -> None:
    """Changes come one after another, and no decision was drawn from arms that its server knew to be gone."""
    arms, active, revision, closed = list[str](), set[int](), -1, 0
    eras: list[tuple[int, set[int]]] = []
    for entry in own:
        if entry.kind in EVENTS:
            require(entry.revision == revision + 1, f"event {entry.seq} has revision {entry.revision} after {revision}")
            revision = entry.revision or 0
        if entry.kind is EntryKind.CREATED:
            arms = list(stored_settings(entry.body or b"").arms)
            active = set(range(len(arms)))
        elif entry.kind is EntryKind.ARMS:
            change = msgspec.json.decode(entry.body or b"", type=ArmChange)
            arms += [name for name in change.add if name not in arms]
            active = (active - {arms.index(name) for name in change.retire}) | {arms.index(one) for one in change.add}
        elif entry.kind is EntryKind.CLOSED:
            require(not closed, f"{experiment.name} was closed twice")
            closed = entry.seq
        eras.append((entry.seq, active))
        if entry.kind is EntryKind.DECIDED:
            seen = entry.seen or 0
            require(seen >= experiment.seq, f"decision {entry.seq} has seen {seen}, before its experiment began")
            known = [era for seq, era in eras if seq <= seen][-1]
            require(entry.arm in known, f"decision {entry.seq} has arm {entry.arm}, of {sorted(known)}")
            is_open = not closed or seen < closed or entry.policy == Policy.WINNER
            require(is_open, f"decision {entry.seq} was made after the closing")
    now = {experiment.arms[arm] for arm in experiment.era.arms}
    require(now == {arms[arm] for arm in active}, f"{experiment.name} has the arms {sorted(now)}")


def check_waits(name: str, own: Sequence[Entry], database: Database) -> None:
    """No wait ends early by the journal's dates, and at the end none is left. The model has looked at the true time."""
    events = [entry for entry in own if entry.kind in EVENTS]
    waits = [one.wait for entry in events if (one := operated(events, entry.seq)).wait is not None]
    wait = min(waits, default=None)
    made = {entry.seq for entry in own if entry.kind is EntryKind.DECIDED and entry.seq not in database.gone}
    for entry in own:
        if entry.kind is EntryKind.EXPIRED:
            require(wait is not None, f"entry {entry.seq} ends a wait that has no end")
            is_early = entry.at - (entry.decided_at or 0) < (wait or 0) - 2 * SKEW
            require(not is_early, f"entry {entry.seq} ends a wait early")
        if entry.decision is not None and entry.kind is not EntryKind.PARTIAL:
            made.discard(entry.decision)
    require(wait is None or not made, f"decisions {sorted(made)} of {name} still wait")


def check_outcomes(name: str, own: Sequence[Entry], model: Model, gone: Collection[int]) -> None:
    """Each decision has one first outcome. All others replace one, and all were sent. None came twice.

    Nothing leaves the store while it is open, and of what was to leave it nothing is told any more.
    """
    histories: dict[int, list[Entry]] = {entry.seq: [] for entry in own if entry.kind is EntryKind.DECIDED}
    for entry in own:
        if entry.decision is not None:
            histories[entry.decision].append(entry)
    decisions = {entry.seq: entry for entry in own if entry.kind is EntryKind.DECIDED}
    for seq, history in histories.items():
        require([one.revision for one in history] == list(range(len(history))), f"revisions of decision {seq}")
        firsts = [one for one in history if one.kind in (EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.REMOVED)]
        require(firsts == history[:1], f"decision {seq} has {len(firsts)} first outcomes")
        is_removed = bool(history) and history[0].kind is EntryKind.REMOVED
        require(not is_removed or len(history) == 1, f"decision {seq} was removed, and told of later")
        require(seq not in gone or history, f"decision {seq} was removed while it was open")
        kinds = Counter(one.kind for one in history)
        is_late_first = len(history) < 2 or history[0].kind is EntryKind.REPORTED or history[1].kind is EntryKind.LATE
        require(kinds[EntryKind.LATE] <= 1 and is_late_first, f"late outcomes of decision {seq}")
        id = id_of(decisions[seq])
        sent = [*model.sent.get(id, []), *model.sent_for.get((name, decisions[seq].alias or b""), [])]
        for before, one in zip([None, *history], history, strict=False):
            is_sent = any(report.value == one.value and is_meant(report, before, one) for report in sent)
            is_own = one.kind in (EntryKind.EXPIRED, EntryKind.REMOVED)
            require(
                is_own or is_sent,
                f"outcome {one.seq} of decision {seq} was never sent",
            )
        for status, kind in KINDS.items():
            told = model.statuses[id, status]
            require(told <= kinds[kind], f"decision {seq} was {status} {told} times, the journal has {kinds[kind]}")


def check_parts(name: str, own: Sequence[Entry], model: Model, gone: Collection[int]) -> None:
    """The same for outcomes that are made of parts. Each is the score of what was sent, and no part is forgotten."""
    defaults = {"quality": 0.0, "cost": 1.0} if name == "hasty" else {}
    for decision in (entry for entry in own if entry.kind is EntryKind.DECIDED):
        history, id = [entry for entry in own if entry.decision == decision.seq], id_of(decision)
        require([one.revision for one in history] == list(range(len(history))), f"revisions of decision {decision.seq}")
        sent = [*model.sent.get(id, []), *model.sent_for.get((name, decision.alias or b""), [])]
        fault = parted.fault_of(history, sent, defaults)
        require(not fault, f"of decision {decision.seq}, {fault}")
        is_closed = any(one.kind is not EntryKind.PARTIAL for one in history)
        require(decision.seq not in gone or is_closed, f"decision {decision.seq} was removed while it was open")
        for status, kinds in parted.KINDS.items():
            told, kept = model.statuses[id, status], sum(one.kind in kinds for one in history)
            require(told <= kept, f"decision {decision.seq} was {status} {told} times, the journal has {kept}")


def check_sums(experiment: Experiment, own: Sequence[Entry]) -> None:
    """The parts of each option are those of the newest outcomes of its decisions that teach."""
    newest = {one.decision: one for one in own if one.parts is not None and one.policy not in (2, 3)}
    assert experiment.parts is not None
    for arm in range(len(experiment.arms)):
        found = [parted.values_of(one) for one in newest.values() if one.arm == arm]
        for index, part in enumerate(parted.NAMES):
            values = [one[part] for one in found if part in one]
            kept = experiment.parts.counts[arm][index], experiment.parts.totals[arm][index]
            require(kept == (len(values), sum(values)), f"{part} of arm {arm} of {experiment.name} has {kept}")


def is_meant(report: OutcomeReport, before: Entry | None, one: Entry) -> bool:
    """Whether a report may have become this outcome. An amendment replaces what its sender knew, so copies do not."""
    if one.kind is not EntryKind.AMENDED:
        return True
    if before is None or not report.amend:
        return False
    return before.kind is not EntryKind.AMENDED if report.revision is None else report.revision == before.revision


def check_keys(name: str, own: Sequence[Entry], model: Model) -> None:
    """A key has all the decisions that were asked for with it, or none."""
    positions: dict[str, list[int]] = {}
    for entry in own:
        if entry.kind is EntryKind.DECIDED and entry.request is not None:
            positions.setdefault(entry.request, []).append(entry.position or 0)
    for key, found in positions.items():
        require(found == list(range(model.sizes[name, key])), f"the key {key} of {name} has the positions {found}")


def check_subjects(name: str, own: Sequence[Entry], gone: Collection[int]) -> None:
    """The decisions of a subject have positions without gaps, unless some were removed."""
    positions: dict[bytes, list[int]] = {}
    for entry in own:
        if entry.kind is EntryKind.DECIDED and entry.alias is not None:
            positions.setdefault(entry.alias, []).append(entry.position or 0)
            if entry.seq in gone:
                del positions[entry.alias]
    for found in positions.values():
        require(found == list(range(found[0], found[0] + len(found))), f"a subject of {name} has turns {found}")


def check_keyless(name: str, own: Sequence[Entry], model: Model) -> None:
    """Without a key, each delivery may have decided once."""
    decided = (entry for entry in own if entry.kind is EntryKind.DECIDED and entry.alias is None)
    made = {entry.seq for entry in decided if entry.request is None}
    known = {seq for seq, entry in model.keyless.items() if entry.experiment == own[0].experiment}
    require(known <= made, f"decisions {sorted(known - made)} were acknowledged but are gone")
    require(len(made) <= model.asked[name], f"{len(made)} decisions of {name} without a key, asked {model.asked[name]}")
