"""A connection to PostgreSQL that is made again after it was lost, and never tells its password."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

import psycopg
from psycopg import errors, pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8BinaryDumper

from belated.errors import StoreError, StoreUnreachable
from belated.serve.store.postgres.arrays import Array, ArrayDumper

SCHEMA: Final = "belated"  # all tables are there, and nothing else
OLDEST: Final = 130_000  # PostgreSQL 13, the first with pg_current_xact_id
SETTINGS: Final[dict[str, Any]] = {
    "application_name": "belated",
    "connect_timeout": 3,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 3000,
}  # a server that is gone is noticed within seconds; the URL may say otherwise
SET_UP: Final = """
SELECT current_setting('default_transaction_read_only') = 'on' OR pg_is_in_recovery(),
    set_config('search_path', $1, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', $2, false),
    set_config('synchronous_commit', CASE WHEN now IN ('off', 'local') THEN 'on' ELSE now END, false),
    set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false),
    set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '3000', false)
FROM current_setting('synchronous_commit') AS now
"""  # the last: a transaction whose client is cut off would hold up the tail of all servers for hours
IDLE: Final = pq.TransactionStatus.IDLE
Connection = psycopg.Connection[tuple[Any, ...]]
TRANSIENT: Final = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)


def settings_of(url: str) -> dict[str, Any]:
    """What the URL says; an error does not repeat it, since a password that is not escaped may be anywhere in it."""
    parts = urlsplit(url)
    try:
        if parts.netloc.count("@") > 1 or "@" in url[url.find(parts.netloc) + len(parts.netloc) :]:
            raise ValueError("a sign that is not escaped")
        return conninfo_to_dict(url)
    except (psycopg.Error, ValueError) as error:
        if unknown := re.search(r'invalid URI query parameter: "(\w+)"', str(error)):
            raise StoreError(f"the store's URL has a setting that PostgreSQL does not know: {unknown[1]}") from None
        raise StoreError(
            "the store's URL makes no sense: write postgresql://user:password@host:port/database, "
            "other signs than letters and digits in the password as %XX"
        ) from None


def shown(url: str) -> str:
    """The URL without secrets."""
    settings = settings_of(url)
    user = f"{settings['user']}@" if "user" in settings else ""
    port = f":{settings['port']}" if "port" in settings else ""
    return f"postgresql://{user}{settings.get('host', '')}{port}/{settings.get('dbname', '')}"


T = TypeVar("T")


class TimeoutConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is given up when the server is silent, also if it seems to be well, as behind a proxy."""

    silence_timeout: float | None = None  # seconds

    def wait(self, gen: PQGen[T], *arguments: Any, **named: Any) -> T:
        if self.silence_timeout is None:
            return super().wait(gen, *arguments, **named)
        return super().wait(self._with_timeout(gen, self.silence_timeout), *arguments, **named)

    def _with_timeout(self, step: PQGen[T], silence_timeout: float) -> PQGen[T]:
        """The same step of the protocol."""
        try:
            wanted, heard_at = next(step), time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() > heard_at + silence_timeout:
                    raise self._give_up(step, psycopg.OperationalError(f"no answer for {silence_timeout:g} seconds"))
                wanted = step.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _give_up(self, step: PQGen[T], error: psycopg.OperationalError) -> psycopg.OperationalError:
        self.pgconn.finish()  # before the step hears of it: it would wait for the rest of the answer
        with suppress(psycopg.Error):
            step.throw(error)
        return error


@final
class Link:
    """A store in PostgreSQL as one connection after the other; `number` says which."""

    def __init__(
        self,
        url: str,
        *,
        readonly: bool = False,
        silence_timeout: float | None = None,
        check: Callable[[Connection, str], None] = lambda *_: None,
    ) -> None:
        self.url, self.name, self.readonly, self.silence_timeout = url, shown(url), readonly, silence_timeout
        self._check = check  # of every connection and the store's name
        self.number, self._lock = 0, RLock()
        self.warnings: list[str] = []  # from the server, since they were last cleared
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        return f"<Link to {self.name}>"

    @contextmanager
    def using(self, verb: str) -> Iterator[Connection]:
        """The connection, for one thread at a time; if it is lost, the next call makes another."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    self.number += 1
                yield self._connection
            except TRANSIENT as error:
                self.close()
                raise StoreUnreachable(f"the store {self.name} cannot be {verb} now: {said(error)}") from error
            except psycopg.Error as error:
                raise StoreError(f"the store {self.name} cannot be {verb}: {said(error)}") from error
            finally:
                if self._connection is not None and self._connection.info.transaction_status != IDLE:
                    self.close()  # interrupted, or half done: the server takes it back

    def _connect(self) -> Connection:
        made = TimeoutConnection.connect(
            **{**SETTINGS, **settings_of(self.url), "client_encoding": "utf8"},
            autocommit=True,
            prepare_threshold=0,
            cursor_factory=psycopg.RawCursor,
        )
        try:
            made.adapters.register_dumper(Array, ArrayDumper)
            made.adapters.register_dumper(int, Int8BinaryDumper)  # one type, so that a statement is prepared once
            made.add_notice_handler(self._noticed)
            made.silence_timeout = self.silence_timeout
            self._set_up(made)
        except BaseException:
            made.close()
            raise
        return made

    def _set_up(self, made: Connection) -> None:
        if made.info.server_version < OLDEST:
            raise StoreError(
                f"the store {self.name} is PostgreSQL {made.info.server_version // 10000}: 13 is the oldest"
            )
        if made.info.parameter_status("server_encoding") != "UTF8":
            raise StoreError(f"the store {self.name} is a database whose encoding is not UTF8: create one that has it")
        readonly = "on" if self.readonly else "off"
        [(is_standby, *_)] = made.execute(SET_UP, (SCHEMA, readonly)).fetchall()
        if is_standby:  # also for a reader: a standby's sequences run ahead of what was drawn, so it cannot be tailed
            raise StoreUnreachable(f"the store {self.name} is a standby, or read only: name the primary server")
        self._check(made, self.name)

    def _noticed(self, notice: errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.message_primary or "")

    def close(self) -> None:
        """Let go; a next use connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def said(error: psycopg.Error) -> str:
    """What the server or its library says, on one line."""
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    is_unknown = "password authentication failed" in words or "no password supplied" in words
    return f"{words}; give the password as PGPASSWORD, in ~/.pgpass or in the URL" if is_unknown else words
