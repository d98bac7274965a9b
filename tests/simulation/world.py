"""The world: one thread and one seed decide who goes on next, and what goes wrong."""

import hashlib
from collections import Counter
from contextlib import nullcontext
from random import Random
from typing import Final, NamedTuple, final

import msgspec
from greenlet import getcurrent

from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.engine.requests import Answers, Result
from tests.simulation.archivist import Archivist
from tests.simulation.audit import audit
from tests.simulation.clients import Client, Known, experiments
from tests.simulation.database import Database, Transaction
from tests.simulation.faults import CALM, Faults, drawn
from tests.simulation.model import SKEW, Model, require
from tests.simulation.network import Letter, Network, Reply
from tests.simulation.servers import Server, Taken
from tests.simulation.stand_ins import failing_learner, simulated

BEGAN: Final = 1_700_000_000 * MICROSECONDS
STEPS: Final = (300, 1_000, 2_500)  # turns before everything is repaired, one of these
MOST_TURNS: Final = 20_000  # until everybody has an answer after that
LONGEST_WAIT: Final = 100 * MICROSECONDS
DAY: Final = 86_400 * MICROSECONDS
Choice = tuple[float, str]


class Outcome(NamedTuple):
    """A run that ended well."""

    seed: int
    turns: int
    entries: int
    acknowledged: int
    happened: Counter[str]
    digest: str  # of the whole journal. The same seed has the same.


@final
class World:
    """Servers, clients, network, database and clocks. `run` raises a Violation if something is wrong."""

    def __init__(
        self,
        seed: int,
        *,
        faults: Faults | None = None,
        trace: list[str] | None = None,
        archives: bool = False,
        has_parts: bool = False,
    ) -> None:
        self.seed, self.random, self.trace = seed, Random(seed), trace  # noqa: S311
        self.faults = drawn(self.random) if faults is None else faults
        self.happened = Counter[str]()
        self.now, self.turns, self.is_settling, self.acknowledged = BEGAN, 0, False, 0
        self.database, skew = Database(), self.random.randint(-SKEW, SKEW)
        if self.random.random() < 0.7:
            self.database.clock = lambda: self.now + skew
        self.model = Model(self.database, lambda: self.now)
        self.network, self.orphans = Network(self.random), list[Transaction]()
        known, is_one_cursed = Known([], [], {}), self.faults.failing_learner
        settings = experiments(self.random, is_one_cursed=is_one_cursed, has_parts=has_parts)
        self.clients = [Client(one, self.random, settings, known) for one in range(self.random.choice((1, 4, 10)))]
        self.servers = [Server(self, number) for number in range(self.random.choice((1, 2, 3)))]
        self._orphans_end = self.random.choice((0.1, 0.03, 0.005))  # the chance at each turn
        self.diligence = self.random.choice((0.5, 0.2, 0.05))  # how often a server reads what others have written
        self.archivist = Archivist(self) if archives else None
        if archives:  # a state that began at a base knows less of its history
            self.model.state_of = lambda fold: fold.base().state
        self._main = getcurrent()

    def run(self, steps: int | None = None) -> Outcome:
        """Run with faults for some turns, then repair everything, wait until all is done, and check everything."""
        chosen = self.random.choice(STEPS)
        fails = failing_learner() if self.faults.failing_learner else nullcontext()
        with simulated(lambda: self.now, self._wall, self._sleep, self.random.randbytes), fails:
            try:
                for server in self.servers:
                    server.start()
                for _ in range(chosen if steps is None else steps):
                    self._turn()
                self._settle()
                audit(self.database, self.model, [server.engine for server in self.servers if server.engine])
            finally:
                for server in self.servers:
                    server.end()
                if self.archivist is not None:
                    self.archivist.crash()
        entries = self.database.history()
        self.happened += Counter(conflicts=self.database.conflicts, overtaken=self.database.overtaken)
        self.happened += Counter(entry.kind.name.lower() for entry in entries)
        digest = hashlib.sha256(msgspec.msgpack.encode(entries)).hexdigest()[:16]
        return Outcome(self.seed, self.turns, len(entries), self.acknowledged, self.happened, digest)

    # -- what servers call ---------------------------------------------------------------------------------------------

    def pause(self, what: str) -> None:
        """Let others go on. Inside a server only."""
        self.note(what)
        if getcurrent() is not self._main:
            self._main.switch()

    def _wall(self) -> int:
        """The time of the machine whose server goes on now."""
        assert self.model.writer is not None
        return self.model.writer.clock()

    def _sleep(self) -> None:
        self.now += MICROSECONDS // 10
        self.pause("waits for an entry")

    def note(self, what: str) -> None:
        """Write a line of the trace, if somebody reads it."""
        if self.trace is not None:
            self.trace.append(f"{self.turns:5} {(self.now - BEGAN) / MICROSECONDS:9.3f}  {what}")

    def happens(self, fault: str) -> bool:
        """Whether a fault occurs now."""
        rate: float = getattr(self.faults, fault)
        is_now = rate > 0 and self.random.random() < rate
        self.happened[fault] += is_now
        return is_now

    def answer(self, server: Server, taken: Taken, result: Result) -> None:
        """A server answers a call."""
        call = taken.call
        self.note(f"server {server.number} answers client {call.client}: {_described(result)}")
        self.model.answered(call, result, taken.since, taken.losses)
        self.happened[_kind(result)] += 1
        self.acknowledged += 1
        self.network.send(Reply(call, result))

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        self.turns += 1
        self.now += round(self.random.expovariate(40) * MICROSECONDS)
        if not self.is_settling:
            self._misfortune()
        dice = self.random.random()
        if dice < 0.25 and self.network.on_its_way:
            self._deliver()
        elif dice < 0.4:
            self._let_a_client_act()
        else:
            self._let_a_server_go_on()

    def _let_a_client_act(self) -> None:
        call = self.random.choice(self.clients).act(self.turns, is_patient=self.is_settling)
        if call is not None:
            self.note(f"client {call.client} sends {_short(call.request)}")
            self.network.send(Letter(call, self.random.randrange(len(self.servers))))

    def _deliver(self) -> None:
        one = self.network.take(is_repeated=self.happens("repeated_messages"))
        if self.happens("lost_messages"):
            return
        if isinstance(one, Reply):
            self.clients[one.call.client].take(one.call, one.result)
        elif self.servers[one.server].is_running:
            self.model.delivered(one.call)
            self.servers[one.server].inbox.append(one.call)

    def _let_a_server_go_on(self) -> None:
        if self.archivist is not None and not self.is_settling and self.random.random() < 0.15:
            self.model.writer = self.archivist  # type: ignore[assignment]
            self.archivist.turn()
            self.model.writer = None
            if self.random.random() < 0.01:
                self.archivist.crash()
            return
        server = self.random.choice(self.servers)
        if not server.must_be_restarted:
            self.model.writer = server
            server.turn()
            self.model.writer = None
        elif self.random.random() < 0.3:
            self.note(f"server {server.number} is started again")
            server.crash()
            server.start()

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def _misfortune(self) -> None:
        server = self.random.choice(self.servers)
        if self.orphans and self.random.random() < self._orphans_end:
            self._end_orphan()
        if self.database.foreign and self.random.random() < 0.05:
            self.database.foreign.pop()
        if server.is_cut and self.random.random() < 0.05:
            server.is_cut = False
        if not self.database.is_up and self.random.random() < 0.1:
            self.database.is_up = True
        for fault in ("partitions", "crashes", "stops", "foreign_transactions", "clock_jumps"):
            if self.happens(fault):
                self.note(f"server {server.number}: {fault}")
                self._strike(fault, server)
        for fault in ("database_crashes", "failovers", "lost_tails"):
            if self.happens(fault):
                self.note(fault)
                self._strike_database(fault)

    def _strike(self, fault: str, server: Server) -> None:
        if fault == "partitions":
            server.is_cut = True
        elif fault == "crashes":
            server.crash()
        elif fault == "stops":
            server.is_stopping = True
        elif fault == "foreign_transactions":
            self.database.foreign.append(self.database.drawn)
        elif self.database.clock is not None or server.engine is not None:  # a file cannot tell during a start
            server.jump += self.random.choice((-1, 1)) * self.random.choice((DAY, 30 * DAY, 365 * DAY))

    def _strike_database(self, fault: str) -> None:
        self.database.is_up = self.random.random() < 0.5
        if fault == "lost_tails":
            lost, is_restored = self.random.randrange(min(6, len(self.database.log) + 1)), self.random.random() < 0.3
            skipped = self.random.choice((0, 0, 3, 32))
            gone = self.database.go_back(
                lost, skipped, keeps_connections=is_restored, keeps_snapshots=self.random.random() < 0.3
            )
            self.note(f"lost: {[entry.seq for entry in gone]}")
            self.model.forget(gone)
        else:
            self.database.crash(0 if fault == "database_crashes" else self.random.choice((1, 32)))
        self.orphans.clear()

    def _end_orphan(self) -> None:
        """A transaction whose client is gone ends, one way or the other."""
        transaction = self.orphans.pop(self.random.randrange(len(self.orphans)))
        if not transaction.is_open:
            return
        if transaction.uniques and self.random.random() < 0.7:
            self.note(f"a transaction without a client commits {[entry.seq for entry in transaction.entries]}")
            self.happened["commits without a client"] += 1
            self.database.commit(transaction)
        else:
            self.database.abort(transaction)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Repair everything, and let everybody finish. Then let all waits end."""
        self.note("everything is repaired")
        self.faults, self.is_settling = CALM, True
        if self.archivist is not None:
            self.archivist.crash()
        for server in self.servers:
            server.is_cut, server.jump = False, 0
            if server.is_stopping or server.has_broken_disk:
                server.crash()
        while self.orphans:
            self._end_orphan()
        self.database.foreign.clear()
        self.database.is_up = True
        self._run_until_quiet()
        self.now += LONGEST_WAIT
        self._run_until_quiet()

    def _run_until_quiet(self) -> None:
        """Go on until each server has looked around twice, and nothing was left to do."""
        end, since = self.turns + MOST_TURNS, [server.rounds for server in self.servers]
        while any(server.rounds < before + 2 for server, before in zip(self.servers, since, strict=True)):
            require(self.turns < end, "somebody waits for ever, although everything was repaired")
            before = self.database.last()
            self._turn()
            if self.database.last() != before or self._is_busy():
                since = [server.rounds for server in self.servers]

    def _is_busy(self) -> bool:
        is_served = all(client.open is None for client in self.clients) and not self.network.on_its_way
        return not is_served or not all(
            one.engine is not None
            and one.engine.fold.seq == self.database.last()
            and not (one.inbox or one.is_failed or one.must_be_restarted)
            for one in self.servers
        )


def _kind(result: Result) -> str:
    if isinstance(result, Answers):
        return "replayed" if result.replayed else "decided"
    if isinstance(result, Refusal):
        return f"refused as {result.kind}"
    return "told" if isinstance(result, list) else "administered"


def _described(result: Result) -> str:
    """A result for a trace, the same in every process."""
    if isinstance(result, Answers):
        return f"{_kind(result)} {[(one.id, one.arm) for one in result.decisions]}"
    if isinstance(result, list):
        return str([_described(one) if isinstance(one, Refusal) else one for one in result])
    return f"{_kind(result)}: {result.detail}" if isinstance(result, Refusal) else _kind(result)


def _short(one: object) -> str:
    return str(one)[:200]
