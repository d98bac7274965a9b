"""A demo experiment with simulated visitors. They use the HTTP API, and report late or never."""

import heapq
import random
import time
from threading import Event, Thread
from typing import Any, Final, final

from belated.client import Client
from belated.errors import ServiceError

NAME: Final = "demo"
CONVERSION: Final = {"blue": 0.08, "green": 0.15, "red": 0.35}
SETTINGS: Final[dict[str, Any]] = {
    "name": NAME,
    "arms": list(CONVERSION),
    "outcome": {"lowest": 0, "highest": 1, "better": "higher"},
    "reward_wait": 60,
    "default_outcome": 0,
}
EVERY: Final = 0.05  # seconds between visitors
DELAY: Final = 5.0  # seconds, the median time until a report
SHARE_NEVER: Final = 0.15  # of the visitors never report


@final
class Demo:
    """Simulated visitors. Each gets a decision, and most report its outcome later, in any order."""

    def __init__(self, client: Client, seed: int | None = None) -> None:
        self._client, self._random, self._stop = client, random.Random(seed), Event()  # noqa: S311
        self._late: list[tuple[float, str, float]] = []
        self._thread = Thread(target=self.run, name="belated-demo", daemon=True)

    def start(self) -> None:
        """Create the experiment and simulate visitors in another thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the visitors."""
        self._stop.set()

    def run(self) -> None:
        """Create the experiment and simulate visitors until `stop`."""
        self._client.create_experiment(**SETTINGS)
        while not self._stop.wait(EVERY):
            try:
                self._visit()
                self._report()
            except ServiceError:
                self._stop.wait(1.0)  # the service is busy or stopping

    def _visit(self) -> None:
        decision = self._client.ask(NAME)
        if self._random.random() < SHARE_NEVER:
            return
        reward = float(self._random.random() < CONVERSION.get(decision.arm, 0.2))
        due = time.monotonic() + self._random.lognormvariate(0.0, 1.0) * DELAY
        heapq.heappush(self._late, (due, decision.id, reward))

    def _report(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _, id, reward = heapq.heappop(self._late)
            self._client.tell(id, reward=reward)
