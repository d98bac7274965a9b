"""Work in PostgreSQL that is killed between two statements."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest


class Killed(BaseException):
    """Ends the work, as a kill does. The caller closes the connection, so the server rolls back."""


def killed_before(statement: int, work: Callable[[], object]) -> bool:
    """Run the work up to this statement, without it. False if the work needs no more statements."""
    left, execute = [statement], psycopg.Connection.execute

    def counted(connection: Any, *arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return execute(connection, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", counted)
        try:
            work()
        except Killed:
            return True
    return False
