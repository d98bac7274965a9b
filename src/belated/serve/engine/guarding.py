"""Keep a failure of one request from the others."""

import logging
from collections.abc import Callable

from belated.errors import InvalidInput, StoreError
from belated.serve.domain.refusals import Refusal, internal
from belated.serve.engine.requests import Hidden, Result

log = logging.getLogger("belated.engine")


def unexpected(error: Exception) -> Refusal:
    """Log a bug, and return what its request is told."""
    log.error("a request failed unexpectedly, and the others go on", exc_info=error)
    return internal()


def guarded(step: Callable[..., Result], *arguments: object) -> Result:
    """Run a step for one request. Only a failure of the store may stop the others."""
    try:
        return step(*arguments)
    except (Refusal, Hidden) as refusal:
        return refusal
    except InvalidInput as error:
        return Refusal("invalid", str(error))
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001
        return unexpected(error)
