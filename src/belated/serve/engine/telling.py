"""Judge all reports of a group of requests, with one look-up for the decisions of all."""

from itertools import islice
from typing import NamedTuple

import msgspec

from belated.serve.domain import aliases
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.history import Place, place_of
from belated.serve.domain.ids import encode
from belated.serve.domain.messages import OutcomeReport, ReportStatus, SubjectStatus
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.administration import find
from belated.serve.engine.applied import Applied
from belated.serve.engine.feedback import is_of, judge, look_up, unknown
from belated.serve.engine.guarding import guarded
from belated.serve.engine.recent import RecentDecisions
from belated.serve.engine.requests import Result, Tell
from belated.serve.store.journal import Aliased


class News(NamedTuple):
    """Outcomes that are judged, but not written yet: the newest one of each decision, and of each report_id."""

    decisions: dict[int, Entry]
    aliases: dict[Aliased, Entry]

    def add(self, outcome: Entry) -> None:
        """Add an outcome."""
        self.decisions[outcome.decision or 0] = outcome
        if outcome.alias is not None:
            self.aliases[outcome.experiment, outcome.alias] = outcome


class Judged(NamedTuple):
    """The reports of one request: a status or a Refusal for each, and the entries they add."""

    statuses: list[ReportStatus | SubjectStatus | Refusal]
    entries: list[Entry]
    news: News


class Known(NamedTuple):
    """What the journal holds of a report: its decision, and the newest outcome with the same report_id."""

    found: Found | None
    own: Entry | None
    is_anew: bool = False  # whether it is by a subject that had another decision before


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
    all = _known([report for _, request in told for report in request.reports], applied, recent)
    seen = (entry for one in all for entry in (*(one.found or ()), one.own) if entry is not None)
    also |= {place_of(entry) for entry in seen if entry.seq > applied.fold.seq}
    known, news = iter(all), News({}, {})
    for index, request in told:
        own = list(islice(known, len(request.reports)))
        result = guarded(_judge_all, applied, request, own, news, at)
        if isinstance(result, Judged):
            entries += result.entries
            for entry in result.entries:
                news.add(entry)
            result = result.statuses
        judged.append((index, result))
    return judged


def _known(reports: list[OutcomeReport], applied: Applied, recent: RecentDecisions | None) -> list[Known]:
    """Look up the decisions of reports, and what was reported before under the same report_ids."""
    named, newest = [report.decision_id for report in reports], list[Entry | None]([None] * len(reports))
    if any(report.subject is not None for report in reports):
        newest = _decided(reports, applied)
        named = [text if one is None else _id(one) for text, one in zip(named, newest, strict=True)]
    if any(report.report_id is not None for report in reports):  # what counts then depends on earlier outcomes
        recent = None
    found = look_up(named, applied.journal, recent)
    are_anew = [one is not None and bool(one.position) for one in newest]
    if all(report.report_id is None for report in reports):
        return [Known(one, None, is_anew) for one, is_anew in zip(found, are_anew, strict=True)]
    wanted = list(map(_alias, reports, found))
    told = applied.journal.aliased(list({one for one in wanted if one is not None}))
    own = [None if one not in told else told[one][-1] for one in wanted]
    return [Known(*one) for one in zip(_moved(reports, found, own, applied), own, are_anew, strict=True)]


def _id(decision: Entry) -> str:
    return encode(decision.at, decision.seq, decision.nonce or 0)


def _alias(report: OutcomeReport, found: Found | None) -> Aliased | None:
    if found is None or report.report_id is None:
        return None
    return found.decision.experiment, aliases.of_report(found.decision.experiment, report.report_id)


def _decided(reports: list[OutcomeReport], applied: Applied) -> list[Entry | None]:
    """Return the newest decision of each report's subject. None if it has none, or the report is not by subject."""
    names = {report.experiment for report in reports if report.experiment is not None}
    applied.look_for(names)
    for name in names - applied.fold.by_name.keys():
        guarded(applied.meet, name)  # if that fails, `_check_experiment` says so to each report
    wanted = [_subject(report, applied) for report in reports]
    made = applied.journal.aliased(list({one for one in wanted if one is not None}))
    return [None if one not in made else made[one][-1] for one in wanted]


def _subject(report: OutcomeReport, applied: Applied) -> Aliased | None:
    experiment = applied.fold.by_name.get(report.experiment or "")
    if experiment is None or report.subject is None:
        return None
    return experiment.seq, aliases.of_subject(experiment.name, report.subject)


def _moved(
    reports: list[OutcomeReport], found: list[Found | None], own: list[Entry | None], applied: Applied
) -> list[Found | None]:
    """Return the decisions, but for a repeated report of a subject the one that it was about then.

    The subject may have been decided anew since.
    """
    moved = {
        index: encode(one.decided_at or 0, one.decision or 0, one.nonce or 0)
        for index, (report, now, one) in enumerate(zip(reports, found, own, strict=True))
        if report.subject is not None and one is not None and now is not None and one.decision != now.decision.seq
    }
    if not moved:
        return found
    before = dict(zip(moved, look_up(list(moved.values()), applied.journal), strict=True))
    return [
        then if (then := before.get(index)) is not None and now is not None and _is_same(then, now) else now
        for index, now in enumerate(found)
    ]


def _is_same(one: Found, other: Found) -> bool:
    """Whether two decisions are of one subject."""
    return one.decision.alias is not None and one.decision.alias == other.decision.alias


def _judge_all(applied: Applied, request: Tell, known: list[Known], news: News, at: int) -> Judged:
    """Judge the reports of one request. If one has to wait, all of them do, so that each is judged once."""
    judged = Judged([], [], News({}, {}))
    for report, one in zip(request.reports, known, strict=True):
        try:
            status, entry = _judge_one(applied, report, one, request.only, (judged.news, news), at)
        except Refusal as refusal:
            judged.statuses.append(refusal)
            continue
        judged.statuses.append(status)
        if entry is not None:
            judged.entries.append(entry)
            judged.news.add(entry)
    return judged


def _judge_one(
    applied: Applied, report: OutcomeReport, known: Known, only: str | None, news: tuple[News, ...], at: int
) -> tuple[ReportStatus | SubjectStatus, Entry | None]:
    found, own = known.found, known.own
    if report.subject is not None:
        _check_experiment(applied, report, only)
    if found is not None:
        applied.reach(found.decision.experiment)
    if found is None or not is_of(only, found.decision, applied.fold):
        raise _missing(applied, report)
    seq, alias = found.decision.seq, _alias(report, found)
    latest = next((one.decisions[seq] for one in news if seq in one.decisions), found.outcome)
    if latest is not None and latest.kind is EntryKind.REMOVED:  # it is about to leave the store
        raise _missing(applied, report)
    if alias is not None:
        own = next((one.aliases[alias] for one in news if alias in one.aliases), own)
    if report.subject is None:
        return judge(report, Found(found.decision, latest), applied.fold, at, own)
    id = _id(found.decision)
    if report.amend and report.report_id is None and known.is_anew:
        raise _ambiguous(report, id)
    report = msgspec.structs.replace(report, decision_id=id)
    status, entry = judge(report, Found(found.decision, latest), applied.fold, at, own)
    return SubjectStatus(*status, id), entry


def _check_experiment(applied: Applied, report: OutcomeReport, only: str | None) -> None:
    """Refuse a report of a subject whose experiment is missing or not the caller's. Waits if it is new."""
    name = report.experiment or ""
    if only is not None and name != only:
        raise Refusal("not_found", f"there is no experiment {name!r}")
    applied.meet(name)
    find(applied.fold, name)


def _ambiguous(report: OutcomeReport, id: str) -> Refusal:
    """Refuse an amendment that may be a late copy of one of an earlier decision. Its revision does not tell."""
    anew = f"this subject was decided anew in {report.experiment!r}, so an amendment must say of which decision it is"
    return Refusal("conflict", f"{anew}. Name the decision, such as the newest one, {id}, or send a report_id.")


def _missing(applied: Applied, report: OutcomeReport) -> Refusal:
    if report.subject is None:
        return unknown(report.decision_id, applied.recent.removed)
    return Refusal("not_found", f"this subject has no decision in {report.experiment!r}. Ask for one first.")
