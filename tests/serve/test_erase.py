"""Decisions and all that was said about them can be erased from a store in use, and from an archive."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from belated import FTRL
from belated.cli import app
from belated.errors import InvalidInput
from belated.serve.archive import archiving, erasing, files
from belated.serve.archive.archiving import Wanted
from belated.serve.archive.settling import settle
from belated.serve.domain import ids
from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.messages import Decided
from belated.serve.domain.parts import is_open
from belated.serve.domain.refusals import Refusal
from belated.serve.engine.engine import Engine
from belated.serve.engine.requests import Answers, Ask
from belated.serve.store import removal
from belated.serve.store.journal import Base, Journal, Removal
from belated.serve.store.loading import load
from belated.serve.store.removal import loaded
from belated.serve.store.sqlite.journal import SQLiteJournal
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import Driven, counts
from tests.support.removals import folded, rows, state_of


def noticing(monkeypatch: pytest.MonkeyPatch, driven: Driven, seen: dict[int, Entry] | None = None) -> None:
    """Let a server read the journal while the command waits for that. Notes in `seen` what is there then."""

    def begin(journal: Journal, base: Base, grace: float) -> None:
        driven.engine.catch_up()
        if seen is not None:
            seen.update({entry.seq: entry for entry in rows(journal)})
        removal.begin(journal, base, grace)

    monkeypatch.setattr(erasing, "begin", begin)


def erased(journal: Journal, decisions: list[Decided]) -> int:
    """Erase as the command does."""
    wanted = erasing.decoded([one.id for one in decisions])
    return erasing.erase(journal, wanted, 0.0, pause=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_still_folds_and_verifies(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driven, generator = Driven(tmp_path, seed=seed), np.random.default_rng(seed)
    seen: dict[int, Entry] = {}
    noticing(monkeypatch, driven, seen)
    histories.begin(driven, has_parts=True)
    histories.live(driven, generator, 60)
    found = [one for name in histories.NAMES for one in driven.decisions(name)]
    picked = [found[index].decision for index in generator.choice(len(found), 10, replace=False)]
    texts = [ids.encode(one.at, one.seq, one.nonce or 0) for one in picked]
    gone = {one.seq for one in picked}
    open_then = {one.decision.seq for one in found if one.decision.seq in gone and is_open(one)}
    count = erasing.erase(driven.engine.journal, erasing.decoded(texts), 0.0, pause=0.0)
    driven.engine.catch_up()
    left, everything = rows(driven.engine.journal), list(seen.values())
    assert not [entry for entry in left if entry.seq in gone or entry.decision in gone]
    assert len(left) == len(everything) - count, "the others stay"
    histories.live(driven, generator, 20)
    everything += [entry for entry in rows(driven.engine.journal) if entry.seq > everything[-1].seq]
    driven.restart()
    assert state_of(driven.engine.fold) == folded(everything)
    assert {entry.decision for entry in everything if entry.kind is EntryKind.REMOVED} == open_then
    assert open_then
    assert verify(driven.engine.journal).problems == []


def test_a_report_that_comes_meanwhile_is_erased_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    driven.create()
    decision, other = driven.decide(size=2)
    assert driven.tell(decision, 0.5) == "applied"
    put_base = removal.put_base

    def put_base_and_report(*arguments: Any) -> Any:
        base = put_base(*arguments)
        monkeypatch.undo()
        assert driven.tell(decision, 1.0, amend=True) == "amended"
        driven.engine.catch_up()
        return base

    monkeypatch.setattr(erasing, "put_base", put_base_and_report)
    with closing(SQLiteJournal(driven.path)) as journal:
        assert erased(journal, [decision]) == 3
    driven.engine.catch_up()
    assert [entry.kind.name for entry in rows(driven.engine.journal)] == ["CREATED", "DECIDED", "BASE", "BASE"]
    assert driven["layout"].counts.reported == driven["layout"].counts.amended == 1, "its sum stays in the learner"
    assert (driven.tell(decision, 1.0), driven.tell(other, 1.0)) == ("not_found", "applied")
    assert verify(driven.engine.journal).problems == []


def test_an_open_decision_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On each server, and nobody can report it, not even while the command waits for the servers."""
    driven = Driven(tmp_path)
    driven.create(reward_wait=3600.0)
    first, middle, last = (driven.decide()[0] for _ in range(3))
    driven.clock.advance(10)
    reference = FTRL(len(driven["layout"].arms), driven["layout"].settings.tuning.build(), seed=0)
    for made in (first, middle, last):
        reference.record(made.experiment.arms.index(made.arm), made.probability)
    reference.give_up(2)
    other = Driven(tmp_path, clock=driven.clock)
    said = []

    def begin(journal: Journal, base: Base, grace: float) -> None:
        said.append(driven.tell(middle, 1.0))  # by a server that remembers it as open, and looks again
        for server in (driven, other):
            server.engine.catch_up()
        said.append(other.tell(middle, 1.0))
        removal.begin(journal, base, grace)

    monkeypatch.setattr(erasing, "begin", begin)
    with closing(SQLiteJournal(driven.path)) as journal:
        assert erased(journal, [middle]) == 2
    assert said == ["not_found", "not_found"]
    for server in (driven, other):
        server.engine.catch_up()
        layout = server["layout"]
        assert counts(server) == {"decisions": 3, "removed": 1}
        assert (layout.counts.outstanding, sum(layout.ages.counts)) == (2, 2)
        assert layout.shared.waiting().tolist() == [2, 4]
        assert layout.learner.certificate("any") == reference.certificate("any")
        assert layout.distribution().tolist() == reference.distribution().tolist()
    full = Engine(driven.engine.journal, clock=driven.clock, max_open=3)
    for size, expected in ((2, Refusal), (1, Answers)):
        [answer] = full.process([Ask("layout", size)])
        assert isinstance(answer, expected), "there is room for one more"
    driven.engine.catch_up()
    driven.clock.advance(3595)
    driven.engine.expire()
    assert counts(driven) == {"decisions": 4, "removed": 1, "expired": 2}, "the wait of the first one ends too"
    driven.restart()
    assert counts(driven) == {"decisions": 4, "removed": 1, "expired": 2}
    assert verify(driven.engine.journal).problems == []


def test_a_report_that_is_faster_counts(tmp_path: Path) -> None:
    """It comes between the look at the decision and the note that it is removed."""
    driven = Driven(tmp_path)
    driven.create()
    faster, other = driven.decide(size=2)
    journal = driven.engine.journal
    found = list(journal.find([2, 3]).values())
    assert driven.tell(faster, 1.0) == "applied"
    assert settle(journal, found, driven.engine.fold.tail.short_mark(), 1) == 1
    assert settle(journal, found, driven.engine.fold.tail.short_mark(), 1) == 0
    driven.engine.catch_up()
    assert counts(driven) == {"decisions": 2, "reported": 1, "removed": 1}
    assert (driven.tell(faster, 1.0), driven.tell(other, 1.0)) == ("duplicate", "not_found")
    assert verify(journal).problems == []


def test_an_outcome_whose_decision_is_gone_already_is_erased(tmp_path: Path) -> None:
    """The command was killed before its second round."""
    driven = Driven(tmp_path)
    driven.create()
    [decision] = driven.decide()
    journal = driven.engine.journal
    base = removal.put_base(journal, loaded(journal), 1)
    assert driven.tell(decision, 1.0) == "applied"
    driven.engine.catch_up()
    removal.begin(journal, base, grace=0.0)
    removal.remove(journal, Removal(base.seq, decisions=(2,)))
    assert len(rows(journal)) == 3
    assert erased(journal, [decision]) == 1


def test_no_trace_is_left_in_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the Idempotency-Key nor of the id, in the store, its log and its snapshots."""
    driven, generator = Driven(tmp_path), np.random.default_rng(1)
    noticing(monkeypatch, driven)
    driven.create()
    made = {}
    for number in range(3000):
        key = f"user {generator.integers(2**62):x}"
        [made[key]] = driven.decide(key=key)
        if number % 3 == 0:
            driven.tell(made[key], 1.0)
        if number % 1000 == 999:
            driven.engine.snapshot()
    keys = [*list(made)[5:2900:20], list(made)[-1]]
    secrets = [key.encode() for key in keys]
    for key in keys:
        nonce = ids.decode(made[key].id)
        assert nonce is not None
        secrets.append(nonce.nonce.to_bytes(8, "big", signed=True))

    def traces() -> list[tuple[str, bytes]]:
        raw = {file.name: file.read_bytes() for file in tmp_path.glob("belated.db*")}
        return [(name, secret) for name, content in raw.items() for secret in secrets if secret in content]

    found = {secret for _, secret in traces()}
    assert len(found) >= len(secrets) - 3  # SQLite needs fewer bytes for a small number
    erased(driven.engine.journal, [made[key] for key in keys])
    driven.engine.journal.scrub()
    assert traces() == []
    driven.engine.catch_up()
    driven.engine.confirm_history()
    [again] = driven.decide(key=keys[0])
    assert again.id != made[keys[0]].id
    assert verify(driven.engine.journal).problems == []


def test_states_hold_neither_ids_nor_keys(tmp_path: Path) -> None:
    """Except the newest decisions in a snapshot, which go with it. A base has none."""
    driven = Driven(tmp_path)
    driven.create(reward_wait=60.0)
    made = [driven.decide(key=f"secret {number}")[0] for number in range(20)]
    nonces = [one.nonce.to_bytes(8, "big", signed=True) for one in erasing.decoded([d.id for d in made]).values()]
    snapshot, base = driven.engine.fold.snapshot().state, driven.engine.fold.base().state
    assert b"secret" not in snapshot + base
    assert not any(nonce in base for nonce in nonces)
    assert sum(nonce in snapshot for nonce in nonces) <= 2


def test_only_the_right_decision_is_erased(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    [decision] = driven.decide()
    one = ids.decode(decision.id)
    assert one is not None
    driven.tell(decision, 1.0)
    forged = ids.encode(0, one.seq, one.nonce ^ 1)
    before = rows(driven.engine.journal)
    assert erasing.erase(driven.engine.journal, erasing.decoded([forged]), 0.0) == 0
    assert rows(driven.engine.journal) == before
    with pytest.raises(InvalidInput, match=r"'nonsense' is not the id of a decision. Nothing was erased"):
        erasing.decoded([decision.id, "nonsense"])


def test_an_archive_forgets_it_too(tmp_path: Path) -> None:
    driven, folder = Driven(tmp_path), tmp_path / "archive"
    driven.create()
    made = driven.decide(size=5)
    driven.tell(made[1], 0.5)
    driven.tell(made[1], 1.0, amend=True)
    driven.close()
    journal = driven.engine.journal
    fold = loaded(journal)
    archiving.archive(journal, fold, archiving.choose(journal, fold, Wanted()), folder, 0.0, lambda *_: None)
    (folder / "other.parquet").write_bytes(_parquet(pl.DataFrame({"decision": [3]})))
    log, raw = sorted(folder.glob("layout-*.parquet"), key=lambda path: len(path.name))
    one = erasing.decoded([made[1].id.upper()])
    assert erasing.erase_from_files(folder, one) == {log: 1, raw: 3}
    assert pl.read_parquet(log)["decision_id"].to_list() == [made[index].id for index in (0, 2, 3, 4)]
    assert [entry.seq for entry in files.read(raw)] == [2, 4, 5, 6]
    assert made[1].id.encode() not in log.read_bytes()
    assert erasing.erase_from_files(folder, one) == {}
    forged = {"x": next(iter(erasing.decoded([made[0].id]).values()))._replace(nonce=1)}
    assert erasing.erase_from_files(folder, forged) == {}
    with pytest.raises(InvalidInput, match="there is no folder"):
        erasing.erase_from_files(folder / "missing", one)


def _parquet(table: pl.DataFrame) -> bytes:
    import io  # noqa: PLC0415

    target = io.BytesIO()
    table.write_parquet(target)
    return target.getvalue()


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    return result.output if result.exception is None else str(result.exception)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(tmp_path)
    noticing(monkeypatch, driven)
    driven.create()
    made = driven.decide(size=4)
    driven.tell(made[0], 1.0)
    listed = tmp_path / "ids.txt"
    listed.write_text(f"{made[1].id}\n{made[2].id}\n")
    store = "--store", str(driven.path), "--grace", "0"
    assert "name the ids of decisions to erase" in run("erase", *store)
    assert "the ids in missing.txt cannot be read" in run("erase", *store, "--from", "missing.txt")
    junk = tmp_path / "junk"
    for wrong, why in ((tmp_path / "missing", "there is no folder"), (junk, "layout.parquet cannot be read")):
        said = run("erase", *store, made[0].id, "--archive", str(wrong))
        assert why in said
        assert "Nothing was erased" in said
        junk.mkdir(exist_ok=True)
        (junk / "layout.parquet").write_text("no table")
    said = run("erase", *store, made[0].id, "--from", str(listed))
    assert said.splitlines() == [
        "erased 3 decisions with 6 entries from the store",
        "2 of them had no outcome. They no longer count as open.",
    ]
    driven.engine.catch_up()
    said = run("erase", *store, made[0].id, "--no-scrub")
    assert "1 id not in the store, but may be in an archive, which --archive names" in said
    assert "Traces may be left" in said
    said = run("erase", *store, made[0].id, "--archive", str(tmp_path))
    assert said.splitlines() == [
        "erased 0 decisions with 0 entries from the store",
        f"1 id not in the store, nor in the archive: {made[0].id}",
    ]
    assert state_of(load(driven.engine.journal)) == state_of(driven.engine.fold)
    assert "no damage found" in run("verify", "--store", str(driven.path))
