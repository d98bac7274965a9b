"""`Client` and `AsyncClient` ask a Belated service for decisions and tell it their outcomes.

Both run the same flows. A flow is a generator. It yields requests to send and seconds to sleep, and returns the answer.

The distribution belated-client has this module too, and those that it imports, in a package of another name. So the
imports are relative.
"""

import asyncio
import logging
import math
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar, final, overload
from urllib.parse import quote

try:
    import httpx
except ModuleNotFoundError as error:
    from .extras import missing

    raise ModuleNotFoundError(missing("httpx", "client")) from error

from .deadlines import Timely
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
FALLEN_BACK: Final = "fallback"  # the status of a report that was not sent, because its decision was a fallback
LONGEST_RESERVE: Final = 0.1  # seconds
log = logging.getLogger("belated.client")


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

    @property
    def is_fallback(self) -> bool:
        """Whether the client made it, because the service did not. It has no id, and its outcome is not reported."""
        return not self.id


class Subject(NamedTuple):
    """Whom decisions of an experiment are for: a user, a session or a device. It stands for its newest decision."""

    experiment: str
    subject: str


class Report(NamedTuple):
    """The outcome of a decision, for `tell_batch`. Give a reward, a loss or parts, as the experiment declares.

    An amendment may name the revision of the outcome that it replaces. Otherwise the client asks for it.
    A `report_id` is your own id of this outcome. The same one counts once, also where several outcomes add up.
    """

    decision: ServiceDecision | Subject | str
    reward: float | None = None
    loss: float | None = None
    amend: bool = False
    revision: int | None = None
    report_id: str | None = None
    parts: Mapping[str, float] | None = None


Got = httpx.Response | Exception | None
Flow = Generator[Sent | float, Got, T]


class Deadline(NamedTuple):
    """When a call must be over. Its tries end a little earlier, so that there is time left to return."""

    seconds: float
    ends: float
    last_try: float  # a try that begins later has no time

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """A deadline that begins now."""
        reserve = 0.0 if math.isinf(seconds) else min(LONGEST_RESERVE, seconds / 5)
        ends = time.monotonic() + seconds - reserve
        return cls(seconds, ends, ends - reserve)


def checked_deadline(seconds: float) -> float:
    """The seconds of a deadline, if they can be one."""
    if not as_float(seconds) > 0:
        raise InvalidInput(f"deadline must be a positive number of seconds, got {seconds!r}")
    return as_float(seconds)


def exchange(sent: Sent, parse: Callable[[Any], T], retries: int, deadline: Deadline) -> Flow[T]:
    """Send until the service answers. Pause longer each time.

    Raise ServiceError if the service refuses, if retries run out, or if the next try would come after the deadline.
    """
    pause = FIRST_PAUSE
    while True:
        got = yield sent._replace(within=deadline.ends - time.monotonic())
        if isinstance(got, httpx.Response) and got.is_success:
            return parsed(got, parse)
        if isinstance(got, Exception) and not isinstance(got, httpx.TransportError):
            raise got
        error = error_of(got)
        if retries == 0 or (isinstance(got, httpx.Response) and got.status_code not in TRANSIENT):
            raise error
        retries -= 1
        wait = wait_of(got, pause)
        if time.monotonic() + wait >= deadline.last_try:
            detail = f"{error.detail.rstrip('.')}. " if error.detail else ""
            late = f"The next try would be in {wait:.3g} seconds, after the deadline of {deadline.seconds:g}."
            raise ServiceError(error.status, error.title, detail + late)
        log.info("trying again in %.2g seconds: %s", wait, str(error))
        yield wait
        pause = min(2 * pause, LONGEST_PAUSE)


def parsed(got: httpx.Response, parse: Callable[[Any], T]) -> T:
    """What an answer says. Raises ServiceError if it is not an answer of the service."""
    try:
        return parse(got.json())
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ServiceError(got.status_code, "not an answer of this service", got.text[:200]) from None


def rescued(flow: Flow[T], instead: T, said: str) -> Flow[T]:
    """Do what a flow does. If it fails, whatever the reason, log it and return something else."""
    began = time.monotonic()
    try:
        return (yield from flow)
    except Exception as error:  # noqa: BLE001  # a caller with a fallback gets no error
        log.warning("%s, after %.3g seconds: %s", said, time.monotonic() - began, str(error) or repr(error))
        return instead


def wait_of(got: Got, pause: float) -> float:
    """Seconds until the next try: what the service asks for, or the pause."""
    wanted = got.headers.get("Retry-After", "") if isinstance(got, httpx.Response) else ""
    if wanted.isascii() and wanted.isdigit():
        return float(wanted)
    return pause * random.uniform(0.5, 1.0)  # noqa: S311


def error_of(got: Got) -> ServiceError:
    """What went wrong, in the service's own words if it gave any."""
    if not isinstance(got, httpx.Response):
        where = f" at {got.request.url}" if isinstance(got, httpx.TransportError) else ""
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


def fallback_decision(experiment: str, option: str) -> ServiceDecision:
    """What a page shows while the service does not answer. No chance is involved."""
    return ServiceDecision("", experiment, option, 1.0, 0, datetime.now(UTC).isoformat(), None)


def checked_fallback(what: str, fallback: str | None) -> str | None:
    """A fallback, if there is one and it can be one."""
    if fallback is not None and not isinstance(fallback, str):
        raise InvalidInput(f"fallback must be {what}, got {fallback!r}")
    return fallback


def is_fallback(report: "Report") -> bool:
    """Whether nobody could report it, because the service did not make the decision."""
    return isinstance(report.decision, ServiceDecision) and report.decision.is_fallback


def names_of(what: str, names: Iterable[str]) -> list[str]:
    """A list of names. One string is refused, because it would count as a list of its letters."""
    if isinstance(names, str):
        raise InvalidInput(f"{what} must be a list of names, got the text {names!r}. Write [{names!r}] for one name.")
    return list(names)


def target_of(decision: ServiceDecision | Subject | str) -> dict[str, str]:
    """How a batch names a decision. It may be given itself, by its id, or by its subject."""
    if isinstance(decision, Subject):
        return {"experiment": decision.experiment, "subject": decision.subject}
    id = decision.id if isinstance(decision, ServiceDecision) else decision
    if not isinstance(id, str):
        raise InvalidInput(f"give the decision that ask() returned, its id or a Subject, got {decision!r}")
    return {"decision_id": id}


def number_of(what: str, value: Any) -> float:
    """A number that JSON can have. NumPy's numbers are none."""
    if not math.isfinite(as_float(value)):
        raise InvalidInput(f"{what} must be a finite number, got {value!r}")
    return value if type(value) in (int, float) else as_float(value)


def numbers_of(parts: Any) -> dict[str, float]:
    """The parts of an outcome as the API takes them."""
    if not isinstance(parts, Mapping):
        raise InvalidInput(f"parts must be a mapping of names to numbers, got {parts!r}")
    return {name: number_of(f"the part {name!r}", value) for name, value in parts.items()}


def outcome_body(report: Report) -> dict[str, Any]:
    """A report as the API takes it."""
    given = {"reward": report.reward, "loss": report.loss, "parts": report.parts}
    said = [(name, value) for name, value in given.items() if value is not None]
    if len(said) != 1:
        raise InvalidInput("give a reward, a loss or parts, whichever the experiment declares")
    [(name, value)] = said
    number: Any = numbers_of(value) if name == "parts" else number_of(f"a {name}", value)
    if report.revision is not None and not report.amend:
        raise InvalidInput(f"only an amendment has a revision, got {report.revision!r} without amend=True")
    known: dict[str, Any] = {} if report.revision is None else {"revision": report.revision}
    known |= {} if report.report_id is None else {"report_id": report.report_id}
    return {name: number, **({"amend": True} if report.amend else {}), **known}


@final
class Flows:
    """Every operation, as a flow."""

    def __init__(self, retries: int, deadline: float) -> None:
        self._retries, self._deadline = retries, checked_deadline(deadline)

    def _do(self, sent: Sent, parse: Callable[[Any], T], deadline: Deadline | None = None) -> Flow[T]:
        return (yield from exchange(sent, parse, self._retries, deadline or Deadline.after(self._deadline)))

    def _until(self, seconds: float | None) -> Deadline:
        """The deadline of a call that begins now. Without one of its own it has the client's."""
        return Deadline.after(self._deadline if seconds is None else checked_deadline(seconds))

    def create_experiment(self, name: str, arms: Iterable[str], settings: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        body = {"name": name, "arms": names_of("arms", arms), **settings}
        return self._do(Sent("POST", "/v1/experiments", body), dict)

    def experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("GET", f"/v1/experiments/{quote(name, safe='')}"), dict)

    def change_arms(self, name: str, add: Iterable[str], retire: Iterable[str]) -> Flow[dict[str, Any]]:
        body = {"add": names_of("add", add), "retire": names_of("retire", retire)}
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/arms", body), dict)

    def close_experiment(self, name: str) -> Flow[dict[str, Any]]:
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/close", {}), dict)

    def operate(self, name: str, action: str, settings: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        if action not in ACTIONS:
            raise InvalidInput(f"action must be one of {', '.join(ACTIONS)}, got {action!r}")
        return self._do(Sent("POST", f"/v1/experiments/{quote(name, safe='')}/{action}", dict(settings)), dict)

    def ask(
        self,
        name: str,
        size: int | None,
        key: str | None,
        subject: str | None,
        fallback: str | None,
        seconds: float | None,
    ) -> Flow[ServiceDecision | list[ServiceDecision]]:
        option = checked_fallback("the name of an option", fallback)
        flow = self._ask(name, size, key, subject, self._until(seconds))
        if option is None:
            return flow
        one, number = fallback_decision(name, option), size if isinstance(size, int) else 1
        return rescued(flow, one if size is None else [one] * number, f"{name!r} shows its fallback {option!r}")

    def _ask(
        self, name: str, size: int | None, key: str | None, subject: str | None, deadline: Deadline
    ) -> Flow[ServiceDecision | list[ServiceDecision]]:
        if subject is not None and (size is not None or key is not None):
            raise InvalidInput("a subject gets one decision, and needs no idempotency_key. Leave size and key out.")
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        path = f"/v1/experiments/{quote(name, safe='')}/decisions"
        if subject is not None:
            return (yield from self._do(Sent("POST", path, {"subject": subject}), decision_of, deadline))
        if size is None:
            return (yield from self._do(Sent("POST", path, {}, headers), decision_of, deadline))
        batch = Sent("POST", f"{path}/batch", {"size": size}, headers)
        return (yield from self._do(batch, decisions_of, deadline))

    def ask_for(self, name: str, subjects: Iterable[str]) -> Flow[list[ServiceDecision]]:
        path = f"/v1/experiments/{quote(name, safe='')}/decisions/batch"
        return self._do(Sent("POST", path, {"subjects": names_of("subjects", subjects)}), decisions_of)

    def tell(self, report: Report, fallback: str | None, seconds: float | None) -> Flow[str]:
        return self._or_else(report, self._tell(report, self._until(seconds)), fallback)

    def amend(self, report: Report, fallback: str | None, seconds: float | None) -> Flow[str]:
        return self._or_else(report, self._amend(report, self._until(seconds)), fallback)

    def _or_else(self, report: Report, flow: Flow[str], fallback: str | None) -> Flow[str]:
        """Report, or return the fallback if that fails. The log then has all that is needed to report it later."""
        status = checked_fallback("the status to return if the report fails", fallback)
        return flow if status is None else rescued(flow, status, f"not reported: {report!r}")

    def _tell(self, report: Report, deadline: Deadline) -> Flow[str]:
        if is_fallback(report):
            return FALLEN_BACK
        body, target = outcome_body(report), target_of(report.decision)
        if "subject" in target:
            path, body["subject"] = f"/v1/experiments/{quote(target['experiment'], safe='')}", target["subject"]
        else:
            path = f"/v1/decisions/{quote(target['decision_id'], safe='')}"
        sent = Sent("POST", f"{path}/feedback", body)
        return (yield from self._do(sent, lambda got: str(got["status"]), deadline))

    def _amend(self, report: Report, deadline: Deadline) -> Flow[str]:
        """Replace an outcome, and say which. A plain report finds out the revision, and copies of it change nothing."""
        if report.revision is None:
            try:
                return (yield from self._tell(report._replace(amend=False), deadline))
            except ServiceError as error:
                if error.status != CONFLICT:
                    raise
                report = report._replace(revision=error.revision)
        return (yield from self._tell(report, deadline))

    def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> Flow[list[dict[str, Any]]]:
        named, deadline = [Report(**one) if isinstance(one, Mapping) else one for one in reports], self._until(None)
        sendable = {index: one for index, one in enumerate(named) if not is_fallback(one)}
        results: dict[int, dict[str, Any]] = {
            index: {"decision_id": "", "status": FALLEN_BACK} for index in range(len(named))
        }
        if any(map(is_uninformed, sendable.values())):
            for turn in turns(sendable):  # in each, a decision has one report: its revision depends on those before
                results |= yield from self._amend_all({index: named[index] for index in turn}, deadline)
        elif sendable:
            results |= zip(sendable, (yield from self._tell_all([*sendable.values()], deadline)), strict=True)
        return [*results.values()]

    def _amend_all(self, reports: dict[int, Report], deadline: Deadline) -> Flow[dict[int, dict[str, Any]]]:
        """As `amend`, for reports of different decisions."""
        plain = [one._replace(amend=False) if is_uninformed(one) else one for one in reports.values()]
        results = dict(zip(reports, (yield from self._tell_all(plain, deadline)), strict=True))
        again = {
            index: reports[index]._replace(revision=result["problem"].get("revision"))
            for index, result in results.items()
            if is_uninformed(reports[index]) and result.get("problem", {}).get("status") == CONFLICT
        }
        if again:
            results |= zip(again, (yield from self._tell_all([*again.values()], deadline)), strict=True)
        return results

    def _tell_all(self, reports: list[Report], deadline: Deadline) -> Flow[list[dict[str, Any]]]:
        bodies = [{**target_of(one.decision), **outcome_body(one)} for one in reports]
        sent = Sent("POST", "/v1/feedback", {"reports": bodies})
        return self._do(sent, lambda got: [one for one, _ in zip(got["results"], bodies, strict=True)], deadline)


def is_uninformed(report: Report) -> bool:
    """Whether it is an amendment that does not say which revision it replaces."""
    return report.amend and report.revision is None


def turns(reports: Mapping[int, Report]) -> Iterator[list[int]]:
    """Yield the indices of the first report of each decision, then of the second, and so on."""
    counts: Counter[str] = Counter()
    by_turn: dict[int, list[int]] = {}
    for index, report in reports.items():
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

    `ask`, `tell` and `amend` take a deadline of their own, and a fallback. With a fallback they raise nothing, whatever
    the service and the network do. They return the fallback instead, and the log says why.
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
        self._http, self._timely = httpx.Client(**options(url, key, timeout)), Timely()

    def _run(self, flow: Flow[T]) -> T:
        answer: Got = None
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
                answer = self._send(request_of(self._http, step, self._timeout), step.within)
            except Exception as error:  # noqa: BLE001  # the flow decides
                answer = error

    def _send(self, request: httpx.Request, within: float) -> httpx.Response:
        """Send a request, and wait no longer than the deadline."""
        if math.isinf(within):
            return self._exchange(request, within)
        try:
            return self._timely.run(within, partial(self._exchange, request, time.monotonic() + within))
        except TimeoutError:
            raise httpx.ReadTimeout(LATE, request=request) from None

    def _exchange(self, request: httpx.Request, ends: float) -> httpx.Response:
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

    def operate(self, name: str, action: str, /, **settings: Any) -> dict[str, Any]:
        """Pause, resume, freeze (arm=), unfreeze, end (winner=) or edit (floor=, ...) an experiment."""
        return self._run(self._flows.operate(name, action, settings))

    @overload
    def ask(
        self,
        experiment: str,
        *,
        size: None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> ServiceDecision: ...

    @overload
    def ask(
        self,
        experiment: str,
        *,
        size: int,
        idempotency_key: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> list[ServiceDecision]: ...

    def ask(
        self,
        experiment: str,
        *,
        size: int | None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> ServiceDecision | list[ServiceDecision]:
        """Choose an arm, or `size` arms from one distribution. All retries of a call send the same key.

        The same subject always gets the same decision, until its arm is retired.
        With a fallback, the call does not raise. If it fails, it returns a decision for that option, without an id.
        """
        return self._run(self._flows.ask(experiment, size, idempotency_key, subject, fallback, deadline))

    def ask_for(self, experiment: str, subjects: Iterable[str]) -> list[ServiceDecision]:
        """Return the decision of each subject, as `ask` with a subject does."""
        return self._run(self._flows.ask_for(experiment, subjects))

    def tell(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        parts: Mapping[str, float] | None = None,
        report_id: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> str:
        """Report the outcome of a decision, of its id, or of a subject.

        Returns "applied", "duplicate" or "late", or the fallback if that fails. For a decision that was a fallback
        nothing is sent, and it returns "fallback".

        Where several outcomes add up, give each its own `report_id`, such as the number of an order. A later one then
        is "added", or "ignored" if only the first counts.

        Where an outcome is made of parts, give `parts` by name, as they come. It returns "partial" while others are
        still to come.
        """
        report = Report(decision, reward, loss, report_id=report_id, parts=parts)
        return self._run(self._flows.tell(report, fallback, deadline))

    def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """Report many outcomes. Returns a dictionary for each, with its status and any problem."""
        return self._run(self._flows.tell_batch(reports))

    def amend(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        parts: Mapping[str, float] | None = None,
        revision: int | None = None,
        report_id: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> str:
        """Replace the outcome of a decision, by default the newest one, or the one with this `report_id`.

        Returns "amended", "superseded" if another amendment came first, or as `tell` if there is nothing to replace.
        """
        report = Report(decision, reward, loss, amend=True, revision=revision, report_id=report_id, parts=parts)
        return self._run(self._flows.amend(report, fallback, deadline))

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
        answer: Got = None
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
                answer = await self._send(request_of(self._http, step, self._timeout), step.within)
            except Exception as error:  # noqa: BLE001  # the flow decides
                answer = error

    async def _send(self, request: httpx.Request, within: float) -> httpx.Response:
        """Send a request, and wait no longer than the deadline."""
        try:
            async with asyncio.timeout(None if math.isinf(within) else within):
                return await self._http.send(request)
        except TimeoutError:
            raise httpx.ReadTimeout(LATE, request=request) from None

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

    async def operate(self, name: str, action: str, /, **settings: Any) -> dict[str, Any]:
        """As `Client.operate`."""
        return await self._run(self._flows.operate(name, action, settings))

    @overload
    async def ask(
        self,
        experiment: str,
        *,
        size: None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> ServiceDecision: ...

    @overload
    async def ask(
        self,
        experiment: str,
        *,
        size: int,
        idempotency_key: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> list[ServiceDecision]: ...

    async def ask(
        self,
        experiment: str,
        *,
        size: int | None = None,
        idempotency_key: str | None = None,
        subject: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> ServiceDecision | list[ServiceDecision]:
        """As `Client.ask`."""
        return await self._run(self._flows.ask(experiment, size, idempotency_key, subject, fallback, deadline))

    async def ask_for(self, experiment: str, subjects: Iterable[str]) -> list[ServiceDecision]:
        """As `Client.ask_for`."""
        return await self._run(self._flows.ask_for(experiment, subjects))

    async def tell(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        parts: Mapping[str, float] | None = None,
        report_id: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> str:
        """As `Client.tell`."""
        report = Report(decision, reward, loss, report_id=report_id, parts=parts)
        return await self._run(self._flows.tell(report, fallback, deadline))

    async def tell_batch(self, reports: "Iterable[Report | Mapping[str, Any]]") -> list[dict[str, Any]]:
        """As `Client.tell_batch`."""
        return await self._run(self._flows.tell_batch(reports))

    async def amend(
        self,
        decision: ServiceDecision | Subject | str,
        *,
        reward: float | None = None,
        loss: float | None = None,
        parts: Mapping[str, float] | None = None,
        revision: int | None = None,
        report_id: str | None = None,
        fallback: str | None = None,
        deadline: float | None = None,
    ) -> str:
        """As `Client.amend`."""
        report = Report(decision, reward, loss, amend=True, revision=revision, report_id=report_id, parts=parts)
        return await self._run(self._flows.amend(report, fallback, deadline))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
