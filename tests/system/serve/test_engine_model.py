"""The engine against a model of dictionaries, for many more histories than the quick check."""

from hypothesis import settings

from tests.serve.test_engine_model import SETTINGS, Engines


class ManyEngines(Engines):
    """The same rules in a separate class, which can have other settings."""


TestEngine = ManyEngines.TestCase
TestEngine.settings = settings(SETTINGS, max_examples=60)
