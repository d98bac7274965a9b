"""`Client` and `AsyncClient` ask a Belated service for decisions and tell it their outcomes.

Both run the same flows. A flow is a generator. It yields requests to send and seconds to sleep, and returns the answer.

The distribution belated-client has this module too, and those that it imports, in a package of another name. So the
imports are relative.
"""

import asyncio
import math
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple, Self, TypeVar, final, overload
from urllib.parse import quote

try:
    import httpx
except ModuleNotFoundError as error:
    from .extras import missing

    raise ModuleNotFoundError(missing("httpx", "client")) from error

from .errors import InvalidInput, ServiceError
from .scalars import as_float

T = TypeVar("T")
RETRIES: Final = 6
FIRST_PAUSE: Final = 0.1  # seconds, doubled after every failure
LONGEST_PAUSE: Final = 5.0  # seconds
CONFLICT: Final = 409
DEADLINE: Final = 60.0  # seconds
LATE: Final = "the answer did not end before the deadline"
TRANSIENT: Final = (429, 502, 503, 504)  # status codes that a retry may fix


ACTIONS: Final = ("pause", "resume", "freeze", "unfreeze", "end", "edit")  # on a running experiment


class Sent(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}
    within: float = math.inf  # seconds until the deadline


class ServiceDecision(NamedTuple):
    """A decision of the service. Keep it, or its `id`, until you can tell the outcome."""

    id: str
    experiment: str
    arm: str
    probability: float
    round: int
    decided_at: str
    expires_at: str | None
    repeated: bool = False  # whether its subject had it before


class Subject(NamedTuple):
    """Whom decisions of an experiment are for: a user, a session or a device. It stands for its newest decision."""

    experiment: str
    subject: str


class Report(NamedTuple):
    """The outcome of a decision, for `tell_batch`. Give a reward or a loss, as the experiment declares.

    An amendment may name the revision of the outcome that it replaces. Otherwise the client asks for it.
    A `report_id` is your own id of this outcome. The same one counts once, also where several outcomes add up.
    """

    decision: ServiceDecision | Subject | str
    reward: float | None = None
    loss: float | None = None
    amend: bool = False
    revision: int | None = None
    report_id: str | None = None


Flow = Generator["Sent | float", "httpx.Response | httpx.TransportError | None", T]


def exchange(sent: Sent, parse: Callable[[Any], T], retries: int, deadline: float) -> Flow[T]:
    """Send until the service answers. Pause longer each time.

    Raise ServiceError if the service refuses, if retries run out, or if the next try would come after the deadline.
    """
    pause, ends = FIRST_PAUSE, time.monotonic() + deadline
    while True:
        got = yield sent._replace(within=ends - time.monotonic())
        if isinstance(got, httpx.Response) and got.is_success:
            return parse(got.json())
        error = error_of(got)
        if retries == 0 or (isinstance(got, httpx.Response) and got.status_code not in TRANSIENT):
            raise error
        retries -= 1
        wait = wait_of(got, pause)
        if time.monotonic() + wait >= ends:
            said = f"{error.detail} The next try would be in {wait:.3g} seconds, after the deadline of {deadline:g}."
            raise ServiceError(error.status, error.title, said.lstrip())
        yield wait
        pause = min(2 * pause, LONGEST_PAUSE)


def wait_of(got: "httpx.Response | httpx.TransportError | None", pause: float) -> float:
    """Seconds until the next try: what the service asks for, or the pause."""
    wanted = got.headers.get("Retry-After", "") if isinstance(got, httpx.Response) else ""
    if wanted.isascii() and wanted.isdigit():
        return float(wanted)
    return pause * random.uniform(0.5, 1.0)  # noqa: S311


def error_of(got: "httpx.Response | httpx.TransportError | None") -> ServiceError:
    """What went wrong, in the service's own words if it gave any."""
    if not isinstance(got, httpx.Response):
        where = "" if got is None else f" at {got.request.url}"
        return ServiceError(0, f"the service{where} does not answer", str(got))
    try:
        problem = got.json()
        found = problem["title"], problem.get("detail", ""), problem.get("revision"), problem.get("request_id", "")
        return ServiceError(got.status_code, *found)
    except (ValueError, KeyError, TypeError):
        return ServiceError(got.status_code, got.reason_phrase or "not an answer of this service", got.text[:200])


def decision_of(got: dict[str, Any]) -> ServiceDecision:
    """A decision from its JSON document. Ignores fields that only a newer service sends."""
    known = {name: got[name] for name in ServiceDecision._fields[1:] if name in got}
    return ServiceDecision(got["decision_id"], **known)


def decisions_of(got: dict[str, Any]) -> list[ServiceDecision]:
    """Decisions from the JSON document of a batch."""
    return [decision_of(one) for one in got["decisions"]]


def target_of(decision: ServiceDecision | Subject | str) -> dict[str, str]:
    """How a batch names a decision. It may be given itself, by its id, or by its subject."""
    if isinstance(decision, Subject):
        return {"experiment": decision.experiment, "subject": decision.subject}
    id = decision.id if isinstance(decision, ServiceDecision) else decision
    if not isinstance(id, str):
        raise InvalidInput(f"give the decision that ask() returned, its id or a Subject, got {decision!r}")
    return {"decision_id": id}


def outcome_body(report: Report) -> dict[str, Any]:
    """A report as the API takes it."""
    if (report.reward is None) == (report.loss is None):
        raise InvalidInput("give a reward or a loss, whichever the experiment declares")
    name, value = ("loss", report.loss) if report.reward is None else ("reward", report.reward)
    if not math.isfinite(as_float(value)):
        raise InvalidInput(f"a {name} must be a finite number, got {value!r}")
    number = value if type(value) in (int, float) else as_float(value)  # NumPy's numbers are not JSON
    if report.revision is not None and not report.amend:
        raise InvalidInput(f"only an amendment has a revision, got {report.revision!r} without amend=True")
    known: dict[str, Any] = {} if report.revision is None else {"revision": report.revision}
    known |= {} if report.report_id is None else {"report_id": report.report_id}
    return {name: number, **({"amend": True} if report.amend else {}), **known}


@final
class Flows:
    """Every operation, as a flow."""

    def __init__(self, retries: int, deadline: float) -> None:
        if not deadline > 0:
            raise InvalidInput(f"deadline must be a positive number of seconds, got {deadline!r}")
        self._retries, self._deadline = retries, deadline

    def _do(self, sent: Sent, parse: Callable[[Any], T]) -> Flow[T]:
        return exchange(sent, parse, self._retries, self._deadline)

    def create_experiment(self, name: str, arms: Iterable[str], settings: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        return self._do(Sent("POST", "/v1/experiments", {"name": name, "arms": list(arms), **settings}), dict)

    def experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("GET", f"/v1/experiments/{quote(name, safe='')}"), dict)

    def change_arms(self, name: str, add: Iterable[str], retire: Iterable[str]) -> Flow[dict[str, Any]]:
        body = {"add": list(add), "retire": list(retire)}
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/arms", body), dict)

    def close_experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/close", {}), dict)

    def operate(self, name: str, action: str, settings: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        if action not in ACTIONS:
            raise InvalidInput(f"action must be one of {', '.join(ACTIONS)}, got {action!r}")
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/{action}", dict(settings)), dict)

    def ask(
        self, name: str, size: int | None, key: str | None, subject: str | None
    ) -> Flow[ServiceDecision | list[ServiceDecision]]:
        if subject is not None and (size is not None or key is not None):
            raise InvalidInput("a subject gets one decision, and needs no idempotency_key. Leave size and key out.")
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"/v1/experiments/{quote(name, safe='')}/decisions"
        if subject is not None:
            return self._do(Sent("POST", path, {"subject": subject}), decision_of)
        if size is None:
            return self._do(Sent("POST", path, {}, headers), decision_of)
        return self._do(Sent("POST", f"{path}/batch", {"size": size}, headers), decisions_of)

    def ask_for(self, name: str, subjects: Iterable[str]) -> Flow[list[ServiceDecision]]:
        if isinstance(subjects, str):
            raise InvalidInput(f"give a list of subjects, got {subjects!r}")
        path = f"/v1/experiments/{quote(name, safe='')}/decisions/batch"
        return self._do(Sent("POST", path, {"subjects": list(subjects)}), decisions_of)

    def tell(self, report: Report) -> Flow[str]:
        body, target = outcome_body(report), target_of(report.decision)
        if "subject" in target:
            path, body["subject"] = f"/v1/experiments/{quote(target['experiment'], safe='')}", target["subject"]
        else:
            path = f"/v1/decisions/{quote(target['decision_id'], safe='')}"
        return self._do(Sent("POST", f"{path}/feedback", body), lambda got: str(got["status"]))

    def amend(self, report: Report) -> Flow[str]:
        """Replace an outcome, and say which. A plain report finds out the revision, and copies of it change nothing."""
        if report.revision is None:
            try:
                return (yield from self.tell(report._replace(amend=False)))
            except ServiceError as error:
                if error.status != CONFLICT:
                    raise
                report = report._replace(revision=error.revision)
        return (yield from self.tell(report))

    def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> Flow[list[dict[str, Any]]]:
        named = [Report(**one) if isinstance(one, Mapping) else one for one in reports]
        if not named:
            return []
        if not any(map(is_uninformed, named)):
            return (yield from self._tell_all(named))
        results: dict[int, dict[str, Any]] = {}
        for turn in turns(named):  # in each, a decision has one report, because its revision depends on those before
            results |= yield from self._amend_all({index: named[index] for index in turn})
        return [results[index] for index in range(len(named))]

    def _amend_all(self, reports: dict[int, Report]) -> Flow[dict[int, dict[str, Any]]]:
        """As `amend`, for reports of different decisions."""
        plain = [one._replace(amend=False) if is_uninformed(one) else one for one in reports.values()]
        results = dict(zip(reports, (yield from self._tell_all(plain)), strict=True))
        again = {
            index: reports[index]._replace(revision=result["problem"].get("revision"))
            for index, result in results.items()
            if is_uninformed(reports[index]) and result.get("problem", {}).get("status") == CONFLICT
        }
        if again:
            results |= zip(again, (yield from self._tell_all([*again.values()])), strict=True)
        return results

    def _tell_all(self, reports: list[Report]) -> Flow[list[dict[str, Any]]]:
        bodies = [{**target_of(one.decision), **outcome_body(one)} for one in reports]
        return self._do(Sent("POST", "/v1/feedback", {"reports": bodies}), lambda got: list(got["results"]))


def is_uninformed(report: Report) -> bool:
    """Whether it is an amendment that does not say which revision it replaces."""
    return report.amend and report.revision is None


def turns(reports: list[Report]) -> Iterator[list[int]]:
    """Yield the indices of the first report of each decision, then of the second, and so on."""
    counts: Counter[str] = Counter()
    by_turn: dict[int, list[int]] = {}
    for index, report in enumerate(reports):
        name = str(target_of(report.decision))
        by_turn.setdefault(counts[name], []).append(index)
        counts[name] += 1
    yield from by_turn.values()


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """The options of the HTTP client."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"url must begin with http:// or https://, got {url!r}")
    secret = "" if key is None else key.strip()  # a file often ends with a line break
    if not (secret.isascii() and secret.isprintable()):  # the message does not show the key
        raise InvalidInput("key must be printable ASCII, as `belated keys create` shows it")
    headers = {} if key is None else {"Authorization": f"Bearer {secret}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


def request_of(http: "httpx.Client | httpx.AsyncClient", sent: Sent, timeout: float) -> httpx.Request:
    """The HTTP request of a step. It waits no longer than the deadline."""
    wait = max(0.001, min(timeout, sent.within))
    return http.build_request(sent.method, sent.path, json=sent.body, headers=dict(sent.headers), timeout=wait)


@final
class Client:
    """Asks a Belated service for decisions and tells it their outcomes. Retries never count twice.

    url:      where the service is, such as "http://127.0.0.1:8321"
    key:      a key, if the service has keys
    timeout:  seconds until a request without an answer is sent again
    retries:  how often to try again if the service does not answer or is busy
    deadline: seconds for a call with all its tries and pauses. math.inf for none
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = RETRIES,
        deadline: float = DEADLINE,
    ) -> None:
        self._flows, self._timeout = Flows(retries, deadline), timeout
        self._http = httpx.Client(**options(url, key, timeout))

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
                answer = self._send(request_of(self._http, step, self._timeout), time.monotonic() + step.within)
            except httpx.TransportError as error:
                answer = error

    def _send(self, request: httpx.Request, ends: float) -> httpx.Response:
        """Send a request. Gives up in the middle of an answer that does not end in time."""
        answer, content = self._http.send(request, stream=True), bytearray()
        with closing(answer):
            for part in answer.iter_bytes():
                content += part
                if time.monotonic() > ends:
                    raise httpx.ReadTimeout(LATE, request=request)
        whole = httpx.Response(answer.status_code, content=bytes(content), request=request)
        whole.headers.update({"Retry-After": answer.headers.get("Retry-After", "")})
        return whole

    def create_experiment(self, name: str, arms: Iterable[str], **settings: Any) -> dict[str, Any]:
        """Create an experiment. Settings are those of the API, such as outcome, tuning and reward_wait."""
        return self._run(self._flows.create_experiment(name, arms, settings))

    def experiment(self, name: str) -> dict[str, Any]:
        """Return the document of an experiment."""
        return self._run(self._flows.experiment(name))

    def change_arms(self, name: str, *, add: Iterable[str] = (), retire: Iterable[str] = ()) -> dict[str, Any]:
        """Add and retire arms."""
        return self._run(self._flows.change_arms(name, add, retire))

    def close_experiment(self, name: str) -> dict[str, Any]:
        """Make no more decisions. Outcomes can still be told."""
        return self._run(self._flows.close_experiment(name))

    def operate(self, name: str, action: str, **settings: Any) -> dict[str, Any]:
        """Pause, resume, freeze (arm=), unfreeze, end (winner=) or edit (floor=, ...) an experiment."""
        return self._run(self._flows.operate(name, action, settings))

    @overload
    def ask(
        self, experiment: str, *, size: None = None, idempotency_key: str | None = None, subject: str | None = None
    ) -> ServiceDecision: ...

    @overload
    def ask(self, experiment: str, *, size: int, idempotency_key: str | None = None) -> list[ServiceDecision]: ...

    def ask(
        self,
        experiment: str,
        *,
        size: int | None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
    ) -> ServiceDecision | list[ServiceDecision]:
        """Choose an arm, or `size` arms from one distribution. All retries of a call send the same key.

        The same subject always gets the same decision, until its arm is retired.
        """
        return self._run(self._flows.ask(experiment, size, idempotency_key, subject))

    def ask_for(self, experiment: str, subjects: Iterable[str]) -> list[ServiceDecision]:
        """Return the decision of each subject, as `ask` with a subject does."""
        return self._run(self._flows.ask_for(experiment, subjects))

    def tell(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        report_id: str | None = None,
    ) -> str:
        """Report the outcome of a decision, of its id, or of a subject. Returns "applied", "duplicate" or "late".

        Where several outcomes add up, give each its own `report_id`, such as the number of an order. A later one then
        is "added", or "ignored" if only the first counts.
        """
        return self._run(self._flows.tell(Report(decision, reward, loss, report_id=report_id)))

    def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """Report many outcomes. Returns a dictionary for each, with its status and any problem."""
        return self._run(self._flows.tell_batch(reports))

    def amend(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        revision: int | None = None,
        report_id: str | None = None,
    ) -> str:
        """Replace the outcome of a decision, by default the newest one, or the one with this `report_id`.

        Returns "amended", "superseded" if another amendment came first, or as `tell` if there is nothing to replace.
        """
        return self._run(
            self._flows.amend(Report(decision, reward, loss, amend=True, revision=revision, report_id=report_id))
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class AsyncClient:
    """`Client` for asyncio. It has the same operations, to be awaited."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = RETRIES,
        deadline: float = DEADLINE,
    ) -> None:
        self._flows, self._timeout = Flows(retries, deadline), timeout
        self._http = httpx.AsyncClient(**options(url, key, timeout))

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
            request = request_of(self._http, step, self._timeout)
            try:
                async with asyncio.timeout(None if math.isinf(step.within) else step.within):
                    answer = await self._http.send(request)
            except httpx.TransportError as error:
                answer = error
            except TimeoutError:
                answer = httpx.ReadTimeout(LATE, request=request)

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

    async def operate(self, name: str, action: str, **settings: Any) -> dict[str, Any]:
        """As `Client.operate`."""
        return await self._run(self._flows.operate(name, action, settings))

    @overload
    async def ask(
        self, experiment: str, *, size: None = None, idempotency_key: str | None = None, subject: str | None = None
    ) -> ServiceDecision: ...

    @overload
    async def ask(self, experiment: str, *, size: int, idempotency_key: str | None = None) -> list[ServiceDecision]: ...

    async def ask(
        self,
        experiment: str,
        *,
        size: int | None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
    ) -> ServiceDecision | list[ServiceDecision]:
        """As `Client.ask`."""
        return await self._run(self._flows.ask(experiment, size, idempotency_key, subject))

    async def ask_for(self, experiment: str, subjects: Iterable[str]) -> list[ServiceDecision]:
        """As `Client.ask_for`."""
        return await self._run(self._flows.ask_for(experiment, subjects))

    async def tell(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        report_id: str | None = None,
    ) -> str:
        """As `Client.tell`."""
        return await self._run(self._flows.tell(Report(decision, reward, loss, report_id=report_id)))

    async def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """As `Client.tell_batch`."""
        return await self._run(self._flows.tell_batch(reports))

    async def amend(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        revision: int | None = None,
        report_id: str | None = None,
    ) -> str:
        """As `Client.amend`."""
        return await self._run(
            self._flows.amend(Report(decision, reward, loss, amend=True, revision=revision, report_id=report_id))
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
