"""Says what is suspicious about the outcomes of a log, and whether the log can bear a best policy."""

import math
from typing import NamedTuple

import numpy as np

from belated.learner.outcomes import OutcomeRange
from belated.replay.decision_log import Log
from belated.replay.losses import range_of
from belated.replay.missing import (
    ENOUGH_OUTCOMES,
    Comparison,
    came,
    delays,
    is_old,
    report_rates,
    usual_wait,
    within_wait,
)
from belated.replay.pictures import in_words

BEYOND_CHANCE = 0.001  # of a p-value. Three tests then find something in fewer than 1 in 300 healthy logs
MATTERS = 0.01  # of a rate. A smaller difference shifts a mean outcome by less than 1% of the range
MATTERS_LATER = 0.05  # of the chance to come later, which is one half for like arms
HARDLY_ANY = 0.1  # of the rows. With fewer outcomes, the missing ones decide what is best
FEW = 0.5
APART = 0.1  # of the comparisons of a mixed log. With fewer, an arm was not used beside the others
MOST_NAMES = 5
MANY_BLANK = 0.05  # of the rows. Fewer hardly shift an estimate
NO_TEST_TELLS = (
    "If an outcome itself decides whether it is reported, no method can tell from the log. It takes an assumption, and "
    "a default outcome is one."
)


class Finding(NamedTuple):
    """Something suspicious. `kind` is waiting, missing, young, apart, delay, one value or sparse."""

    kind: str
    words: str  # what was found
    advice: str  # what to do
    stops: bool  # whether no best policy can be named


class LogCheck(NamedTuple):
    """How the arms of a log compare, and what follows."""

    wait: float  # 99 in 100 of the outcomes came within it, also of a slow arm. NaN if none came
    n_blank: int  # rows without an outcome, and not within their wait
    n_waiting: int  # rows that may still be within their wait, with or without an outcome
    share: float  # of the rows older than this wait that have an outcome, NaN if none is so old
    rates: Comparison  # how often rows older than this wait have an outcome
    young_rates: Comparison  # the same of the younger rows
    delays: Comparison
    findings: tuple[Finding, ...]

    @property
    def can_name_best(self) -> bool:
        """Whether nothing found forbids to name a best policy."""
        return not any(finding.stops for finding in self.findings)

    @property
    def can_trust_delays(self) -> bool:
        """Whether a blank can be taken as feedback that never comes."""
        return self.can_name_best or self.n_blank == 0


def check(log: Log, outcomes: OutcomeRange | None = None) -> LogCheck:
    """Test whether outcomes are missing or late in a way that depends on the arm, beyond chance.

    >>> arms = np.arange(1000) % 2
    >>> is_blank = (arms == 1) & (np.arange(1000) % 3 == 0)  # a third of one arm
    >>> values = np.where(is_blank, np.nan, np.arange(1000) % 7 > 3)
    >>> known = np.where(is_blank, np.inf, np.arange(1000) + 1)
    >>> found = check(Log(("blue", "green"), np.arange(1000.0), arms, values, known))
    >>> found.can_name_best, found.findings[0].words.split(". ")[0]
    (False, 'green has an outcome in 33% fewer rows than the others')
    """
    wait = usual_wait(log)
    waiting = within_wait(log)
    old, young = is_old(log, wait) & ~waiting, ~is_old(log, wait) & ~waiting
    counts = int((~came(log) & ~waiting).sum()), int(waiting.sum())
    share = float(came(log)[old].mean()) if old.any() else math.nan
    found = LogCheck(wait, *counts, share, report_rates(log, old), report_rates(log, young), delays(log), ())
    meant = range_of(log, outcomes)
    findings = [
        _waiting(found, log),
        _one_value(found, log, meant),
        _sparse(found, log, meant),
        _missing(found, log, meant),
        _apart(found, log),
        _later(found, log),
    ]
    return found._replace(findings=tuple(finding for finding in findings if finding is not None))


def unlike(compared: Comparison, even: float, matters: float) -> int | None:
    """The arm that differs most clearly of those that differ enough to matter, or None if chance explains it.

    An arm has to differ beyond chance on its own. A large arm can differ very clearly and hardly at all. If no arm does
    so, but all of them together, it is the clearest.
    """
    if not compared.p_value < BEYOND_CHANCE:
        return None
    is_sure = compared.p_values < BEYOND_CHANCE
    arms = np.flatnonzero(is_sure) if is_sure.any() else np.array([compared.strongest])
    arms = arms[np.abs(compared.effect[arms] - even) >= matters]
    return int(arms[np.abs(compared.strength[arms]).argmax()]) if arms.size else None


def lacking(compared: Comparison) -> int | None:
    """The arm whose rate of reports differs from the others. Of two arms, it is the one that lacks outcomes."""
    arm, beside = unlike(compared, 1.0, MATTERS), np.flatnonzero(compared.weight > 0)
    if arm is None or beside.size != 2:
        return arm
    return int(beside[compared.effect[beside].argmin()])


def later(compared: Comparison) -> int | None:
    """The arm whose outcomes come later or sooner than equal ones of the others."""
    return unlike(compared, 0.5, MATTERS_LATER)


def apart(found: LogCheck, log: Log) -> list[str]:
    """The arms that are hardly ever decided at about the same time as another. So they cannot be compared."""
    rows = np.bincount(log.arms, minlength=log.n_arms)
    if_mixed = rows * (1 - rows / rows.sum())
    is_apart = found.rates.weight + found.young_rates.weight < APART * if_mixed
    return [log.arm_names[arm] for arm in np.flatnonzero(is_apart & (if_mixed >= ENOUGH_OUTCOMES)).tolist()]


def not_compared(names: list[str]) -> str:
    """That arms were used apart, as the start of a sentence."""
    listed = ", ".join(names[:MOST_NAMES]) + (
        f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    )
    return f"Not used at the same times as other arms: {listed}."


def _waiting(found: LogCheck, log: Log) -> Finding | None:
    if found.n_waiting == 0:
        return None
    words = (
        f"{_decisions(found.n_waiting, log)} may still be within their wait. Their outcomes are not final, and those "
        "that come first may be the good ones."
    )
    fix = "Export the log again when more waits are over. Or judge what has come by now, with --wait and a time "
    return Finding("waiting", words, f"{fix}within which nearly all outcomes come.", stops=True)


def _decisions(n: int, log: Log) -> str:
    return "All decisions" if n == log.arms.size else f"{n:,} of {log.arms.size:,} decisions"


def _missing(found: LogCheck, log: Log, outcomes: OutcomeRange) -> Finding | None:
    chance = "Decisions of about the same time were compared. Chance does this in fewer than 1 in 1,000 logs."
    arm, young = lacking(found.rates), lacking(found.young_rates)
    if arm is not None:
        return Finding(
            "missing", f"{_about(found.rates, arm, log)} {chance}", _fill(found, log, _worst(outcomes)), stops=True
        )
    if young is not None:
        when = f"Among the decisions of the last {_time(found, log)}, {_about(found.young_rates, young, log)}"
        why = "There outcomes are still on their way, and those that come first may be the good ones."
        fix = f"Leave these decisions out with --wait {_number(found.wait)}."
        return Finding("young", f"{when} {why} {chance}", fix, stops=True)
    return None


def _about(compared: Comparison, arm: int, log: Log) -> str:
    ratio, name = compared.effect[arm], log.arm_names[arm]
    if compared.n_came[arm] == 0:
        return f"{name} has no outcome at all, and the others have some. So the log cannot judge it."
    if ratio < 1:
        suspicion = "Its bad outcomes may be missing. Then it looks better than it is."
        return f"{name} has an outcome in {percent(1 - ratio)} fewer rows than the others. {suspicion}"
    suspicion = "Bad outcomes of the others may be missing. Then they look better than they are."
    if ratio < 2:
        return f"{name} has an outcome in {percent(ratio - 1)} more rows than the others. {suspicion}"
    often = f"{ratio:.1f} times as often as the others" if ratio < math.inf else "and the others have none"
    return f"{name} has an outcome {often}. {suspicion}"


def _apart(found: LogCheck, log: Log) -> Finding | None:
    names, blank = apart(found, log), found.n_blank / log.arms.size
    if not names or blank < MANY_BLANK:
        return None
    words = (
        f"{not_compared(names)} So nothing shows whether they lack more outcomes than others, and {percent(blank)} of "
        "the rows have none."
    )
    advice = (
        "If a blank means an outcome, say which with --default-outcome. Otherwise find out why outcomes are missing. "
        "To compare arms, choose between them at random at any time."
    )
    return Finding("apart", words, advice, stops=True)


def _one_value(found: LogCheck, log: Log, outcomes: OutcomeRange) -> Finding | None:
    values, blank = np.unique(log.outcomes[came(log)]), found.n_blank / log.arms.size
    if values.size != 1 or (found.n_waiting and not found.n_blank):  # the others may be on their way
        return None
    value = values[0]
    if blank == 0:
        words = f"Every outcome in the log is {value:g}. So no policy is better than another."
        return Finding("one value", words, "Check the column of outcomes.", stops=True)
    words = f"Every reported outcome is {value:g}, and {percent(blank)} of the rows have none."
    opposite = outcomes.highest if value == outcomes.lowest else outcomes.lowest
    return Finding(
        "one value", f"{words} The other outcomes seem to be blank.", _fill(found, log, opposite), stops=True
    )


def _sparse(found: LogCheck, log: Log, outcomes: OutcomeRange) -> Finding | None:
    if not found.share < FEW or np.unique(log.outcomes[came(log)]).size == 1:
        return None
    words = f"Only {percent(found.share)} of the rows that are old enough have an outcome."
    return Finding("sparse", words, _fill(found, log, _worst(outcomes)), stops=found.share < HARDLY_ANY)


def _later(found: LogCheck, log: Log) -> Finding | None:
    arm = later(found.delays)
    if arm is None:
        return None
    chance = found.delays.effect[arm]
    order = "later" if chance > 0.5 else "sooner"
    words = (
        f"The outcomes of {log.arm_names[arm]} come {order} than those of the others. Of two equal outcomes of about "
        f"the same time, its own came {order} in {percent(max(chance, 1 - chance))} of the cases."
    )
    advice = (
        "The certificates assume that the delay does not depend on the arm. So here they are numbers to compare, not "
        "promises."
    )
    return Finding("delay", words, advice, stops=False)


def _fill(found: LogCheck, log: Log, value: float) -> str:
    return (
        f"If a blank means {value:g}, say so with --default-outcome {value:g}. It then counts for every blank older "
        f"than {_time(found, log)}. Otherwise find out why outcomes are missing, and log them."
    )


def _worst(outcomes: OutcomeRange) -> float:
    return outcomes.lowest if outcomes.better == "higher" else outcomes.highest


def _time(found: LogCheck, log: Log) -> str:
    return in_words(found.wait, has_dates=log.has_dates)


def _number(value: float) -> str:
    """A number to type, not below the value if it is large."""
    return str(math.ceil(value)) if value >= 100 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share in percent, with more digits if it is almost nothing or almost all."""
    if share < 0.1:
        return f"{100 * share:.2g}%"
    return f"{share:.0%}" if share < 0.995 or share == 1 else f"{share:.1%}"
