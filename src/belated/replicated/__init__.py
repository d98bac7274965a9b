"""One learner whose copies draw on several machines."""

from belated.replicated.lag import DrawContext, Drawn
from belated.replicated.shared_learner import Freshness, SharedLearner

__all__ = ["DrawContext", "Drawn", "Freshness", "SharedLearner"]
