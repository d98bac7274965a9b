"""Belated. Decide now, and learn when the feedback comes.

>>> import belated
>>> learner = belated.FTRL(3, seed=7)
>>> decision = learner.ask()
>>> learner.tell(decision, loss=0.2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers; at run time __getattr__ loads the same names
    from belated import bounds, errors, lab, tunings
    from belated.client import AsyncClient, Client
    from belated.errors import BelatedError
    from belated.learner.decisions import Decision, Learner
    from belated.learner.ftrl import FTRL
    from belated.learner.outcomes import OutcomeRange

__version__ = "0.1.0"
__all__ = [
    "FTRL",
    "AsyncClient",
    "BelatedError",
    "Client",
    "Decision",
    "Learner",
    "OutcomeRange",
    "bounds",
    "errors",
    "lab",
    "tunings",
]
_HOMES = {  # the module of each name; a name that is not here is a module itself
    "FTRL": "belated.learner.ftrl",
    "AsyncClient": "belated.client",
    "BelatedError": "belated.errors",
    "Client": "belated.client",
    "Decision": "belated.learner.decisions",
    "Learner": "belated.learner.decisions",
    "OutcomeRange": "belated.learner.outcomes",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a public name on first use, so that `import belated` stays fast."""
        if name not in __all__:
            raise AttributeError(f"module 'belated' has no attribute {name!r}")
        if name in _HOMES:
            globals()[name] = getattr(import_module(_HOMES[name]), name)
            return globals()[name]
        return import_module(f"belated.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
