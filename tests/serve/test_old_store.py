"""A store that was written before the redesign of November 2026 opens and gives the same numbers."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import VERSION
from belated.serve.store.verify import verify
from belated.tunings import Shadow
from tests.support.engines import Driven

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "store-of-november-2026.json").read_text())


@pytest.fixture
def old_store(tmp_path: Path) -> Driven:
    shutil.copy(DATA / "store-of-november-2026.db", tmp_path / "belated.db")
    return Driven(tmp_path)


def numbers(experiment: Experiment) -> dict[str, Any]:
    learner, counts = experiment.learner, experiment.counts
    return {
        "counts": {name: getattr(counts, name) for name in counts.__struct_fields__},
        "arms": experiment.arms,
        "chosen": experiment.chosen,
        "closed_at": experiment.closed_at,
        "active": [experiment.arms[arm] for arm in experiment.era.arms],
        "distribution": experiment.distribution().tolist(),
        "certificate": learner.certificate(),
        "measured": learner.measured_certificate(),
        "losses": learner.status.estimated_losses.tolist(),
        "round": learner.round,
        "outstanding": learner.outstanding,
    }


def test_an_old_store_folds_to_the_same_numbers(old_store: Driven) -> None:
    fold = old_store.engine.fold
    assert fold.seq == EXPECTED["entries"]
    assert {name: numbers(experiment) for name, experiment in fold.by_name.items()} == EXPECTED["experiments"]


def test_the_old_name_of_a_setting_is_read(old_store: Driven) -> None:
    journal = old_store.engine.journal
    bodies = [entry.body for entry in journal.read(0, 10_000) if b'"doubt"' in (entry.body or b"")]
    assert len(bodies) == 1
    assert old_store["shadowed"].settings.tuning.build() == Shadow(scale=2.0, switch_threshold=0.5)


def test_an_old_snapshot_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copy(DATA / "store-of-november-2026.db", tmp_path / "belated.db")
    with caplog.at_level(logging.WARNING, "belated.store"):
        driven = Driven(tmp_path)
    [record] = [one for one in caplog.records if one.name == "belated.store"]
    assert vars(record)["entry"] == 1111
    assert f"version 3, and this release reads version {VERSION}" in vars(record)["reason"]
    assert driven.engine.fold.restored == 0


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
