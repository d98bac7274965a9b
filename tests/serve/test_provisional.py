"""Where a default outcome is declared, an open decision counts as the default until its own outcome comes."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from belated.errors import InvalidInput
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.settings import OutcomeChoice, Settings, TuningChoice, stored_settings
from belated.serve.service.views import view
from belated.serve.store.journal import entries
from belated.serve.store.verify import verify
from tests.support.engines import NO_STORE, Driven, state
from tests.support.means import Known, assert_known, known

WAIT = 60.0
SALES: dict[str, Any] = {"reward_wait": WAIT, "default_outcome": 0.0}  # no report means no sale


@pytest.mark.parametrize(
    ("outcome", "default", "loss"),
    [
        (OutcomeChoice(), 0.0, 1.0),
        (OutcomeChoice(), 1.0, 0.0),
        (OutcomeChoice(-1, 3), 0.0, 0.75),
        (OutcomeChoice(0, 10, "lower"), 5.0, 0.5),
    ],
)
def test_the_learner_gets_the_default_as_a_loss(outcome: OutcomeChoice, default: float, loss: float) -> None:
    settings = Settings("layout", ["a", "b"], outcome, reward_wait=WAIT, default_outcome=default)
    settings.check()
    assert settings.is_provisional
    assert settings.build_learner().status.provisional == loss


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"reward_wait": WAIT},
        {**SALES, "tuning": TuningChoice("shadow")},
        {**SALES, "provisional": False},
        {"provisional": False},
        {**SALES, "tuning": TuningChoice("advanced"), "provisional": False},
    ],
)
def test_otherwise_an_open_decision_does_not_count(driven: Driven, settings: dict[str, Any]) -> None:
    driven.create(**settings)
    assert driven["layout"].learner.status.provisional is None
    assert not view(driven["layout"], NO_STORE, 0).provisional


@pytest.mark.parametrize("settings", [{}, {"reward_wait": WAIT}, {**SALES, "tuning": TuningChoice("simple")}])
def test_it_cannot_be_asked_for_without_a_default_or_means(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="provisional needs a default_outcome and the tuning means"):
        Settings("layout", ["a", "b"], provisional=True, **settings).check()


def test_the_setting_is_kept(driven: Driven) -> None:
    """Only if somebody has said it. The document always shows what is true."""
    said: dict[str, dict[str, Any]] = {"silent": {}, "on": {"provisional": True}, "off": {"provisional": False}}
    for name, more in said.items():
        driven.create(name, **SALES, **more)
    bodies = [msgspec.json.decode(entry.body or b"") for entry in entries(driven.engine.journal)]
    assert [body.get("provisional") for body in bodies] == [None, True, False]
    assert [body["tuning"] for body in bodies] == [{"name": "means"}] * 3
    for _ in range(2):
        shown = [view(driven[name], NO_STORE, 0).provisional for name in ("silent", "on", "off")]
        assert shown == [True, True, False]
        driven.restart(snapshot=True)
    assert [stored_settings(msgspec.json.encode(body)).is_provisional for body in bodies] == [True, True, False]


def converted(driven: Driven) -> None:
    """Decide, and report sales at once. b sells most."""
    generator, rates = np.random.default_rng(5), {"a": 0.1, "b": 0.5, "c": 0.1}
    for _ in range(40):
        for one in driven.decide(size=10):
            if generator.random() < rates[one.arm]:
                assert driven.tell(one, 1.0) == "applied"


def test_sales_teach_before_any_wait_has_ended(tmp_path: Path) -> None:
    """Otherwise all that is known are sales, so every arm seems to be perfect."""
    shares = []
    for number, provisional in enumerate((True, False)):
        (tmp_path / str(number)).mkdir()
        driven = Driven(tmp_path / str(number))
        driven.create(**SALES, provisional=provisional)
        converted(driven)
        assert driven["layout"].counts.expired == 0
        shares.append(driven["layout"].chosen[1] / driven["layout"].counts.decisions)
    assert shares[0] > 0.8
    assert shares[1] < 0.6


def test_the_end_of_the_wait_changes_nothing_that_was_assumed(driven: Driven) -> None:
    driven.create(**SALES)
    converted(driven)
    before, outstanding = driven["layout"].distribution(), driven["layout"].counts.outstanding
    driven.clock.advance(WAIT)
    while driven.engine.expire():
        pass
    assert driven["layout"].counts.expired == outstanding > 0
    ended = [entry for entry in entries(driven.engine.journal) if entry.kind is EntryKind.EXPIRED]
    assert {entry.value for entry in ended} == {0.0}
    np.testing.assert_allclose(driven["layout"].distribution(), before, rtol=1e-9)
    assert all(one.missing == 0 for one in known(driven["layout"]).values())
    assert_known(driven["layout"], entries(driven.engine.journal))


def test_an_arm_whose_sales_come_late_looks_worse_until_they_come(driven: Driven) -> None:
    """This is the price."""
    driven.create(**SALES)
    open_ones = driven.decide(size=60)
    for number, one in enumerate(one for one in open_ones if one.arm == "a"):
        driven.tell(one, float(number % 3 == 0))  # it sells to every third
    assert driven["layout"].distribution()[1] < 0.1
    for one in open_ones:
        if one.arm == "b":
            driven.tell(one, 1.0)
    assert driven["layout"].distribution()[1] > 0.8


def test_it_goes_on_after_a_change_of_arms(driven: Driven) -> None:
    driven.create(**SALES)
    old = driven.decide(size=30)
    driven.change(add=("d",), retire=("c",))
    assert driven["layout"].learner.status.provisional == 1.0
    numbers = {arm: sum(one.arm == arm for one in old) for arm in "ab"}
    assert known(driven["layout"]) == {**{arm: Known(0, 0, n) for arm, n in numbers.items()}, "d": Known(0, 0, 0)}
    assert driven["layout"].distribution() == pytest.approx([1 / 3] * 3)  # nothing is sold, and d is like the others
    driven.restart(snapshot=True)
    before = state(driven)
    driven.restart()
    assert state(driven) == before
    for one in old:
        if one.arm == "a":
            driven.tell(one, 1.0)
    assert driven["layout"].distribution()[0] > 0.7
    assert verify(driven.engine.journal).problems == []
