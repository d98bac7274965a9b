"""Arms that join and leave a running experiment. A new era begins, and the learner goes on with the arms that stay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL
from belated.learner import certificates
from belated.learner.changes import HEAD_START, arrays_of
from belated.learner.decisions import Decision
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.fold import Fold, restore
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.settings import TuningChoice
from belated.serve.service.views import view
from belated.serve.store.journal import entries
from belated.serve.store.verify import verify
from tests.support import histories
from tests.support.engines import LOSSES, NO_STORE, Driven, state
from tests.support.means import Known, assert_known, hand_over, known, provoke, raise_alarm, stage_of
from tests.support.oracles import record_batch

LOSS = {"a": 0.1, "b": 0.5, "c": 0.9, "d": 0.3}
WAIT = 60.0


@pytest.fixture
def driven(driven: Driven) -> Driven:
    driven.create(outcome=LOSSES)
    return driven


def play(driven: Driven, rounds: int) -> list[Decided]:
    """Ask and tell at once. Each arm always has the same loss."""
    made = []
    for _ in range(rounds):
        made += driven.decide()
        assert driven.tell(made[-1], LOSS[made[-1].arm], word="loss") == "applied"
    return made


def test_means_are_kept_and_a_new_arm_is_tried(driven: Driven) -> None:
    play(driven, 60)
    before, x = known(driven["layout"]), driven["layout"].distribution()
    assert x[0] > 0.6
    driven.change(add=("d",))
    assert known(driven["layout"]) == {**before, "d": (0, 0, 0)}
    after = driven["layout"].distribution()
    assert after.argmax() == 0
    assert after[3] > after[1:3].max()
    driven.change(retire=("a",))
    assert known(driven["layout"]) == {"b": before["b"], "c": before["c"], "d": (0, 0, 0)}


def test_without_means_estimates_are_carried_over_but_a_head_start_is_limited(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(outcome=LOSSES, tuning=TuningChoice("shadow"))
    play(driven, 60)
    a, b, c = driven["layout"].learner.status.estimated_losses.tolist()
    driven.change(add=("d",))
    least = min(a, b, c)
    expected = [min(HEAD_START, loss - least) for loss in (a, b, c)]
    assert driven["layout"].learner.status.estimated_losses.tolist() == [*expected, 0.0]
    assert driven["layout"].learner._state.stretch.head_start == max(expected)
    play(driven, 400)
    before = driven["layout"].learner.status.estimated_losses
    driven.change(retire=("d",))
    after = driven["layout"].learner.status.estimated_losses
    assert before.max() - before[:3].min() > HEAD_START
    assert after.max() == driven["layout"].learner._state.stretch.head_start == HEAD_START == 20
    assert after.min() == 0.0


def test_a_retired_arm_is_never_drawn_again(driven: Driven) -> None:
    driven.change(retire=("b",))
    assert {one.arm for one in driven.decide(size=500)} == {"a", "c"}
    driven.restart(snapshot=True)
    assert {one.arm for one in driven.decide(size=500)} == {"a", "c"}
    driven.change(add=("d",), retire=("a",))
    assert {one.arm for one in driven.decide(size=500)} == {"c", "d"}
    driven.change(retire=("c",))
    assert {(one.arm, one.probability) for one in driven.decide(size=5)} == {("d", 1.0)}


def test_an_arm_that_comes_back_keeps_its_place_and_its_past(driven: Driven) -> None:
    play(driven, 50)
    chosen, reports = driven["layout"].chosen[1], driven["layout"].reports[1]
    assert chosen == reports > 0
    driven.change(retire=("b",))
    play(driven, 20)
    assert driven["layout"].reports[1] == reports
    driven.change(add=("b",))
    assert driven["layout"].arms == ["a", "b", "c"]
    assert driven["layout"].era.arms == [0, 1, 2]
    assert known(driven["layout"])["b"] == (0, 0, 0)  # like any arm that joins
    made = play(driven, 100)
    more = sum(one.arm == "b" for one in made)
    assert more > 0
    assert (driven["layout"].chosen[1], driven["layout"].reports[1]) == (chosen + more, reports + more)


@pytest.mark.parametrize("tuning", ["means", "shadow"])
def test_certificates_of_all_eras_add_up(tmp_path: Path, tuning: Any) -> None:
    """Each era has its own, with its head start, and at most its rounds. An era without rounds has none."""
    driven = Driven(tmp_path)
    driven.create(outcome=LOSSES, tuning=TuningChoice(tuning))
    proven = measured = 0.0
    for add, retire in (("d", ""), ("", "a"), ("a", "")):
        play(driven, 80)
        experiment = driven["layout"]
        own = own_certificates(experiment.learner)
        proven += own[0]
        measured += own[1]
        assert costs(experiment) == pytest.approx((proven, measured), rel=1e-12)
        driven.change(add=("empty",))
        driven.change(retire=("empty",))
        assert costs(experiment) == pytest.approx((proven, measured), rel=1e-12)
        driven.change(add=tuple(add), retire=tuple(retire))
    for _ in range(80):  # so many that the number of rounds does not limit the certificate
        driven.tell_all([OutcomeReport(one.id, "loss", LOSS[one.arm]) for one in driven.decide(size=50)])
    experiment = driven["layout"]
    assert experiment.costs().proven < experiment.counts.decisions
    assert experiment.costs().proven == pytest.approx(proven + own_certificates(experiment.learner)[0])


def costs(experiment: Experiment) -> tuple[float, float]:
    """What is proven, and what is measured with all open decisions."""
    known, n_open, bound, proven = experiment.costs()
    assert 0 <= bound <= experiment.counts.decisions
    return proven, known + n_open


def own_certificates(learner: FTRL) -> tuple[float, float]:
    """The certificates of a new learner that is in this learner's last stretch, and the head start."""
    own = arrays_of(learner._state)
    return certificates.proven_any(own), sum(certificates.measured(own))


def test_history_and_means_keep_their_arms(driven: Driven) -> None:
    play(driven, 100)
    driven.change(add=("d",), retire=("a",))
    play(driven, 100)
    document = view(driven["layout"], NO_STORE, driven.clock.now)
    assert document.arm_changes == 1
    assert [arm.name for arm in document.arms] == ["a", "b", "c", "d"]
    assert [arm.active for arm in document.arms] == [False, True, True, True]
    assert [arm.probability is None for arm in document.arms] == [True, False, False, False]
    assert sum(arm.probability or 0 for arm in document.arms) == pytest.approx(1.0)
    assert sum(arm.chosen for arm in document.arms) == sum(arm.reports for arm in document.arms) == 200
    assert document.history.round == list(range(1, 201))
    for number, there in ((0, slice(0, 100)), (1, slice(0, 200)), (2, slice(0, 200)), (3, slice(100, 200))):
        points = document.history.probabilities[number] or []
        known = [index for index, point in enumerate(points) if point is not None]
        assert known == list(range(200))[there]
    assert [arm.mean for arm in document.arms] == [pytest.approx(LOSS[arm.name]) for arm in document.arms]
    shares = [arm.chosen / n for arm, n in zip(document.arms, (100, 200, 200, 100), strict=True)]
    assert [arm.share for arm in document.arms] == shares


# -- outcomes of decisions that were made before a change -----------------------------------------------------------


def test_outcomes_count_in_the_era_of_their_decision(driven: Driven) -> None:
    old = driven.decide(size=30)
    driven.change(add=("d",))
    for one in old:
        driven.tell(one, LOSS[one.arm], word="loss")
    experiment = driven["layout"]
    assert [era.decisions for era in (*experiment.past, experiment.era)] == [30, 0]
    assert experiment.evidence.known == [*(sum(one.arm == arm for one in old) for arm in "abc"), 0]
    driven.tell(old[0], 1.0, word="loss", amend=True)
    assert sum(experiment.evidence.totals) == pytest.approx(sum(LOSS[one.arm] for one in old) - LOSS[old[0].arm] + 1.0)


def test_outcomes_from_before_a_change_teach_the_arms_that_stay(driven: Driven) -> None:
    old = driven.decide(size=60)
    driven.change(add=("d",), retire=("b",))
    x = dict(zip("acd", driven["layout"].distribution().tolist(), strict=True))
    for one in old:
        assert driven.tell(one, LOSS[one.arm], word="loss") == "applied"
    numbers = {arm: sum(one.arm == arm for one in old) for arm in "abc"}
    assert known(driven["layout"]) == {
        "a": pytest.approx((numbers["a"], 0.1 * numbers["a"], 0)),
        "c": pytest.approx((numbers["c"], 0.9 * numbers["c"], 0)),
        "d": (0, 0, 0),
    }
    after = dict(zip("acd", driven["layout"].distribution().tolist(), strict=True))
    assert after["a"] > 1.5 * x["a"]
    assert after["c"] < x["c"] / 2
    best = next(one for one in old if one.arm == "a")
    assert driven.tell(best, 1.0, word="loss", amend=True) == "amended"
    assert known(driven["layout"])["a"] == pytest.approx((numbers["a"], 0.1 * numbers["a"] + 0.9, 0))


def test_without_means_they_teach_nothing(tmp_path: Path) -> None:
    driven = Driven(tmp_path)
    driven.create(outcome=LOSSES, tuning=TuningChoice("shadow"))
    old = driven.decide(size=30)
    driven.change(add=("d",))
    losses = driven["layout"].learner.status.estimated_losses.tolist()
    for one in old:
        driven.tell(one, LOSS[one.arm], word="loss")
    driven.tell(old[0], 1.0, word="loss", amend=True)
    assert driven["layout"].learner.status.estimated_losses.tolist() == losses


@pytest.mark.parametrize("default", [None, 0.75])
def test_every_kind_of_outcome_of_a_retired_arm_is_taken(tmp_path: Path, default: float | None) -> None:
    driven = Driven(tmp_path)
    driven.create(reward_wait=WAIT, default_outcome=default)
    old = driven.decide(size=40)
    driven.change(retire=("b",))
    mine, before = [one for one in old if one.arm == "b"], known(driven["layout"])
    assert driven.tell(mine[0], 0.25) == "applied"
    assert driven.tell(mine[0], 0.5, amend=True) == "amended"
    assert known(driven["layout"]) == before
    driven.clock.advance(WAIT)
    driven.engine.expire()
    assert driven["layout"].counts.outstanding == 0
    before = known(driven["layout"])
    assert driven.tell(mine[1], 0.25) == "late"
    assert driven.tell(mine[1], 0.5, amend=True) == "amended"
    assert known(driven["layout"]) == before
    assert_known(driven["layout"], entries(driven.engine.journal))
    driven.engine.snapshot()
    assert verify(driven.engine.journal).problems == []


def test_an_arm_that_comes_back_has_no_past_to_amend(tmp_path: Path) -> None:
    """What it did before it left is forgotten, so a correction of it must not touch what it has done since."""
    driven = Driven(tmp_path)
    driven.create(outcome=LOSSES, reward_wait=WAIT)
    old = [one for one in driven.decide(size=40) if one.arm == "b"]
    for one in old[:3]:
        driven.tell(one, 1.0, word="loss")
    driven.change(retire=("b",))
    driven.clock.advance(WAIT)
    driven.engine.expire()  # gives the others up
    driven.change(add=("b",))
    new = [one for one in driven.decide(size=40) if one.arm == "b"]
    before = known(driven["layout"])
    assert before["b"] == Known(0, 0, len(new))
    for one in old[:3]:
        assert driven.tell(one, 0.0, word="loss", amend=True) == "amended"
    for one in old[3:]:
        assert driven.tell(one, 0.5, word="loss") == "late"
    assert known(driven["layout"]) == before
    for one in new:
        driven.tell(one, 0.5, word="loss")
    assert known(driven["layout"])["b"] == (len(new), 0.5 * len(new), 0)
    assert np.isfinite(driven["layout"].distribution()).all()
    assert_known(driven["layout"], entries(driven.engine.journal))


def test_a_single_arm_is_taught_by_its_open_decisions_when_others_join(tmp_path: Path) -> None:
    """A learner with one arm has nothing to learn, and no means."""
    driven = Driven(tmp_path)
    driven.create(arms=("a",), outcome=LOSSES, reward_wait=WAIT)
    ones = driven.decide(size=8)
    driven.tell(ones[0], 1.0, word="loss")
    driven.change(add=("b",))
    assert known(driven["layout"]) == {"a": (0, 0, 7), "b": (0, 0, 0)}
    for one in ones[1:4]:
        driven.tell(one, 0.5, word="loss")
    driven.tell(ones[0], 0.0, word="loss", amend=True)  # it does not know this one
    assert known(driven["layout"])["a"] == (3, 1.5, 4)
    driven.clock.advance(WAIT)
    driven.engine.expire()
    for one in ones[4:]:
        assert driven.tell(one, 0.5, word="loss") == "late"
    play(driven, 20)
    assert_known(driven["layout"], entries(driven.engine.journal))
    driven.decide(size=10)
    driven.change(retire=("b",))
    driven.decide(size=10)
    driven.change(add=("c",))
    driven.restart(snapshot=True)
    play(driven, 20)
    assert_known(driven["layout"], entries(driven.engine.journal))
    assert driven.engine.fold.restored > 0
    assert verify(driven.engine.journal).problems == []


# -- decisions whose server did not know of the change --------------------------------------------------------------


@pytest.mark.parametrize("default", [None, 0.75])
def test_a_decision_that_missed_a_change_costs_one_and_teaches_nothing(tmp_path: Path, default: float | None) -> None:
    here, there = two_servers(tmp_path, default)
    here.change(add=("d",))
    made = there.decide(size=20)
    for driven in (here, there):
        driven.engine.catch_up()
    assert here["layout"].learner.round == here["layout"].learner.outstanding == 0
    assert here["layout"].counts.decisions == 20
    assert costs(here["layout"]) == (20.0, 20.0)
    assert here["layout"].stale == here["layout"].look().verdict.left_out == 20
    before = here["layout"].shared.state()
    assert here.tell(made[0], 0.25) == "applied"
    assert here.tell(made[0], 0.5, amend=True) == "amended"
    here.clock.advance(WAIT)
    while here.engine.expire():
        pass
    assert here["layout"].counts.outstanding == 0
    assert here.tell(made[1], 0.25) == "late"
    assert here.tell(made[1], 0.5, amend=True) == "amended"
    assert here["layout"].shared.state() == before
    assert (here["layout"].more_proven, here["layout"].more_measured) == (20.0, 20.0)
    assert_known(here["layout"], entries(here.engine.journal))
    there.engine.catch_up()
    assert there.engine.fold.snapshot() == here.engine.fold.snapshot()
    assert verify(here.engine.journal).problems == []


def two_servers(tmp_path: Path, default: float | None = None) -> tuple[Driven, Driven]:
    """Two servers on one store. Each knows what the other wrote only after it has caught up."""
    here = Driven(tmp_path)
    here.create(reward_wait=WAIT, default_outcome=default)
    return here, Driven(tmp_path, clock=here.clock, seed=2)


@pytest.mark.parametrize("default", [None, 0.75])
@pytest.mark.parametrize("seed", [0])  # tests/system/serve has more
def test_servers_agree_from_any_snapshot_and_know_what_the_journal_says(
    tmp_path: Path, seed: int, default: float | None
) -> None:
    """Two servers lag behind each other while arms come and go, and outcomes of all kinds come late."""
    servers = two_servers(tmp_path, default)
    snapshots = live_apart(servers, np.random.default_rng(seed), steps=200)
    here, there = servers
    journal = here.engine.journal
    now = here.engine.fold.snapshot()
    assert there.engine.fold.snapshot() == now
    assert_known(here["layout"], entries(journal))
    assert here["layout"].learner.round < here["layout"].counts.decisions, "no decision missed a change"
    assert len(here["layout"].past) > 3
    assert {entry.kind for entry in entries(journal)} == histories.KINDS
    fold = Fold()
    for entry in entries(journal):
        fold.apply([entry])
    assert fold.snapshot() == now
    for snapshot in snapshots:
        fold = restore(snapshot)
        assert fold.snapshot() == snapshot
        fold.apply(entries(journal, fold.seq))
        assert fold.snapshot() == now
    here.engine.snapshot()
    assert verify(journal).problems == []


def live_apart(servers: tuple[Driven, Driven], generator: np.random.Generator, steps: int) -> list[Any]:
    """Let two servers do random things. Returns snapshots from all over the time."""
    made, snapshots = list[Decided](), []
    for step in range(steps):
        driven = servers[int(generator.integers(2))]
        match generator.choice(["decide", "tell", "wait", "arms", "read"], p=[0.33, 0.34, 0.08, 0.1, 0.15]):
            case "decide":
                made += driven.decide(size=int(generator.integers(1, 5)))
            case "tell" if made:
                picked = [made[index] for index in generator.integers(0, len(made), 4)]
                driven.tell_all([OutcomeReport(one.id, "reward", float(generator.random()), True) for one in picked])  # noqa: FBT003
            case "wait":
                driven.clock.advance(float(generator.uniform(0, WAIT)))
                driven.engine.expire()
            case "arms":
                histories.change_an_arm(driven, "layout", generator, fewest=1)
            case "read":
                driven.engine.catch_up()
        if step % 10 == 0:
            snapshots.append(driven.engine.fold.snapshot())
    for driven in servers:
        driven.engine.catch_up()
    return snapshots


# -- the learner of the library, and its stages ---------------------------------------------------------------------


def test_the_learner_is_the_librarys_through_changes(driven: Driven) -> None:
    """An FTRL with names that gets the same decisions, changes and reports decides alike, bit for bit."""
    hand: Any = FTRL(["a", "b", "c"], seed=0)
    generator = np.random.default_rng(3)
    twins: dict[str, Decision[str]] = {}
    told: dict[str, float] = {}
    for step in range(120):
        if step % 20 == 19:  # a new arm always comes last, as in the library
            retire = hand.status.arms[int(generator.integers(2))]
            driven.change(add=(f"new {step}",), retire=(retire,))
            hand.change_arms(add=[f"new {step}"], retire=[retire])
        made = driven.decide(size=3)
        index = [hand.status.arms.index(one.arm) for one in made]
        assert [one.probability for one in made] == hand.distribution()[index].tolist()
        for number, one in enumerate(made, hand.round + 1):
            twins[one.id] = Decision(number, one.arm, one.probability)
        record_batch(hand, index, [one.probability for one in made])
        for id in generator.choice(list(twins), 3):
            loss = float(generator.random())
            if driven.tell(str(id), loss, word="loss", amend=True) == "applied":
                hand.tell(twins[id], loss)
            else:
                hand.amend(twins[id], told[id], loss)
            told[id] = loss
    assert driven["layout"].distribution().tolist() == hand.distribution().tolist()
    assert driven["layout"].learner.certificate() == hand.certificate()
    assert driven["layout"].learner.measured_certificate() == hand.measured_certificate()
    assert driven["layout"].learner.outstanding == hand.outstanding


@pytest.mark.parametrize("stage", ["means", "shadow", "careful"])
@pytest.mark.parametrize("is_open", [False, True], ids=["all reported", "open"])
def test_a_change_in_any_stage_begins_again_on_means(tmp_path: Path, stage: str, is_open: bool) -> None:
    """Snapshots from before and after the change lead to the same bits."""
    driven = Driven(tmp_path)
    provoke(driven, stage)
    old = driven.decide(size=20)
    if not is_open:
        driven.tell_all([OutcomeReport(one.id, "loss", LOSS[one.arm]) for one in old])
    before = driven.engine.fold.snapshot()
    driven.change(add=("c",))
    after = driven.engine.fold.snapshot()
    assert stage_of(driven["layout"].learner) == "means"
    assert not driven["layout"].learner._state.clock["shadow"]["alarm"][0]
    if is_open:
        driven.tell_all([OutcomeReport(one.id, "loss", LOSS[one.arm]) for one in old])
    play(driven, 30)
    assert_known(driven["layout"], entries(driven.engine.journal))
    for snapshot in (before, after):
        fold = restore(snapshot)
        fold.apply(entries(driven.engine.journal, fold.seq))
        assert fold.snapshot() == driven.engine.fold.snapshot()
    assert verify(driven.engine.journal).problems == []


@pytest.mark.parametrize("provoked", [hand_over, raise_alarm])
def test_a_later_stage_can_follow_a_change(tmp_path: Path, provoked: Any) -> None:
    driven = Driven(tmp_path)
    provoke(driven, "means")
    old = driven.decide(size=20)
    driven.change(add=("c",))
    driven.change(retire=("c",))
    provoked(driven)
    assert stage_of(driven["layout"].learner) != "means"
    driven.restart(snapshot=True)
    for one in old:
        assert driven.tell(one, 0.5, word="loss") == "applied"
    driven.tell(old[0], 0.0, word="loss", amend=True)
    play(driven, 10)
    driven.restart()
    assert driven.engine.fold.restored > 0
    assert verify(driven.engine.journal).problems == []


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("add", "retire", "kind"),
    [
        ((), ("z",), "not_found"),
        ((), (), "invalid"),
        ((), ("a", "b", "c"), "invalid"),
        (("d", "d"), (), "invalid"),
        (("a",), ("a",), "invalid"),
        ((" d",), (), "invalid"),
        (("d\n",), (), "invalid"),
        (tuple(str(number) for number in range(998)), (), "invalid"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    driven: Driven, add: tuple[str, ...], retire: tuple[str, ...], kind: str
) -> None:
    before = state(driven)
    result = driven.change(add=add, retire=retire)
    assert isinstance(result, Refusal)
    assert result.kind == kind
    assert state(driven) == before


def test_a_closed_experiment_keeps_its_arms(driven: Driven) -> None:
    driven.close()
    before = state(driven)
    assert driven.change(add=("d",)).kind == "conflict"
    assert driven.close() == (driven["layout"], False)  # a second time is no conflict and writes nothing
    assert state(driven) == before


def test_a_change_that_is_sent_again_changes_nothing(driven: Driven) -> None:
    assert driven.change(add=("d",), retire=("a",))[1]
    before = state(driven)
    assert driven.change(add=("d",), retire=("a",)) == (driven["layout"], False)
    assert state(driven) == before
