"""Simulated visitors for a running service.

BELATED_KEY=blt_... python examples/visitors.py http://127.0.0.1:8080

They are the visitors of `belated serve --demo`, who report late, in any order, or never. Stop them with Ctrl-C.
"""

import os
import sys
from contextlib import suppress

from belated import Client
from belated.errors import ServiceError
from belated.serve.process.demo import Demo

try:
    with suppress(KeyboardInterrupt), Client(sys.argv[1], key=os.environ.get("BELATED_KEY")) as client:
        Demo(client).run()
except ServiceError as error:
    sys.exit(f"error: {error}")
