"""What a study says if outcomes are missing, and when it names a best policy."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from belated import OutcomeRange
from belated.replay import Log, log_sections, log_study, settle
from belated.replay.findings import NO_TEST_TELLS
from belated.replay.log_study import LogStudy
from belated.replay.verdict import off_weights
from belated.reports import Section
from tests.support.lossy_logs import healthy, positives_only, without

REWARDS = OutcomeRange(0, 1, better="higher")
BLAMED = "Are the logged probabilities the ones really used?"


def said(found: LogStudy) -> str:
    """Everything that the terminal and the page show in words and tables."""

    def of(section: Section) -> list[str]:
        cells = [cell for table in section.tables for row in table.rows for cell in row]
        titles = [table.title for table in section.tables] + [figure.title for figure in section.figures]
        return [section.headline, *section.paragraphs, *titles, *cells]

    return "\n".join(words for section in log_sections.sections(found) for words in of(section))


def study(log: Log) -> LogStudy:
    return log_study.study(log, REWARDS)


def test_a_healthy_log_names_a_best_and_blames_nothing() -> None:
    found = study(healthy(1, 2000))
    assert found.best is not None
    assert found.best.name in ("always calm", "Shadow", "Tsallis")
    words = said(found)
    assert "no arm has an outcome more or less often than the others, beyond chance" in words
    assert f"the best is {found.best.name} with" in words
    assert "relied on" not in words
    assert BLAMED not in words
    assert NO_TEST_TELLS in words


def test_positives_only_name_no_best() -> None:
    """The case of an estimate of 1.493 for outcomes in [0, 1], and a best policy with 1 ± 0."""
    found = study(positives_only(healthy(1, 2000)))
    assert found.best is None
    assert log_sections.sections(found)[0].headline.startswith("Every reported outcome is 1, and 8")
    words = said(found)
    assert "the best is" not in words
    assert "no best can be named, because the log has only one kind of outcome and some arms lack more" in words
    assert words.count("Not to be relied on. ") == 3  # certificates, estimates and their figure
    assert BLAMED not in words
    assert "--default-outcome 0" in words
    assert NO_TEST_TELLS in words
    assert found.advice.sentences[1:] == (log_study.DELAYS_IN_DOUBT,)


def test_no_estimate_outside_the_range_is_shown() -> None:
    found = study(positives_only(healthy(1, 2000)))
    assert any(one.ips.value > 1 for one in found.estimates)
    assert all(0 <= bound <= 1 for one in found.estimates for bound in one.snips)
    table = log_sections.estimate_table(found)
    assert any("outside" in row for row in table.rows)
    numbers = [float(number) for row in table.rows for cell in row[1:3] for number in re.findall(r"[\d.]+", cell)]
    assert numbers
    assert max(numbers) <= 1


def test_an_interval_of_equal_outcomes_is_unknown() -> None:
    table = log_sections.estimate_table(study(positives_only(healthy(1, 2000))))
    assert all(row[1].endswith("?") for row in table.rows)


def test_a_default_names_a_best_again() -> None:
    found = study(settle(positives_only(healthy(1, 2000)), default_outcome=0.0).log)
    assert found.best is not None
    assert "relied on" not in said(found)
    assert "every decision has an outcome" in said(found)


def test_an_arm_that_lacks_outcomes_names_no_best() -> None:
    log = healthy(2, 2000)
    found = study(without(log, (log.arms == 2) & (np.random.default_rng(101).random(2000) < 0.3)))
    assert found.best is None
    assert log_sections.sections(found)[0].headline.startswith("calm has an outcome in ")
    assert "no best can be named, because some arms lack more outcomes than others." in said(found)


def test_wrong_probabilities_are_blamed_and_their_policies_not_named() -> None:
    log = healthy(3, 2000, is_drifting=False)
    assert log.probabilities is not None
    log.probabilities[:] = 0.1
    found = study(log)
    assert BLAMED in said(found)
    assert found.best is None
    assert "the logged probabilities are too doubtful to name a best" in said(found)


def test_a_mean_weight_that_chance_explains_is_not_blamed() -> None:
    """Few rows of a rare arm have a mean weight far from 1, now and then. More policies have one more often."""
    estimates = study(healthy(4, 400)).estimates
    (calm,) = [one for one in estimates if one.name == "always calm"]
    others = [one._replace(mean_weight=1.0, weight_chance=1.0) for one in estimates if one.name != "always calm"]

    def is_off(mean_weight: float, chance: float, effective: float = 100.0) -> bool:
        changed = calm._replace(mean_weight=mean_weight, weight_chance=chance, effective=effective)
        found = list(off_weights([*others, changed]))
        assert found in ([], [changed])
        return bool(found)

    assert len(others) == 10  # six tunings, two arms, uniform play and the log itself, which is not tested
    assert is_off(1.3, 0.049 / 10)
    assert not is_off(1.3, 0.051 / 10)
    assert not is_off(1.05, 1e-9)
    assert is_off(0.7, 1e-9)
    assert not is_off(0.7, 1e-9, 99.0)  # rare rows of large weight may be missing
    assert is_off(1.3, 1e-9, 99.0)


def test_fewer_than_a_hundred_outcomes_name_no_best() -> None:
    found = study(healthy(5, 60))
    assert found.best is None
    assert "too few outcomes to name a best" in said(found)


def test_a_slow_arm_is_said_beside_the_certificates() -> None:
    log = healthy(6, 2000)
    log.outcome_times[log.arms == 0] += 3600.0
    found = study(log)
    assert found.advice.sentences[-1].startswith("The certificates assume that the delay does not depend on the arm.")
    assert found.best is not None
    assert "The outcomes of wide come later than those of the others." in said(found)


@pytest.mark.parametrize("make", [healthy, lambda seed, n: positives_only(healthy(seed, n))])
def test_the_assumption_stands_beside_the_certificates(make: Callable[[int, int], Log]) -> None:
    """Also if the delays are doubted for another reason."""
    found = study(make(1, 2000))
    section = next(one for one in log_sections.sections(found) if one.anchor == "which-tuning")
    assert found.advice.assumption in section.paragraphs
    assert section.tables[0].title.endswith("in 2,000 rounds, if delays do not depend on the drawn arm")
    (glossary,) = log_sections.glossary().tables
    (meaning,) = [row[1] for row in glossary.rows if row[0] == "certificate"]
    assert meaning.endswith("if delays do not depend on the drawn arm")


def test_without_probabilities_the_past_is_doubted_as_well() -> None:
    log = positives_only(healthy(7, 2000))
    found = study(Log(log.arm_names, log.times, log.arms, log.outcomes, log.outcome_times))
    assert found.best is None
    assert "The decisions with an outcome got 1" in said(found)


def test_many_arms_show_those_that_differ_most() -> None:
    generator = np.random.default_rng(8)
    arms, times = generator.integers(0, 40, 8000), np.arange(8000.0)
    is_blank = (arms == 33) & (generator.random(8000) < 0.5)
    outcomes = np.where(is_blank, np.nan, generator.integers(0, 2, 8000))
    names = tuple(f"arm {number}" for number in range(40))
    found = study(Log(names, times, arms, outcomes, np.where(is_blank, np.inf, times + 1)))
    (table,) = log_sections.sections(found)[0].tables
    assert "(25 arms differ less)" in table.title
    assert len(table.rows) == 15
    assert "arm 33" in [row[0] for row in table.rows]
