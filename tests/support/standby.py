"""A PostgreSQL server and a real standby that takes over when the server is gone."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Final, final

from tests.support.ports import free_port
from tests.support.postgres import PASSWORD, ROLE, Cluster
from tests.support.waiting import until

NAME: Final = "twin"  # what the standby calls itself
PATIENCE: Final = 30.0  # seconds
LEVEL: Final = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = %s AND flush_lsn >= pg_current_wal_lsn()"
CANCEL: Final = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
RECEIVERS: Final = "SELECT count(*) FROM pg_stat_wal_receiver"


@final
class Twins:
    """A server and its standby, at two addresses of which one or the other is the primary.

    If they are `synchronous`, every commit waits until the standby has it on disk, so a failover loses nothing.
    """

    def __init__(self, *, synchronous: bool = True) -> None:
        self.cluster = Cluster()
        self._state = "sync" if synchronous else "async"
        self._spare = free_port()  # the address of the standby
        self._ports = self.cluster.port, self._spare
        self._made = 0
        self._data: Path | None = None  # of the standby
        with closing(self.cluster.admin()) as admin:
            if synchronous:  # the standby gets the same setting for when it is the primary
                admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'".encode())
            self._add_standby()
            admin.execute("SELECT pg_reload_conf()")
        self.wait_until_level()

    def url(self, database: str) -> str:
        """The URL of a store. The client looks at both addresses for the primary, as docs/deployment.md advises."""
        hosts = ",".join(f"{self.cluster.host}:{port}" for port in self._ports)
        return f"postgresql://{ROLE}:{PASSWORD}@{hosts}/{database}?target_session_attrs=read-write"

    def _add_standby(self) -> None:
        """Copy the primary and let the copy follow it."""
        self._made += 1
        data = self.cluster.folder / f"standby-{self._made}"
        source = f"host={self.cluster.folder} port={self.cluster.port} user=postgres"
        # under another name, because a copy in progress must not count as a standby
        self.cluster.run("pg_basebackup", "-D", str(data), "-d", source, "-R", "--checkpoint=fast", "--no-sync")
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{source} application_name={NAME}'\n")
        self.cluster.start_on(data, self._spare)
        self._data = data

    def wait_until_level(self) -> None:
        """Wait until the standby has all that the primary has."""
        with closing(self.cluster.admin()) as admin:
            until(lambda: admin.execute(LEVEL, (self._state,)).fetchall() == [(1,)], PATIENCE)

    def cut(self) -> None:
        """Let the standby miss all that the primary does from now on. Only one that is not synchronous can."""
        with closing(self.cluster.admin_at(self._spare)) as admin:
            admin.execute("ALTER SYSTEM SET primary_conninfo = ''")
            admin.execute("SELECT pg_reload_conf()")
            until(lambda: admin.execute(RECEIVERS).fetchall() == [(0,)], PATIENCE)

    def lose_standby(self) -> None:
        """Stop the standby. Commits that wait for it do not end."""
        self._stop_standby()

    def _stop_standby(self) -> None:
        assert self._data is not None, "there is no standby"
        if (self._data / "postmaster.pid").exists():
            self.cluster.run("pg_ctl", "stop", "-w", "-D", str(self._data), "-m", "immediate")

    def regain_standby(self) -> None:
        """Start the standby again, and wait until it has everything."""
        assert self._data is not None, "there is no standby"
        self.cluster.start_on(self._data, self._spare)
        self.wait_until_level()

    def cancel_waits(self) -> None:
        """Let the commits that wait for the standby end without it, as an impatient administrator does."""
        with closing(self.cluster.admin()) as admin:
            until(lambda: admin.execute(CANCEL).fetchall() != [], PATIENCE)

    def promote(self) -> None:
        """Make the standby the primary. Call it when the primary has stopped. Its files are lost."""
        assert self._data is not None, "there is no standby"
        lost = self.cluster.data
        self.cluster.data, self.cluster.port, self._spare = self._data, self._spare, self.cluster.port
        self._data = None
        self.cluster.run("pg_ctl", "promote", "-w", "-D", str(self.cluster.data))
        shutil.rmtree(lost)

    def replace_standby(self) -> None:
        """Add a new standby at the address of the lost primary."""
        self._add_standby()
        self.wait_until_level()

    def remove(self) -> None:
        """Stop both and remove their files."""
        if self._data is not None:
            self._stop_standby()
        self.cluster.remove()
