"""The engine against a model of dictionaries, for many more histories than the quick check."""

from hypothesis import settings

from tests.serve.test_engine_model import SETTINGS, AfterAlarm, AfterHandOver, Engines


class ManyEngines(Engines):
    """The same rules in a separate class, which can have other settings."""


class ManyAfterHandOver(AfterHandOver):
    """The same, while the world moves."""


class ManyAfterAlarm(AfterAlarm):
    """The same, after an alarm."""


TestEngine = ManyEngines.TestCase
TestAfterHandOver, TestAfterAlarm = ManyAfterHandOver.TestCase, ManyAfterAlarm.TestCase
TestEngine.settings = settings(SETTINGS, max_examples=60)
TestAfterHandOver.settings = TestAfterAlarm.settings = settings(SETTINGS, max_examples=15)
