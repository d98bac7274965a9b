"""Judge all reports of a group of requests, with one look-up for the decisions of all."""

from itertools import islice

from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.history import Place, place_of
from belated.serve.domain.messages import OutcomeReport, ReportStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.applied import Applied
from belated.serve.engine.feedback import Judged, is_of, judge, look_up, unknown
from belated.serve.engine.guarding import guarded
from belated.serve.engine.recent import RecentDecisions
from belated.serve.engine.requests import Result, Tell


def judge_group(
    told: list[tuple[int, Tell]],
    applied: Applied,
    at: int,
    entries: list[Entry],
    also: set[Place],
    recent: RecentDecisions | None,
) -> list[tuple[int, Result]]:
    """Judge every report, and append an entry for each that says something new.

    Adds to `also` what was found of decisions but is not applied yet. `recent` is None if all decisions have to be
    looked up in the journal.
    """
    if not told:
        return []
    judged = list[tuple[int, Result]]()
    named = [report.decision_id for _, request in told for report in request.reports]
    all = look_up(named, applied.journal, recent)
    known = (entry for one in all if one is not None for entry in one if entry is not None)
    also |= {place_of(entry) for entry in known if entry.seq > applied.fold.seq}
    found = iter(all)
    news: dict[int, Entry] = {}  # by decision: its newest outcome in this group
    for index, request in told:
        own = list(islice(found, len(request.reports)))
        result = guarded(_judge_all, applied, request, own, news, at)
        if isinstance(result, Judged):
            entries += result.entries
            news |= result.news
            result = result.statuses
        judged.append((index, result))
    return judged


def _judge_all(applied: Applied, request: Tell, found: list[Found | None], news: dict[int, Entry], at: int) -> Judged:
    """Judge the reports of one request. If one has to wait, all of them do, so that each is judged once."""
    judged = Judged([], [], {})
    for report, one in zip(request.reports, found, strict=True):
        try:
            status, entry = _judge_one(applied, report, one, request.only, (judged.news, news), at)
        except Refusal as refusal:
            judged.statuses.append(refusal)
            continue
        judged.statuses.append(status)
        if entry is not None:
            judged.entries.append(entry)
            judged.news[entry.decision or 0] = entry
    return judged


def _judge_one(
    applied: Applied,
    report: OutcomeReport,
    found: Found | None,
    only: str | None,
    news: tuple[dict[int, Entry], ...],
    at: int,
) -> tuple[ReportStatus, Entry | None]:
    if found is not None:
        applied.reach(found.decision.experiment)
    if found is None or not is_of(only, found.decision, applied.fold):
        raise unknown(report.decision_id, applied.recent.removed)
    seq = found.decision.seq
    latest = next((newer[seq] for newer in news if seq in newer), found.outcome)
    if latest is not None and latest.kind is EntryKind.REMOVED:  # it is about to leave the store
        raise unknown(report.decision_id, applied.recent.removed)
    return judge(report, Found(found.decision, latest), applied.fold, at)
