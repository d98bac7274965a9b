"""Games on Dask's workers. They give the same bits as games played here, even if workers die."""

import logging
import signal
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from belated.errors import ClusterError, InvalidInput
from belated.extras import needs
from belated.lab.algorithms import BY_NAME, Algorithm, find
from belated.lab.comparisons.fingerprint import environment
from belated.lab.comparisons.finished_games import FinishedGame
from belated.lab.comparisons.sweep import Finish, Game, Games, Problems, Run, play_whole
from belated.lab.problems.problem import Problem
from belated.progress import Progress
from belated.validation import whole_number

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_TIMEOUT = 10  # seconds for a scheduler to answer. A starting one may need a few
ATTEMPTS = 5  # how often Dask may blame a task for more than `allowed-failures` dead workers
SMALL = 100_000  # bytes of a problem that goes with each game


def connect(address: str, workers: int) -> "Client":
    """A client of the scheduler at an address, or of `workers` processes of our own if the address is `local`."""
    with needs("dask"):
        from distributed import Client  # noqa: PLC0415  (only sweeps on Dask need it)

    whole_number("workers", workers, 1)
    if address == "local":
        quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
        client = Client(n_workers=workers, threads_per_worker=1, **quiet)
        client.run(_ignore_interrupts)
        return client
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we report a lost scheduler ourselves
    try:
        return Client(address, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}. Start one with `dask scheduler` and give the address that it "
            f"prints, such as tcp://10.0.0.1:8786 ({error})"
        ) from error


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal. Only the client handles it, and then stops the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def on_dask(client: "Client", tell: Callable[[str], None]) -> Run:
    """Games on the workers of a Dask client."""
    if not hasattr(client, "run_on_scheduler"):
        hint = "Client('tcp://10.0.0.1:8786') of the package distributed"
        raise InvalidInput(f"client must be a Dask client, such as {hint}, got {client!r:.200}")

    def run(games: Games, problems: Problems, finish: Finish, progress: Progress) -> None:
        if games:
            _check(client, tell)
            _play_all(client, games, problems, finish, progress)

    return run


def _play_there(algorithm: str | bytes, seed: int, problem: Problem, wanted: Mapping[str, str]) -> FinishedGame:
    """Play one game on a worker. Workers may join at any time, so each checks that it computes the same bits."""
    _agree(wanted, environment(), "the worker")
    from distributed.protocol import pickle  # noqa: PLC0415

    return play_whole(find(algorithm) if isinstance(algorithm, str) else pickle.loads(algorithm), problem, seed)


def _agree(wanted: Mapping[str, str], found: Any, where: str) -> None:
    if isinstance(found, Exception):
        raise ClusterError(f"{where} cannot load Belated ({found}). Install Belated {wanted['belated']} there")
    other = [name for name in wanted if found.get(name) != wanted[name]]
    if other:
        differences = "; ".join(f"{name} {found.get(name)} there, {wanted[name]} here" for name in other)
        fix = "Set NPY_DISABLE_CPU_FEATURES on both sides" if other == ["arithmetic"] else "Install the same there"
        raise ClusterError(f"{where} would not give the same bits ({differences}). {fix} (docs/sweeps.md)")


def _check(client: "Client", tell: Callable[[str], None]) -> None:
    """Refuse a cluster that would not give the same bits, before any work."""
    try:
        client.run_on_scheduler(environment)  # it computes nothing, but must load what it passes on
    except ImportError as error:
        _agree(environment(), error, "Dask's scheduler")
    found = client.run(environment, on_error="return")
    if not found:
        tell(f"No worker has joined {client.scheduler.address} yet. Waiting for one.")
    while not found:
        time.sleep(0.2)
        found = client.run(environment, on_error="return")
    for address, theirs in found.items():
        if not isinstance(theirs, OSError):  # it has just left
            _agree(environment(), theirs, f"the worker at {address}")


def _play_all(client: "Client", games: Games, problems: Problems, finish: Finish, progress: Progress) -> None:
    from distributed import KilledWorker, as_completed  # noqa: PLC0415

    data = {number: _send(client, problems[number]) for number in {game.comparison for game in games}}
    waiting = _submit(client, games, data)
    blamed: Counter[str] = Counter()
    completed = as_completed(list(waiting), client.loop)
    try:
        for future in completed:
            outcome = _outcome(client, future)
            if outcome is None:
                completed.add(future)
                continue
            game = waiting.pop(future)
            if isinstance(outcome, FinishedGame):
                finish(game, outcome)
                progress.advance(problems[game.comparison].n_rounds)
                continue
            if isinstance(outcome, ModuleNotFoundError):
                raise ClusterError(
                    f"{game.algorithm} needs the module {outcome.name}, which a worker does not have. Install it "
                    "there, send it with client.upload_file, or name the algorithm by its file, as in mine.py:MyLearner"
                ) from outcome
            if not isinstance(outcome, KilledWorker):
                raise outcome
            if outcome.task == future.key:
                _blame(blamed, f"{game.algorithm}, seed {game.seed}", outcome)
            elif outcome.task == getattr(data[game.comparison], "key", None):
                _blame(blamed, "the problem", outcome)
                data[game.comparison] = _send(client, problems[game.comparison])
            again = _submit(client, {game: games[game]}, data)
            waiting |= again
            completed.update(again)
    finally:
        if waiting and client.status == "running":
            client.cancel(list(waiting))


def _send(client: "Client", problem: Problem) -> "Future | Problem":
    """Send the problem, with its files. A small one goes with each game, a large one is the result of a task.

    If all workers that hold it die, Dask runs the task again. Scattered data would be lost. But a worker that gets it
    from another one, which dies meanwhile, may wait without an end. So this is for large problems only.
    """
    from dask import config  # noqa: PLC0415
    from distributed.protocol import pickle  # noqa: PLC0415

    if len(pickle.dumps(problem)) <= SMALL:
        return problem
    with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # the problem may be large
        return client.submit(_same, problem, pure=False)


def _same(problem: Problem) -> Problem:
    return problem


def _submit(client: "Client", games: Games, data: "Mapping[int, Future | Problem]") -> "dict[Future, Game]":
    """Submit a task for each game."""
    different = {game[:2]: algorithm for game, algorithm in games.items()}
    players = {(number, name): _packed(name, algorithm) for (number, name), algorithm in different.items()}
    tasks: dict[Future, Game] = {}
    for number in dict.fromkeys(game.comparison for game in games):
        mine = [game for game in games if game.comparison == number]
        shared = {"problem": data[number], "wanted": dict(environment())}
        sent = [players[game[:2]] for game in mine], [game.seed for game in mine]
        futures = client.map(_play_there, *sent, **shared, pure=False)
        tasks |= dict(zip(futures, mine, strict=True))
    return tasks


def _packed(name: str, algorithm: Algorithm) -> str | bytes:
    """What stands for an algorithm in a message. One of the table is sent as its name.

    Others are sent as bytes that the game itself unpacks. A worker that cannot unpack a message hangs.
    """
    from distributed.protocol import pickle  # noqa: PLC0415

    if BY_NAME.get(name) is algorithm:
        return name
    try:
        return bytes(pickle.dumps(algorithm))
    except Exception as error:
        raise ClusterError(
            f"{name} cannot be sent to the workers ({type(error).__name__}: {error}). Name it by its file, as in "
            "mine.py:MyLearner"
        ) from error


def _outcome(client: "Client", future: "Future[Any]") -> FinishedGame | BaseException | None:
    """A finished game, or its error, or None if its worker died with the result and it is played again.

    In the last case Dask's `as_completed(with_results=True)` would wait for ever if the game then failed.
    """
    try:
        played: FinishedGame = future.result(timeout=CONNECT_TIMEOUT)
    except (Exception, CancelledError):  # noqa: BLE001  (a game may raise anything)
        if future.status == "error":
            error: BaseException = future.exception()
            return error.with_traceback(future.traceback())
        if client.status != "running" or future.cancelled():
            return ClusterError("Dask's scheduler is gone or has dropped the games. Start it and run this again")
        return None
    return played


def _blame(blamed: Counter[str], what: str, error: Any) -> None:
    """Count the times that workers died with a task. A few may be chance, but not ATTEMPTS."""
    blamed[what] += 1
    if blamed[what] == ATTEMPTS:
        raise ClusterError(
            f"{ATTEMPTS * (error.allowed_failures + 1)} workers died while they were busy with {what}. See their logs. "
            "Too little memory is a common cause (`dask worker --memory-limit`)"
        ) from error
