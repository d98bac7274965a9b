"""Clients that send requests of all kinds, to one server or to any of several."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from threading import Event, Semaphore
from typing import NamedTuple, final

import httpx

from tests.support.clients.memory import Document, Memory, disagreement
from tests.support.service import NO_TLS, Served

PATIENT = {"name": "patient", "arms": ["blue", "green", "red"]}
HASTY = {"name": "hasty", "arms": ["left", "right"], "reward_wait": 0.3, "default_outcome": 0}
EXPERIMENTS = ("patient", "hasty")
COMMON_REWARD = 0.5  # reported by every client for the common decisions
READ_AGAIN = 20  # recent decisions to read again, because a crash is most likely to lose these
SILENCE_TIMEOUT = 60.0  # seconds without an answer from any server
GIVEN_UP = 0.3  # share of the requests without an answer
BREATH = 0.05  # seconds to wait after a failure
THINKING = 0.03  # most seconds between two requests of a roaming client. Starting servers need the processor too.
READING = 0.05  # share of the answers after which a client reads earlier decisions


class PendingCall(NamedTuple):
    """A request, and what to do with its answer."""

    path: str
    body: Document
    key: str | None
    take: Callable[[Document], None]


@final
class RoamingClient:
    """Asks for its own decisions, and for common ones that all clients request with the same key."""

    def __init__(self, name: str, random: Random, answers: Semaphore) -> None:
        self._name, self._random, self._numbers = name, random, Counter[str]()
        self._answers = answers  # shared by all clients. Each answer releases it.
        self.memory = Memory()
        self._own: list[Document] = []
        self._common: list[Document] = []
        self._recent: dict[str, Document] = {}
        self._revisions: dict[str, int] = {}  # of the outcomes, as the last answer said
        self._pending: PendingCall | None = None

    def visit(self, url: str) -> None:
        """Send requests until the service is gone. Keeps an unanswered request for the next visit, or gives it up."""
        with httpx.Client(timeout=30, verify=NO_TLS) as http:
            while (response := self._send(http, url)) is not None:
                self._take(response)

    def roam_servers(self, replicas: Sequence[Served], over: Event) -> None:
        """Send each request to a random server until `over` is set. Tries another server after a failure."""
        avoided: Served | None = None
        heard_at = time.monotonic()
        with httpx.Client(timeout=30, verify=NO_TLS) as http:
            while self._pending or not over.is_set():
                server = self._random.choice([one for one in replicas if one is not avoided])
                response = self._send(http, server.url)
                if response is None or response.status_code == 503:
                    avoided = server
                    assert time.monotonic() < heard_at + SILENCE_TIMEOUT, "no server answers"
                    over.wait(BREATH)  # maybe all servers are down
                else:
                    avoided, heard_at = None, time.monotonic()
                    self._take(response)
                    over.wait(self._random.uniform(0, THINKING))
                    if self._random.random() < READING:
                        self._look(http, self._random.choice(replicas).url, READ_AGAIN // 10)

    def _send(self, http: httpx.Client, url: str) -> httpx.Response | None:
        """Send the pending request or a new one. Returns None if there is no answer."""
        self._pending = call = self._pending or self._next()
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        response = None
        try:
            response = http.post(url + call.path, json=call.body, headers=headers)
        except (httpx.TransportError, httpx.UnsupportedProtocol):  # the server is down, or still starting
            if self._random.random() < GIVEN_UP:
                self._pending = None
        return response

    def _take(self, response: httpx.Response) -> None:
        assert response.is_success, response.text
        assert self._pending is not None
        self._pending.take(response.json())
        self._pending = None
        self._answers.release()

    def look_back(self, url: str) -> None:
        """Check that recent acknowledged writes are still there."""
        with httpx.Client(timeout=30, verify=NO_TLS) as http:
            assert self._look(http, url, READ_AGAIN)
        self._recent.clear()

    def _look(self, http: httpx.Client, url: str, most: int) -> bool:
        """Compare recent acknowledged writes with the server. False if it cannot answer now."""
        for id, decision in list(self._recent.items())[-most:]:
            try:
                answer = http.get(f"{url}/v1/decisions/{id}")
            except (httpx.TransportError, httpx.UnsupportedProtocol):
                return False
            if answer.status_code == 503:
                return False
            compare(decision, self.memory, answer.raise_for_status().json())
        return True

    def _next(self) -> PendingCall:
        choices = [self._decide, self._decide, self._decide_in_common, self._report, self._report_many, self._amend]
        return self._random.choice(choices)()

    def _decide(self) -> PendingCall:
        size = self._random.choice((1, 1, 1, 2, 5))
        return self._ask(self._random.choice(EXPERIMENTS), self._key(self._name), size, self._own)

    def _decide_in_common(self) -> PendingCall:
        key = self._key("common")
        return self._ask(EXPERIMENTS[self._numbers["common"] % 2], key, 2, self._common)

    def _key(self, prefix: str) -> str:
        self._numbers[prefix] += 1
        return f"{prefix}-{self._numbers[prefix]}"

    def _ask(self, experiment: str, key: str, size: int, shelf: list[Document]) -> PendingCall:
        self.memory.asked[experiment, key] = size

        def take(answer: Document) -> None:
            decisions = answer["decisions"] if size > 1 else [answer]
            self.memory.keep_decisions((experiment, key), decisions)
            shelf.extend(decisions)
            self._recent.update((one["decision_id"], one) for one in decisions)
            if shelf is self._common:  # other clients may report it
                for one in decisions:
                    self.memory.keep_sent(one["decision_id"], COMMON_REWARD)

        path = f"/v1/experiments/{experiment}/decisions"
        return PendingCall(f"{path}/batch", {"size": size}, key, take) if size > 1 else PendingCall(path, {}, key, take)

    def _report(self) -> PendingCall:
        """Report an early decision, possibly a common one. A second report of a common one changes nothing."""
        if self._common and self._random.random() < 0.3:
            return self._tell(self._common[self._random.randrange(len(self._common))], COMMON_REWARD)
        open = [one for one in self._own[-200:] if one["decision_id"] not in self.memory.sent]
        return self._tell(open[0], self._random.random()) if open else self._decide()

    def _report_many(self) -> PendingCall:
        """Report several decisions in one request."""
        open = [one for one in self._own[-200:] if one["decision_id"] not in self.memory.sent][:4]
        if not open:
            return self._decide()
        rewards = {one["decision_id"]: self._random.random() for one in open}
        for id, reward in rewards.items():
            self.memory.keep_sent(id, reward)

        def take(answer: Document) -> None:
            for decision, result in zip(open, answer["results"], strict=True):
                assert result["status"] in ("applied", "late", "duplicate"), result
                self._heard(decision, rewards[decision["decision_id"]], result)

        reports = [{"decision_id": id, "reward": reward} for id, reward in rewards.items()]
        return PendingCall("/v1/feedback", {"reports": reports}, None, take)

    def _amend(self) -> PendingCall:
        """Amend the reward of a reported decision, possibly to the same value."""
        reported = [one for one in self._own[-200:] if one["decision_id"] in self.memory.told]
        if not reported:
            return self._decide()
        decision = self._random.choice(reported)
        id = decision["decision_id"]
        is_certain = self.memory.sent[id] == self.memory.told[id]
        if is_certain and self._random.random() < 0.3:
            return self._tell(decision, self.memory.told[id][-1], expected=("duplicate",))
        return self._tell(decision, self._random.random(), amend=True, expected=("amended", "duplicate", "superseded"))

    def _tell(
        self,
        decision: Document,
        reward: float,
        *,
        amend: bool = False,
        expected: tuple[str, ...] = ("applied", "late", "duplicate"),
    ) -> PendingCall:
        id = decision["decision_id"]
        self.memory.keep_sent(id, reward)

        def take(answer: Document) -> None:
            assert answer["status"] in expected, answer
            self._heard(decision, reward, answer)

        body = {"reward": reward, "amend": True, "revision": self._revisions[id]} if amend else {"reward": reward}
        return PendingCall(f"/v1/decisions/{id}/feedback", body, None, take)

    def _heard(self, decision: Document, reward: float, answer: Document) -> None:
        id = decision["decision_id"]
        self._revisions[id] = answer["revision"]
        if answer["status"] == "superseded":  # by an amendment that was written, but whose answer was lost
            assert len({*self.memory.sent[id]} - {*self.memory.told[id]}) >= 2
            return
        self.memory.keep_told(id, reward, answer["status"])
        self._recent.pop(id, None)
        self._recent[id] = decision


def compare(decision: Document, memory: Memory, found: Document) -> None:
    """Check that the service shows the acknowledged decision, with every acknowledged reward once."""
    assert {name: found[name] for name in decision} == decision
    sent, told = memory.sent.get(found["decision_id"], []), memory.told.get(found["decision_id"], [])
    said = [one["value"] for one in found["outcomes"] if one["status"] != "expired"]
    firsts = [one for one in found["outcomes"] if one["status"] in ("reported", "expired")]
    assert not disagreement(said, sent, told), (decision, said, sent, told)
    assert len(firsts) == bool(found["outcomes"]), "an outcome was applied twice"


def everything(url: str, experiment: str) -> list[Document]:
    """All decisions with all their outcomes, in the form of `GET /v1/decisions/{id}`."""
    decisions = {one["decision_id"]: {**one, "outcomes": []} for one in listed(url, experiment, "decisions")}
    for outcome in listed(url, experiment, "feedback"):
        decisions[outcome["decision_id"]]["outcomes"].append(outcome)
    return list(decisions.values())


def listed(url: str, experiment: str, what: str) -> Iterator[Document]:
    """All pages of a list."""
    cursor = "0"
    with httpx.Client(base_url=url, timeout=30, verify=NO_TLS) as http:
        while cursor is not None:
            page = http.get(f"/v1/experiments/{experiment}/{what}", params={"limit": 1000, "cursor": cursor}).json()
            yield from page["outcomes" if what == "feedback" else what]
            cursor = page["next"]
