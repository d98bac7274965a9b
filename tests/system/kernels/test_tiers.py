"""Interpreted and compiled kernels give the same bits."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL, kernels, lab, tunings
from belated.kernels import compiling, interpreting
from belated.kernels.clock import CLOCK, LEDGER
from belated.kernels.compiling import Kernel
from belated.kernels.interpreting import Row, Table, Vector
from belated.kernels.means import MEANS
from belated.kernels.shadow import SHADOW
from belated.learner.mixing import Mix
from belated.paper import Effort, saboteurs
from belated.replicated.shared_learner import SharedLearner

RECORDS = {tuple(dtype.names or ()): dtype for dtype in (CLOCK, LEDGER, MEANS, SHADOW)}
CHECKED, EVERY = 25, 29  # the first calls of each kernel are checked, and then one of so many


def all_kernels() -> dict[Any, Kernel]:
    """All kernels by their functions: those of the package `kernels`, and one that is wrong on purpose."""
    files = Path(kernels.__file__).parent.glob("*.py")
    modules = [import_module(f"belated.kernels.{file.stem}") for file in files if file.stem != "__init__"]
    found = [value for module in (*modules, saboteurs) for value in vars(module).values() if isinstance(value, Kernel)]
    return {kernel.function: kernel for kernel in found}


def as_numpy(copy: Any) -> Any:
    """What a compiled kernel takes in place of an interpreted kernel's own copy."""
    if isinstance(copy, Row):
        record = np.zeros(1, RECORDS[tuple(vars(copy))])
        record[0] = interpreting._fields(copy)
        return record[0]
    if isinstance(copy, Vector):
        return np.array(copy, copy.dtype)
    if isinstance(copy, Table):
        array = copy.array.copy()
        for key, row in copy._rows.items():
            array[key] = as_numpy(row)
        return array
    return copy


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype, value.tobytes()
    return type(value), np.array(value).tobytes()


@contextmanager
def every_call_compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Interpret, and give what goes into a kernel to its compiled twin too. Counts the calls."""
    owners, with_names, counts = all_kernels(), interpreting.with_names, Counter[str]()

    def compared(function: Any, names: dict[str, Any]) -> Callable[..., Any]:
        run = with_names(function, names)
        if function not in owners:  # it reads bits, and is an instruction when it is compiled
            return run
        kernel = owners[function]

        def both(*arguments: Any) -> Any:
            counts[kernel.function.__name__] += 1
            if counts[kernel.function.__name__] > CHECKED and counts[kernel.function.__name__] % EVERY:
                return run(*arguments)
            theirs = tuple(map(as_numpy, arguments))
            result, twins = run(*arguments), kernel.dispatcher(*theirs)
            assert bits(as_numpy(interpreting._as_result(result))) == bits(twins), kernel.function.__name__
            assert list(map(bits, map(as_numpy, arguments))) == list(map(bits, theirs)), kernel.function.__name__
            return result

        return both

    with monkeypatch.context() as patch:
        patch.setattr(interpreting, "_ready", {})
        patch.setattr(interpreting, "with_names", compared)
        patch.setitem(compiling._choice, "tier", "interpreted")
        for kernel in owners.values():
            patch.setattr(kernel, "_run", kernel._choose)
        yield counts


def play(learner: Any, rounds: int, seed: int, waiting: list[Any]) -> None:
    """Everything that can happen to a learner, in any order. `waiting` are the decisions that wait."""
    generator, told, lost = np.random.default_rng(seed), [], []
    discards = learner.status.tuning.discard
    for t in range(rounds):
        event = generator.random()
        if event < 0.6:
            waiting.append(learner.ask())
        elif event < 0.7:
            waiting += learner.ask(size=3)
        elif event < 0.75:
            waiting.append(learner.record(learner.status.arms[0], 0.25))
        while len(waiting) > 12 or (waiting and event > 0.9):
            decision = waiting.pop(int(generator.integers(len(waiting))))
            if generator.random() < 0.1:
                learner.give_up(decision)
                lost.append(decision)
            else:
                loss = float(generator.random() < 0.2 + 0.6 * ((t // 60) % 2))
                learner.tell(decision, loss)
                told.append((decision, loss))
        if event < 0.02 and told and not discards:
            decision, loss = told.pop()
            learner.amend(decision, loss, loss / 2)
        if event > 0.98 and lost and not discards:
            learner.amend(lost.pop(), None, 0.5)
        if event > 0.995:
            learner.distribution(), learner.certificate(), learner.certificate("any"), learner.measured_certificate()


def play_shared(seed: int) -> None:
    """Decisions of several copies, some drawn from an older state."""
    shared, generator, number, older = SharedLearner(FTRL(3, seed=0), last=0), np.random.default_rng(seed), 0, []
    for _ in range(60):
        context = shared.draw_context()
        older.append((number, context))
        seen, drawn = older[int(generator.integers(max(0, len(older) - 4), len(older)))]
        arms = generator.integers(3, size=2)
        chances = [float(drawn.x[arm]) for arm in arms]
        leads = [float(drawn.bold_advantages[arm]) for arm in arms]
        if seen == number:
            shared.enter([number + 1, number + 2], seen, arms.tolist(), chances, drawn.drawn, leads)
        for index in range(2 if seen < number else 0):
            one = slice(index, index + 1)
            shared.enter([number + index + 1], seen, arms[one].tolist(), chances[one], drawn.drawn, leads[one])
        number += 3
        shared.tell(number, number - 1, float(generator.random()))
        if generator.random() < 0.2:
            number += 1
            shared.amend(number, number - 2, int(arms[1]), chances[1], 0.5, 0.25)
        if generator.random() < 0.1:
            number += 1
            shared.set_mix(number, Mix(float(generator.uniform(0, 0.3))))


def play_whole_games() -> None:
    """The kernels that play whole games, and those for known delays."""
    delays = np.random.default_rng(1).geometric(0.05, 300)
    problem = lab.Problem(lab.Wave(50), lab.Geometric(5), n_arms=3, n_rounds=300)
    changing = lab.Problem(lab.Bernoulli(), lab.LostByArm(lab.Geometric(5), [0.1, 0, 0.5]), n_arms=3, n_rounds=300)
    for tuning in (tunings.Advanced(), tunings.Shadow(), tunings.Means(), tunings.Tsallis()):
        lab.play(tuning, problem, [0])
        lab.play(tuning, changing, [0])
    bursts = lab.Problem(lab.Wave(half_period=40), lab.Bursts(40), n_arms=2, n_rounds=900)
    bold = tunings.Shadow(switch_threshold=1e6)  # it is bold whatever happens, until the alarm
    lab.play(lambda k, seed: FTRL(k, bold, seed=seed), bursts, [3])
    Effort(saboteur=saboteurs.SABOTEURS["latest-probability"]).play(tunings.Simple(), problem, range(1))
    kernels.groups(np.minimum(np.arange(300) + delays, 299))
    kernels.backlogs(delays, 1.5)
    x, losses, arms = np.full((9, 2), 0.5), np.linspace(0, 1, 18).reshape(9, 2), np.arange(9) % 2
    kernels.weigh(x, losses, arms, np.full(9, 0.5), np.empty(9), np.empty(9))


def test_every_kernel_gives_the_same_bits_interpreted_and_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    with every_call_compared(monkeypatch) as counts:
        for seed, (tuning, provisional) in enumerate(
            [
                (tunings.Means(), None),
                (tunings.Means(boldness=0.5, switch_threshold=0.01), 1.0),
                (tunings.Shadow(scale=1.0, switch_threshold=0.01), None),
                (tunings.Advanced(discard=True), None),
                (tunings.Exp3(eta=0.05), None),
            ]
        ):
            learner, waiting = FTRL(["a", "b", "c"], tuning, seed=seed, provisional=provisional), list[Any]()
            play(learner, 200, seed, waiting)
            earlier = learner.record("b", 0.5)
            learner.tell(earlier, 0.0)
            learner.change_arms(add=["d"], retire=["a"])
            play(learner, 60, seed, waiting)
            if not tuning.discard:
                learner.amend(earlier, 0.0, 1.0)
                learner.tell(learner.record("d", 1e-5), 0.0)  # raises the alarm of a learner on means
                play(learner, 30, seed, waiting)
        play(FTRL(3, seed=0, floor=0.1), 60, 0, [])
        play(FTRL(70, tunings.Simple(), seed=0), 60, 0, [])  # lanes, and blocks of the draw
        play_shared(0)
        play_whole_games()
    assert set(counts) == {kernel.function.__name__ for kernel in all_kernels().values()}
