"""Kernels are compiled by a process in the background. Here in real processes, with an empty cache of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT = """
import sys, time
def wait_for(condition):
    deadline = time.monotonic() + 100
    while not condition():
        if time.monotonic() > deadline: sys.exit("too late")
        time.sleep(0.02)
"""
# One small kernel, which takes a second to compile.
COMPILE = (
    WAIT
    + """
from belated import kernels
from belated.kernels import compiling
kernel = kernels.penalty
first = kernel(3, 1.5, 2.5)
assert "numba" not in sys.modules
kernels.compile_soon()
"""
)


def run(code: str, cache: Path, **environment: str) -> list[str]:
    variables = {**os.environ, "BELATED_KERNELS": "auto", "NUMBA_CACHE_DIR": str(cache), **environment}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_another_process_compiles_and_this_one_switches(tmp_path: Path) -> None:
    finish = """
wait_for(lambda: compiling._entry_points)
assert kernel(3, 1.5, 2.5) == first and kernel._run is kernel.dispatcher
stats = kernel.dispatcher.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""
    hits, misses, folder = run(COMPILE + finish, tmp_path)
    assert (hits, misses) == ("1", "0")  # it came from the disk
    assert Path(folder).is_relative_to(tmp_path)
    assert run(COMPILE + finish, tmp_path)[:2] == ["1", "0"]  # the second time nobody compiles


def test_every_one_of_several_comes_from_the_other_process(tmp_path: Path) -> None:
    """Also two of one kernel, for arguments of different types. Their numbers must not shift while they arrive."""
    several = """
from belated import kernels
import numpy as np
ones = np.ones(4)
read_only = ones[:]
read_only.flags.writeable = False
kernels.penalty(3, 1.5, 2.5); kernels.penalty(3.0, 1.5, 2.5); kernels.exp(1.0)
kernels.draw(ones, ones, 0.5); kernels.draw(read_only, read_only, 0.5)
kernels.compile_soon()
"""
    finish = """
from belated.kernels import compiling
wait_for(lambda: not kernels.is_compiling())
stats = [kernel.dispatcher.stats for kernel in (kernels.penalty, kernels.exp, kernels.draw)]
print(*(sum(one.cache_hits.values()) for one in stats), *(sum(one.cache_misses.values()) for one in stats))
"""
    assert run(WAIT + several + finish, tmp_path) == ["2", "1", "2", "0", "0", "0"]


def test_it_compiles_itself_if_no_process_can_be_had(tmp_path: Path) -> None:
    finish = """
wait_for(lambda: compiling._entry_points)
print(kernel(3, 1.5, 2.5) == first, sum(kernel.dispatcher.stats.cache_misses.values()))
"""
    assert run(
        COMPILE.replace("kernels.compile_soon", "sys.executable = ''; kernels.compile_soon") + finish, tmp_path
    ) == [
        "True",
        "1",
    ]


# As on a file system that is read-only but for temporary files. Numba tries each folder with such a file.
READ_ONLY = """
import errno, tempfile
def TemporaryFile(*arguments, dir=None, made=tempfile.TemporaryFile, **options):
    if "belated-kernels-" in str(dir): return made(*arguments, dir=dir, **options)
    refuse()
def refuse(*arguments, **options): raise OSError(errno.EROFS, "Read-only file system")
tempfile.TemporaryFile = TemporaryFile
"""


def test_without_a_folder_to_keep_them_it_makes_one_and_removes_it(tmp_path: Path) -> None:
    """Numba finds none where neither the package, nor the home, nor NUMBA_CACHE_DIR can be written."""
    finish = """
wait_for(lambda: compiling._entry_points)
assert kernel(3, 1.5, 2.5) == first
print(kernel.dispatcher.stats.cache_path, *kernel.dispatcher.stats.cache_hits.values())
"""
    cache, places = tmp_path / "cache", tmp_path / "places"
    places.mkdir()
    folder, hits = run(READ_ONLY + COMPILE + finish, cache, TMPDIR=str(places))
    assert Path(folder).is_relative_to(places)
    assert hits == "1"  # a process has compiled it
    assert list(places.iterdir()) == []


@pytest.mark.parametrize("can_make_folders", [True, False])
def test_what_was_compiled_for_an_image_is_used_where_nothing_can_be_written(
    can_make_folders: bool, tmp_path: Path
) -> None:
    finish = """
wait_for(lambda: compiling._entry_points)
assert kernel(3, 1.5, 2.5) == first
print(sum(kernel.dispatcher.stats.cache_hits.values()), sum(kernel.dispatcher.stats.cache_misses.values()))
print(compiling._background._child)
"""
    run(COMPILE + finish, tmp_path)
    before = READ_ONLY if can_make_folders else f"{READ_ONLY}tempfile.mkdtemp = refuse"
    assert run(f"{before}\n{COMPILE}{finish}", tmp_path) == ["1", "0", "None"]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_file_that_was_cut_short_is_written_again(ending: str, tmp_path: Path) -> None:
    finish = "\nwait_for(lambda: compiling._entry_points)\nassert kernel(3, 1.5, 2.5) == first"
    run(COMPILE + finish, tmp_path)
    [file] = tmp_path.rglob(f"charges.penalty-*.{ending}")
    whole = file.stat().st_size
    file.write_bytes(file.read_bytes()[: whole // 2])
    run(COMPILE + finish, tmp_path)
    assert file.stat().st_size == whole


def test_damaged_machine_code_never_runs(tmp_path: Path) -> None:
    """A disk may return a block of zeros. Whoever ran that would be ended by a signal, or compute nonsense."""
    call = """
from belated import kernels
print(kernels.penalty(3, 1.5, 2.5), *kernels.penalty.dispatcher.stats.cache_hits.values())
"""
    result = run(call, tmp_path, BELATED_KERNELS="compiled")
    [file] = tmp_path.rglob("charges.penalty-*.nbc")
    whole, written = file.read_bytes(), file.stat()
    start = whole.index(b"\x7fELF") + 64  # the first instructions come after the header of the compiled code
    file.write_bytes(whole[:start] + bytes(512) + whole[start + 512 :])
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert run(call, tmp_path, BELATED_KERNELS="compiled") == result  # compiled, and written again
    assert run(call, tmp_path, BELATED_KERNELS="compiled") == [*result, "1"]


def test_if_its_process_is_killed_nothing_is_compiled_here(tmp_path: Path) -> None:
    """What has killed it might kill this process next, for instance because memory is short."""
    finish = """
wait_for(lambda: compiling._background._child)
compiling._background._child.kill()
wait_for(lambda: not kernels.is_compiling())
assert kernel(3, 1.5, 2.5) == first and not compiling._entry_points
kernels.compile_soon()
print(kernels.is_compiling())
"""
    catch = """
import warnings
warnings.showwarning = lambda message, *_: print(str(message).replace(" ", "_"))
"""
    said, again = run(catch + COMPILE + finish, tmp_path)
    assert said == "the_kernels_stay_interpreted._The_process_that_compiled_them_was_ended_by_signal_9"
    assert again == "False"


def test_a_program_with_flags_in_a_folder_with_strange_files(tmp_path: Path) -> None:
    """Its process needs the same byte code, and must not import what lies about. Nor may prints disturb it."""
    finish = """
wait_for(lambda: compiling._entry_points)
print(sum(kernel.dispatcher.stats.cache_hits.values()), sum(kernel.dispatcher.stats.cache_misses.values()))
"""
    for name in ("pickle", "os", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not yours')")
    noisy = {"NUMBA_DEBUG_CACHE": "1", "PYTHONWARNINGS": "error", "PYTHONINSPECT": "1"}
    variables = {**os.environ, "BELATED_KERNELS": "auto", "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **noisy}
    code = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n{COMPILE}{finish}"
    command = [sys.executable, "-P", "-OO", "-s", "-c", code]
    done = subprocess.run(  # noqa: S603
        command,
        cwd=tmp_path,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.stdout.splitlines()[-1] == "1 0", done.stdout + done.stderr


def test_warm_fails_if_nothing_can_be_kept(tmp_path: Path) -> None:
    code = f"""{READ_ONLY}
import runpy
runpy.run_module("belated.warming", run_name="__main__")
"""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert done.stderr == "error: no folder for the compiled kernels can be written. Name one in NUMBA_CACHE_DIR\n"


def test_a_fork_goes_on_by_itself(tmp_path: Path) -> None:
    """Whatever the thread of its parent was doing."""
    finish = """
import os
for pause in (0, 0.05, 0.2, 0.4):
    time.sleep(pause)
    pid = os.fork()
    if pid == 0:
        kernel(3, 1.5, 2.5)
        kernels.compile_soon()
        wait_for(lambda: compiling._entry_points)
        os._exit(7 if kernel(3, 1.5, 2.5) == first and kernel._run is kernel.dispatcher else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(COMPILE + finish, tmp_path) == ["7"] * 4


@pytest.mark.parametrize("after", [0.05, 0.3, 0.6, 1.0])
def test_a_program_may_end_at_any_time(after: float, tmp_path: Path) -> None:
    assert run(COMPILE + f"time.sleep({after}); print('end')", tmp_path) == ["end"]


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    """Even if that is killed. Then there is nobody left to use what it would compile."""
    code = (
        COMPILE
        + """
wait_for(lambda: compiling._background._child)
print(compiling._background._child.pid, flush=True)
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    variables = {**os.environ, "BELATED_KERNELS": "auto", "NUMBA_CACHE_DIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)  # noqa: S603
    child = int(killed.stdout)
    deadline = time.monotonic() + 30
    while (
        Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_text()
    ):  # empty: it is a zombie
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_short_program_never_loads_numba(tmp_path: Path) -> None:
    learner = "import belated, sys; learner = belated.FTRL(10); learner.tell(learner.ask(), 0.5); "
    assert run(f"{learner} print('numba' in sys.modules)", tmp_path) == ["False"]


def test_warm_fills_the_cache() -> None:
    """For a learner alone. `belated warm` does the same, and says where."""
    command = [sys.executable, "-m", "belated", "warm"]
    folder = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)  # noqa: S603
    assert done.stdout.startswith("The compiled kernels are in ")
    kept = Path(done.stdout.removeprefix("The compiled kernels are in ").strip())
    for name in ("rounds.ask_next", "rounds.solve_and_record_batch", "clock.report", "means_game.play_means_block"):
        assert list(kept.glob(f"{name}-*.nbi")), name
