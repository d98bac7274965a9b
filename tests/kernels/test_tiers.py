"""Kernels run interpreted until they are compiled. tests/system/kernels compares the bits of every kernel."""

import itertools
import json
import math
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

from belated import FTRL, kernels, tunings
from belated.errors import InvalidInput
from belated.kernels import compiling, interpreting, keeping, native
from belated.kernels.background import Background


def bits(array: Any) -> tuple[Any, bytes]:
    return array.dtype, array.tobytes()


def plain(kernel: Any) -> Any:
    """The function that is compiled."""
    return kernel.function


def test_python_divides_by_zero_as_ieee_does() -> None:
    """All arms start so far out that their weights vanish, and 1 / 0 must be infinite, not an error."""
    start = np.zeros((kernels.ROWS, 3))
    start[kernels.LOSSES], start[kernels.V] = [0.0, 1.0, 2.0], kernels.V_MAX
    function, policies = plain(kernels.argmin), (start.copy(), start.copy())
    assert interpreting.call(function, (policies[0], 1.0, 0.5, 0)) == kernels.argmin(policies[1], 1.0, 0.5, 0)
    assert bits(policies[0]) == bits(policies[1])
    with pytest.raises(ZeroDivisionError):
        interpreting._prepared(function)(interpreting.copied(start), 1.0, 0.5, 0)


class Interrupted(Exception):
    """Raised from a signal handler, as KeyboardInterrupt is."""


def steps_until_interrupted(call: Callable[[], object], limit: float) -> int:
    """Interrupt a call before this step of the kernels' Python code. Returns how many steps there were."""
    steps = itertools.count(1)
    done = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal done
        frame.f_trace_opcodes = "/belated/kernels/" in frame.f_code.co_filename
        if event == "opcode":
            done = next(steps)
            if done == limit:
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        pass
    finally:
        sys.settrace(None)
    return done


@pytest.mark.parametrize("name", ["ask_next", "report"])
def test_an_interrupt_leaves_a_whole_number_of_calls(name: str) -> None:
    """Whatever line of an interpreted kernel it comes before. The last lines write the result, so each is tried."""
    learner: Any = FTRL(3, seed=0)
    learner.tell(learner.ask(), 0.5)
    learner.ask(size=3)
    bound = getattr(learner._state, name)
    rest = {"ask_next": (0.3,), "report": (3, 0.7)}[name]
    arrays = [value for value in bound.args if isinstance(value, np.ndarray)]
    before, ends, function = list(map(bits, arrays)), set[Any](), plain(getattr(kernels, name))

    def interrupted_at(limit: float) -> int:
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in bound.args]
        done = steps_until_interrupted(lambda: interpreting.call(function, (*copies, *rest)), limit)
        ends.add(tuple(bits(value) for value in copies if isinstance(value, np.ndarray)))
        return done

    interpreting._ready.clear()
    for limit in range(1, 300, 40):  # while it prepares the functions, which happens once
        interrupted_at(limit)
    interrupted_at(math.inf)
    steps = interrupted_at(math.inf)
    for limit in (*range(1, steps - 50, steps // 40), *range(steps - 50, steps)):
        assert interrupted_at(limit) == limit
    bound(*rest)
    assert ends == {tuple(before), tuple(map(bits, arrays))}


def background_of(monkeypatch: pytest.MonkeyPatch) -> Background:
    """From now on nothing is compiled, but for what the caller lets this one load."""
    own = Background()
    monkeypatch.setattr(own, "start", lambda: None)
    monkeypatch.setattr(compiling, "_background", own)
    monkeypatch.setattr(compiling, "_entry_points", {})
    monkeypatch.setitem(compiling._choice, "tier", "auto")
    return own


@pytest.mark.parametrize("tuning", [tunings.Means(), tunings.Shadow(), tunings.Tsallis(), tunings.Simple()], ids=repr)
def test_a_learner_switches_without_a_trace(tuning: tunings.Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: Any = FTRL(4, tuning, seed=1)
    for round in range(1, 61):
        compiled.tell(compiled.ask(), (round % 5) / 4)
    background = background_of(monkeypatch)
    learner: Any = FTRL(4, tuning, seed=1)
    for round in range(1, 61):
        learner.tell(learner.ask(), (round % 5) / 4)
        if round == 30:
            assert not isinstance(learner._state.report, partial)
            background.load_kept()
    assert isinstance(learner._state.report, partial)  # the compiled kernel itself, at no cost
    assert isinstance(learner._state.ask_next or learner._state.solve_and_decide, partial)
    assert json.dumps(learner.snapshot()) == json.dumps(compiled.snapshot())


def test_large_arrays_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    background_of(monkeypatch)
    monkeypatch.setattr(compiling, "LARGE", 1000)
    small: Any = FTRL(10, seed=1)
    large: Any = FTRL(100, seed=1)
    assert not isinstance(small._state.report, partial)
    assert isinstance(large._state.report, partial)


def test_without_numba_it_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    background_of(monkeypatch)
    monkeypatch.setattr(native, "is_installed", lambda: False)
    compiling.has_compiler.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"Decisions are slow. numba is missing. Install it with .*\[fast\]"):
            learner = FTRL(2, seed=0)
        learner.tell(learner.ask(), 0.5)  # a second warning would be an error
        with pytest.raises(InvalidInput, match="numba is missing"):
            compiling.use_tier("compiled")
    finally:
        compiling.has_compiler.cache_clear()


def test_who_disables_numba_s_compiler_gets_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    background_of(monkeypatch)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setitem(compiling._choice, "tier", "compiled")
    compiling.has_compiler.cache_clear()
    try:
        learner: Any = FTRL(2, seed=0)
        assert not isinstance(learner._state.report, partial)
    finally:
        compiling.has_compiler.cache_clear()


def test_of_two_threads_only_one_starts_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    background, begun, may_end, starts = Background(), threading.Event(), threading.Event(), list[int]()

    def start() -> None:
        starts.append(1)
        begun.set()
        may_end.wait(60)

    monkeypatch.setattr(background, "_start", start)
    background._wanted["a kernel"] = None  # type: ignore[assignment]
    first = threading.Thread(target=background.start)
    first.start()
    assert begun.wait(60)
    background.start()
    may_end.set()
    first.join()
    assert starts == [1]


def test_two_threads_get_the_same_object_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would have different names on disk, so one of them would be compiled again. Since Python 3.12."""
    made = list[object]()

    def make(_: object) -> object:
        made.append(object())
        time.sleep(0.05)
        return made[-1]

    monkeypatch.setattr(keeping, "dispatcher_of", make)
    kernel, found = compiling.Kernel(plain(kernels.exp), is_compiled_first=False), list[object]()
    threads = [threading.Thread(target=lambda: found.append(kernel.dispatcher)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == made * 2


def test_what_another_thread_has_loaded_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service loads what is kept, while the thread takes its list."""

    class Wanted(dict[Any, Any]):
        def pop(self, key: Any, *default: Any) -> Any:
            super().pop("loaded by another thread", None)
            return super().pop(key, *default)

    background, served = Background(), list[Any]()
    monkeypatch.setattr(background, "_wanted", Wanted({"mine": "mine", "loaded by another thread": "theirs"}))
    monkeypatch.setattr(background, "_serve", served.append)
    background._run()  # a warning that it gives up would be an error
    assert served == [["mine"]]
    assert not background._is_ending


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(InvalidInput, match="BELATED_KERNELS must be auto, compiled or interpreted, got 'fast'"):
        compiling.use_tier("fast")
