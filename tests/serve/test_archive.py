"""Closed experiments and old decisions go into files, and leave the store."""

import io
import os
import stat
from collections.abc import Generator
from copy import copy
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from belated.cli import app
from belated.errors import InvalidInput
from belated.replay import decision_log
from belated.serve.archive import archiving, files
from belated.serve.archive.archiving import Wanted
from belated.serve.archive.settling import settle
from belated.serve.domain.entries import Entry, Found
from belated.serve.domain.messages import OutcomeReport
from belated.serve.domain.timestamps import MICROSECONDS, now, shown
from belated.serve.engine.requests import Ask, Tell
from belated.serve.http import parquet
from belated.serve.http.exports import csv_pages, parquet_parts
from belated.serve.store.loading import load
from belated.serve.store.removal import loaded
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import Driven
from tests.support.removals import folded, rows, state_of

CLOSED = Wanted()
DAY = 86_400 * MICROSECONDS


def archived(driven: Driven, folder: Path, wanted: Wanted = CLOSED) -> list[files.Archived]:
    """Archive as the command does."""
    journal = driven.engine.journal
    fold = loaded(journal)
    choice = archiving.choose(journal, fold, wanted)
    expected = archiving.counted(journal, choice)
    written, removed = archiving.archive(journal, fold, choice, folder, 0.0, lambda *_: None)
    assert [(one.decisions, one.entries) for one in written] == [counts[1:] for counts in expected]
    assert removed == sum(one.entries for one in written)
    driven.engine.catch_up()
    return written


def raw(folder: Path) -> list[Entry]:
    """All entries in an archive."""
    return [entry for file in sorted(folder.glob(f"*{files.ENTRIES}")) for entry in files.read(file)]


def exported(driven: Driven, name: str) -> pl.DataFrame:
    """What the service's export gives."""

    def pages() -> Generator[list[Found]]:
        yield driven.decisions(name)

    return pl.read_parquet(io.BytesIO(b"".join(parquet.joined(parquet_parts(driven[name], pages())))))


def lived(tmp_path: Path, seed: int = 1) -> Driven:
    """Two experiments with a history. All waits of the first one are over."""
    driven, generator = Driven(tmp_path, seed=seed), np.random.default_rng(seed)
    histories.begin(driven)
    for _ in range(2):
        histories.live(driven, generator, 50)
        driven.clock.advance(60)
        driven.engine.expire()
    return driven


@pytest.mark.parametrize("seed", range(3))
def test_the_archive_and_what_is_left_give_the_state_from_nothing(tmp_path: Path, seed: int) -> None:
    """Nothing is lost. The base has it to the last bit."""
    driven = lived(tmp_path, seed)
    before = rows(driven.engine.journal)
    middle = (before[0].at + before[-1].at) // 2
    archived(driven, tmp_path / "archive", Wanted(before=middle))
    base = driven.engine.journal.base()
    assert base is not None
    together = sorted([*raw(tmp_path / "archive"), *rows(driven.engine.journal)], key=lambda entry: entry.seq)
    assert together[: len(before)] == before
    assert folded(together[: len(before)]) == driven.engine.journal.base_state(base.seq)
    driven.close("waiting")
    driven.close("patient")
    more = archived(driven, tmp_path / "archive")
    assert len({file for one in more for file in one.files}) == 4
    together = sorted([*raw(tmp_path / "archive"), *rows(driven.engine.journal)], key=lambda entry: entry.seq)
    assert together[: len(before)] == before
    assert folded(together) == state_of(driven.engine.fold) == state_of(load(driven.engine.journal))
    assert verify(driven.engine.journal).problems == []
    assert driven.decisions("waiting") == driven.decisions("patient") == []


def test_a_file_has_what_the_export_had_and_can_be_replayed(tmp_path: Path) -> None:
    driven = lived(tmp_path)
    driven.close("waiting")
    before = exported(driven, "waiting")
    [one] = archived(driven, tmp_path / "archive")
    log, entries = one.files
    assert pl.read_parquet(log).equals(before)
    before.write_parquet(tmp_path / "export.parquet")
    again, export = decision_log.read(log), decision_log.read(tmp_path / "export.parquet")
    for name in ("arm_names", "times", "arms", "outcomes", "outcome_times", "probabilities", "is_open", "expires"):
        np.testing.assert_array_equal(getattr(again, name), getattr(export, name))
    assert again.declared == export.declared
    assert entries.name == f"{log.stem}{files.ENTRIES}"
    assert {stat.S_IMODE(file.stat().st_mode) for file in one.files} == {0o600}
    assert sorted(file.name for file in (tmp_path / "archive").iterdir()) == sorted(file.name for file in one.files)
    assert driven.decisions("waiting") == []
    assert driven.decisions("patient")


def test_after_it_the_numbers_stay_and_reports_say_why_they_are_refused(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    decisions = driven.decide(size=5, key="k")
    for decision in decisions[:3]:
        driven.tell(decision, 1.0)
    driven.close()
    counts, chosen = copy(driven["layout"].counts), driven["layout"].chosen.copy()
    archived(driven, tmp_path / "archive")
    numbers = driven["layout"].counts, driven["layout"].chosen, driven["layout"].distribution().tolist()
    assert numbers[:2] == (msgspec.structs.replace(counts, removed=2), chosen), "two were open"
    assert driven["layout"].counts.outstanding == len(driven["layout"].shared.waiting()) == 0
    for _ in range(2):
        assert (
            driven["layout"].counts,
            driven["layout"].chosen,
            driven["layout"].distribution().tolist(),
        ) == numbers
        [refusal] = driven.do(Tell([OutcomeReport(decisions[4].id, "reward", 1.0)]))
        assert refusal.kind == "not_found"
        day = shown(driven.engine.removed.at)
        assert refusal.detail.endswith(f". Decisions made until {day} may have been archived or erased")
        assert driven.do(Tell([OutcomeReport("0", "reward", 1.0)]))[0].detail == "there is no decision '0'"
        assert driven.do(Ask("layout", 5, "k")).kind == "conflict", "it is closed, and its name stays taken"
        driven.restart()


def test_what_still_waits_stays(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create("waits", reward_wait=3600.0)
    driven.create("free")
    driven.decide("free")
    driven.decide("waits")
    driven.clock.advance(1800)
    driven.decide("free")
    driven.close("waits")
    driven.close("free")
    wanted = Wanted(before=driven.clock.now + 1)
    journal = driven.engine.journal
    choice = archiving.choose(journal, loaded(journal), wanted)
    assert choice.what.decisions_until == 3
    assert "'waits' still waits for reports" in choice.notes[0]
    assert "2023-11-14 22:13:20 UTC, ends at 2023-11-14 23:13:20 UTC" in choice.notes[0]
    assert [one.name for one in archiving.choose(journal, loaded(journal), Wanted()).experiments] == ["free"]
    with pytest.raises(InvalidInput, match=r"'waits' still waits.*Archive it when its waits have ended"):
        archiving.choose(journal, loaded(journal), Wanted(["waits"]))
    driven.clock.advance(1801)
    driven.engine.expire()
    everything = archiving.choose(journal, loaded(journal), Wanted(before=driven.clock.now))
    assert (everything.what.decisions_until, everything.notes) == (loaded(journal).seq, [])
    assert [one.name for one in archiving.choose(journal, loaded(journal), Wanted()).experiments] == ["waits", "free"]


def test_only_old_decisions_go(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(4):
        for decision in driven.decide(size=3)[:2]:
            driven.tell(decision, 1.0)
        driven.clock.advance(86_400)
    limit = driven.clock.now - 2 * DAY - 1
    [one] = archived(driven, tmp_path / "archive", Wanted(before=limit))
    assert (one.decisions, one.entries) == (6, 10)
    assert [found.decision.at for found in driven.decisions()] == [driven.clock.now - 2 * DAY] * 3 + [
        driven.clock.now - DAY
    ] * 3
    [noted] = archived(driven, tmp_path / "archive", Wanted(before=limit))
    assert (noted.decisions, noted.entries) == (0, 2), "that two were open"
    with pytest.raises(InvalidInput, match="nothing to archive: no decision that could go was made before 2023"):
        archived(driven, tmp_path / "archive", Wanted(before=limit))


def test_a_decision_that_was_noted_before_the_command_was_killed_is_open_in_the_file(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    driven.close()
    before = exported(driven, "layout")
    journal = driven.engine.journal
    settle(journal, journal.find([2]).values(), driven.engine.fold.tail.short_mark(), driven.clock.now)
    driven.engine.catch_up()
    assert driven.decisions()[0].outcome is not None
    assert exported(driven, "layout").equals(before)
    assert b",open," in b"".join(csv_pages(driven["layout"], (page for page in [driven.decisions()])))
    [one] = archived(driven, tmp_path / "archive")
    assert (one.decisions, one.entries) == (1, 2)
    assert pl.read_parquet(one.files[0]).equals(before)


def test_an_outcome_that_came_too_late_goes_into_the_next_archive(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    first, _ = driven.decide(size=2)
    driven.close()
    journal = driven.engine.journal
    fold = loaded(journal)
    choice = archiving.choose(journal, fold, Wanted())
    driven.tell(first, 1.0)
    archiving.archive(journal, fold, choice, tmp_path / "archive", 0.0, lambda *_: None)
    driven.engine.catch_up()
    assert driven["layout"].counts.reported == 1
    [late] = archived(driven, tmp_path / "archive")
    assert (late.decisions, late.entries, len(late.files)) == (0, 2, 1), "the report, and that the other one was open"
    together = sorted([*raw(tmp_path / "archive"), *rows(journal)], key=lambda entry: entry.seq)
    assert folded(together) == state_of(driven.engine.fold)


def test_no_file_is_overwritten_and_nothing_is_removed_if_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven = lived(tmp_path)
    driven.close("patient")
    before, folder = rows(driven.engine.journal), tmp_path / "archive"
    folder.mkdir()
    taken = folder / f"patient-{loaded(driven.engine.journal).seq}.parquet"
    taken.write_text("mine")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="no space"):
            archived(driven, folder)
    assert rows(driven.engine.journal) == before
    assert driven.engine.journal.base() is None
    assert [file.name for file in folder.iterdir() if not file.name.endswith(".partial")] == [taken.name]
    [one] = archived(driven, folder)
    assert taken.read_text() == "mine"
    assert one.files[0].name == f"{taken.stem}-2.parquet"


def failing(_: int) -> None:
    raise OSError("no space")


# -- the command -------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    return result.output if result.exception is None else str(result.exception)


def test_the_command(tmp_path: Path) -> None:
    driven, folder = Driven(tmp_path), tmp_path / "archive"
    store = "--store", str(driven.path), "--to", str(folder)
    driven.create("one")
    driven.create("two")
    driven.clock.now = now() - 100 * DAY
    for decision in driven.decide("one", 3):
        driven.tell(decision, 1.0)
    assert "nothing to archive: no closed experiment has decisions in the store" in run("archive", *store)
    assert "'one' still runs. Close it first" in run("archive", *store, "--experiment", "one")
    assert "no experiment 'three' in this store" in run("archive", *store, "--experiment", "three")
    assert "such as 90d, got '90 days'" in run("archive", *store, "--older-than", "90 days")
    assert "must be at least 1d and at most 100 years, got '23h'" in run("archive", *store, "--older-than", "23h")
    assert "Leave out --experiment" in run("archive", *store, "--older-than", "90d", "--experiment", "one")
    assert "made before" in run("archive", *store, "--older-than", "101d")
    said = run("archive", *store, "--older-than", "90d", "--dry-run")
    assert said == "one: 3 decisions would be archived, with 6 entries in all\n"
    assert not folder.exists()
    assert len(rows(driven.engine.journal)) == 8
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    said = run("archive", "--store", str(driven.path), "--to", str(in_the_way), "--older-than", "90d", "--grace", "0")
    assert "cannot be made: File exists. Nothing was archived" in said
    assert len(rows(driven.engine.journal)) == 8
    said = run("archive", *store, "--older-than", "90d", "--grace", "0")
    assert said.splitlines()[:2] == [f"wrote {folder}/one-8.parquet", f"wrote {folder}/one-8.journal.parquet"]
    assert "archived 3 decisions and removed 6 entries" in said
    driven.engine.catch_up()
    driven.decide("two")
    driven.close("two")
    said = run("archive", *store, "--experiment", "two", "--grace", "0")
    assert "archived 1 decision and removed 1 entry" in said
    assert "archived 0 decisions and removed 1 entry" in run("archive", *store, "--grace", "0"), "that it was open"
    assert CliRunner().invoke(app, ["archive", *store, "--grace", "0"]).exit_code == 0, "nothing is left to do"
    said = run("replay", str(folder / "one-8.journal.parquet"))
    assert "has the journal of an archive. Give the file of its decisions" in said
    said = run("verify", "--store", str(driven.path))
    assert "no damage found" in said
    assert "The state after entry 13 was written on" in said
    assert "Entries before it were archived or erased, so they were not folded again. 5 of them are left." in said
