"""Runs the claims one after the other and judges them."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from belated.paper.claim import SEVERITY, Check, Claim, ClaimKind, Effort, Finding, Verdict
from belated.progress import Progress


class ClaimResult(NamedTuple):
    """A claim with its findings, its verdict and the time it took."""

    claim: Claim
    finding: Finding
    verdict: Verdict
    seconds: float

    @property
    def is_broken(self) -> bool:
        """Whether the claim is a theorem that fails."""
        return self.claim.kind is ClaimKind.THEOREM and self.verdict is Verdict.FAILS

    @property
    def headline(self) -> str:
        """The result in one line. If a check does not hold, the line is about that check."""
        worst = [check for check in self.finding.checks if check.verdict is self.verdict]
        if self.verdict in (Verdict.FAILS, Verdict.UNDECIDED) and worst:
            return f"{worst[0].what}: {worst[0].measured}"
        return self.finding.headline


def verdict_of(claim: Claim, checks: Iterable[Check]) -> Verdict:
    """The worst verdict of the checks. An experiment is only shown."""
    if claim.kind is ClaimKind.EXPERIMENT:
        return Verdict.SHOWN
    return max((check.verdict for check in checks), key=SEVERITY.index, default=Verdict.UNDECIDED)


def _reach(progress: Progress, done: float, cost: float, part: float) -> None:
    """Move the bar to a part of a claim."""
    progress.reach(done + part * cost)


def run(
    claims: Iterable[Claim],
    effort: Effort,
    tell: Callable[[ClaimResult], None] = lambda _: None,
    console: Any = None,
) -> list[ClaimResult]:
    """Try every claim and call `tell` with each result. If `tell` prints, the progress bar needs the same console."""
    chosen = list(claims)
    results: list[ClaimResult] = []
    with Progress("the paper", sum(claim.cost for claim in chosen), console) as progress:
        for claim in chosen:
            progress.advance(0, claim.title)
            started = time.perf_counter()
            done = sum(result.claim.cost for result in results)
            finding = claim.investigate(effort._replace(tell_progress=partial(_reach, progress, done, claim.cost)))
            seconds = time.perf_counter() - started
            results.append(ClaimResult(claim, finding, verdict_of(claim, finding.checks), seconds))
            progress.reach(done + claim.cost)
            tell(results[-1])
    return results
