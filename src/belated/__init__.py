"""Belated: decide now, learn when the feedback comes.

>>> import belated
>>> learner = belated.FTRL(n_arms=3, seed=7)
>>> decision = learner.ask()
>>> learner.tell(decision.round, loss=0.2)  # whenever it comes, in any order, once
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see; at run time __getattr__ loads the same names
    from belated import bounds
    from belated.client import AsyncClient, Client
    from belated.errors import (
        BelatedError,
        ClusterError,
        DuplicateReport,
        ImproperRule,
        InvalidInput,
        ServiceError,
        SnapshotError,
        StoreError,
        UnknownRound,
    )
    from belated.learner.ftrl import FTRL, Decision, Learner
    from belated.tunings import AdaptiveExp3, Advanced, Exp3, Shadow, Simple, Tsallis, Tuning

__version__ = "0.1.0"
__all__ = [
    "FTRL",
    "AdaptiveExp3",
    "Advanced",
    "AsyncClient",
    "BelatedError",
    "Client",
    "ClusterError",
    "Decision",
    "DuplicateReport",
    "Exp3",
    "ImproperRule",
    "InvalidInput",
    "Learner",
    "ServiceError",
    "Shadow",
    "Simple",
    "SnapshotError",
    "StoreError",
    "Tsallis",
    "Tuning",
    "UnknownRound",
    "bounds",
]
_HOMES = ("belated.errors", "belated.tunings", "belated.learner.ftrl")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a public name on first use: `import belated` itself stays as light as a file."""
        if name == "bounds":
            return import_module("belated.bounds")
        if name in __all__:
            homes = ["belated.client"] if name.endswith("Client") else _HOMES
            for home in map(import_module, homes):
                if hasattr(home, name):
                    globals()[name] = getattr(home, name)
                    return globals()[name]
        raise AttributeError(f"module 'belated' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
