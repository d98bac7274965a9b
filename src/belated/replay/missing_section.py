"""The section of a log's page on whether outcomes are missing, and what that means."""

import math

import numpy as np

from belated.replay.decision_log import Log
from belated.replay.findings import NO_TEST_TELLS, LogCheck, apart, lacking, later, not_compared, percent
from belated.replay.missing import came
from belated.replay.pictures import in_words
from belated.replay.settling import Settled
from belated.reports import Section, Table

MOST_ARMS = 15  # with more, only those that differ most are shown
REASONS = {
    "waiting": "outcomes are still on their way",
    "missing": "some arms lack more outcomes than others",
    "young": "some arms lack more of the latest outcomes than others",
    "apart": "some arms were not used at the same times as the others",
    "one value": "the log has only one kind of outcome",
    "sparse": "hardly any outcomes came",
}


def missing_section(found: LogCheck, log: Log) -> Section:
    """What was found, what to do, and the arms side by side."""
    words = [finding.words for finding in found.findings] or [_all_clear(found, log)]
    advice = list(dict.fromkeys(finding.advice for finding in found.findings))  # two findings can have the same
    limit = [NO_TEST_TELLS] if found.n_blank else []
    return Section(
        "missing",
        "Whether outcomes are missing",
        headline=words[0],
        paragraphs=[*words[1:], *advice, *limit],
        tables=[_table(found, log)],
    )


def _all_clear(found: LogCheck, log: Log) -> str:
    if found.n_blank == 0:
        return "every decision has an outcome"
    if names := apart(found, log):
        return f"{not_compared(names)} So their missing outcomes cannot be compared"
    if math.isnan(found.rates.p_value) and math.isnan(found.young_rates.p_value):
        return "too few decisions are blank, or too few are not, to compare the arms"
    return "no arm has an outcome more or less often than the others, beyond chance"


def _table(found: LogCheck, log: Log) -> Table:
    compared = (found.rates, found.young_rates, found.delays)
    clarity = np.max([np.abs(one.strength) for one in compared], axis=0)
    named = (lacking(found.rates), lacking(found.young_rates), later(found.delays))
    clarity[[arm for arm in named if arm is not None]] = np.inf
    arms = np.sort(np.argsort(-clarity, kind="stable")[:MOST_ARMS])
    decisions = np.bincount(log.arms, minlength=log.n_arms)
    outcomes = np.bincount(log.arms, came(log), log.n_arms)
    rows = [
        (
            log.arm_names[arm],
            f"{decisions[arm]:,}",
            percent(outcomes[arm] / decisions[arm]) if decisions[arm] else "-",
            *(
                f"{effect:.0%}" if math.isfinite(effect) else "-"
                for effect in (found.rates.effect[arm], found.delays.effect[arm])
            ),
        )
        for arm in arms.tolist()
    ]
    header = ("arm", "decisions", "with an outcome", "as often as the others", "later than the others")
    hidden = f" ({log.n_arms - len(rows):,} arms differ less)" if log.n_arms > len(rows) else ""
    return Table(f"The arms, compared with like decisions of the others{hidden}", header, rows)


def why_no_best(found: LogCheck) -> str:
    """The reasons against naming a best policy, for a sentence."""
    return " and ".join(REASONS[finding.kind] for finding in found.findings if finding.stops)


def settled_words(settled: Settled, default_outcome: float | None) -> str:
    """What settling did to a log, in sentences."""
    wait = in_words(settled.wait, has_dates=settled.log.has_dates)
    young = f"{settled.n_young:,} decisions younger than {wait} are left out."
    if default_outcome is None:
        return young
    return f"{settled.n_defaults:,} blanks count as {default_outcome:g} after {wait}. {young}"
