"""The audit trail of one process: refusals are counted, and written about once a minute."""

from threading import Lock
from typing import Final, NamedTuple, final

from belated.serve.store.journal import Record as Record  # noqa: PLC0414  # for http

MOST_KINDS: Final = 200  # kinds of refusals that are told apart between two writes. Others count as one kind
# the same of one key, and of all callers without a known key. So nobody hides the refusals of others behind many own
MOST_OF_ONE: Final = 20
OTHERS: Final = "refusals of other kinds"


class Kind(NamedTuple):
    """Refusals that count as one."""

    what: str
    status: int
    label: str
    key: str
    experiment: str


@final
class Refused:
    """Counts refusals. A caller cannot make it grow, because there are few kinds."""

    def __init__(self) -> None:
        self._records, self._lock = dict[Kind, Record](), Lock()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, kind: Kind, at: int, request_id: str) -> None:
        """Count a refusal."""
        with self._lock:
            self._add(Record(0, False, at, at, 1, *kind, request_id))  # noqa: FBT003

    def put_back(self, records: list[Record]) -> None:
        """Count again what was taken, but could not be written."""
        with self._lock:
            for record in records:
                self._add(record)

    def _add(self, record: Record) -> None:
        kind = Kind(*record[5:10])
        if kind not in self._records and sum(one.key == kind.key for one in self._records) >= MOST_OF_ONE:
            kind = Kind(OTHERS, 0, kind.label, kind.key, "")
        if kind not in self._records and len(self._records) >= MOST_KINDS:
            kind = Kind(OTHERS, 0, "", "", "")
        known = self._records.get(kind, record._replace(times=0))
        first, last = min(known.first, record.first), max(known.last, record.last)
        newest = (record if record.last >= known.last else known).request_id
        times = known.times + record.times
        self._records[kind] = Record(0, False, first, last, times, *kind, newest)  # noqa: FBT003

    def take(self) -> list[Record]:
        """Return what was counted since the last call, in the order of the first refusals."""
        with self._lock:
            taken, self._records = self._records, {}
        return sorted(taken.values(), key=lambda record: record.first)


def change(kind: Kind, at: int, request_id: str) -> Record:
    """Return the record of a change."""
    return Record(0, True, at, at, 1, *kind, request_id)  # noqa: FBT003
