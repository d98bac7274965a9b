"""The commands `belated serve`, `belated keys` and `belated verify`."""

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belated.cli.application import app, console
from belated.errors import InvalidInput
from belated.extras import missing
from belated.progress import Progress

if TYPE_CHECKING:
    from belated.serve.process.run import Announce
    from belated.serve.store.journal import Journal, Key

STORE = "belated.db"


def checked_name(context: typer.Context, store: str) -> str:
    """Refuse an empty name. It is a mistake, and must not create a new file beside the right one."""
    source = context.get_parameter_source("store")
    is_default = source is not None and source.name == "DEFAULT"  # Typer says so for an empty variable, too
    if not store or (is_default and "BELATED_STORE" in os.environ):
        raise InvalidInput("the store has an empty name. Set --store or BELATED_STORE, or unset the variable")
    return store


Store = Annotated[
    str,
    typer.Option(
        envvar="BELATED_STORE",
        help="The journal. A SQLite file, or a postgresql:// URL.",
        show_default=STORE,
        callback=checked_name,
    ),
]
keys = typer.Typer(no_args_is_help=True, help="Manage the keys of the service.")
app.add_typer(keys, name="keys")


def require_extra() -> None:
    """Say what to install if the service's libraries are missing."""
    try:
        import apsw  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput(missing(error.name, "serve")) from None


def is_missing(store: str) -> bool:
    """Whether the store is a file that does not exist. A missing database shows when it is opened."""
    from belated.serve.store.opening import is_url  # noqa: PLC0415

    return not is_url(store) and not Path(store).exists()


def existing(store: str) -> "Journal":
    """Open the journal of a store that must exist."""
    require_extra()
    from belated.serve.store.opening import open_journal  # noqa: PLC0415

    if is_missing(store):
        raise InvalidInput(f"there is no store {store}. `belated serve` makes one, or name another with --store")
    return open_journal(store)


def curl_lines(url: str, is_locked: bool) -> list[str]:
    """Shell commands that create an experiment and ask for a decision. They work more than once."""
    post = "curl -X POST" + (' -H "Authorization: Bearer $BELATED_KEY"' if is_locked else "")
    body = '{"name": "layout", "arms": ["blue", "green", "red"]}'
    return [
        f"{post} {url}/v1/experiments -H 'Content-Type: application/json' -d '{body}'",
        f"{post} {url}/v1/experiments/layout/decisions",
    ]


def announce(url: str, is_locked: bool) -> None:
    """Print the address, and commands to try."""
    console.print(f"Belated is ready: {url}  (API docs: {url}/docs)\n", soft_wrap=True, highlight=False)
    if is_locked:
        hint = "This service needs a key. Put it into BELATED_KEY first (export BELATED_KEY=blt_...).\n"
        console.print(hint, soft_wrap=True, highlight=False)
    for line in curl_lines(url, is_locked):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    console.print("\nStop it with Ctrl-C. Every answered request is on disk.", highlight=False)


def prepare_demo() -> "tuple[Key, Announce]":
    """Return an internal key for the simulated users, and a function that starts them at an address."""
    from belated.client import Client  # noqa: PLC0415
    from belated.serve.process.demo import NAME, Demo  # noqa: PLC0415
    from belated.serve.service import keys as service_keys  # noqa: PLC0415

    key, secret = service_keys.new("admin", NAME)

    def start_users(url: str, _is_locked: bool) -> None:
        Demo(Client(url, key=secret)).start()

    return key, start_users


@app.command()
def serve(
    store: Store = STORE,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Any other than loopback needs keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on. 0 picks a free one.")] = 8321,
    demo: Annotated[
        bool, typer.Option("--demo", help="Add an experiment with simulated users who report late.")
    ] = False,
    queue: Annotated[
        int,
        typer.Option(min=10_000, help="Decisions and reports that may wait for the disk. More get 503."),
    ] = 100_000,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes that serve at this port.")] = 1,
) -> None:
    """Serve decisions over HTTP, durably and exactly once, with a dashboard."""
    require_extra()
    from belated.serve.process import json_logs, run  # noqa: PLC0415
    from belated.serve.process import workers as processes  # noqa: PLC0415

    json_logs.start(access=access_log)
    key, start_users = prepare_demo()
    plan = run.Plan(store, host, port, queue, access_log, (key,) if demo else ())
    processes.serve(plan, workers, announce, [start_users] if demo else [])


@keys.command("create")
def create_key(
    scope: Annotated[str, typer.Option(help="decide, report or admin. admin may do everything.")],
    experiment: Annotated[str | None, typer.Option(help="Only for this experiment.")] = None,
    store: Store = STORE,
) -> None:
    """Make a key and show it once. The store keeps only its hash."""
    require_extra()
    from belated.serve.service import keys as service_keys  # noqa: PLC0415
    from belated.serve.store.opening import open_journal, shown  # noqa: PLC0415

    notes = " The store is new. `belated serve --store` must name the same." if is_missing(store) else ""
    with closing(open_journal(store)) as journal:
        key = service_keys.create(journal, scope, experiment)
        if experiment is not None and journal.named(experiment) is None:
            notes += f" There is no experiment {experiment!r} yet."
    hint = f"A key for the store {shown(store)}.{notes} It is shown only once."
    Console(stderr=True).print(hint, soft_wrap=True, highlight=False)
    console.print(key, soft_wrap=True, highlight=False)


@keys.command("list")
def list_keys(store: Store = STORE) -> None:
    """Show the keys, without their secrets."""
    from belated.serve.domain.clock import MICROSECONDS  # noqa: PLC0415

    table = Table("id", "scope", "experiment", "created", "revoked")
    with closing(existing(store)) as journal:
        known = journal.keys()
    for key in known:
        times = [
            "" if at is None else datetime.fromtimestamp(at / MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (key.created_at, key.revoked_at)
        ]
        table.add_row(key.id, key.scope, Text(key.experiment or "all"), *times)
    console.print(table)


@keys.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="The id of the key, which is its part between the underscores.")],
    store: Store = STORE,
) -> None:
    """Refuse a key from now on."""
    from belated.serve.domain import clock  # noqa: PLC0415

    with closing(existing(store)) as journal:
        is_revoked = journal.revoke_key(id, clock.now())
    if not is_revoked:
        raise InvalidInput(f"there is no key {id!r}, or it is revoked already. `belated keys list` shows all")
    console.print(f"revoked {id}. A running service refuses it within a second", highlight=False)


@app.command()
def verify(store: Store = STORE) -> None:
    """Rebuild the state from the journal and compare it bit for bit with what was saved. Exit code 1 if they differ."""
    require_extra()
    from belated.serve.store import verify as verification  # noqa: PLC0415

    with closing(existing(store)) as journal, Progress("folding", journal.last()) as progress:
        verdict = verification.verify(journal, progress.reach)
    for problem in verdict.problems:
        console.print(Text(problem, "bold red"), soft_wrap=True)
    console.print(
        f"{verdict.entries:,} entries, {verdict.decisions:,} decisions, {verdict.snapshots} snapshots compared: "
        + ("DIFFERENT" if verdict.problems else "the same, bit for bit"),
        highlight=False,
    )
    if verdict.unchecked:
        note = f"{verdict.unchecked:,} decisions were drawn from states that are too old to check their probabilities"
        console.print(note, soft_wrap=True, highlight=False)
    if verdict.problems:
        raise typer.Exit(1)
