"""The command `belated serve`."""

from typing import TYPE_CHECKING, Annotated

import typer

from belated.cli.application import app, console
from belated.cli.durations import DAY, seconds
from belated.cli.store_option import STORE, Store, require_extra

if TYPE_CHECKING:
    from belated.serve.process.run import Announce
    from belated.serve.store.journal import Key


def curl_lines(url: str, is_locked: bool) -> list[str]:
    """Shell commands that create an experiment and ask for a decision. They work more than once."""
    post = "curl -X POST" + (' -H "Authorization: Bearer $BELATED_KEY"' if is_locked else "")
    body = '{"name": "page", "arms": ["blue", "green", "red"], "reward_wait": 86400, "default_outcome": 0}'
    return [
        f"{post} {url}/v1/experiments -H 'Content-Type: application/json' -d '{body}'",
        f"{post} {url}/v1/experiments/page/decisions",
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
    max_open: Annotated[
        int,
        typer.Option(
            min=1, envvar="BELATED_MAX_OPEN", help="Open decisions of an experiment. Asking for more gets 429."
        ),
    ] = 1_000_000,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, envvar="BELATED_RATE", help="Decisions and reports a second, for each key. More get 429."
        ),
    ] = None,
    experiment_rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, envvar="BELATED_EXPERIMENT_RATE", help="Decisions a second, for each experiment. More get 429."
        ),
    ] = None,
    key_lifetime: Annotated[
        str,
        typer.Option(
            envvar="BELATED_KEY_LIFETIME",
            help="How long an Idempotency-Key gets the same decisions, at least. One day or more.",
        ),
    ] = "30d",
    max_total_arms: Annotated[
        int,
        typer.Option(
            min=1,
            envvar="BELATED_MAX_TOTAL_ARMS",
            help="Arms of all experiments, also retired ones. Each counts as ten or more, and again after 25 changes "
            "of arms. More get 429.",
        ),
    ] = 200_000,
    connections: Annotated[
        int, typer.Option(min=1, help="Connections that a process may have. More end the one that is idle longest.")
    ] = 1_000,
    no_create: Annotated[
        bool, typer.Option("--no-create", help="Do not start if the SQLite file is missing. Else it is created.")
    ] = False,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes that serve at this port.")] = 1,
) -> None:
    """Serve decisions over HTTP, durably and exactly once, with a dashboard."""
    require_extra()
    from belated.serve.domain.quotas import Quotas  # noqa: PLC0415
    from belated.serve.process import logs, run  # noqa: PLC0415
    from belated.serve.process import workers as processes  # noqa: PLC0415
    from belated.serve.process.connections import Limits  # noqa: PLC0415

    lifetime = seconds("--key-lifetime", key_lifetime, DAY)
    logs.start(access=access_log)
    key, start_users = prepare_demo()
    limits = Limits(connections=connections)
    quotas = Quotas(max_open, rate, experiment_rate, lifetime, max_total_arms)
    internal = (key,) if demo else ()
    plan = run.Plan(store, host, port, queue, access_log, internal, limits, quotas, may_create=not no_create)
    processes.serve(plan, workers, announce, [start_users] if demo else [])
