"""A store that was written before the redesign of November 2026 opens and gives the same numbers."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from belated.learner import certificates
from belated.learner.changes import arrays_of
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import VERSION
from belated.serve.domain.settings import Settings, TuningChoice, stored_settings
from belated.serve.engine.requests import Create
from belated.serve.store.sqlite.schema import migrate
from belated.serve.store.verify import verify
from belated.tunings import Shadow
from tests.support.engines import Driven, state

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "store-of-november-2026.json").read_text())


@pytest.fixture
def old_store(tmp_path: Path) -> Driven:
    shutil.copy(DATA / "store-of-november-2026.db", tmp_path / "belated.db")
    list(migrate(tmp_path / "belated.db"))
    return Driven(tmp_path)


def numbers(experiment: Experiment) -> dict[str, Any]:
    """Return what the old release showed. Its learner began again when the arms changed, so this is the last stretch.

    The measured certificate is not part of the state. The old release computed it by an iteration from another start,
    so its last digits may differ.
    """
    learner, counts = experiment.learner, experiment.counts
    now = learner._state
    own = arrays_of(now)._replace(head_start=0.0)
    return {
        "counts": {name: getattr(counts, name) for name in counts.__struct_fields__ if name != "removed"},
        "arms": experiment.arms,
        "chosen": experiment.chosen,
        "closed_at": experiment.closed_at,
        "active": [experiment.arms[arm] for arm in experiment.era.arms],
        "distribution": experiment.distribution().tolist(),
        "certificate": certificates.proven(own),
        "measured": pytest.approx(sum(certificates.measured(own)), rel=1e-13),
        "losses": learner.status.estimated_losses.tolist(),
        "round": learner.round - now.offset,
        "outstanding": int(now.clock["outstanding"][0]),
    }


def test_an_old_store_folds_to_the_same_numbers(old_store: Driven) -> None:
    fold = old_store.engine.fold
    assert fold.seq == EXPECTED["entries"]
    assert {name: numbers(experiment) for name, experiment in fold.by_name.items()} == EXPECTED["experiments"]


def test_an_old_store_shows_the_same_certificates(old_store: Driven) -> None:
    """The old release added what outcomes had replaced before a change of arms to the measured one as well.

    It cut both off at the number of decisions, and showed the proven one for delays fixed in advance.
    """
    for name, (proven, measured) in EXPECTED["certificates"].items():
        experiment = old_store[name]
        ours, most, own = experiment.costs(), experiment.counts.decisions, experiment.learner.certificate()
        both = min(most, ours.known + ours.open)
        assert min(max(most, own), own + experiment.more_proven) == proven
        assert both <= measured * (1 + 1e-13) if experiment.past else both == pytest.approx(measured, rel=1e-13)
        assert experiment.learner.round == experiment.counts.decisions


def test_the_old_name_of_a_setting_is_read(old_store: Driven) -> None:
    journal = old_store.engine.journal
    bodies = [entry.body for entry in journal.read(0, 10_000) if b'"doubt"' in (entry.body or b"")]
    assert len(bodies) == 1
    assert old_store["shadowed"].settings.tuning.build() == Shadow(scale=2.0, switch_threshold=0.5)


def test_an_old_experiment_keeps_its_tuning(old_store: Driven) -> None:
    """The default has changed since. Entries name their tuning, and one that did not would mean the old default."""
    assert old_store["plain"].settings.tuning.build() == Shadow()
    assert not any(one.settings.is_provisional for one in old_store.engine.fold.experiments.values())
    rest = {"name": "layout", "arms": ["a", "b"], "reward_wait": 1.0, "default_outcome": 0.0}
    bodies: list[dict[str, Any]] = [rest, {**rest, "tuning": {}}, {**rest, "tuning": {"name": "shadow"}}]
    for body in bodies:
        settings = stored_settings(json.dumps(body).encode())
        assert settings.tuning.build() == Shadow()
        assert settings.build_learner().status.provisional is None
    assert stored_settings(json.dumps({**rest, "tuning": {"scale": 2.0}}).encode()).tuning.build() == Shadow(scale=2.0)


def test_an_old_experiment_can_be_created_again(old_store: Driven) -> None:
    """A program that does so at every start must not fail after the update."""
    before = state(old_store)
    assert old_store.do(Create(Settings("plain", ["x", "y"]))) == (old_store["plain"], False)
    assert old_store.do(Create(Settings("plain", ["x", "y"], tuning=TuningChoice("simple")))).kind == "conflict"
    assert old_store.do(Create(Settings("advanced", ["x", "y", "z"]))).kind == "conflict"
    assert old_store.do(Create(Settings("shadowed", ["x", "y", "z"]))).kind == "conflict"
    assert state(old_store) == before


def test_an_old_snapshot_is_skipped_with_a_warning(old_store: Driven, caplog: pytest.LogCaptureFixture) -> None:
    old = old_store.engine.fold.snapshot()._replace(version=3)
    old_store.engine.journal.save(old)
    with caplog.at_level(logging.WARNING, "belated.store"):
        old_store.restart()
    [record] = [one for one in caplog.records if one.name == "belated.store"]
    assert vars(record)["entry"] == old.seq
    assert f"version 3, and this release reads version {VERSION}" in vars(record)["reason"]
    assert old_store.engine.fold.restored == 0


def test_an_old_store_goes_on(old_store: Driven) -> None:
    """It makes decisions, is saved, opens again from the new snapshot, and verifies."""
    for name in ("waiting", "plain", "shadowed", "advanced"):
        old_store.decide(name)
    expected = {name: numbers(one) for name, one in old_store.engine.fold.by_name.items()}
    old_store.restart(snapshot=True)
    assert old_store.engine.fold.restored == EXPECTED["entries"] + 4
    assert {name: numbers(one) for name, one in old_store.engine.fold.by_name.items()} == expected
    verdict = verify(old_store.engine.journal)
    assert verdict.problems == []
    assert verdict.entries == EXPECTED["entries"] + 4
