"""Sweeps on Dask give the same bits as local ones, even if processes die on the way."""

import io
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from rich.console import Console

import belated
from belated import cli, lab, progress
from belated.errors import ClusterError, GameError, InvalidInput, UnfinishedWarning
from belated.lab.comparisons import dask_games, fingerprint
from belated.lab.comparisons.compare import compare
from belated.lab.comparisons.comparison import Comparison
from belated.lab.comparisons.sweep import Game
from tests.support import dask_clusters as processes
from tests.support.ports import free_port
from tests.support.sweeps import continues, files, same

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
SLOW = Comparison(("uniform", "qpm-d"), "wave", "fixed:d=20", arms=4, rounds=20_000, seeds=3)


@pytest.fixture(scope="module", autouse=True)
def silent_dask() -> Iterator[None]:
    """Dask logs to the stderr of the test that imported it, which is closed later. Nobody reads these logs."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado", "bokeh")]
    before = [logger.handlers for logger in loggers]
    for logger in loggers:
        logger.handlers = [logging.NullHandler()]
    yield
    for logger, handlers in zip(loggers, before, strict=True):
        logger.handlers = handlers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers, each a process."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=60) as local:
        yield local


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster) as connected:
        yield connected


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Any]:
    """Two workers that are replaced when they die. The scheduler blames every task of a worker for its first death."""
    blame_at_once = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with (
        processes.scheduler(tmp_path, **blame_at_once) as address,
        processes.crew(address, tmp_path, 2),
        Client(address) as connected,
    ):
        yield connected


def test_every_algorithm_gives_the_same_bits(client: Any) -> None:
    for losses, delays in (("sine", "pareto"), ("bernoulli:gap=0.3", "fixed:d=7")):
        comparison = Comparison(losses=losses, delays=delays, arms=3, rounds=300, seeds=2)
        assert same(compare(comparison, client=client), compare(comparison, workers=2))


def test_a_grid_gives_the_same_table(client: Any, tmp_path: Path) -> None:
    grid: dict[str, Any] = {
        "losses": "bernoulli:gap={gap}",
        "gap": [0.1, 0.3],
        "delays": ["none", "fixed:d=9"],
        "arms": [2, 3],
    }
    grid |= {"algorithms": ["means", "bold"], "rounds": 200, "seeds": 2}
    there = lab.sweep(grid, client=client, folder=tmp_path)
    assert there.tidy().drop("seconds").equals(lab.sweep(grid).tidy().drop("seconds"))
    messages: list[str] = []
    lab.sweep(grid, client=client, folder=tmp_path, tell=messages.append)
    assert messages == [f"32 of 32 games were in {tmp_path} already"]


def test_objects_of_my_own_are_played_too(client: Any) -> None:
    class Steps(lab.Losses):
        def __init__(self, high: float) -> None:
            self.high = high

        def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
            yield np.tile(np.linspace(0, self.high, n_arms), (n_rounds, 1))

    scale = 0.25
    own = lab.Algorithm("zs20-simple", "-", "-", "nothing", "-", lambda _: belated.tunings.Simple(scale=scale))
    comparison = Comparison((own, "tsallis-inf"), Steps(0.5), lab.Lost(0.5, 3), arms=3, rounds=300, seeds=2)
    assert same(compare(comparison, client=client), compare(comparison))


def test_large_problems_travel_without_a_warning(client: Any) -> None:
    losses = lab.GivenLosses(np.random.default_rng(1).random((150_000, 10)))  # 12 MB
    comparison = Comparison(("shadow",), losses, "none", rounds=200, seeds=2)
    assert same(compare(comparison, client=client), compare(comparison))


def test_workers_need_no_files(tmp_path: Path, monkeypatch: Any) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    np.save("losses.npy", np.random.default_rng(1).random((400, 3)))
    Path("delays.csv").write_text("delay\n" + "\n".join(map(str, range(50))) + "\n")
    algorithms = ("shadow", "zs20-discard", "bold")
    comparison = Comparison(algorithms, "losses.npy", "permuted:delays.csv", arms=3, rounds=400, seeds=2)
    with processes.scheduler(there) as address, processes.worker(address, there), Client(address) as client:
        assert same(compare(comparison, client=client), compare(comparison))
        assert list(client.run(os.getcwd).values()) == [str(there)]


def test_workers_that_die_lose_nothing_but_time(strict: Any, tmp_path: Path) -> None:
    here, enough, pids = os.getpid(), tmp_path / "enough", tmp_path / "pids"
    pids.mkdir()

    def announced(_: Any) -> Any:
        if os.getpid() != here:
            (pids / str(os.getpid())).touch()
            while not enough.exists():
                time.sleep(0.01)
        return belated.tunings.Simple()

    def kill_players() -> None:
        killed: set[str] = set()
        while len(killed) < 4:
            for pid in {path.name for path in pids.iterdir()} - killed:
                os.kill(int(pid), signal.SIGKILL)
                killed.add(pid)
            time.sleep(0.01)
        enough.touch()

    slow = lab.Algorithm("slow", "-", "-", "nothing", "-", announced)
    comparison = Comparison((slow, "bold"), "wave", "fixed:d=20", arms=4, rounds=2000, seeds=3)
    thread = threading.Thread(target=kill_players, daemon=True)
    thread.start()
    results = compare(comparison, client=strict)
    thread.join()
    assert same(results, compare(comparison, workers=2))


def test_a_game_that_kills_its_workers_is_named(strict: Any, tmp_path: Path) -> None:
    here = os.getpid()

    def crash(setting: Any) -> Any:
        if setting.seed == 1 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return belated.tunings.Simple()

    crashing = lab.Algorithm("crashing", "-", "-", "nothing", "-", crash, fingerprint="1")
    comparison = Comparison(("zs20-simple", crashing), rounds=100, seeds=2)
    with pytest.raises(
        ClusterError, match=r"5 workers died while they were busy with crashing, seed 1\. See their logs"
    ):
        compare(comparison, client=strict, folder=tmp_path)
    assert same(compare(comparison, folder=tmp_path), compare(comparison))  # with the games that were finished


def test_an_error_in_a_game_is_the_same_as_here(client: Any) -> None:
    def broken(setting: Any) -> Any:
        raise ZeroDivisionError(f"seed {setting.seed}")

    for wrong, error in (
        (lab.Algorithm("broken", "-", "-", "nothing", "-", broken), GameError),
        (lab.Algorithm("improper", "-", "-", "nothing", "-", lambda _: belated.tunings.Exp3(-1)), InvalidInput),
    ):
        comparison = Comparison((wrong,), rounds=100, seeds=1)
        with pytest.raises(error) as there:
            compare(comparison, client=client)
        with pytest.raises(error) as local:
            compare(comparison)
        assert str(there.value) == str(local.value)


def test_a_learner_in_a_file_plays_where_the_file_is_not(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from belated import FTRL, tunings\n\n\n"
        "def mine(n_arms, seed, scale: float = 1.0):\n    return FTRL(n_arms, tunings.Simple(scale), seed=seed)\n"
    )
    comparison = Comparison([f"{path}:mine:scale=2", belated.tunings.Simple(scale=2)], rounds=300, seeds=3)
    path.unlink()  # the workers could read it too
    results = compare(comparison, client=client)
    np.testing.assert_array_equal(results.rows[0].curves.expected, results.rows[1].curves.expected)
    assert same(results, compare(comparison))


def test_a_module_that_workers_do_not_have_is_named(client: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "not_there.py").write_text("from belated import FTRL\n\n\nclass Mine(FTRL):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = import_module("not_there")
    with pytest.raises(ClusterError, match="needs the module not_there, which a worker does not have"):
        compare(Comparison([module.Mine], rounds=100, seeds=1), client=client)
    lock = threading.Lock()
    with pytest.raises(ClusterError, match=r"mine cannot be sent to the workers .* Name it by its file"):
        compare(Comparison([lab.named("mine", lambda *_: lock)], rounds=100, seeds=1), client=client)


def test_a_client_that_is_killed_continues(cluster: Any, tmp_path: Path) -> None:
    settings = ["--algorithms", "uniform,qpm-d", "--rounds", "12000", "--seeds", "6"]
    continues([*settings, "--dask", cluster.scheduler_address], tmp_path, 12)


# The interrupt may hit between opening and closing a file. Python then closes it and warns.
@pytest.mark.filterwarnings("ignore:Exception ignored .*<_io.FileIO:pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_keeps_what_is_finished(client: Any, tmp_path: Path) -> None:
    compare(replace(SLOW, algorithms=("uniform",)), client=client, folder=tmp_path)
    assert len(files(tmp_path)) == SLOW.seeds

    def interrupt() -> None:
        while len(files(tmp_path)) == SLOW.seeds:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.warns(UnfinishedWarning, match="interrupted"):
        rows = compare(SLOW, client=client, folder=tmp_path).rows
    assert [row.algorithm.name for row in rows] == ["uniform"]
    assert SLOW.seeds < len(files(tmp_path)) < 2 * SLOW.seeds
    assert same(compare(SLOW, client=client, folder=tmp_path), compare(SLOW, workers=2))


def test_progress_counts_games_and_rounds(client: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER", -1.0)
    screen = io.StringIO()
    problem = lab.Problem(lab.Wave(), lab.Fixed(3), 3, 200)
    algorithm = lab.find("uniform")
    with progress.Progress("games", 1000, Console(file=screen, force_terminal=True, width=80)) as bar:
        run = dask_games.on_dask(client, print)
        games = {Game(0, "uniform", seed): algorithm for seed in range(4)}
        run(games, [problem], lambda game, _: bar.advance(0, f"seed {game.seed}"), bar)
    assert "80%" in screen.getvalue()
    assert "seed 3" in screen.getvalue()


def fails(capsys: Any, monkeypatch: Any, *arguments: str) -> str:
    """Run the command and return its error message. There must be no traceback."""
    monkeypatch.setattr("sys.argv", ["belated", "compare", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return str(error)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:{port}", "127.0.0.1:{port}", "nowhere", "http://127.0.0.1:{port}"]
)
def test_an_address_that_nobody_answers(address: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(dask_games, "CONNECT_TIMEOUT", 1)
    address = address.format(port=free_port())
    error = fails(capsys, monkeypatch, "--rounds", "100", "--dask", address, "--out", str(tmp_path / "out"))
    assert f"no Dask scheduler answers at '{address}'" in error
    assert "Start one with `dask scheduler`" in error
    assert not (tmp_path / "out").exists()


def test_a_missing_library_is_told(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    error = fails(capsys, monkeypatch, "--rounds", "100", "--dask", "local")
    assert f"distributed is missing. Install it with `pip install -e '{ROOT}[dask]'`." in error


def copy_of_belated(folder: Path, version: str) -> str:
    """A folder with another version of Belated."""
    shutil.copytree(ROOT / "src" / "belated", folder / "belated", ignore=shutil.ignore_patterns("__pycache__"))
    init = folder / "belated" / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{belated.__version__}"', f'__version__ = "{version}"'))
    return str(folder)


def no_belated(folder: Path) -> str:
    """A folder that hides Belated."""
    (folder / "belated").mkdir(parents=True)
    (folder / "belated" / "__init__.py").write_text("raise ModuleNotFoundError('no belated here', name='belated')\n")
    return str(folder)


def test_workers_that_would_not_give_the_same_bits_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    small = Comparison(("dew",), rounds=50, seeds=1)
    other, nothing = copy_of_belated(tmp_path / "other", "9.9.9"), no_belated(tmp_path / "nothing")
    with processes.scheduler(tmp_path) as address, Client(address) as client:
        for path, message in (
            (
                other,
                r"worker at tcp://.* would not give the same bits \(belated 9.9.9 \(\w+\) there, 0.1.0 \(\w+\) here\)",
            ),
            (nothing, r"the worker at tcp://.* cannot load Belated \(.*no belated here"),
        ):
            messages: list[str] = []
            with processes.worker(address, tmp_path, PYTHONPATH=path), pytest.raises(ClusterError, match=message):
                compare(small, client=client, tell=messages.append)  # the worker is still starting
            assert messages == [f"No worker has joined {address} yet. Waiting for one."]
            while client.run(os.getpid):  # until the scheduler notices that it is gone
                time.sleep(0.05)
        monkeypatch.setattr(dask_games, "_check", lambda *_: None)  # as if it joined after the check
        with (
            processes.worker(address, tmp_path, PYTHONPATH=other),
            pytest.raises(ClusterError, match="the worker would"),
        ):
            compare(small, client=client)


def test_a_scheduler_without_belated_is_refused(tmp_path: Path) -> None:
    with (
        processes.scheduler(tmp_path, PYTHONPATH=no_belated(tmp_path / "nothing")) as address,
        Client(address) as client,
        pytest.raises(ClusterError, match=r"Dask's scheduler cannot load Belated \(.*no belated here"),
    ):
        compare(Comparison(("dew",), rounds=50, seeds=1), client=client)


def test_a_scheduler_that_dies_is_told(tmp_path: Path) -> None:
    def die() -> None:
        while not (tmp_path / "games").exists():
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)

    with (
        processes.scheduler(tmp_path) as address,
        Client(address, timeout=2) as client,
        processes.worker(address, tmp_path),
    ):
        pid = client.run_on_scheduler(os.getpid)
        threading.Thread(target=die).start()
        with pytest.raises(ClusterError, match="scheduler is gone"):
            compare(Comparison(("skipper",), rounds=10_000, seeds=40), client=client, folder=tmp_path)


def test_a_processor_that_computes_other_bits_has_another_environment() -> None:
    """NumPy's logarithms differ in the last bit with and without AVX-512."""
    features = import_module("numpy._core._multiarray_umath").__cpu_features__
    if not features.get("X86_V4"):
        pytest.skip("this processor has no AVX-512 to disable")
    code = "from belated.lab.comparisons.fingerprint import environment; print(environment()['arithmetic'])"
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": "X86_V4"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)  # noqa: S603
    assert done.stdout.strip() != fingerprint.environment()["arithmetic"]
