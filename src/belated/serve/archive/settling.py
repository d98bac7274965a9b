"""Ends decisions without an outcome before they leave the store. Nobody could ever report them.

Otherwise they would stay open for ever, in the memory of each server, the counts and the quotas. The learner gives them
up, so they say nothing about their arms.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from belated.serve.domain.entries import EntryKind, Found
from belated.serve.domain.history import Mark
from belated.serve.domain.parts import is_open
from belated.serve.engine.feedback import new_outcome
from belated.serve.store.journal import Conflict, Journal
from belated.serve.store.removal import append

AT_ONCE: Final = 500  # decisions in one transaction


def settle(journal: Journal, found: Iterable[Found], mark: Mark, at: int) -> int:
    """Write that these decisions are removed, for each that has no outcome. Returns how many there were."""
    waiting, count = filter(is_open, found), 0
    while page := list(islice(waiting, AT_ONCE)):
        count += _settle(journal, page, mark, at)
    return count


def _settle(journal: Journal, page: Sequence[Found], mark: Mark, at: int) -> int:
    """Settle a page. Begins again if a report comes meanwhile, which is an outcome."""
    left = page
    while left:
        try:
            ends = [new_outcome(one.decision, one.outcome, EntryKind.REMOVED, at, None) for one in left]
            append(journal, ends, mark)
        except Conflict:
            known = journal.find([one.decision.seq for one in left])
            left = list(filter(is_open, known.values()))
        else:
            return len(left)
    return 0
