"""Judges a report by what is known of its decision: applied, duplicate, late, amended, superseded or refused."""

from typing import Final

import msgspec

from belated.errors import InvalidInput
from belated.serve.domain import aliases, ids
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.failures import failed
from belated.serve.domain.fold import Fold
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.outcome_ranges import check_outcome
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.several import Several, added, outcome_of, parts_of, replaced
from belated.serve.domain.timestamps import shown
from belated.serve.engine.recent import RecentDecisions, Removed
from belated.serve.store.journal import Journal

STATUSES: Final = {EntryKind.REPORTED: "applied", EntryKind.LATE: "late", EntryKind.AMENDED: "amended"}


def judge(
    report: OutcomeReport, found: Found, fold: Fold, at: int, own: Entry | None = None
) -> tuple[ReportStatus, Entry | None]:
    """Return the status of a report, and the entry that it adds if any. `own` is the newest one of its report_id.

    no outcome yet          -> applied
    the wait has ended      -> late, and the outcome replaces the default exactly
    the same outcome again  -> duplicate, and nothing changes
    another outcome         -> as `_is_in_order` says, if sent as an amendment, else refused as a conflict

    Where several outcomes add up, `judge_one_of_several` goes on.
    """
    decision, outcome = found
    experiment = fold.experiments[decision.experiment]
    if experiment.failure is not None:
        raise failed(experiment.name, experiment.failure, " The report was not counted. Keep it to send it then.")
    declared = experiment.outcomes
    if report.word != declared.word:
        raise Refusal("invalid", f"{experiment.name!r} takes a {declared.word}, got a {report.word}")
    if own is not None and own.decision != decision.seq:
        used = f"the report_id {report.report_id!r} was used for another decision"  # whose id is not for everyone
        raise Refusal("conflict", f"{used}. Send another one.")
    if (rule := experiment.settings.rule) is not None:
        return judge_one_of_several(report, found, experiment, rule, at, own)
    check_outcome(declared, report.value)
    kind = kind_after(outcome)
    if outcome is not None and kind is EntryKind.AMENDED:
        if report.value == outcome.value or (own is not None and not report.amend and report.value == own.value):
            return ReportStatus("duplicate", outcome.revision or 0), None
        if not is_amendment(report, outcome, outcome.value, is_amended=outcome.kind is EntryKind.AMENDED):
            return ReportStatus("superseded", outcome.revision or 0), None
    entry = named(new_outcome(decision, outcome, kind, at, report.value), report, own)
    return ReportStatus(STATUSES[kind], entry.revision or 0), entry


def kind_after(outcome: Entry | None) -> EntryKind:
    """Return the kind of an outcome that follows this one."""
    if outcome is None:
        return EntryKind.REPORTED
    return EntryKind.LATE if outcome.kind is EntryKind.EXPIRED else EntryKind.AMENDED


def named(outcome: Entry, report: OutcomeReport, own: Entry | None) -> Entry:
    """Return the outcome with the alias of its report_id, if it has one, after the newest entry of this report_id."""
    if report.report_id is None:
        return outcome
    alias = aliases.of_report(outcome.experiment, report.report_id)
    return msgspec.structs.replace(outcome, alias=alias, position=0 if own is None else (own.position or 0) + 1)


def is_amendment(report: OutcomeReport, newest: Entry, value: float | None, *, is_amended: bool) -> bool:
    """Whether a report replaces the newest entry, or False if a later amendment was made already.

    Raises a Refusal if it is no amendment. `value` is that of the newest entry, and `is_amended` whether that is an
    amendment itself.
    """
    revision = newest.revision or 0
    if not report.amend:
        told = f"{subject_of(report)} was reported with {value!r}, now {report.value!r}"
        raise Refusal(
            "conflict", f'{told}. Send "amend": true and "revision": {revision} to correct it.', None, revision
        )
    return _is_in_order(report, revision, value, is_amended=is_amended)


def subject_of(report: OutcomeReport) -> str:
    """Say what a report is about."""
    decision = f"decision {report.decision_id}"
    return decision if report.report_id is None else f"{decision} and report_id {report.report_id!r}"


def _is_in_order(report: OutcomeReport, newest: int, value: float | None, *, is_amended: bool) -> bool:
    """Whether an amendment replaces the newest outcome, or False if a later amendment was made already.

    Requests may be repeated and delayed on their way. So an amendment names the revision that it replaces. A late copy
    then names an older one, and changes nothing. Without a revision, an amendment replaces only an outcome that was
    never amended. So a late copy of it can not undo a later amendment either.
    """
    given, decision = report.revision, f"the outcome of {subject_of(report)}"
    if given is None and is_amended:
        fix = f'Send "revision": {newest} to amend it again.'
        raise Refusal("conflict", f"{decision} was amended before, to {value!r}. {fix}", None, newest)
    if given is not None and given > newest:
        fix = "Send the revision that the last answer said."
        raise Refusal("conflict", f"{decision} has the revision {newest}, not yet {given}. {fix}", None, newest)
    return given is None or given == newest


def judge_one_of_several(
    report: OutcomeReport, found: Found, experiment: Experiment, rule: Several, at: int, own: Entry | None
) -> tuple[ReportStatus, Entry | None]:
    """Judge a report where several outcomes of a decision add up.

    no outcome yet, or late      -> as one outcome
    the same report_id           -> duplicate, conflict or amendment of this report, as one outcome
    a new report_id              -> added, or ignored if only the first one counts
    """
    decision, outcome = found
    if report.report_id is None and rule != "first":
        raise Refusal(
            "invalid",
            f"{experiment.name!r} takes several outcomes of one decision, so that a retry must be told from another "
            'outcome. Send a "report_id", such as the number of an order.',
        )
    kind, before = kind_after(outcome), parts_of(outcome)
    newest = own  # of this report
    if outcome is not None and rule == "first" and (own is not None or (report.amend and report.report_id is None)):
        newest = outcome  # only one report counts, so every later outcome is of this one
    told, status = parts_of(newest), "added" if before is not None else STATUSES[kind]
    if newest is not None and told is not None:
        earlier = {told.value} if report.amend or own is None else {told.value, getattr(parts_of(own), "value", None)}
        if report.value in earlier:
            return ReportStatus("duplicate", newest.revision or 0), None
        is_amended = newest.kind is EntryKind.AMENDED if rule == "first" else (newest.position or 0) > 0
        if not is_amendment(report, newest, told.value, is_amended=is_amended):
            return ReportStatus("superseded", newest.revision or 0), None
        status = "amended"
    elif outcome is not None and before is not None and rule == "first":
        is_same = report.report_id is None and before.value == report.value
        return ReportStatus("duplicate" if is_same else "ignored", outcome.revision or 0), None
    try:
        if before is not None and told is not None:
            parts = replaced(rule, before, told, report.value)
        else:
            parts = added(rule, before, report.value)
        value = outcome_of(rule, parts, experiment.outcomes)
    except InvalidInput as error:
        raise Refusal("invalid", str(error)) from None
    entry = named(new_outcome(decision, outcome, kind, at, value), report, own)
    entry = msgspec.structs.replace(entry, parts=msgspec.msgpack.encode(parts))
    return ReportStatus(status, entry.revision or 0), entry


def look_up(decision_ids: list[str], journal: Journal, recent: RecentDecisions | None = None) -> list[Found | None]:
    """Return the decisions of these ids, and None for each id that has none.

    A recent decision is taken to have no outcome yet, without a look into the journal.
    """
    wanted = [ids.decode(text) for text in decision_ids]
    seqs = {one.seq for one in wanted if one is not None}
    known = {} if recent is None else {seq: Found(one, None) for seq in seqs if (one := recent.get(seq)) is not None}
    others = [seq for seq in seqs if seq not in known]
    found = {**known, **journal.find(others)} if others else known
    return [_match(one, found) for one in wanted]


def _match(wanted: ids.DecisionId | None, found: dict[int, Found]) -> Found | None:
    if wanted is None or wanted.seq not in found:
        return None
    decision = found[wanted.seq].decision
    is_same = decision.nonce == wanted.nonce and wanted.milliseconds in (None, decision.at // 1000)
    return found[wanted.seq] if is_same else None


def removed_from(journal: Journal) -> Removed:
    """Return which decisions may have been removed from a journal."""
    base = journal.base()
    return Removed() if base is None else Removed(base.seq, base.at)


def unknown(decision_id: str, removed: Removed) -> Refusal:
    """Refuse a decision that is not in the journal, and say so if it may have been there."""
    wanted, hint = ids.decode(decision_id), ""
    if wanted is not None and 0 < wanted.seq <= removed.until:
        hint = f". Decisions made until {shown(removed.at)} may have been archived or erased"
    return Refusal("not_found", f"there is no decision {decision_id!r}{hint}")


def is_of(only: str | None, decision: Entry, fold: Fold) -> bool:
    """Whether a decision belongs to the experiment `only`, or `only` is None."""
    return only is None or fold.experiments[decision.experiment].name == only


def new_outcome(decision: Entry, before: Entry | None, kind: EntryKind, at: int, value: float | None) -> Entry:
    """Return an outcome that follows `before`. It repeats parts of its decision, so that readers need no look-up."""
    return Entry(
        at,
        kind,
        decision.experiment,
        round=decision.round,
        arm=decision.arm,
        probability=decision.probability,
        nonce=decision.nonce,
        seen=decision.seen,
        decision=decision.seq,
        decided_at=decision.at,
        revision=0 if before is None else (before.revision or 0) + 1,
        value=None if value is None else value + 0.0,  # makes -0.0 a 0.0, because SQLite drops the sign of a zero
        old=None if before is None else before.value,
        policy=decision.policy,
    )
