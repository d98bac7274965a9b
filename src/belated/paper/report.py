"""The report on the claims, with a section for each."""

from collections.abc import Sequence
from typing import Any

from belated.paper.claim import SEEDS_APART, ClaimKind, Effort
from belated.paper.claims import CLAIMS
from belated.paper.running import ClaimResult
from belated.reports import Page, Section, Table

FOLDED_FROM = 9  # longer lists of checks open on demand
NUMBERS = {claim.name: number for number, claim in enumerate(CLAIMS, 1)}
LEAD = (
    "This page tries every claim of Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary "
    "Delays (AISTATS 2020), on this machine.",
    "The learner has two learning rates. The delays tune one of them, and β_t is its inverse. The paper has two "
    "tunings. Simple counts every outstanding observation. Advanced stops counting an observation that has waited too "
    "long, and D̃ is D counted that way. The default tuning and the shadow are Belated's own. So is the certificate, "
    "a number that the expected regret on these delays provably does not exceed. It is below the paper's bounds.",
    "Regret is the learner's expected loss minus that of the best single arm. There are k arms and n rounds, D is the "
    "sum of all delays, and logarithms are natural. A theorem bounds an expectation, so a mean over seeds is judged "
    "with its 95% interval. The claim holds if the whole interval is below the bound. It fails if the whole interval "
    "is above. Otherwise it is undecided. A bound that was not broken on these problems is evidence and not a proof. "
    "The proof is in the paper.",
    "A bound can only fail where more than the bound can be lost. So a problem counts for a bound only if it is "
    "informative, which means that a bad learner breaks the bound there. The bad learner always plays the worst arm, "
    "or on the long wave it ignores delays.",
)


def title_of(result: ClaimResult) -> str:
    """The number and title of a claim, marked if it is not in the paper."""
    beyond = " (beyond the paper)" if result.claim.is_beyond else ""
    return f"{NUMBERS[result.claim.name]}. {result.claim.title}{beyond}"


def section_of(result: ClaimResult) -> Section:
    """The section of a claim, with its statement, checks and figures."""
    claim, finding = result.claim, result.finding
    rows = [(check.what, check.measured, check.verdict.value) for check in finding.checks]
    header, is_long = ("statement", "measured", "verdict"), len(rows) >= FOLDED_FROM
    checks = (
        [Table(f"What was judged. {claim.assumption}", header, rows, is_text=True, is_folded=is_long)] if rows else []
    )
    role = "an experiment, not judged" if claim.kind is ClaimKind.EXPERIMENT else f"a {claim.kind}"
    file = claim.name.replace("-", "_")
    return Section(
        claim.name,
        title_of(result),
        result.verdict.value,
        result.headline,
        [*claim.statement, *finding.remarks, *([] if rows else [claim.assumption])],
        [*finding.tables, *checks],
        finding.figures,
        f"This is {role}. It took {result.seconds:.1f} s. Source: belated/paper/claims/{file}.py",
    )


def results_of(results: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """The results for programs."""
    return [
        {
            "claim": result.claim.name,
            "kind": result.claim.kind.value,
            "verdict": result.verdict.value,
            "headline": result.headline,
            "assumption": result.claim.assumption,
            "seconds": round(result.seconds, 2),
            "checks": [{**check._asdict(), "verdict": check.verdict.value} for check in result.finding.checks],
        }
        for result in results
    ]


def page_of(results: Sequence[ClaimResult], effort: Effort) -> Page:
    """The page with all sections."""
    facts = {
        "mode": "full" if effort.is_full else "quick",
        "learner": "ZS20's" if effort.saboteur is None else f"a saboteur, {effort.saboteur.name}",
        "seed": effort.seed,
        "seeds of the games": f"from {SEEDS_APART * effort.seed} on, as many as each claim needs",
        "seconds": round(sum(result.seconds for result in results)),
    }
    sections = [section_of(result) for result in results]
    saboteur = effort.saboteur
    title = "The paper, executable" if saboteur is None else f"The paper, sabotaged by {saboteur.name}"
    warning = [] if saboteur is None else [f"A wrong learner plays in place of ZS20's. It {saboteur.words}."]
    return Page(title, [*warning, *LEAD], sections, facts, results_of(results), has_mathematics=True)
