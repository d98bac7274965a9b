"""The report on the claims: one section each."""

from collections.abc import Sequence
from typing import Any

from belated.paper.claim import SEEDS_APART, ClaimKind, Effort
from belated.paper.claims import CLAIMS
from belated.paper.running import ClaimResult
from belated.reports import Page, Section, Table

FOLDED_FROM = 9  # longer lists of checks open on demand
NUMBERS = {claim.name: number for number, claim in enumerate(CLAIMS, 1)}
LEAD = (
    "Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays (AISTATS 2020): every claim "
    "of the paper, tried on this machine.",
    "The learner keeps two learning rates; β_t is the inverse of the one that the delays tune. Two tunings are the "
    "paper's: simple counts every observation outstanding, advanced stops counting what has waited too long (D̃ is D so "
    "counted). Beyond the paper are the shadow, Belated's own tuning, and the certificate, a number that the expected "
    "regret on these delays provably does not exceed, below the paper's bounds.",
    "Regret is the learner's expected loss minus that of the best single arm; k arms, n rounds, D the sum of all "
    "delays, natural logarithms. A theorem bounds an expectation, so a mean over seeds is judged with its 95% "
    "interval: it holds if the whole interval is below the bound, fails if all of it is above, and is undecided in "
    "between. That a bound was not broken on these problems is evidence, not a proof: the proof is in the paper.",
)


def title_of(outcome: ClaimResult) -> str:
    """Number and title; what is not in the paper is marked."""
    beyond = " (beyond the paper)" if outcome.claim.is_beyond else ""
    return f"{NUMBERS[outcome.claim.name]}. {outcome.claim.title}{beyond}"


def section_of(outcome: ClaimResult) -> Section:
    """The words of a claim, what was judged, and the pictures."""
    claim, finding = outcome.claim, outcome.finding
    rows = [(check.what, check.measured, check.verdict.value) for check in finding.checks]
    header, is_long = ("statement", "measured", "verdict"), len(rows) >= FOLDED_FROM
    checks = [Table("What was judged", header, rows, is_text=True, is_folded=is_long)] if rows else []
    role = "an experiment, not judged" if claim.kind is ClaimKind.EXPERIMENT else f"a {claim.kind}"
    return Section(
        claim.name,
        title_of(outcome),
        outcome.verdict.value,
        outcome.headline,
        [*claim.statement, *finding.remarks],
        [*finding.tables, *checks],
        finding.figures,
        f"This is {role}; {outcome.seconds:.1f} s; source: belated/paper/claims/{claim.name.replace('-', '_')}.py",
    )


def results_of(outcomes: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "claim": outcome.claim.name,
            "kind": outcome.claim.kind.value,
            "verdict": outcome.verdict.value,
            "headline": outcome.headline,
            "seconds": round(outcome.seconds, 2),
            "checks": [{**check._asdict(), "verdict": check.verdict.value} for check in outcome.finding.checks],
        }
        for outcome in outcomes
    ]


def page_of(outcomes: Sequence[ClaimResult], effort: Effort) -> Page:
    """The whole report."""
    facts = {
        "mode": "full" if effort.is_full else "quick",
        "seed": effort.seed,
        "seeds of the games": f"{SEEDS_APART * effort.seed} and the following, as many as each claim says",
        "seconds": round(sum(outcome.seconds for outcome in outcomes)),
    }
    sections = [section_of(outcome) for outcome in outcomes]
    return Page("The paper, executable", LEAD, sections, facts, results_of(outcomes), has_mathematics=True)
