"""Judges a report by what is known of its decision: applied, duplicate, late, amended, superseded or refused."""

from typing import NamedTuple

from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.failures import failed
from belated.serve.domain.fold import Fold
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.outcome_ranges import check_outcome
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import shown
from belated.serve.engine.recent import RecentDecisions, Removed
from belated.serve.store.journal import Journal


class Judged(NamedTuple):
    """The reports of one request: a status or a Refusal for each, and the entries they add, also by decision."""

    statuses: list[ReportStatus | Refusal]
    entries: list[Entry]
    news: dict[int, Entry]


def judge(report: OutcomeReport, found: Found, fold: Fold, at: int) -> tuple[ReportStatus, Entry | None]:
    """Return the status of a report, and the entry that it adds if any.

    no outcome yet          -> applied
    the wait has ended      -> late, and the outcome replaces the default exactly
    the same outcome again  -> duplicate, and nothing changes
    another outcome         -> as `_judge_amendment` says, if sent as an amendment, else refused as a conflict
    """
    decision, outcome = found
    experiment = fold.experiments[decision.experiment]
    if experiment.failure is not None:
        raise failed(experiment.name, experiment.failure, " The report was not counted. Keep it to send it then.")
    declared = experiment.outcomes
    if report.word != declared.word:
        raise Refusal("invalid", f"{experiment.name!r} takes a {declared.word}, got a {report.word}")
    check_outcome(declared, report.value)
    if outcome is None:
        return ReportStatus("applied", 0), new_outcome(decision, None, EntryKind.REPORTED, at, report.value)
    revision = outcome.revision or 0
    if outcome.kind is EntryKind.EXPIRED:
        return ReportStatus("late", revision + 1), new_outcome(decision, outcome, EntryKind.LATE, at, report.value)
    if outcome.value == report.value:
        return ReportStatus("duplicate", revision), None
    if not report.amend:
        told = f"decision {report.decision_id} was reported with {outcome.value!r}, now {report.value!r}"
        raise Refusal(
            "conflict", f'{told}. Send "amend": true and "revision": {revision} to correct it.', None, revision
        )
    if not _is_in_order(report, outcome):
        return ReportStatus("superseded", revision), None
    return ReportStatus("amended", revision + 1), new_outcome(decision, outcome, EntryKind.AMENDED, at, report.value)


def _is_in_order(report: OutcomeReport, outcome: Entry) -> bool:
    """Whether an amendment replaces the newest outcome, or False if a later amendment was made already.

    Requests may be repeated and delayed on their way. So an amendment names the revision that it replaces. A late copy
    then names an older one, and changes nothing. Without a revision, an amendment replaces only an outcome that was
    never amended. So a late copy of it can not undo a later amendment either.
    """
    newest, given = outcome.revision or 0, report.revision
    decision = f"the outcome of decision {report.decision_id}"
    if given is None and outcome.kind is EntryKind.AMENDED:
        fix = f'Send "revision": {newest} to amend it again.'
        raise Refusal("conflict", f"{decision} was amended before, to {outcome.value!r}. {fix}", None, newest)
    if given is not None and given > newest:
        fix = "Send the revision that the last answer said."
        raise Refusal("conflict", f"{decision} has the revision {newest}, not yet {given}. {fix}", None, newest)
    return given is None or given == newest


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
    )
