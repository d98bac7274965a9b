"""Problem documents (RFC 9457): how refusals and bad requests look over HTTP."""

from typing import Annotated, Final, final

import msgspec
from msgspec import Meta

from belated.serve.domain.refusals import Refusal, RefusalKind

STATUSES: Final[dict[RefusalKind, int]] = {
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "gone": 410,
    "conflict": 409,
    "failed": 409,  # not a 5xx, after which a balancer might take the whole server out
    "invalid": 422,
    "too_many": 429,
    "internal": 500,
    "unavailable": 503,
}
TITLES: Final = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    414: "The path is too long",
    415: "Not JSON",
    422: "The request does not make sense",
    429: "Too many",
    431: "The headers are too large",
    500: "An unexpected failure",
    503: "Not now",
}
KEY_HINT: Final = "Send Authorization: Bearer KEY. Create a key with `belated keys create`."
PROBLEM_MEDIA: Final = "application/problem+json"


class ProblemDocument(msgspec.Struct, omit_defaults=True):
    """What went wrong, in the format of RFC 9457."""

    type: Annotated[str, Meta(description="Always about:blank. The status says what kind of problem it is.")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="What was wrong and how to fix it.")] = ""
    revision: Annotated[int, Meta(description="The revision of the outcome that a report contradicts.")] | None = None
    request_id: Annotated[str, Meta(description="The id of the request, which the service's log repeats.")] = ""


@final
class HTTPProblem(Exception):
    """An answer that is a problem document."""

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, revision: int | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers, self.revision = status, detail, headers or {}, revision

    def document(self, request_id: str = "") -> ProblemDocument:
        """Return the body of the answer."""
        title = TITLES.get(self.status, "Error")
        return ProblemDocument("about:blank", title, self.status, self.detail, self.revision, request_id)


def problem_of(refusal: Refusal) -> HTTPProblem:
    """Turn a refusal into an HTTP answer."""
    detail, headers = refusal.detail, dict[str, str]()
    if refusal.kind == "unauthenticated":
        detail, headers["WWW-Authenticate"] = f"{detail}. {KEY_HINT}", "Bearer"
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    return HTTPProblem(STATUSES[refusal.kind], detail, headers, refusal.revision)
