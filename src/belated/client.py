"""The service's client: `Client`, and `AsyncClient` for asyncio. Both drive the same flows.

A flow is a generator: it yields a request to be sent, or seconds to be waited, and returns the answer.
"""

import asyncio
import math
import numbers
import random
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final, NamedTuple, Self, TypeVar, final
from urllib.parse import quote

try:
    import httpx
except ModuleNotFoundError as error:
    from belated.extras import missing

    raise ModuleNotFoundError(missing("httpx", "client")) from error

from belated.errors import InvalidInput, ServiceError

T = TypeVar("T")
RETRIES: Final = 6
FIRST_PAUSE: Final = 0.1  # seconds; doubled after every failure
LONGEST_PAUSE: Final = 5.0
PASSING: Final = (429, 502, 503, 504)  # worth another try


class Sent(NamedTuple):
    """A request to be sent."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


class Choice(NamedTuple):
    """What the service chose. Keep `decision_id` to report the outcome under, and log `probability`."""

    decision_id: str
    experiment: str
    arm: str
    probability: float
    round: int
    decided_at: str
    expires_at: str | None


class Outcome(NamedTuple):
    """The outcome of a decision, for `report_batch`: a reward or a loss, whichever the experiment declares."""

    decision_id: str
    reward: float | None = None
    loss: float | None = None
    amend: bool = False


Flow = Generator["Sent | float", "httpx.Response | httpx.TransportError | None", T]


def exchange(sent: Sent, parse: Callable[[Any], T], retries: int) -> Flow[T]:
    """Send until there is an answer, pausing longer each time; a problem is raised as ServiceError."""
    pause = FIRST_PAUSE
    while True:
        got = yield sent
        if isinstance(got, httpx.Response) and got.is_success:
            return parse(got.json())
        error = error_of(got)
        if retries == 0 or (isinstance(got, httpx.Response) and got.status_code not in PASSING):
            raise error
        retries -= 1
        told = got.headers.get("Retry-After", "") if isinstance(got, httpx.Response) else ""
        yield float(told) if told.isdigit() else pause * random.uniform(0.5, 1.0)  # noqa: S311
        pause = min(2 * pause, LONGEST_PAUSE)


def error_of(got: "httpx.Response | httpx.TransportError | None") -> ServiceError:
    """What went wrong, in the service's own words if it gave any."""
    if not isinstance(got, httpx.Response):
        where = "" if got is None else f" at {got.request.url}"
        return ServiceError(0, f"the service{where} does not answer", str(got))
    try:
        problem = got.json()
        return ServiceError(got.status_code, problem["title"], problem.get("detail", ""))
    except (ValueError, KeyError, TypeError):
        return ServiceError(got.status_code, got.reason_phrase or "not an answer of this service", got.text[:200])


def choice_of(got: dict[str, Any]) -> Choice:
    """A decision from its document; a newer service may say more."""
    return Choice(**{name: got[name] for name in Choice._fields})


def as_float(value: Any) -> float:
    """A real number as a float, so that NumPy's can be sent too; NaN for everything else."""
    return float(value) if isinstance(value, numbers.Real) else math.nan


def outcome_body(one: Outcome) -> dict[str, Any]:
    """A report as the API takes it."""
    if (one.reward is None) == (one.loss is None):
        raise InvalidInput("give a reward or a loss, whichever the experiment declares")
    name, value = ("loss", one.loss) if one.reward is None else ("reward", one.reward)
    if not math.isfinite(as_float(value)):
        raise InvalidInput(f"a {name} must be a finite number, got {value!r}")
    number = value if type(value) in (int, float) else as_float(value)
    return {name: number, **({"amend": True} if one.amend else {})}


@final
class Flows:
    """Every operation, as a flow."""

    def __init__(self, retries: int) -> None:
        self._retries = retries

    def _do(self, sent: Sent, parse: Callable[[Any], T]) -> Flow[T]:
        return exchange(sent, parse, self._retries)

    def create_experiment(self, name: str, arms: Iterable[str], settings: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        return self._do(Sent("POST", "/v1/experiments", {"name": name, "arms": list(arms), **settings}), dict)

    def experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("GET", f"/v1/experiments/{quote(name, safe='')}"), dict)

    def change_arms(self, name: str, add: Iterable[str], retire: Iterable[str]) -> Flow[dict[str, Any]]:
        body = {"add": list(add), "retire": list(retire)}
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/arms", body), dict)

    def close_experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/close", {}), dict)

    def decide(self, name: str, key: str | None) -> Flow[Choice]:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"/v1/experiments/{quote(name, safe='')}/decisions"
        return self._do(Sent("POST", path, {}, headers), choice_of)

    def decide_batch(self, name: str, size: int, key: str | None) -> Flow[list[Choice]]:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"/v1/experiments/{quote(name, safe='')}/decisions/batch"
        return self._do(Sent("POST", path, {"size": size}, headers), lambda got: list(map(choice_of, got["decisions"])))

    def report(self, one: Outcome) -> Flow[str]:
        path = f"/v1/decisions/{quote(one.decision_id, safe='')}/feedback"
        return self._do(Sent("POST", path, outcome_body(one)), lambda got: str(got["status"]))

    def report_batch(self, outcomes: "Iterable[Outcome | Mapping[str, Any]]") -> Flow[list[dict[str, Any]]]:
        named = [Outcome(**one) if isinstance(one, Mapping) else one for one in outcomes]
        reports = [{"decision_id": one.decision_id, **outcome_body(one)} for one in named]
        return self._do(Sent("POST", "/v1/feedback", {"reports": reports}), lambda got: list(got["results"]))


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Of the HTTP client."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"url must begin with http:// or https://, got {url!r}")
    secret = "" if key is None else key.strip()  # a file often ends with a line break
    if not (secret.isascii() and secret.isprintable()):
        raise InvalidInput("key must be printable ASCII, as `belated keys create` shows it")  # which is not told here
    headers = {} if key is None else {"Authorization": f"Bearer {secret}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


@final
class Client:
    """Decide and report through a Belated service; waits for passing failures, and a retry has one effect.

    url:     where the service is, such as "http://127.0.0.1:8321"
    key:     a key, if the service has any
    retries: how often to try again when the service does not answer or asks to wait
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, retries: int = RETRIES) -> None:
        self._flows, self._http = Flows(retries), httpx.Client(**options(url, key, timeout))

    def _run(self, flow: Flow[T]) -> T:
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = None
            if isinstance(step, float):
                time.sleep(step)
                continue
            try:
                answer = self._http.request(step.method, step.path, json=step.body, headers=dict(step.headers))
            except httpx.TransportError as error:
                answer = error

    def create_experiment(self, name: str, arms: Iterable[str], **settings: Any) -> dict[str, Any]:
        """Begin an experiment; settings as in the API: outcome, tuning, reward_wait, default_outcome."""
        return self._run(self._flows.create_experiment(name, arms, settings))

    def experiment(self, name: str) -> dict[str, Any]:
        """All about an experiment."""
        return self._run(self._flows.experiment(name))

    def change_arms(self, name: str, *, add: Iterable[str] = (), retire: Iterable[str] = ()) -> dict[str, Any]:
        """Add and retire arms."""
        return self._run(self._flows.change_arms(name, add, retire))

    def close_experiment(self, name: str) -> dict[str, Any]:
        """Make no more decisions; feedback is still taken."""
        return self._run(self._flows.close_experiment(name))

    def decide(self, experiment: str, *, idempotency_key: str | None = None) -> Choice:
        """Choose an arm; retries use one key, so they have one effect."""
        return self._run(self._flows.decide(experiment, idempotency_key))

    def decide_batch(self, experiment: str, size: int, *, idempotency_key: str | None = None) -> list[Choice]:
        """Choose many times from one distribution."""
        return self._run(self._flows.decide_batch(experiment, size, idempotency_key))

    def report(
        self, decision_id: str, *, reward: float | None = None, loss: float | None = None, amend: bool = False
    ) -> str:
        """Tell an outcome: "applied", "duplicate", "amended" or "late"."""
        return self._run(self._flows.report(Outcome(decision_id, reward, loss, amend)))

    def report_batch(self, outcomes: "Iterable[Outcome | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """Tell many outcomes; each gets a status, or "problem" and what it is."""
        return self._run(self._flows.report_batch(outcomes))

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class AsyncClient:
    """`Client` for asyncio: the same operations, to be awaited."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, retries: int = RETRIES) -> None:
        self._flows, self._http = Flows(retries), httpx.AsyncClient(**options(url, key, timeout))

    async def _run(self, flow: Flow[T]) -> T:
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = None
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            try:
                answer = await self._http.request(step.method, step.path, json=step.body, headers=dict(step.headers))
            except httpx.TransportError as error:
                answer = error

    async def create_experiment(self, name: str, arms: Iterable[str], **settings: Any) -> dict[str, Any]:
        """As `Client.create_experiment`."""
        return await self._run(self._flows.create_experiment(name, arms, settings))

    async def experiment(self, name: str) -> dict[str, Any]:
        """As `Client.experiment`."""
        return await self._run(self._flows.experiment(name))

    async def change_arms(self, name: str, *, add: Iterable[str] = (), retire: Iterable[str] = ()) -> dict[str, Any]:
        """As `Client.change_arms`."""
        return await self._run(self._flows.change_arms(name, add, retire))

    async def close_experiment(self, name: str) -> dict[str, Any]:
        """As `Client.close_experiment`."""
        return await self._run(self._flows.close_experiment(name))

    async def decide(self, experiment: str, *, idempotency_key: str | None = None) -> Choice:
        """As `Client.decide`."""
        return await self._run(self._flows.decide(experiment, idempotency_key))

    async def decide_batch(self, experiment: str, size: int, *, idempotency_key: str | None = None) -> list[Choice]:
        """As `Client.decide_batch`."""
        return await self._run(self._flows.decide_batch(experiment, size, idempotency_key))

    async def report(
        self, decision_id: str, *, reward: float | None = None, loss: float | None = None, amend: bool = False
    ) -> str:
        """As `Client.report`."""
        return await self._run(self._flows.report(Outcome(decision_id, reward, loss, amend)))

    async def report_batch(self, outcomes: "Iterable[Outcome | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """As `Client.report_batch`."""
        return await self._run(self._flows.report_batch(outcomes))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
