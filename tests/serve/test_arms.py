"""Arms that join and leave a running experiment. A new era begins, and the old one is kept."""

import pytest

from belated.serve.domain.experiment import HEAD_START
from belated.serve.domain.messages import Decided, OutcomeReport
from belated.serve.domain.observations import ENOUGH_REPORTS
from belated.serve.domain.refusals import Refusal
from belated.serve.service.views import view
from tests.support.engines import LOSSES, NO_STORE, Driven, state

LOSS = {"a": 0.1, "b": 0.5, "c": 0.9, "d": 0.3}


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


def test_estimates_are_carried_over_but_a_head_start_is_limited(driven: Driven) -> None:
    play(driven, 60)
    a, b, c = driven["layout"].learner.status.estimated_losses.tolist()
    driven.change(add=("d",))
    least = min(a, b, c)
    expected = [min(HEAD_START, loss - least) for loss in (a, b, c)]
    assert driven["layout"].learner.status.estimated_losses.tolist() == [*expected, 0.0]
    assert driven["layout"].era.head_start == max(expected)
    play(driven, 400)
    before = driven["layout"].learner.status.estimated_losses
    driven.change(retire=("d",))
    after = driven["layout"].learner.status.estimated_losses
    assert before.max() - before[:3].min() > HEAD_START
    assert after.max() == driven["layout"].era.head_start == HEAD_START == 20
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
    assert driven["layout"].learner.status.estimated_losses[1] == 0.0  # like any arm that joins
    made = play(driven, 100)
    more = sum(one.arm == "b" for one in made)
    assert more > 0
    assert (driven["layout"].chosen[1], driven["layout"].reports[1]) == (chosen + more, reports + more)


def test_certificates_of_all_eras_add_up(driven: Driven) -> None:
    """Each era has its own, with its head start, and at most its rounds. An era without rounds has none."""
    proven = measured = 0.0
    for add, retire in (("d", ""), ("", "a"), ("a", "")):
        play(driven, 80)
        experiment = driven["layout"]
        head_start = experiment.era.head_start
        proven += min(80, experiment.learner.certificate() + head_start)
        measured += min(80, experiment.learner.measured_certificate() + head_start)
        assert experiment.certificates() == pytest.approx((proven, measured), rel=1e-12)
        driven.change(add=("empty",))
        driven.change(retire=("empty",))
        assert experiment.certificates() == pytest.approx((proven, measured), rel=1e-12)
        driven.change(add=tuple(add), retire=tuple(retire))
    for _ in range(40):  # so many that the number of rounds does not limit the certificate
        driven.tell_all([OutcomeReport(one.id, "loss", LOSS[one.arm]) for one in driven.decide(size=50)])
    experiment = driven["layout"]
    assert experiment.certificates()[0] < experiment.counts.decisions
    own = experiment.learner.certificate() + experiment.era.head_start
    assert experiment.certificates()[0] == pytest.approx(proven + own)


def test_history_and_estimates_keep_their_arms(driven: Driven) -> None:
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
        points = document.history.probabilities[number]
        known = [index for index, point in enumerate(points) if point is not None]
        assert known == list(range(200))[there]
    for arm in document.arms:
        assert (arm.estimate is not None) == (arm.reports >= ENOUGH_REPORTS)
    assert any(arm.estimate is not None for arm in document.arms)


def test_outcomes_count_in_the_era_of_their_decision(driven: Driven) -> None:
    """Reports of an old era do not change the new learner. They count for the estimates of the arms."""
    old = driven.decide(size=30)
    driven.change(add=("d",))
    losses = driven["layout"].learner.status.estimated_losses.tolist()
    for one in old:
        driven.tell(one, LOSS[one.arm], word="loss")
    assert driven["layout"].learner.status.estimated_losses.tolist() == losses
    assert [era.earnings.outcomes for era in (*driven["layout"].past, driven["layout"].era)] == [30, 0]
    driven.tell(old[0], 1.0, word="loss", amend=True)
    assert driven["layout"].learner.status.estimated_losses.tolist() == losses
    assert sum(driven["layout"].past[0].earnings.lost) == pytest.approx(
        sum(LOSS[one.arm] for one in old) - LOSS[old[0].arm] + 1.0
    )


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
