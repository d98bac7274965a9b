"""Studies a log. How late is its feedback, which tuning fits, and what would other policies have got?"""

import math
from typing import NamedTuple

from belated.learner.outcomes import OutcomeRange
from belated.replay.advice import Advice, advise
from belated.replay.decision_log import Log
from belated.replay.findings import LogCheck, check
from belated.replay.logged_regret import logged_bound
from belated.replay.losses import losses_of, range_of
from belated.replay.off_policy import PolicyEstimate, evaluate_all
from belated.replay.verdict import Verdict, judge
from belated.replay.waiting import WaitingTimes, delays_in_rounds, measure

DELAYS_IN_DOUBT = (
    "This log says no more about a tuning. Its blanks count as feedback that never comes, and they may be something "
    "else. First do what is said above about missing outcomes."
)


class LogStudy(NamedTuple):
    """The results of a study."""

    waiting: WaitingTimes
    advice: Advice
    estimates: list[PolicyEstimate]
    outcomes: OutcomeRange
    log: Log
    check: LogCheck
    verdict: Verdict
    lost: float | None  # at most this by the logged decisions, in the units of the outcomes. None without probabilities

    @property
    def best(self) -> PolicyEstimate | None:
        """The best policy, or None if the log cannot bear to name one."""
        return self.verdict.best if self.check.can_name_best else None

    @property
    def best_arm(self) -> PolicyEstimate | None:
        """The best policy that always chooses one arm, or None."""
        return self.verdict.best_arm if self.check.can_name_best else None

    @property
    def may_be_best(self) -> tuple[PolicyEstimate, ...]:
        """The policies that may be the best. None may if the log cannot bear to name one."""
        return self.verdict.may_be_best if self.check.can_name_best else ()


def study(log: Log, given: OutcomeRange | None = None) -> LogStudy:
    """Measure the delays, find a tuning and estimate all policies."""
    outcomes = range_of(log, given)
    delays = delays_in_rounds(log.times, log.outcome_times)
    checked = check(log, outcomes)
    advice = _doubted(advise(log.n_arms, delays), checked)
    estimates = evaluate_all(log, outcomes)
    sign = -1 if outcomes.better == "higher" else 1
    estimates.sort(key=lambda one: math.inf if math.isnan(one.snips.value) else sign * one.snips.value)
    span = outcomes.highest - outcomes.lowest
    lost = None if log.probabilities is None else span * logged_bound(log, losses_of(log, outcomes))
    return LogStudy(measure(log), advice, estimates, outcomes, log, checked, judge(estimates, outcomes), lost)


def _doubted(advice: Advice, checked: LogCheck) -> Advice:
    """The advice without what rests on delays that cannot be trusted."""
    if not checked.can_trust_delays:
        return advice._replace(sentences=(advice.sentences[0], DELAYS_IN_DOUBT))
    late = [finding.advice for finding in checked.findings if finding.kind == "delay"]
    return advice._replace(sentences=(*advice.sentences, *late))
