"""One request as a handler sees it, read within limits and admitted by its key."""

import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, final
from urllib.parse import parse_qsl

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope

from belated.serve.domain.experiment import Experiment
from belated.serve.domain.refusals import Refusal
from belated.serve.http.documents import MAX_PAGE, Nothing
from belated.serve.http.explanations import explained
from belated.serve.http.problem_documents import HTTPProblem
from belated.serve.service.keys import Grant, check_experiment
from belated.serve.service.service import Service

MAX_BODY: Final = 2 * 2**20
MAX_KEY: Final = 200
BEARER: Final = re.compile(r"(?i:bearer) +(\S.*)")
NOTHING: Final = msgspec.json.Decoder(Nothing)  # of an empty body
T = TypeVar("T")


class Answer(NamedTuple):
    """A response: its status, its body (a document, bytes or a stream), its headers and its media type."""

    status: int
    body: Any
    headers: Mapping[str, str] = MappingProxyType({})
    media: str = "application/json"


@final
class Call:
    """One request."""

    __slots__ = ("_headers", "_receive", "about", "grant", "noted", "path", "scope", "service")

    def __init__(self, service: Service, scope: Scope, receive: Receive) -> None:
        self.service, self.scope, self._receive = service, scope, receive
        self.path: dict[str, str] = scope["path_params"]
        self._headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first one of each name
        self.grant = Grant()
        self.about: str = self.path.get("name", "")  # the experiment, for the audit trail
        self.noted = False  # whether the change is in the audit trail already

    def header(self, name: bytes) -> str | None:
        """Return the first header of this name. Give the name in lower case."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def name(self) -> str:
        """The experiment in the path. Raises a Refusal if the key is for another."""
        check_experiment(self.grant, self.path["name"])
        return self.path["name"]

    def _has_body(self) -> bool:
        """Whether the request has a body. Without these headers there is none to wait for."""
        return b"content-length" in self._headers or b"transfer-encoding" in self._headers

    async def body(self) -> bytes:
        """Return the whole body, up to MAX_BODY bytes."""
        too_large = HTTPProblem(413, f"a body may have at most {MAX_BODY:,} bytes. Send smaller batches.")
        declared = self.header(b"content-length")
        if declared is not None and int(declared) > MAX_BODY:
            raise too_large
        content: bytes = b""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise HTTPProblem(400, "the request ended before its body did")
            content += message.get("body", b"")
            if len(content) > MAX_BODY:
                raise too_large
            if not message.get("more_body"):
                return content

    async def read(self, decoder: "msgspec.json.Decoder[T]") -> T:
        """Decode the body. An empty body counts as {}."""
        content = await self.body() if self._has_body() else b""
        media = (self.header(b"content-type") or "application/json").partition(";")[0].strip().lower()
        if content and media != "application/json":
            raise HTTPProblem(415, f"send the body as application/json, not {media!r}")
        try:
            return decoder.decode(content or b"{}")
        except msgspec.ValidationError as error:
            raise Refusal("invalid", explained(str(error), content or b"{}", decoder.type)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HTTPProblem(400, f"the body is not JSON: {error}") from None
        except RecursionError:
            raise HTTPProblem(400, "the body has too many brackets inside each other") from None

    def key(self) -> str | None:
        """Return the caller's key from the header Authorization or X-API-Key, if there is one."""
        given = self.header(b"authorization")
        found = None if given is None else BEARER.fullmatch(given)
        return self.header(b"x-api-key") if found is None else found[1]

    @property
    def caller(self) -> str:
        """Who calls: the id of the key, or the address if the service has no keys."""
        return self.grant.key or (self.scope.get("client") or ("unknown",))[0]

    @property
    def by(self) -> str | None:
        """Who makes a change, as events and the audit trail name it. None if the service has no keys."""
        return self.grant.by

    def idempotency_key(self) -> str | None:
        """Return the Idempotency-Key, if there is one."""
        key = self.header(b"idempotency-key")
        if key is not None and not (1 <= len(key) <= MAX_KEY and key.isprintable()):
            raise Refusal(
                "invalid", f"an Idempotency-Key must have 1 to {MAX_KEY} printable characters, got {key!r:.80}"
            )
        return key

    def query(self, *known: str) -> dict[str, str]:
        """Return the query parameters. Refuses unknown names."""
        given = dict(parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        for name in given:
            if name not in known:
                hint = f"Known are {', '.join(known)}." if known else "This route takes none."
                raise Refusal("invalid", f"unknown query parameter {name!r}. {hint}")
        return given

    def page(self) -> tuple[int, int]:
        """Return the cursor and the limit of a list."""
        given = self.query("limit", "cursor")
        return (
            whole("cursor", given.get("cursor", "0"), 0, 2**62),
            whole("limit", given.get("limit", "100"), 1, MAX_PAGE),
        )


async def experiment_of(call: Call) -> Experiment:
    """Return the experiment in the path. Asks the store, in another thread, only if its name is new to this server."""
    service, name = call.service, call.name
    return service.find(name) if service.knows(name) else await run_in_threadpool(service.find, name)


def whole(name: str, text: str, least: int, most: int) -> int:
    """Read a whole number from a query."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise Refusal("invalid", f"{name} must be a whole number from {least} to {most}, got {text!r:.80}")
    return int(text)


Handler = Callable[[Call], Awaitable[Answer]]
