"""Tries every claim of ZS20 and gives each a measured verdict.

ZS20 is Zimmert & Seldin, An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays, AISTATS 2020.
"""

from belated.paper.claim import Check, Claim, ClaimKind, Effort, Finding, Verdict
from belated.paper.claims import CLAIMS
from belated.paper.running import ClaimResult, run, verdict_of

__all__ = ["CLAIMS", "Check", "Claim", "ClaimKind", "ClaimResult", "Effort", "Finding", "Verdict", "run", "verdict_of"]
