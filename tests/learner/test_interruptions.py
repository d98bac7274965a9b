"""A learner survives interrupts at any moment, and several threads may share it."""

import itertools
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from belated import FTRL, Decision
from belated.tunings import Means, Shadow, Tuning

INTERRUPTS = 350


class Interrupted(Exception):
    """Raised from a signal handler, as KeyboardInterrupt is."""


@pytest.mark.parametrize("tuning", [Shadow(), Means()], ids=repr)
def test_an_interrupt_between_any_two_steps_leaves_no_half_decision(tuning: Tuning) -> None:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    learner, interrupts, generator = FTRL(5, tuning, seed=1), 0, np.random.default_rng(1)
    try:
        while interrupts <= INTERRUPTS:
            decision = None
            try:
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(2e-5, 4e-4))
                while True:
                    decision = learner.ask()
                    if decision.round % 3:
                        learner.tell(decision.round, 1.0)
            except Interrupted:
                interrupts += 1
            check(learner, decision)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupted_anywhere(prepare: Callable[[], FTRL], act: Callable[[FTRL], object], every: int = 1) -> Iterator[FTRL]:
    """Learners in which `act` was interrupted before its first step in learner/, before its second, and so on.

    `every` leaves out steps.
    """
    for limit in itertools.count(1, every):
        learner, steps = prepare(), itertools.count(1)

        def trace(frame: FrameType, event: str, _: object, limit: int = limit, steps: Iterator[int] = steps) -> Any:
            if "/belated/learner/" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and next(steps) == limit:
                raise Interrupted
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            act(learner)
        except Interrupted:
            sys.settrace(before)
            yield learner
        else:
            return
        finally:
            sys.settrace(before)


def check(learner: FTRL, last: Decision | None) -> None:
    """All invariants hold (restoring checks them), and the next decision is reported to its own arm."""
    FTRL.restore(learner.snapshot())
    assert last is None or last.round <= learner.round
    decision, before = learner.ask(), learner.status.estimated_losses
    assert decision.round == learner.round
    learner.tell(decision.round, 0.25)
    gained = learner.status.estimated_losses - before
    if isinstance(learner.status.tuning, Means):  # the others have gained the centre only
        gained -= np.median(gained)
    (arm,) = np.flatnonzero(np.abs(gained) > 1e-9)
    assert arm == decision.arm


ACTIONS: dict[str, Callable[[FTRL], object]] = {
    "tell": lambda learner: learner.tell(3, 0.75),
    "give up": lambda learner: learner.give_up(3),
    "amend": lambda learner: learner.amend(Decision(2, 0, 0.25), 0.5, 0.75),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("tuning", [Shadow(), Means()], ids=repr)
def test_an_interrupt_anywhere_leaves_the_old_or_the_new_learner(action: str, tuning: Tuning) -> None:
    learner = FTRL(2, tuning, seed=1)
    for _ in range(5):
        learner.record(0, 0.25)
    learner.tell(2, 0.5)
    learner.ask()
    data = learner.snapshot()
    ACTIONS[action](learner)
    outcomes = [json.dumps(data), json.dumps(learner.snapshot())]
    interrupted = interrupted_anywhere(lambda: FTRL.restore(data), ACTIONS[action])
    seen = [outcomes.index(json.dumps(one.snapshot())) for one in interrupted]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}


def test_threads_may_share_a_learner() -> None:
    learner, per_thread, threads = FTRL(5, seed=1), 3000, 4
    rounds: list[int] = []

    def work() -> None:
        waiting = []
        for step in range(per_thread):
            waiting.append(learner.ask().round)
            if step % 2:
                learner.tell(waiting[step // 2], 0.5)
            if step % 500 == 0:
                learner.snapshot()
                learner.distribution()
        for round in waiting[per_thread // 2 :]:
            learner.tell(round, 0.5)
        rounds.extend(waiting)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(rounds) == list(range(1, per_thread * threads + 1))
    assert learner.outstanding == 0
    FTRL.restore(learner.snapshot())
