"""What a report means, given what is known of its decision: applied, duplicate, late, amended, or a problem."""

from typing import Literal

from belated.errors import InvalidInput
from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind, Found
from belated.serve.domain.fold import Fold
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.requests import OutcomeReport
from belated.serve.store.journal import Journal

Status = Literal["applied", "duplicate", "amended", "late"]


def judge(item: OutcomeReport, found: Found, fold: Fold, at: int) -> tuple[Status, Entry | None]:
    """The status of a report, and the entry that it adds to the journal.

    no outcome yet          -> applied
    the wait has ended      -> late: the truth replaces the default, exactly
    the same outcome again  -> duplicate, and nothing changes
    another outcome         -> 409, unless it is sent as an amendment: amended
    """
    decision, outcome = found
    experiment = fold.experiments[decision.experiment]
    declared = experiment.settings.outcome
    if item.word != declared.word:
        raise Refusal("invalid", f"{experiment.name!r} takes a {declared.word}, got a {item.word}")
    try:
        declared.check(declared.word, item.value)
    except InvalidInput as error:
        raise Refusal("invalid", str(error)) from None
    if outcome is None:
        return "applied", new_outcome(decision, None, EntryKind.REPORTED, at, item.value)
    if outcome.kind is EntryKind.EXPIRED:
        return "late", new_outcome(decision, outcome, EntryKind.LATE, at, item.value)
    if outcome.value == item.value:
        return "duplicate", None
    if not item.amend:
        raise Refusal(
            "conflict",
            f"decision {item.decision_id} was reported with {outcome.value!r}, now {item.value!r}: "
            'send "amend": true to correct it',
        )
    return "amended", new_outcome(decision, outcome, EntryKind.AMENDED, at, item.value)


def look_up(decision_ids: list[str], journal: Journal) -> list[Found | None]:
    """The decisions of these ids; None where there is none."""
    wanted = [ids.decode(text) for text in decision_ids]
    found = journal.find(list({one.seq for one in wanted if one is not None}))
    return [_match(one, found) for one in wanted]


def _match(wanted: ids.DecisionId | None, found: dict[int, Found]) -> Found | None:
    if wanted is None or wanted.seq not in found:
        return None
    decision = found[wanted.seq].decision
    is_same = decision.at // 1000 == wanted.milliseconds and decision.nonce == wanted.nonce
    return found[wanted.seq] if is_same else None


def is_of(only: str | None, decision: Entry, fold: Fold) -> bool:
    """Whether a decision belongs to the experiment `only`, if there is one."""
    return only is None or fold.experiments[decision.experiment].name == only


def new_outcome(decision: Entry, before: Entry | None, kind: EntryKind, at: int, value: float | None) -> Entry:
    """An outcome that follows `before`; it repeats what a fold and a list need of its decision."""
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
        value=None if value is None else value + 0.0,  # -0.0 becomes 0.0: SQLite keeps no sign of a zero
        old=None if before is None else before.value,
    )
