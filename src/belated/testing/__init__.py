"""Contracts for learners and stores, as pytest classes. Subclass one to test your own.

`belated.testing.learner_contract` has `LearnerContract` and `LearningContract`.
`belated.testing.journal_contract` has `JournalContract`.
docs/extending.md shows an example of each. The extra `testing` installs what they need.
"""

from belated.extras import missing

try:
    import pytest
except ImportError as error:
    raise ImportError(missing(error.name, "testing")) from error

pytest.register_assert_rewrite(
    "belated.testing.journal_contract", "belated.testing.removal_contract", "belated.testing.learner_contract"
)
