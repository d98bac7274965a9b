"""A log, studied: how late its feedback is, which tuning fits, and what others would have got."""

import math
from typing import NamedTuple

from belated.replay.logs import Log
from belated.replay.off_policy import LOGGED, Estimate, Interval, evaluate_all
from belated.replay.outcomes import Outcomes, losses_of
from belated.replay.pictures import backlog_figure, tail_figure, waiting_table
from belated.replay.waiting import Waiting, delays_in_rounds, measure
from belated.replay.which import Advice, advise
from belated.reports import Figure, Section, Table, columns_of, intervals

FEW = 100  # effective outcomes below which an interval is a guess
FED = (
    "Each tuning is fed by the log: its probabilities follow from the outcomes that had come by then, each divided by "
    "its logged probability, and every outcome counts by how much likelier the tuning was to choose the logged arm. "
    "IPS is unbiased, SNIPS steadier: look at SNIPS first. A tuning that decides for itself would see more of the arms "
    "it likes.",
    "The estimates assume that the logged probabilities are those really drawn with, and that losses and delays do not "
    "depend on earlier choices. Decisions without an outcome are left out: if being missing depends on the arm, give "
    "such rows an outcome and the time at which you gave up.",
)
NO_PROBABILITIES = (
    "The log has no column of probabilities, so nothing can be said about what other policies would have got: "
    "log the probability each arm was chosen with.",
)


class Study(NamedTuple):
    """What there is to tell."""

    waiting: Waiting
    advice: Advice
    estimates: list[Estimate]
    outcomes: Outcomes
    log: Log


def study(log: Log, outcomes: Outcomes) -> Study:
    """Everything that a log says."""
    losses_of(log, outcomes)  # an outcome out of range is refused before any work
    delays = delays_in_rounds(log.times, log.outcome_times)
    advice = advise(log.n_arms, delays)
    estimates = evaluate_all(log, outcomes)
    sign = -1 if outcomes.is_reward else 1
    estimates.sort(key=lambda one: math.inf if math.isnan(one.snips.value) else sign * one.snips.value)
    return Study(measure(log), advice, estimates, outcomes, log)


def meaning(outcomes: Outcomes) -> str:
    """What the outcomes were taken for."""
    kind, better = ("rewards", "larger") if outcomes.is_reward else ("losses", "smaller")
    return f"outcomes are taken as {kind} from {outcomes.lowest:g} to {outcomes.highest:g}: {better} is better"


def _show(interval: Interval) -> str:
    return f"{interval.value:.4g} ± {interval.high - interval.value:.2g}"


def estimate_table(estimates: list[Estimate]) -> Table:
    """The best first."""
    rows = [
        (one.name, _show(one.snips), _show(one.ips), f"{one.effective:,.0f}", f"{one.mean_weight:.3f}")
        for one in estimates
    ]
    header = ("policy", "SNIPS ± 95%", "IPS ± 95%", "effective outcomes", "mean weight")
    return Table("A decision's outcome on average, best first", header, rows)


def advice_table(advice: Advice) -> Table:
    """The proven numbers, smallest first."""
    rows = [(f"{one.name}()", f"{one.certificate:,.0f}") for one in advice.certified]
    rows.append(("any (the number of rounds)", f"{advice.trivial:,}"))
    return Table("Proven: the expected regret is at most", ("tuning", "certificate"), rows)


def warnings_of(found: Study) -> list[str]:
    """What makes the estimates doubtful."""
    judged = [one for one in found.estimates if one.policy != LOGGED]
    thin = [one.name for one in judged if one.effective < FEW]
    said = []
    if thin:
        said.append(f"Fewer than {FEW} effective outcomes, so that the interval is a guess: {', '.join(thin)}.")
    off = [one.name for one in judged if one.effective >= FEW and abs(one.mean_weight - 1) > 0.1]
    if off:
        said.append(f"Mean weight far from 1: are the logged probabilities those drawn with? {', '.join(off)}.")
    return said


def sections(found: Study) -> list[Section]:
    """The page of a log."""
    log, waiting = found.log, found.waiting
    delays = {"the log": delays_in_rounds(log.times, log.outcome_times)}
    late = Section(
        "waiting",
        "How late the feedback is",
        headline=f"{waiting.n_rounds:,} decisions between {waiting.n_arms} arms, {waiting.share_never:.1%} never "
        f"reported, at most {waiting.largest_backlog:,} outstanding at once",
        tables=[waiting_table("Delays", {"the log": waiting}, has_dates=log.has_dates)],
        figures=[
            tail_figure("delays", "How long feedback is missing", delays),
            backlog_figure("backlog", "Outstanding decisions", delays),
        ],
    )
    which = Section(
        "which-tuning",
        "Which tuning fits",
        headline=found.advice.sentences[0],
        paragraphs=found.advice.sentences[1:],
        tables=[advice_table(found.advice)],
    )
    return [late, which, off_policy_section(found)]


def off_policy_section(found: Study) -> Section:
    """What others would have got, if the log can tell."""
    if found.log.probabilities is None:
        (only,) = found.estimates
        words = f"the logged decisions got {_show(only.snips)} on average"
        return Section("off-policy", "What others would have got", headline=words, paragraphs=NO_PROBABILITIES)
    known = [one for one in found.estimates if math.isfinite(one.snips.value)]
    rows = [(one.name, *one.snips) for one in known]
    columns = columns_of(("policy", "outcome (SNIPS)", "low", "high"), rows)
    figure = Figure(
        "off-policy",
        "A decision's outcome, 95% intervals",
        columns,
        intervals("outcome (SNIPS)", "low", "high", "policy"),
    )
    logged = next(one for one in found.estimates if one.policy == LOGGED)
    return Section(
        "off-policy",
        "What others would have got",
        headline=f"best: {known[0].name}, {_show(known[0].snips)}; logged: {_show(logged.snips)}",
        paragraphs=[*FED, *warnings_of(found)],
        tables=[estimate_table(found.estimates)],
        figures=[figure],
        notes=meaning(found.outcomes),
    )
