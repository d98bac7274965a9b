"""The evidence in the fold is that of the journal, entry by entry, and the same to the last bit on all servers."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from belated.serve.domain.entries import Entry, EntryKind
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold, restore
from belated.serve.domain.settings import OutcomeChoice, TuningChoice
from belated.serve.store.journal import entries
from belated.verdicts import Evidence, Verdict
from tests.serve.test_arms import live_apart, two_servers
from tests.support import histories
from tests.support.engines import LOSSES, Driven

OUTCOMES = (EntryKind.REPORTED, EntryKind.EXPIRED, EntryKind.LATE, EntryKind.AMENDED)


def is_unknown(evidence: Evidence, seq: int) -> bool:
    """Whether the distribution of this decision was not known."""
    gaps = zip(evidence.gap_starts, evidence.gap_ends, strict=True)
    return any(first <= seq <= last for first, last in gaps)


def by_hand(found: Experiment, stream: Iterable[Entry]) -> Evidence:
    """Enter one decision after the other, with the distribution that the fold of its time gives."""
    default = found.settings.default_outcome
    assumed = None if default is None else found.outcomes.loss(default)
    evidence, fold, chances = Evidence.new(len(found.settings.arms), assumed), Fold(), dict[int, list[float]]()
    for entry in stream:
        if entry.experiment == found.seq and entry.kind is EntryKind.DECIDED:
            x = None if is_unknown(found.evidence, entry.seq) else chances[entry.seen or 0]
            evidence.decide(entry.seq, entry.arm or 0, entry.probability or 0.0, x)
        if entry.experiment == found.seq and entry.kind in OUTCOMES and entry.value is not None:
            drawn = entry.decision or 0, entry.arm or 0, entry.probability or 0.0
            loss = found.outcomes.loss(entry.value)
            if entry.old is None:
                evidence.report(*drawn, loss)
            else:
                evidence.amend(*drawn, found.outcomes.loss(entry.old), loss)
        fold.apply([entry])
        if entry.experiment == found.seq and entry.kind is EntryKind.ARMS:
            now = fold.experiments[found.seq]
            evidence.change_arms(now.era.arms, len(now.arms))
        if found.seq in fold.experiments:
            chances[entry.seq] = fold.experiments[found.seq].distribution().tolist()
    return evidence


def last_losses(found: Experiment, stream: Iterable[Entry]) -> dict[int, list[float]]:
    """The losses by arm, each of the newest outcome of its decision."""
    newest: dict[int, tuple[int, float]] = {}
    for entry in stream:
        if entry.experiment == found.seq and entry.kind in OUTCOMES and entry.value is not None:
            newest[entry.decision or 0] = entry.arm or 0, found.outcomes.loss(entry.value)
    losses = defaultdict[int, list[float]](list)
    for arm, loss in newest.values():
        losses[arm].append(loss)
    return losses


def assert_of_the_journal(found: Experiment, journal: list[Entry]) -> None:
    assert found.evidence == by_hand(found, journal)
    losses = last_losses(found, journal)
    for arm, interval in enumerate(found.evidence.means()):
        n = len(losses[arm])
        assert found.evidence.known[arm] == n
        assert (interval is None) == (n == 0)
        if interval is not None:
            assert interval.mean == pytest.approx(np.mean(losses[arm]), rel=1e-9)
            assert interval.open == found.chosen[arm] - n
            assert interval.low <= interval.mean <= interval.high


@pytest.mark.parametrize("seed", [0, 1])
def test_the_evidence_is_that_of_the_journal(tmp_path: Path, seed: int) -> None:
    """With batches, amendments, waits that end with and without a default, and arms that come and go."""
    driven = Driven(tmp_path, seed=seed)
    histories.begin(driven)
    driven.create("silent", reward_wait=5.0)
    driven.decide("silent", 30)
    histories.live(driven, np.random.default_rng(seed), 400)
    journal = list(entries(driven.engine.journal))
    assert {entry.kind for entry in journal} == histories.KINDS, "the history lacks something"
    for experiment in driven.engine.fold.experiments.values():
        assert_of_the_journal(experiment, journal)
        assert experiment.stale == 0
    silent = driven["silent"]
    assert silent.counts.expired == silent.look().verdict.open == 30, "without a default an ended decision stays open"


def test_a_default_is_the_outcome_until_a_late_one_amends_it(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(outcome=LOSSES, reward_wait=1.0, default_outcome=0.75)
    one, two = driven.decide(size=2)
    assert driven["layout"].evidence.reports == 0, "a decision that waits is open, also if it counts provisionally"
    driven.clock.advance(1.0)
    driven.engine.expire()
    evidence = driven["layout"].evidence
    assert (evidence.reports, sum(evidence.totals)) == (2, 1.5)
    assert driven.tell(one, 0.25, word="loss") == "late"
    assert driven.tell(two, 0.75, word="loss") == "late"
    assert driven.tell(two, 0.5, word="loss", amend=True) == "amended"
    assert (evidence.reports, sum(evidence.totals)) == (2, 0.75)


@pytest.mark.parametrize("default", [None, 0.75])
def test_decisions_from_older_data_are_left_out_on_all_servers_alike(tmp_path: Path, default: float | None) -> None:
    servers = two_servers(tmp_path, default)
    live_apart(servers, np.random.default_rng(1), steps=200)
    here, there = servers
    for driven in servers:
        driven.engine.catch_up()
    journal, found = list(entries(here.engine.journal)), here["layout"]
    assert found.evidence == there["layout"].evidence
    assert_of_the_journal(found, journal)
    made = [entry for entry in journal if entry.kind is EntryKind.DECIDED]
    unknown = [entry.seq for entry in made if is_unknown(found.evidence, entry.seq)]
    assert 0 < found.stale == len(unknown) < len(made)
    assert found.look().verdict.left_out >= found.stale
    newest = {one.seq: two.seq for one, two in zip(journal[1:], journal, strict=False)}
    assert all((entry.seen or 0) < newest[entry.seq] for entry in made if entry.seq in unknown), "one was not stale"


@pytest.mark.parametrize("tuning", ["means", "shadow", "advanced", "exp3"])
def test_the_distribution_in_force_is_that_of_the_draw(tmp_path: Path, tuning: str) -> None:
    driven, generator = Driven(tmp_path), np.random.default_rng(3)
    choice = TuningChoice(tuning, eta=0.1) if tuning == "exp3" else TuningChoice(tuning)  # type: ignore[arg-type]
    driven.create(tuning=choice, outcome=LOSSES)
    for _ in range(60):
        expected = driven["layout"].distribution().tolist()
        made = driven.decide(size=int(generator.integers(1, 4)))
        assert driven["layout"].shared.in_force.tolist() == expected
        driven.tell(made[0], float(generator.random() < 0.3 + 0.2 * "abc".index(made[0].arm)), word="loss")
    assert driven["layout"].stale == 0


def test_a_decision_of_another_release_is_left_out(tmp_path: Path) -> None:
    """Its learner may differ, so its probability is not that of this one. Nothing counts from then on.

    If only the decisions that differ were left out, it would depend on the arm whether one counts. A difference in the
    last digit is only rounding.
    """
    driven = Driven(tmp_path)
    driven.create()
    driven.decide(size=5)
    journal = list(entries(driven.engine.journal))
    other = [Entry(e.at, e.kind, e.experiment, e.seq, e.round, e.arm, 0.25, e.nonce, e.seen) for e in journal[3:4]]
    for size in (1, 9):
        fold, stream = Fold(), [*journal[:3], *other, *journal[4:]]
        for first in range(0, len(stream), size):
            fold.apply(stream[first : first + size])
        assert fold.by_name["layout"].stale == 3
        assert fold.by_name["layout"].look().verdict.left_out == 3
        assert fold.by_name["layout"].evidence.counted == 2
    [rounded] = journal[3:4]
    nearly = msgspec.structs.replace(rounded, probability=math.nextafter(rounded.probability or 0.0, 1))
    fold = Fold()
    fold.apply([*journal[:3], nearly, *journal[4:]])
    assert fold.by_name["layout"].evidence.counted == 5


def test_a_stale_decision_is_left_out_even_if_its_probability_is_the_present_one(tmp_path: Path) -> None:
    here, there = two_servers(tmp_path)
    here.tell(here.decide()[0], 1.0)
    here.decide()
    there.decide()
    journal = list(entries(here.engine.journal))
    fold = Fold()
    fold.apply(journal[:-1])
    now = fold.by_name["layout"].distribution().tolist()
    late = msgspec.structs.replace(journal[-1], probability=now[journal[-1].arm or 0])
    fold.apply([late])
    assert fold.by_name["layout"].stale == 1


def test_the_verdict_follows_every_change(tmp_path: Path) -> None:
    """It is kept until something changes, so each kind of entry must be noticed."""
    driven = Driven(tmp_path)
    driven.create(reward_wait=10.0, default_outcome=0.0, outcome=OutcomeChoice(0, 2))
    made, seen = driven.decide(size=40), list[Verdict]()
    driven.clock.advance(10.0)
    steps: list[Callable[[], object]] = [
        driven.decide,
        lambda: driven.tell(driven.decide()[0], 1.0),
        lambda: driven.tell(made[0], 0.5),
        driven.engine.expire,
        lambda: driven.tell(made[1], 2.0),
        lambda: driven.tell(made[1], 1.0, amend=True),
        lambda: driven.change(add=("d",)),
        lambda: driven.change(retire=("a",)),
    ]
    for step in steps:
        seen.append(driven["layout"].look().verdict)
        step()
        assert driven["layout"].look()[1:] == (driven["layout"].evidence.verdict(), driven["layout"].evidence.means())
        assert driven["layout"].look().verdict != seen[-1]
    assert restore(driven.engine.fold.snapshot()).by_name["layout"].look().verdict == driven["layout"].look().verdict
