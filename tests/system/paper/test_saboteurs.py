"""Each wrong learner turns red what it should, and leaves the rest as it is."""

import pytest

from belated import paper
from belated.paper import ClaimKind, Effort
from belated.paper.saboteurs import SABOTEURS
from tests.paper.red import ALL, RED

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", SABOTEURS)
def test_a_saboteur_turns_red_what_it_should(name: str) -> None:
    judged = [claim for claim in paper.CLAIMS if claim.kind is not ClaimKind.EXPERIMENT]
    results = paper.run(judged, Effort(saboteur=SABOTEURS[name]))
    verdicts = {result.claim.name: result.verdict.value for result in results}
    assert verdicts == {claim: "fails" if claim in RED[name] else "holds" for claim in ALL}
