"""Studies a log. How late is its feedback, which tuning fits, and what would other policies have got?"""

import math
from typing import NamedTuple

from belated.learner.outcomes import OutcomeRange
from belated.replay.advice import Advice, advise
from belated.replay.decision_log import Log
from belated.replay.findings import LogCheck, check
from belated.replay.missing_section import missing_section, why_no_best
from belated.replay.off_policy import LOGGED, Interval, PolicyEstimate, clipped, evaluate_all
from belated.replay.pictures import backlog_figure, tail_figure, waiting_table
from belated.replay.waiting import WaitingTimes, delays_in_rounds, measure
from belated.reports import Figure, Section, Table, columns_of, intervals

ENOUGH_OUTCOMES = 100  # effective ones. With fewer, an interval is a guess
FAR_FROM_1 = 0.1  # of a mean weight
BEYOND_CHANCE = 4.0  # standard errors of a mean weight. There are many policies to ask
MANY = 15  # with more arms, only the best and the worst are shown
WORST = 3
FED = (
    "Each tuning learns from the log. Its probabilities follow from the outcomes that had come by then, each divided "
    "by its logged probability. Each outcome is weighted by how much likelier the tuning was to choose the logged arm. "
    "IPS is unbiased, SNIPS is steadier. Look at SNIPS first. A tuning that decides for itself would see more of the "
    "arms it likes.",
    "The estimates assume that the logged probabilities are the ones really used, and that losses and delays do not "
    "depend on earlier choices. Decisions without an outcome are left out. Intervals are cut at the ends of the range "
    "of the outcomes, and an IPS outside it is not shown.",
)
WORDS = (
    ("arm, round", "an option one can choose, and a decision (round t is the t-th decision in order of time)"),
    ("outstanding", "decided, but its outcome has not come yet"),
    (
        "total delay D",
        "the outstanding decisions, summed over all rounds (the cost of late feedback grows with its square root)",
    ),
    ("m", "the same cost if the rounds that wait longest are left out, at a price of 1 each"),
    ("tuning", "how carefully a learner moves while outcomes are missing (Means is the default)"),
    ("regret", "the loss above that of the best single arm, where an outcome's whole range counts as 1"),
    ("certificate", "a number that the expected regret provably does not exceed with these delays, against any losses"),
    (
        "IPS, SNIPS",
        "estimates of a policy's mean outcome from the reweighted logged outcomes (SNIPS is self-normalised)",
    ),
    (
        "effective outcomes",
        "how many of the policy's own outcomes would say as much (with few, the interval is a guess)",
    ),
    ("mean weight", "over all decisions, near 1 if the logged probabilities are the ones really used"),
    (
        "as often, later",
        "how often decisions of about the same time have an outcome, and how often it came later than an equal one of "
        "another arm (even is 100% and 50%)",
    ),
    ("logged, uniform, always X", "the decisions as logged, every arm equally likely, and one arm only"),
)
NO_PROBABILITIES = (
    "The log has no column of probabilities, so it cannot say what other policies would have got. "
    "Start to log the probability each arm was chosen with.",
)
NOT_TO_RELY_ON = "Not to be relied on. "
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

    @property
    def best(self) -> PolicyEstimate | None:
        """The best policy, or None if the log cannot bear to name one."""
        sound = [one for one in self.estimates if is_sound(one)]
        if not self.check.can_name_best or all(one.policy == LOGGED for one in sound):
            return None
        return sound[0]


def study(log: Log, outcomes: OutcomeRange) -> LogStudy:
    """Measure the delays, find a tuning and estimate all policies."""
    delays = delays_in_rounds(log.times, log.outcome_times)
    checked = check(log, outcomes)
    advice = _doubted(advise(log.n_arms, delays), checked)
    estimates = evaluate_all(log, outcomes)
    sign = -1 if outcomes.better == "higher" else 1
    estimates.sort(key=lambda one: math.inf if math.isnan(one.snips.value) else sign * one.snips.value)
    return LogStudy(measure(log), advice, estimates, outcomes, log, checked)


def _doubted(advice: Advice, checked: LogCheck) -> Advice:
    """The advice without what rests on delays that cannot be trusted."""
    if not checked.can_trust_delays:
        return advice._replace(sentences=(advice.sentences[0], DELAYS_IN_DOUBT))
    late = [finding.advice for finding in checked.findings if finding.kind == "delay"]
    return advice._replace(sentences=(*advice.sentences, *late))


def meaning(outcomes: OutcomeRange) -> str:
    """How the outcomes are interpreted, in a sentence."""
    kind = "rewards" if outcomes.better == "higher" else "losses"
    return f"Outcomes are {kind} from {outcomes.lowest:g} to {outcomes.highest:g}, and {outcomes.better} is better."


def _show(one: PolicyEstimate, interval: Interval, within: OutcomeRange) -> str:
    """A value and half of its interval, or both ends of an interval that is cut at the end of the range.

    The interval is unknown for very few outcomes, and if all of them are equal.
    """
    value, low, high = interval
    if math.isnan(value):
        return "-"
    if not within.lowest <= value <= within.highest:
        return "outside"
    cut = clipped(interval, within)
    around = f" ± {high - value:.2g}"
    if one.effective < 10 or low == high:
        around = " ± ?"
    elif cut.low == within.lowest or cut.high == within.highest:
        around = f", {cut.low:.3g} to {cut.high:.3g}"
    return f"{value:.4g}{around}".replace(" ", "\N{NO-BREAK SPACE}")


def shown(estimates: list[PolicyEstimate]) -> list[PolicyEstimate]:
    """All estimates, but with many arms only the best and the worst of them."""
    arms = [one for one in estimates if isinstance(one.policy, int)]
    if len(arms) <= MANY:
        return estimates
    hidden = {one.name for one in arms[MANY - WORST : len(arms) - WORST]}
    return [one for one in estimates if one.name not in hidden]


def estimate_table(found: LogStudy) -> Table:
    """A table of the estimates, the best first."""
    within = found.outcomes
    rows = [
        (
            one.name,
            _show(one, one.snips, within),
            _show(one, one.ips, within),
            f"{one.effective:,.0f}",
            f"{one.mean_weight:.3f}",
        )
        for one in shown(found.estimates)
    ]
    header = ("policy", "SNIPS ± 95%", "IPS ± 95%", "effective outcomes", "mean weight")
    hidden = len(found.estimates) - len(rows)
    more = f" ({hidden:,} arms in between are in results.json)" if hidden else ""
    order = "best first" if found.check.can_name_best else "in order of SNIPS"
    return Table(f"{_mark(found)}Mean outcome of a decision, {order}{more}", header, rows)


def _mark(found: LogStudy) -> str:
    return "" if found.check.can_name_best else NOT_TO_RELY_ON


def advice_table(found: LogStudy) -> Table:
    """A table of the certificates, the smallest first."""
    advice = found.advice
    rows = [
        (f"{one.name}()", f"{one.certificate:,.0f}" if one.certificate < advice.trivial else "nothing yet")
        for one in advice.certified
    ]
    mark = "" if found.check.can_trust_delays else NOT_TO_RELY_ON
    title = f"{mark}Proven upper bounds on the expected regret in {advice.trivial:,} rounds"
    return Table(title, ("tuning", "certificate"), rows)


def is_off(one: PolicyEstimate) -> bool:
    """Whether the weights say, beyond chance, that the logged probabilities are not the ones really used."""
    return abs(one.mean_weight - 1) > max(FAR_FROM_1, BEYOND_CHANCE * one.weight_error)


def is_sound(one: PolicyEstimate) -> bool:
    """Whether the interval is meaningful."""
    return one.effective >= ENOUGH_OUTCOMES and not is_off(one)


def doubts(found: LogStudy) -> list[str]:
    """Warnings about the estimates."""
    judged = [one for one in found.estimates if one.policy != LOGGED]
    thin = [one.name for one in judged if one.effective < ENOUGH_OUTCOMES]
    off = [one.name for one in judged if one.effective >= ENOUGH_OUTCOMES and is_off(one)]
    said = []
    if thin:
        said.append(
            f"With fewer than {ENOUGH_OUTCOMES} effective outcomes, the interval is a guess. "
            f"That holds for {_listed(thin)}."
        )
    if off:
        said.append(
            f"The mean weight is far from 1 for {_listed(off)}. Are the logged probabilities the ones really used?"
        )
    return said


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def remarks(found: LogStudy) -> list[str]:
    """Warnings about the log itself."""
    waiting, said = found.waiting, []
    if waiting.n_arms * 10 > waiting.n_rounds:
        said.append(
            f"There are {waiting.n_arms:,} arms in {waiting.n_rounds:,} decisions. Is this the right column of arms?"
        )
    if math.isnan(waiting.rounds.median):
        said.append("No outcome came before the last decision, so no learner could have learned anything.")
    return said


def waiting_section(found: LogStudy) -> Section:
    """The section on how late the feedback is."""
    log, waiting = found.log, found.waiting
    delays = {"the log": delays_in_rounds(log.times, log.outcome_times)}
    return Section(
        "waiting",
        "How late the feedback is",
        headline=f"{waiting.n_rounds:,} decisions between {waiting.n_arms:,} arms, {waiting.share_never:.1%} never "
        f"reported, at most {waiting.largest_backlog:,} outstanding at once",
        paragraphs=remarks(found),
        tables=[waiting_table("Delays", {"the log": waiting}, has_dates=log.has_dates)],
        figures=[
            tail_figure("delays", "How long feedback is missing", delays),
            backlog_figure("backlog", "Outstanding decisions", delays),
        ],
    )


def sections(found: LogStudy) -> list[Section]:
    """The sections of a log's page."""
    width = found.outcomes.highest - found.outcomes.lowest
    unit = [f"Regret is in units of an outcome's range. A regret of 1 stands for {width:g}."] if width != 1 else []
    which = Section(
        "which-tuning",
        "Which tuning fits",
        headline=found.advice.sentences[0],
        paragraphs=[*found.advice.sentences[1:], *unit],
        tables=[advice_table(found)],
    )
    return [missing_section(found.check, found.log), waiting_section(found), which, off_policy_section(found)]


def glossary() -> Section:
    """The glossary, which only the page has room for."""
    return Section("words", "Words", tables=[Table("What they mean here", ("word", "meaning"), WORDS, is_text=True)])


def off_policy_section(found: LogStudy) -> Section:
    """The section on other policies, as far as the log can say."""
    title, headline = "What other policies would have got", _headline(found)
    if found.log.probabilities is None:
        return Section("off-policy", title, headline=headline, paragraphs=NO_PROBABILITIES)
    rows = [(one.name, *one.snips) for one in shown(found.estimates) if math.isfinite(one.snips.value)]
    columns = columns_of(("policy", "outcome (SNIPS)", "low", "high"), rows)
    draw = intervals("outcome (SNIPS)", "low", "high", "policy")
    what = f"{_mark(found)}Mean outcome" if _mark(found) else "Mean outcome of a decision"  # a longer one is cut off
    return Section(
        "off-policy",
        title,
        headline=headline,
        paragraphs=[*FED, *doubts(found)],
        tables=[estimate_table(found)],
        figures=[Figure("off-policy", f"{what}, 95% intervals", columns, draw)],
    )


def _headline(found: LogStudy) -> str:
    """Which policy is best, or why the log cannot say, and what the log itself got."""
    logged = next(one for one in found.estimates if one.policy == LOGGED)
    got = _show(logged, logged.snips, found.outcomes)
    past = f"the logged decisions got {got} on average"
    if not found.check.can_name_best:
        reasons = why_no_best(found.check)
        return f"no best can be named, because {reasons}. The decisions with an outcome got {got} on average"
    if found.log.probabilities is None:
        return past
    if found.best is None:
        is_enough = any(one.effective >= ENOUGH_OUTCOMES for one in found.estimates if isinstance(one.policy, int))
        why = "the logged probabilities are too doubtful" if is_enough else "too few outcomes"
        return f"{why} to name a best, and {past}"
    return f"the best is {found.best.name} with {_show(found.best, found.best.snips, found.outcomes)}, and {past}"
