"""A connection to PostgreSQL that reconnects after a loss, and never shows its password."""

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
from belated.serve.store.journal import Rejected
from belated.serve.store.postgres.arrays import Array, ArrayDumper
from belated.serve.store.postgres.notices import Notices

SCHEMA: Final = "belated"  # holds all tables and nothing else
OLDEST: Final = 130_000  # PostgreSQL 13, the first with pg_current_xact_id
SETTINGS: Final[dict[str, Any]] = {
    "application_name": "belated",
    "connect_timeout": 3,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 3000,
}  # notice a lost server within seconds, unless the URL says otherwise
SET_UP: Final = """
SELECT current_setting('default_transaction_read_only') = 'on' OR pg_is_in_recovery(),
    current_setting('session_replication_role') = 'replica',
    set_config('search_path', $1, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', $2, false),
    set_config('synchronous_commit', CASE WHEN now IN ('off', 'local') THEN 'on' ELSE now END, false),
    set_config('client_min_messages', 'warning', false), set_config('standard_conforming_strings', 'on', false),
    set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
    set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
    set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false),
    set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '3000', false)
FROM current_setting('synchronous_commit') AS now
"""
# Warnings must arrive, because some put a commit in doubt.
# Without the keepalives, the open transaction of a lost client would hold up all servers for hours.
# Each statement is planned once, because planning for many partitions takes longer than running it. All of them look up
# by an index. A plan that was made while a partition was empty would otherwise read all of it when it is full.
IDLE: Final = pq.TransactionStatus.IDLE
Connection = psycopg.Connection[tuple[Any, ...]]
TRANSIENT: Final = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)

# errors about values, not about the store. The server has rolled the statement back
REJECTED: Final = (psycopg.DataError, errors.NotNullViolation, errors.CheckViolation, errors.ProgramLimitExceeded)


def settings_of(url: str) -> dict[str, Any]:
    """Parse the URL. Errors do not repeat it, because an unescaped password may be anywhere in it."""
    parts = urlsplit(url)
    try:
        if parts.netloc.count("@") > 1 or "@" in url[url.find(parts.netloc) + len(parts.netloc) :]:
            raise ValueError("an unescaped character")
        return conninfo_to_dict(url)
    except (psycopg.Error, ValueError) as error:
        if unknown := re.search(r'invalid URI query parameter: "(\w+)"', str(error)):
            raise StoreError(
                f"the store's URL has the setting {unknown[1]}, which PostgreSQL does not know. Remove it."
            ) from None
        raise StoreError(
            "the store's URL cannot be read. Write postgresql://user:password@host:port/database, "
            "with %XX for characters other than letters and digits in the password."
        ) from None


def shown(url: str) -> str:
    """Return the URL without its secrets."""
    settings = settings_of(url)
    user = f"{settings['user']}@" if "user" in settings else ""
    port = f":{settings['port']}" if "port" in settings else ""
    return f"postgresql://{user}{settings.get('host', '')}{port}/{settings.get('dbname', '')}"


T = TypeVar("T")


class TimeoutConnection(psycopg.Connection[tuple[Any, ...]]):
    """Closes the connection if the server sends nothing for `silence_timeout` seconds, even if TCP is healthy."""

    silence_timeout: float | None = None  # seconds

    def wait(self, gen: PQGen[T], *arguments: Any, **named: Any) -> T:
        if self.silence_timeout is None:
            return super().wait(gen, *arguments, **named)
        return super().wait(self._with_timeout(gen, self.silence_timeout), *arguments, **named)

    def _with_timeout(self, step: PQGen[T], silence_timeout: float) -> PQGen[T]:
        """Run a step of the protocol with the timeout."""
        try:
            wanted, last_data_at = next(step), time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    last_data_at = time.monotonic()
                elif time.monotonic() > last_data_at + silence_timeout:
                    raise self._give_up(step, psycopg.OperationalError(f"no answer for {silence_timeout:g} seconds"))
                wanted = step.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _give_up(self, step: PQGen[T], error: psycopg.OperationalError) -> psycopg.OperationalError:
        self.pgconn.finish()  # first, because the step would wait for the rest of the answer
        with suppress(psycopg.Error):
            step.throw(error)
        return error


@final
class Link:
    """A store in PostgreSQL that reconnects. `number` counts the connections so far."""

    def __init__(
        self,
        url: str,
        *,
        readonly: bool = False,
        silence_timeout: float | None = None,
        check: Callable[[Connection, str], None] = lambda *_: None,
    ) -> None:
        self.url, self.name, self.readonly, self.silence_timeout = url, shown(url), readonly, silence_timeout
        self._check = check  # called with each new connection and the store's name
        self.number, self._lock = 0, RLock()
        self.notices = Notices(self.name)
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        return f"<Link to {self.name}>"

    @contextmanager
    def using(self, verb: str) -> Iterator[Connection]:
        """Lend the connection to one thread at a time. Connects again if it was lost."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    self.number += 1
                yield self._connection
            except REJECTED as error:
                raise Rejected(said(error)) from error
            except TRANSIENT as error:
                self.close()
                raise StoreUnreachable(f"the store {self.name} cannot be {verb} now: {said(error)}") from error
            except psycopg.Error as error:
                raise StoreError(f"the store {self.name} cannot be {verb}: {said(error)}") from error
            finally:
                if self._connection is not None and self._connection.info.transaction_status != IDLE:
                    self.close()  # interrupted half-way, so the server rolls back

    def _connect(self) -> Connection:
        made = TimeoutConnection.connect(
            **{**SETTINGS, **settings_of(self.url), "client_encoding": "utf8"},
            autocommit=True,
            prepare_threshold=0,
            cursor_factory=psycopg.RawCursor,
        )
        try:
            made.adapters.register_dumper(Array, ArrayDumper)
            made.adapters.register_dumper(
                int, Int8BinaryDumper
            )  # one type for all, so that each statement is prepared once
            made.add_notice_handler(self.notices.hear)
            made.silence_timeout = self.silence_timeout
            self._set_up(made)
        except BaseException:
            made.close()
            raise
        return made

    def _set_up(self, made: Connection) -> None:
        if made.info.server_version < OLDEST:
            raise StoreError(
                f"the store {self.name} is PostgreSQL {made.info.server_version // 10000}. Use 13 or newer."
            )
        if made.info.parameter_status("server_encoding") != "UTF8":
            raise StoreError(f"the store {self.name} does not have the encoding UTF8. Create a database that has it.")
        readonly = "on" if self.readonly else "off"
        [(is_standby, is_without_triggers, *_)] = made.execute(SET_UP, (SCHEMA, readonly)).fetchall()
        if is_standby:  # readers too, because a standby's sequences run ahead and it cannot be tailed
            raise StoreUnreachable(f"the store {self.name} is a standby or read only. Name the primary server.")
        if is_without_triggers and not self.readonly:  # only a superuser could change it here
            raise StoreError(
                f"the store {self.name} has session_replication_role = replica. Its triggers would not run, and "
                "repeated requests would count twice. Set it to origin for this role and this database."
            )
        self._check(made, self.name)

    def close(self) -> None:
        """Close the connection. The next use connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def said(error: psycopg.Error) -> str:
    """Return the message of the server or its library on one line."""
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    is_unknown = "password authentication failed" in words or "no password supplied" in words
    return f"{words}. Give the password as PGPASSWORD, in ~/.pgpass or in the URL." if is_unknown else words
