"""Keys and the audit trail in memory, for journals of tests."""

from collections.abc import Mapping, Sequence

from belated.serve.store import journal as contract
from belated.serve.store.journal import Journal, Key, Record


class KeptKeys:
    """What a store keeps of keys."""

    def __init__(self) -> None:
        self.keys: dict[str, Key] = {}
        self.records: list[Record] = []
        self.noted = 0


class KeysInMemory(Journal):
    """The part of a journal that keeps keys and the audit trail."""

    kept: KeptKeys

    def add_key(self, key: Key, replaced: Key | None = None, record: Record | None = None) -> None:
        self.kept.keys[key.id] = key
        if replaced is not None:
            old = self.kept.keys[replaced.id]
            self.kept.keys[old.id] = old._replace(scope=replaced.scope, expires_at=replaced.expires_at)
        self.note([] if record is None else [record])

    def revoke_key(self, id: str, at: int, record: Record | None = None) -> bool:
        key = self.kept.keys.get(id)
        if key is None or key.revoked_at is not None:
            return False
        self.kept.keys[id] = key._replace(revoked_at=at)
        self.note([] if record is None else [record])
        return True

    def keys(self) -> list[Key]:
        return sorted(self.kept.keys.values(), key=lambda key: (key.created_at, key.id))

    def note_uses(self, uses: Mapping[str, int]) -> None:
        for id, at in uses.items():
            if (key := self.kept.keys.get(id)) is not None:
                self.kept.keys[id] = key._replace(used_at=max(at, key.used_at or 0))

    def note(self, records: Sequence[Record]) -> None:
        for record in records:
            self.kept.noted += 1
            self.kept.records.append(record._replace(number=self.kept.noted))
        for is_change, most in {True: contract.MOST_CHANGES, False: contract.MOST_REFUSALS}.items():
            for one in [one for one in self.kept.records if one.is_change == is_change][:-most]:
                self.kept.records.remove(one)

    def records(self, after: int, limit: int, experiment: str | None = None) -> list[Record]:
        found = [one for one in self.kept.records if one.number > after and experiment in (None, one.experiment)]
        return found[:limit]
