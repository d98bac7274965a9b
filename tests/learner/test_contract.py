"""The learners of the package keep the contract. tests/support/catalogue.py lists them."""

import pytest

from belated import Learner
from belated.testing.learner_contract import LearnerContract, LearningContract
from tests.support.catalogue import DETERMINISTIC, LEARNERS, NOT_LEARNING

QUICK = ["simple", "advanced, discarding", "shadow", "means", "advanced, refresh 7", "skipper", "bold", "one arm"]
# tests/system/learner has the others


class FromCatalogue:
    """Makes the learner whose name is the parameter of the class."""

    learner = ""
    ignores_seed = False

    @pytest.fixture(autouse=True)
    def named(self, name: str) -> None:
        self.learner, self.ignores_seed = name, name in DETERMINISTIC

    @pytest.fixture
    def name(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def make(self, n_arms: int, seed: int) -> Learner:
        return LEARNERS[self.learner](n_arms, seed)


@pytest.mark.parametrize("name", QUICK, indirect=True)
class TestEveryLearner(FromCatalogue, LearnerContract):
    pass


@pytest.mark.parametrize("name", [name for name in QUICK if name not in NOT_LEARNING], indirect=True)
class TestThoseThatLearn(FromCatalogue, LearningContract):
    pass
