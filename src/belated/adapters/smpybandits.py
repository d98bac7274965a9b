"""Policies of SMPyBandits as learners in the lab.

>>> from belated import lab
>>> from belated.adapters import smpybandits
>>> problem = lab.Problem(lab.Bernoulli(gap=0.3), lab.Fixed(10), n_arms=3, n_rounds=300)
>>> curves = lab.play(smpybandits.learner("UCBalpha", alpha=1), problem, seeds=range(2))
>>> curves.suffered.shape[0]
2

SMPyBandits draws from the generators that all of Python and NumPy share. The adapter gives each learner streams of its
own and puts the shared ones back after each call. So games are repeatable, also in several threads. Other threads must
not draw from `numpy.random` itself meanwhile, because their numbers would come from a game.
"""

import contextlib
import io
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, final

import numpy as np

from belated.adapters.policies import Maker, PolicyLearner, fingerprint_of
from belated.adapters.side_effects import left_as_they_were
from belated.errors import InvalidInput
from belated.extras import missing_package
from belated.validation import whole_number

_numpy: Any = np.random  # its stubs leave out these two
get_generator, set_generator = _numpy.get_bit_generator, _numpy.set_bit_generator  # that all of NumPy shares
_shared = threading.Lock()  # held while a policy draws from NumPy's shared generator
_drawing: Any = random  # what stands for Python's `random` inside SMPyBandits now


@final
class _Redirected:
    """Stands for Python's module `random` inside SMPyBandits."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def draw(*arguments: Any, **named: Any) -> Any:
            return getattr(_drawing, name)(*arguments, **named)

        return draw


@contextlib.contextmanager
def _missing_names() -> Iterator[None]:
    """SMPyBandits 0.9.7 imports `btdtri`, which SciPy has renamed. It has the old name for the time of the import."""
    special: Any = import_module("scipy.special")
    is_missing = not hasattr(special, "btdtri")
    if is_missing:
        special.btdtri = special.betaincinv
    try:
        yield
    finally:
        if is_missing:
            del special.btdtri


def _load() -> ModuleType:
    """Import the policies without the messages that they print, and redirect what they draw from Python's `random`."""
    try:
        with left_as_they_were(), _missing_names(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(io.StringIO()):
                module = import_module("SMPyBandits.Policies")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing_package(error.name or "SMPyBandits")) from error
    redirected = _Redirected()
    drawn = {id(getattr(random, name)): name for name in random.__all__}
    for name, part in list(sys.modules.items()):
        if name.startswith("SMPyBandits.Policies"):
            for word, value in list(vars(part).items()):
                if value is random:
                    setattr(part, word, redirected)
                elif id(value) in drawn and not isinstance(value, type):
                    setattr(part, word, getattr(redirected, drawn[id(value)]))
    return module


policies = _load()


@final
class Policy:
    """A policy that draws from its own streams. They start as seeding NumPy and Python with this seed starts them.

    Where NumPy draws two normal numbers at once, the second one is lost at the end of the call.
    """

    def __init__(self, make: Callable[[int], Any], n_arms: int, seed: int) -> None:
        self.bits, self.python = np.random.MT19937(), random.Random(seed)  # noqa: S311  (a simulation)
        np.random.RandomState(self.bits).seed(seed)
        self.inner = self.drawing(make, n_arms)
        self.drawing(self.inner.startGame)
        self.draws_in_update = type(self.inner).getReward is not policies.BasePolicy.getReward

    @np.errstate(all="ignore")  # the policies divide by 0 and mend it afterwards
    def drawing(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call something that may draw."""
        global _drawing  # noqa: PLW0603  (the lock is held)
        with _shared:
            outside, _drawing = get_generator(), self.python
            set_generator(self.bits)
            try:
                return call(*arguments)
            finally:
                set_generator(outside)
                _drawing = random

    def pull(self) -> int:
        return int(self.drawing(self.inner.choice))

    def update(self, arm: int, reward: float) -> None:
        if self.draws_in_update:
            self.drawing(self.inner.getReward, arm, reward)
        else:
            self.inner.getReward(arm, reward)


def kind_of(policy: str | type[Any]) -> Any:
    """The class of a policy, from its name or itself. None if there is none."""
    return getattr(policies, policy, None) if isinstance(policy, str) else policy


def learner(policy: str | type[Any], **settings: Any) -> Maker:
    """A policy of SMPyBandits for `lab.play`, by its class or its name, with its settings.

    A new policy plays each game. Its streams start as `numpy.random.seed(seed)` and `random.seed(seed)` start them.

    >>> learner("Exp3", gamma=0.1)
    SMPyBandits Exp3
    """
    kind = kind_of(policy)
    if not (isinstance(kind, type) and hasattr(kind, "getReward") and hasattr(kind, "choice")):
        raise InvalidInput(f"give a policy of SMPyBandits.Policies or its name, such as 'UCB', got {policy!r}")
    name = f"SMPyBandits {kind.__name__}"
    sent = kind.__name__ if kind_of(kind.__name__) is kind else kind  # a process that unpickles a name imports us first

    def make(n_arms: int, seed: int) -> PolicyLearner:
        number = whole_number("seed", seed, 0, 2**32 - 1)  # NumPy's seeds are no larger
        one = Policy(lambda k: kind_of(sent)(k, **settings), whole_number("n_arms", n_arms, 1), number)
        return PolicyLearner(name, n_arms, one.pull, one.update)

    return Maker(name, make, fingerprint_of("SMPyBandits", kind, settings))
