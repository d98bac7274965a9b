"""`make bench` measures every promise about speed and memory and judges it, as a ratio where possible.

`make shadow` runs the part of benchmarks/shadow.py alone. Each figure is the best of several repeats, and
contestants take turns, because machines are noisy. Exits with 1 if a bar is missed.
"""

import sys

from benchmarks import capacity, decision_service, lab, learner, paper, replay_log, replicas, shadow
from benchmarks.judging import missed


def main() -> None:
    """Run everything, or the parts of one file, and say what was missed."""
    wanted = sys.argv[1:] or [
        "learner",
        "lab",
        "shadow",
        "paper",
        "replay_log",
        "decision_service",
        "replicas",
        "capacity",
    ]
    for part in (
        learner.ask_and_tell,
        learner.kernel_alone,
        learner.start_up,
        learner.never_reported,
        lab.whole_games,
        lab.flat_cost,
        lab.two_workers,
        lab.memory,
        shadow.cost,
        shadow.regret,
        paper.quick,
        replay_log.reading_and_judging,
        decision_service.single,
        decision_service.batches,
        decision_service.first_start,
        decision_service.start_up,
        decision_service.memory,
        replicas.single,
        replicas.two,
        replicas.most,
        capacity.disk,
        capacity.start,
        capacity.memory,
    ):
        if part.__module__.removeprefix("benchmarks.") in wanted:
            part()
    print(f"\n{'all bars met' if not missed else 'MISSED: ' + '; '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
