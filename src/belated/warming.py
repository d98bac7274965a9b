"""Uses every kernel of a learner once, so that all of them are compiled or loaded.

`belated warm` does this for container images, whose processes then start with compiled kernels. Where that command is
not installed, `python -m belated.warming` does the same for the learner.
"""

import sys
from collections.abc import Callable

from belated import kernels
from belated.errors import BelatedError
from belated.learner.ftrl import FTRL
from belated.learner.mixing import Mix
from belated.progress import while_busy
from belated.replicated.shared_learner import SharedLearner
from belated.tunings import Tsallis


def use_every_kernel() -> None:
    """Call the kernels of the learner and of its replicas, in the order in which a program needs them."""
    for learner in (FTRL(2, seed=0), FTRL(2, Tsallis(), seed=0)):
        learner.tell(learner.ask(), loss=0.5)
        for decision in learner.ask(size=70):  # more than the first ledger holds
            learner.give_up(decision)
        learner.ask(size=1)
    shared = SharedLearner(FTRL(2, seed=0), last=0)
    older = shared.draw_context().drawn
    shared.enter([1, 2], 0, [0, 1], [0.5, 0.5], None)
    shared.tell(3, decision=1, loss=0.5)
    shared.give_up(4, decision=2)
    shared.amend(5, 2, 1, 0.5, None, 0.5)
    shared.enter([6], 5, [0], [0.5], None)
    shared.enter([7], 0, [0], [0.5], older)
    shared.enter([8], 0, [0], [0.5], older)
    shared.set_mix(9, Mix(0.1))
    shared.change_arms(10, 3, {0: 0, 1: 1})
    shared.tell(11, decision=6, loss=0.5)
    shared.amend(12, 6, 0, 0.5, 0.5, 0.25)
    shared.learner.certificate("any")
    shared.learner.measured_certificate()
    SharedLearner.restore(shared.state())


def fill_cache(use_more: Callable[[], None] = lambda: None) -> str:
    """Compile them now, and those that `use_more` uses. Returns the folder in which they are kept."""
    kernels.use_tier("compiled")
    kernels.folder()  # raises if nothing can be kept
    with while_busy("compiling the kernels", in_lines=True):  # while an image is built there is no terminal
        use_every_kernel()
        use_more()
    return kernels.folder()


if __name__ == "__main__":
    try:
        sys.stdout.write(f"The compiled kernels are in {fill_cache()}\n")
    except BelatedError as error:
        sys.exit(f"error: {error}")
