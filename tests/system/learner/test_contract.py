"""The other learners of the package keep the contract too."""

import pytest

from belated.testing.learner_contract import LearnerContract, LearningContract
from tests.learner.test_contract import QUICK, FromCatalogue
from tests.support.catalogue import LEARNERS, NOT_LEARNING

OTHERS = [name for name in LEARNERS if name not in QUICK]


@pytest.mark.parametrize("name", OTHERS, indirect=True)
class TestEveryLearner(FromCatalogue, LearnerContract):
    pass


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in NOT_LEARNING], indirect=True)
class TestThoseThatLearn(FromCatalogue, LearningContract):
    pass
