"""A log, studied: how late its feedback is, which tuning fits, and what others would have got."""

import math
from typing import NamedTuple

from belated.replay.decision_log import Log
from belated.replay.off_policy import LOGGED, Interval, PolicyEstimate, evaluate_all
from belated.replay.outcomes import Outcomes
from belated.replay.pictures import backlog_figure, tail_figure, waiting_table
from belated.replay.waiting import WaitingTimes, delays_in_rounds, measure
from belated.replay.which import Advice, advise
from belated.reports import Figure, Section, Table, columns_of, intervals

FEW = 100  # effective outcomes below which an interval is a guess
MANY = 15  # arms; of more, the best and the worst are shown
WORST = 3
FED = (
    "Each tuning is fed by the log: its probabilities follow from the outcomes that had come by then, each divided by "
    "its logged probability, and every outcome counts by how much likelier the tuning was to choose the logged arm. "
    "IPS is unbiased, SNIPS steadier: look at SNIPS first. A tuning that decides for itself would see more of the arms "
    "it likes.",
    "The estimates assume that the logged probabilities are those really drawn with, and that losses and delays do not "
    "depend on earlier choices. Decisions without an outcome are left out: if being missing depends on the arm, give "
    "such rows an outcome and the time at which you gave up.",
)
WORDS = (
    ("arm, round", "what can be chosen, and a decision: round t is the t-th decision in order of time"),
    ("outstanding", "decided, but its outcome has not come yet"),
    (
        "total delay D",
        "the outstanding decisions, summed over all rounds: what late feedback costs grows with its root",
    ),
    ("m", "the same cost when the rounds that wait longest are left out, each at the price of 1"),
    ("tuning", "a rule for how carefully a learner moves while outcomes are missing; Shadow is the default"),
    ("regret", "the loss above that of the best single arm, an outcome's whole range counting as 1"),
    ("certificate", "a number that the expected regret provably does not exceed with these delays, against any losses"),
    (
        "IPS, SNIPS",
        "the mean outcome a policy would have got, from the logged outcomes reweighted; SNIPS is self-normalised",
    ),
    (
        "effective outcomes",
        "as many outcomes of the policy's own would tell as much; with few, the interval is a guess",
    ),
    ("mean weight", "near 1 if the logged probabilities are those that were drawn with"),
    ("logged, uniform, always X", "what was really decided; every arm alike; one arm only"),
)
NO_PROBABILITIES = (
    "The log has no column of probabilities, so nothing can be said about what other policies would have got: "
    "log the probability each arm was chosen with.",
)


class LogStudy(NamedTuple):
    """What there is to tell."""

    waiting: WaitingTimes
    advice: Advice
    estimates: list[PolicyEstimate]
    outcomes: Outcomes
    log: Log


def study(log: Log, outcomes: Outcomes) -> LogStudy:
    """Everything that a log says."""
    delays = delays_in_rounds(log.times, log.outcome_times)
    advice = advise(log.n_arms, delays)
    estimates = evaluate_all(log, outcomes)
    sign = -1 if outcomes.is_reward else 1
    estimates.sort(key=lambda one: math.inf if math.isnan(one.snips.value) else sign * one.snips.value)
    return LogStudy(measure(log), advice, estimates, outcomes, log)


def meaning(outcomes: Outcomes) -> str:
    """What the outcomes were taken for."""
    kind, better = ("rewards", "larger") if outcomes.is_reward else ("losses", "smaller")
    return f"Outcomes are taken as {kind} from {outcomes.lowest:g} to {outcomes.highest:g}: {better} is better."


def _show(one: PolicyEstimate, interval: Interval) -> str:
    """A value and half its interval; that of a few outcomes is not known."""
    if math.isnan(interval.value):
        return "-"
    half = "?" if one.effective < 10 else f"{interval.high - interval.value:.2g}"
    return f"{interval.value:.4g}\u00a0±\u00a0{half}"


def shown(estimates: list[PolicyEstimate]) -> list[PolicyEstimate]:
    """All, or with many arms the tunings, the best arms and the worst."""
    arms = [one for one in estimates if isinstance(one.policy, int)]
    if len(arms) <= MANY:
        return estimates
    hidden = {one.name for one in arms[MANY - WORST : len(arms) - WORST]}
    return [one for one in estimates if one.name not in hidden]


def estimate_table(estimates: list[PolicyEstimate]) -> Table:
    """The best first."""
    rows = [
        (one.name, _show(one, one.snips), _show(one, one.ips), f"{one.effective:,.0f}", f"{one.mean_weight:.3f}")
        for one in shown(estimates)
    ]
    header = ("policy", "SNIPS ± 95%", "IPS ± 95%", "effective outcomes", "mean weight")
    hidden = len(estimates) - len(rows)
    more = f" ({hidden:,} arms in between are in results.json)" if hidden else ""
    return Table(f"A decision's outcome on average, best first{more}", header, rows)


def advice_table(advice: Advice) -> Table:
    """The proven numbers, smallest first."""
    rows = [
        (f"{one.name}()", f"{one.certificate:,.0f}" if one.certificate < advice.trivial else "nothing yet")
        for one in advice.certified
    ]
    title = f"Proven: the expected regret in {advice.trivial:,} rounds is at most"
    return Table(title, ("tuning", "certificate"), rows)


def is_off(one: PolicyEstimate) -> bool:
    """Whether its weights say that the logged probabilities are not those drawn with."""
    return abs(one.mean_weight - 1) > 0.1


def is_sound(one: PolicyEstimate) -> bool:
    """Whether its interval means something."""
    return one.effective >= FEW and not is_off(one)


def doubts(found: LogStudy) -> list[str]:
    """What makes the estimates doubtful."""
    judged = [one for one in found.estimates if one.policy != LOGGED]
    thin = [one.name for one in judged if one.effective < FEW]
    off = [one.name for one in judged if one.effective >= FEW and is_off(one)]
    said = []
    if thin:
        said.append(f"Fewer than {FEW} effective outcomes, so that the interval is a guess: {_listed(thin)}.")
    if off:
        said.append(f"Mean weight far from 1: are the logged probabilities those drawn with? {_listed(off)}.")
    return said


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def remarks(found: LogStudy) -> list[str]:
    """What should make one look twice at the log itself."""
    waiting, said = found.waiting, []
    if waiting.n_arms * 10 > waiting.n_rounds:
        said.append(
            f"{waiting.n_arms:,} arms in {waiting.n_rounds:,} decisions: is the column of the arms the right one?"
        )
    if math.isnan(waiting.rounds.median):
        said.append("No outcome came before the last decision: no learner could have learned anything.")
    return said


def waiting_section(found: LogStudy) -> Section:
    """How late it is."""
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
    """The page of a log."""
    width = found.outcomes.highest - found.outcomes.lowest
    unit = [f"Regret is counted in units of an outcome's range: 1 stands for {width:g}."] if width != 1 else []
    which = Section(
        "which-tuning",
        "Which tuning fits",
        headline=found.advice.sentences[0],
        paragraphs=[*found.advice.sentences[1:], *unit],
        tables=[advice_table(found.advice)],
    )
    return [waiting_section(found), which, off_policy_section(found)]


def glossary() -> Section:
    """For the page only: the terminal has no room for it."""
    return Section("words", "Words", tables=[Table("What they mean here", ("word", "meaning"), WORDS, is_text=True)])


def off_policy_section(found: LogStudy) -> Section:
    """What others would have got, if the log can tell."""
    logged = next(one for one in found.estimates if one.policy == LOGGED)
    past = f"the logged decisions got {_show(logged, logged.snips)} on average"
    if found.log.probabilities is None:
        return Section("off-policy", "What others would have got", headline=past, paragraphs=NO_PROBABILITIES)
    sound = [one for one in found.estimates if is_sound(one)]
    best = f"best: {sound[0].name}, {_show(sound[0], sound[0].snips)}"
    if len(sound) == 1:  # the logged policy itself
        best = "too few outcomes to name a best"
    rows = [(one.name, *one.snips) for one in shown(found.estimates) if math.isfinite(one.snips.value)]
    columns = columns_of(("policy", "outcome (SNIPS)", "low", "high"), rows)
    draw = intervals("outcome (SNIPS)", "low", "high", "policy")
    return Section(
        "off-policy",
        "What others would have got",
        headline=f"{best}; {past}",
        paragraphs=[*FED, *doubts(found)],
        tables=[estimate_table(found.estimates)],
        figures=[Figure("off-policy", "A decision's outcome, 95% intervals", columns, draw)],
    )
