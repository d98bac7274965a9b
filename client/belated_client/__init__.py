"""The client of a Belated service, by itself.

`client`, `deadlines`, `errors`, `extras` and `scalars` are modules of Belated, added when this package is built
(hatch_build.py).
In Belated the same client is `belated.client`.
"""

from .client import AsyncClient, Client, Report, ServiceDecision, Subject
from .errors import BelatedError, InvalidInput, ServiceError

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "BelatedError",
    "Client",
    "InvalidInput",
    "Report",
    "ServiceDecision",
    "ServiceError",
    "Subject",
]
