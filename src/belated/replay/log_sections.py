"""The sections of a log's page, in words, tables and pictures."""

import math

from belated.learner.outcomes import OutcomeRange
from belated.replay.advice import IF
from belated.replay.log_study import LogStudy
from belated.replay.missing_section import missing_section, why_no_best
from belated.replay.off_policy import LOGGED, Interval, PolicyEstimate, clipped
from belated.replay.pictures import backlog_figure, tail_figure, waiting_table
from belated.replay.verdict import ENOUGH_OUTCOMES
from belated.replay.waiting import delays_in_rounds
from belated.reports import Figure, Section, Table, columns_of, intervals

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
    "An interval is that of one policy alone. A best is named only if it stands after looking at all of them. For "
    "that, the policies are compared on the same rows. If all policies are equal, one is named in fewer than 5% of "
    "logs.",
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
    (
        "certificate",
        f"a number that the expected regret provably does not exceed with these delays, against any losses, {IF}",
    ),
    (
        "IPS, SNIPS",
        "estimates of a policy's mean outcome from the reweighted logged outcomes (SNIPS is self-normalised)",
    ),
    (
        "effective outcomes",
        "how many of the policy's own outcomes would say as much (with few, the interval is a guess)",
    ),
    (
        "best?",
        "yes if the policy may be the best, no if it is worse beyond chance with all policies looked at, - if the log "
        "cannot judge it",
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
    around = f" ± {_digits(high - value, 2)}"
    if one.effective < 10 or low == high:
        around = " ± ?"
    elif cut.low == within.lowest or cut.high == within.highest:
        around = f", {_digits(cut.low, 3)} to {_digits(cut.high, 3)}"
    return f"{_digits(value, 4)}{around}".replace(" ", "\N{NO-BREAK SPACE}")


def _digits(value: float, n: int) -> str:
    """A number with so many digits, or with all before the point if it is large."""
    return f"{value:,.0f}" if abs(value) >= 10 ** (n - 1) else f"{value:z.{n}g}"


def shown(estimates: list[PolicyEstimate]) -> list[PolicyEstimate]:
    """All estimates, but with many arms only the best and the worst of them."""
    arms = [one for one in estimates if isinstance(one.policy, int)]
    if len(arms) <= MANY:
        return estimates
    hidden = {one.name for one in arms[MANY - WORST : len(arms) - WORST]}
    return [one for one in estimates if one.name not in hidden]


def estimate_table(found: LogStudy) -> Table:
    """A table of the estimates, the best first."""
    within, may_be = found.outcomes, _may_be_best(found)
    rows = [
        (
            one.name,
            _show(one, one.snips, within),
            may_be.get(one.name, "-"),
            f"{one.effective:,.0f}",
            f"{one.mean_weight:.3f}",
            _show(one, one.ips, within),
        )
        for one in shown(found.estimates)
    ]
    header = ("policy", "SNIPS ± 95%", "best?", "effective outcomes", "mean weight", "IPS ± 95%")
    hidden = len(found.estimates) - len(rows)
    more = f" ({hidden:,} arms in between are in results.json)" if hidden else ""
    order = "best first" if found.best is not None else "in order of SNIPS"
    return Table(f"{_mark(found)}Mean outcome of a decision, {order}{more}", header, rows)


def _may_be_best(found: LogStudy) -> dict[str, str]:
    """Whether each policy that the log can judge may be the best. Empty if no best can be named at all."""
    able = {one.name for one in found.may_be_best}
    return {one.name: "yes" if one.name in able else "no" for one in found.verdict.judged if able}


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
    title = f"{mark}Proven upper bounds on the expected regret in {advice.trivial:,} rounds, {IF}"
    return Table(title, ("tuning", "certificate"), rows)


def doubts(found: LogStudy) -> list[str]:
    """Warnings about the estimates."""
    thin = [one.name for one in found.verdict.thin if one.policy != LOGGED]
    off = [one.name for one in found.verdict.off]
    said = []
    if thin:
        said.append(
            f"With fewer than {ENOUGH_OUTCOMES} effective outcomes, the interval is a guess. "
            f"That holds for {_listed(thin)}."
        )
    if off:
        said.append(
            f"The mean weight is far from 1 for {_listed(off)}, beyond chance. Are the logged probabilities the ones "
            "really used? Could these arms be chosen all the time?"
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
    still_open = f"{waiting.share_open:.1%} still open, " if waiting.share_open else ""
    return Section(
        "waiting",
        "How late the feedback is",
        headline=f"{waiting.n_rounds:,} decisions between {waiting.n_arms:,} arms, {waiting.share_never:.1%} never "
        f"reported, {still_open}at most {waiting.largest_backlog:,} outstanding at once",
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
        paragraphs=[*found.advice.sentences[1:], found.advice.assumption, *unit],
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
        paragraphs=[logged_words(found), *FED, *doubts(found)],
        tables=[estimate_table(found)],
        figures=[Figure("off-policy", f"{what}, 95% intervals", columns, draw)],
    )


def logged_words(found: LogStudy) -> str:
    """What the policy that made the log has lost."""
    n, lost = found.log.times.size, found.lost or 0.0
    most = n * (found.outcomes.highest - found.outcomes.lowest)
    if lost >= 0.9 * most:
        return "The log says nothing about what its own decisions have lost, because some arm was drawn too rarely."
    return (
        f"Against always choosing the best arm, the logged decisions have lost at most {lost:,.0f} in total, with 95% "
        f"confidence. No {n:,} decisions could lose more than {most:,.0f}. This holds for any delays, if every "
        "decision was drawn with its probability. A decision without an outcome counts with its worst one."
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
    return f"{_standing(found)}, and {past}"


def _standing(found: LogStudy) -> str:
    """The best policy, or those that may be the best."""
    judged, n_judged = found.verdict.judged, f"{len(found.verdict.judged):,} policies that the log can judge"
    if not found.may_be_best:
        is_enough = any(one.effective >= ENOUGH_OUTCOMES for one in found.estimates if isinstance(one.policy, int))
        why = "the logged probabilities are too doubtful" if is_enough else "too few outcomes"
        return f"{why} to name a best"
    if found.best is not None:
        scope = "" if len(judged) == len(found.estimates) else f"of the {n_judged}, "
        return f"{scope}the best is {found.best.name} with {_show(found.best, found.best.snips, found.outcomes)}"
    arm = "" if found.best_arm is None else f". Of the arms, {found.best_arm.name.removeprefix('always ')} is the best"
    if len(found.may_be_best) == len(judged):
        return f"the {n_judged} cannot be told apart. Any of them may be the best{arm}"
    names, n_worse = _listed([one.name for one in found.may_be_best]), len(judged) - len(found.may_be_best)
    return f"these policies cannot be told apart, and any may be the best: {names}. {n_worse:,} others are worse{arm}"
