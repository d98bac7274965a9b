"""The claims in the order of the paper, one file each."""

from belated.paper.claim import Claim
from belated.paper.claims import (
    anytime,
    conjectures,
    ignoring_delays,
    lower_bound,
    proof_terms,
    real_delays,
    table_1,
    the_game,
    theorem_1,
    theorem_2,
    theorem_3,
    unbalanced,
    zero_delays,
)

CLAIMS: tuple[Claim, ...] = (
    the_game.CLAIM,
    theorem_1.CLAIM,
    theorem_2.CLAIM,
    theorem_3.CLAIM,
    proof_terms.CLAIM,
    unbalanced.CLAIM,
    table_1.CLAIM,
    zero_delays.CLAIM,
    anytime.CLAIM,
    lower_bound.CLAIM,
    conjectures.CLAIM,
    ignoring_delays.CLAIM,
    real_delays.CLAIM,
)
