"""The state depends only on the journal. It is the same to the last bit, however it is computed."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from belated import FTRL, cli
from belated.errors import SnapshotError, StoreError
from belated.learner.decisions import Decision
from belated.serve.domain.entries import Entry, EntryKind, rest_of
from belated.serve.domain.fold import VERSION, Fold, Snapshot, restore
from belated.serve.domain.observations import EDGES
from belated.serve.domain.settings import TuningChoice
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.http.documents import id_of
from belated.serve.service.views import view
from belated.serve.store import journal as journals
from belated.serve.store.journal import Journal, entries
from belated.serve.store.loading import load
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import LOSSES, NO_STORE, Driven
from tests.support.oracles import record_batch

runner = CliRunner()


def from_nothing(journal: Journal) -> Fold:
    fold = Fold()
    fold.apply(entries(journal))
    return fold


def shown(fold: Fold) -> Any:
    """Return all that views show, in case both the snapshot and its comparison leave something out."""
    views = [view(one, NO_STORE, fold.at) for one in fold.experiments.values()]
    return views, [(one.last_expired, one.costs(), one.settings) for one in fold.experiments.values()]


@pytest.mark.parametrize("seed", [0])  # tests/system/serve has more
def test_live_state_is_the_fold_from_nothing_and_from_any_snapshot(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, generator = Driven(tmp_path, seed=seed), np.random.default_rng(seed)
    histories.begin(driven, has_parts=True)
    snapshots = []
    for _ in range(6):
        histories.live(driven, generator, 60)
        snapshots.append(driven.engine.fold.snapshot())
    journal, now = driven.engine.journal, snapshots[-1]
    kinds = {entry.kind for entry in entries(journal)}
    assert kinds == histories.KINDS | {EntryKind.PARTIAL}, "the history lacks something"
    for page in (1, 2, 7, 5000):  # a batch of decisions may lie across pages
        monkeypatch.setattr(journals, "PAGE", page)
        assert from_nothing(journal).snapshot() == now
    for snapshot in snapshots:
        fold = restore(snapshot)
        assert fold.snapshot() == snapshot
        fold.apply(entries(journal, fold.seq))
        assert fold.snapshot() == now
        assert shown(fold) == shown(driven.engine.fold)
    assert verify(journal).problems == []


def test_delays_are_those_of_the_outcomes(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    histories.begin(driven)
    histories.live(driven, np.random.default_rng(7), 300)
    for experiment in driven.engine.fold.experiments.values():
        expected = [0] * len(EDGES)
        for entry in driven.engine.journal.outcomes(experiment.seq, 0, 10**6):
            if entry.kind in (EntryKind.REPORTED, EntryKind.LATE):
                waited = (entry.at - (entry.decided_at or 0)) / MICROSECONDS
                expected[max(bucket for bucket, edge in enumerate(EDGES) if waited >= edge)] += 1
        assert experiment.delays == expected
        assert sum(experiment.delays) == experiment.counts.reported + experiment.counts.late


def test_a_restart_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """An engine that restarts, with or without snapshots, draws the same as one that never stops."""
    ends = []
    for name in ("never", "often", "with snapshots"):
        (tmp_path / name).mkdir()
        driven, generator = Driven(tmp_path / name), np.random.default_rng(5)
        histories.begin(driven, has_parts=True)
        for _ in range(5):
            histories.live(driven, generator, 40)
            if name != "never":
                driven.restart(snapshot=name == "with snapshots")
        chosen = [(e.kind, e.round, e.arm, e.probability, e.value, e.at) for e in entries(driven.engine.journal)]
        ends.append(chosen)
    assert ends[0] == ends[1] == ends[2]


def test_an_old_snapshot_is_not_used_but_the_one_before_it_is(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    histories.begin(driven)
    driven.engine.snapshot()
    histories.live(driven, np.random.default_rng(1), 30)
    now = driven.engine.fold.snapshot()
    driven.engine.journal.save(now._replace(version=now.version + 1, state=b"of another release"))
    assert load(driven.engine.journal).snapshot() == now
    with pytest.raises(SnapshotError, match="version 1"):
        restore(now._replace(version=1))


def test_what_another_release_has_written_is_told() -> None:
    """The error must not look like a bug in the server."""
    drawn = msgspec.msgpack.encode(((1, 1, 1, 0, 0.5, 0), 0.0))
    with pytest.raises(StoreError, match=r"entry 7 was written by another release\. Its field `drawn` cannot be read"):
        rest_of(Entry(0, EntryKind.DECIDED, 1, seq=7, drawn=drawn))


@pytest.mark.parametrize("tuning", ["means", "shadow"])
@pytest.mark.parametrize("default", [0.25])
def test_the_learner_is_the_librarys(tmp_path: Path, tuning: Any, default: float | None) -> None:
    """An FTRL that gets the same batches and reports ends in the same state."""
    driven, generator = Driven(tmp_path), np.random.default_rng(2)
    driven.create(tuning=TuningChoice(tuning), reward_wait=10.0, default_outcome=default, outcome=LOSSES)
    hand = FTRL(3, TuningChoice(tuning).build(), seed=0, provisional=default if tuning == "means" else None)
    told: dict[str, float | None] = {}  # the loss of each decision, None if it was given up
    known: dict[str, Decision] = {}
    for _ in range(150):
        expected = hand.distribution().tolist()
        made = driven.decide(size=int(generator.integers(1, 4)))
        assert [one.probability for one in made] == [expected["abc".index(one.arm)] for one in made]
        rounds = record_batch(hand, ["abc".index(one.arm) for one in made], [one.probability for one in made])
        known.update({one.id: round for one, round in zip(made, rounds, strict=True)})
        for id in generator.choice(list(known), 2):
            loss = float(generator.random())
            status = driven.tell(str(id), loss, word="loss", amend=True)
            if status == "applied":
                hand.tell(known[id].round, loss)
            else:
                assert status in ("amended", "late")
                hand.amend(known[id], told[id], loss)
            told[id] = loss
        driven.clock.advance(1)
        driven.engine.expire()
        for found in driven.decisions():
            id = id_of(found.decision)
            if id not in told and found.outcome is not None:
                told[id] = default
                hand.give_up(known[id].round) if default is None else hand.tell(known[id].round, default)
    assert hand.snapshot() == driven["layout"].learner.snapshot()
    assert 0 < driven["layout"].counts.late < driven["layout"].counts.expired


def test_a_snapshot_of_entries_that_are_gone_is_not_used(tmp_path: Path) -> None:
    """This happens when an older backup is restored next to newer snapshots."""
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    now = driven.engine.fold.snapshot()
    driven.engine.journal.save(now._replace(seq=now.seq + 5))
    assert load(driven.engine.journal).snapshot() == now
    assert verify(driven.engine.journal).problems == [
        f"there is a snapshot after entry {now.seq + 5}, but no such entry"
    ]


def test_decisions_drawn_from_the_state_of_a_snapshot_are_checked(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    driven.restart(snapshot=True)
    driven.decide()
    verdict = verify(driven.engine.journal)
    assert (verdict.problems, verdict.unchecked) == ([], 0)
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("UPDATE journal SET probability = 0.9 WHERE seq = (SELECT max(seq) FROM journal)")
    assert verify(driven.engine.journal).problems[0] == "entry 7: its arm was not drawn with the probability 0.9"


# -- what must not be folded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry(9, EntryKind.DECIDED, 5, 9, round=1, arm=0, probability=0.5, seen=1), "never created"),
        (Entry(9, EntryKind.CLOSED, 1, 2), "follows entry 3"),
    ],
)
def test_a_damaged_journal_is_refused(tmp_path: Path, entry: Entry, message: str) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    driven.decide()
    with pytest.raises(StoreError, match=message):
        driven.engine.fold.apply([entry])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry(9, EntryKind.REPORTED, 1, 9, arm=0, probability=0.5, seen=1, decision=1, value=1.0), "is not waiting"),
        (Entry(9, EntryKind.DECIDED, 1, 9, arm=0, probability=0.5, seen=1), "from an unknown state"),
    ],
)
def test_a_damaged_entry_is_a_failure_of_its_experiment(tmp_path: Path, entry: Entry, message: str) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide()
    driven.decide()
    driven.engine.fold.apply([entry])
    [(experiment, error)] = driven.engine.fold.take_failures()
    assert (experiment.name, experiment.failure is not None, message in str(error)) == ("layout", True, True)


def tampered(tmp_path: Path, sql: str) -> Any:
    """`belated verify` finds a change that the service did not make."""
    driven = Driven(tmp_path)
    histories.begin(driven)
    histories.live(driven, np.random.default_rng(3), 100)
    driven.restart(snapshot=True)
    driven.engine.journal.close()
    store = ["verify", "--store", str(driven.path)]
    assert runner.invoke(cli.app, store).exit_code == 0
    connection = apsw.Connection(f"{driven.path}-snapshots" if "snapshot_parts" in sql else str(driven.path))
    connection.execute(sql)
    assert connection.total_changes() > 0
    connection.close()
    return runner.invoke(cli.app, store)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE journal SET probability = probability * (1 - 1e-15) WHERE seq = "
        "(SELECT decision FROM journal WHERE kind = 3 LIMIT 1)",
        "UPDATE journal SET value = value + 1e-9 WHERE seq = (SELECT seq FROM journal WHERE kind = 3 LIMIT 1)",
        "UPDATE journal SET arm = 1 - arm WHERE seq = (SELECT min(seq) FROM journal WHERE kind = 2 AND arm < 2)",
        "UPDATE journal SET at = at + 1 WHERE seq = (SELECT min(seq) FROM journal WHERE kind = 2)",
        "UPDATE journal SET probability = 7 WHERE seq = (SELECT min(seq) FROM journal WHERE kind = 2)",
        "UPDATE journal SET arm = 99 WHERE seq = (SELECT min(seq) FROM journal WHERE kind = 2)",
        "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal WHERE kind = 3)",
        "DELETE FROM journal WHERE seq = (SELECT min(seq) FROM journal WHERE kind = 2)",
        "UPDATE snapshot_parts SET state = CAST(substr(state, 1, length(state) - 1) || x'00' AS BLOB)",
        "UPDATE snapshot_parts SET state = x'00'",
        "DELETE FROM snapshot_parts",
    ],
    ids=[
        "probability",
        "value",
        "arm",
        "time",
        "no probability",
        "no arm",
        "outcome",
        "decision",
        "bit",
        "state",
        "parts",
    ],
)
def test_verify_finds_what_was_changed(tmp_path: Path, sql: str) -> None:
    result = tampered(tmp_path, sql)
    assert result.exit_code == 1, result.output
    assert "DIFFERENT" in result.output


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('["x"]', "the entries after 0 cannot be applied"),
        ('"doubt"', "the entries after 0 cannot be applied"),
        (
            '{"name": "layout", "arms": ["a"], "tuning": "doubtful"}',
            "'layout' has failed: its creation at entry 1 cannot be applied",
        ),
    ],
)
def test_verify_reports_settings_that_cannot_be_read(tmp_path: Path, body: str, message: str) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.engine.journal.close()
    with closing(apsw.Connection(str(driven.path))) as database:
        database.execute("UPDATE journal SET body = CAST(? AS BLOB) WHERE seq = 1", (body,))
    result = runner.invoke(cli.app, ["verify", "--store", str(driven.path)])
    assert result.exit_code == 1, result.output
    assert message in " ".join(result.output.split())


def test_verify_says_that_all_is_well(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=1500)
    driven.engine.snapshot()
    result = runner.invoke(cli.app, ["verify", "--store", str(driven.path)])
    assert result.exit_code == 0
    assert "1,501 entries, 1,500 decisions, 1 snapshot compared: the same, bit for bit" in result.output
    driven.decide()
    driven.engine.snapshot()
    result = runner.invoke(cli.app, ["verify", "--store", str(driven.path)])
    assert "2 snapshots compared: the same, bit for bit" in result.output


def test_verify_does_not_claim_to_have_compared_anything_without_a_snapshot(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=10)
    now = driven.engine.fold.snapshot()
    driven.engine.journal.save(now._replace(version=now.version + 1))
    result = runner.invoke(cli.app, ["verify", "--store", str(driven.path)])
    assert result.exit_code == 0
    assert "10 decisions, no snapshot of this release to compare: no damage found" in result.output
    assert "same" not in result.output


@pytest.mark.parametrize("state", [b"\xc1 nonsense", b""])
def test_verify_finds_a_damaged_snapshot(tmp_path: Path, state: bytes) -> None:
    driven = Driven(tmp_path)
    driven.create()
    driven.engine.journal.save(driven.engine.fold.snapshot()._replace(state=state))
    found = verify(driven.engine.journal)
    assert (found.snapshots, found.problems) == (1, ["the snapshot after entry 1 differs from the journal"])


def test_a_damaged_snapshot_is_left_aside(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    histories.begin(driven)
    histories.live(driven, np.random.default_rng(1), 60)
    before = driven.engine.fold.snapshot().state
    driven.engine.journal.save(Snapshot(driven.engine.fold.seq, VERSION, b"\xc1 nonsense"))
    assert load(driven.engine.journal).snapshot().state == before


TAMPERINGS = {
    "a probability": "UPDATE journal SET probability = 0.4 WHERE kind = 2 AND round = 5",
    "an arm": "UPDATE journal SET arm = (arm + 1) % 3 WHERE kind = 2 AND round = 5",
    "an outcome's arm": "UPDATE journal SET arm = (arm + 1) % 3 WHERE kind = 3 AND round = 10",
    "an outcome's time": "UPDATE journal SET decided_at = 1 WHERE kind = 3 AND round = 10",
    "what was replaced": "UPDATE journal SET old = 0.99 WHERE kind = 6",
}


@pytest.mark.parametrize("change", TAMPERINGS.values(), ids=TAMPERINGS.keys())
def test_verify_notices_what_no_snapshot_covers(tmp_path: Path, change: str) -> None:
    driven = Driven(tmp_path)
    driven.create()
    for _ in range(10):
        [decision] = driven.decide()
        driven.tell(decision, 0.5)
    driven.tell(decision, 0.25, amend=True)
    assert verify(driven.engine.journal).problems == []
    apsw.Connection(str(driven.path)).execute(change)
    assert verify(driven.engine.journal).problems
