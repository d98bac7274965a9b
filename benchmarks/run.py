"""`make bench` measures every promise about speed, memory and regret and judges it, as a ratio where possible.

`make shadow` runs the regret and the cost of the default and of the shadow alone. Times are the best of several
repeats, and contestants take turns, because machines are noisy. Exits with 1 if a bar is missed.
"""

import sys
from collections.abc import Callable

from benchmarks import (
    adapters,
    capacity,
    certificates,
    coming_and_going,
    conversions,
    decision_service,
    far,
    installs,
    lab,
    learner,
    lost_reports,
    moving_worlds,
    openfeature,
    paper,
    removing,
    replay_log,
    replicas,
    shadow,
    silent_option,
    start,
    steady,
    still_worlds,
    subjects,
    verdicts,
    watching,
)
from benchmarks.judging import missed

GROUPS = {
    "shadow": (
        "shadow",
        "still_worlds",
        "moving_worlds",
        "lost_reports",
        "silent_option",
        "conversions",
        "coming_and_going",
    ),
}
PARTS = (
    learner.ask_and_tell,
    learner.kernel_alone,
    learner.import_time,
    start.first_decision,
    start.first_seconds,
    start.service,
    steady.speed,
    steady.service,
    learner.never_reported,
    installs.sizes,
    certificates.cost,
    certificates.this_run,
    certificates.never_below,
    lab.whole_games,
    lab.flat_cost,
    lab.steps,
    lab.two_workers,
    lab.memory,
    adapters.cost,
    adapters.environment,
    adapters.late_rewards,
    shadow.cost,
    shadow.regret,
    still_worlds.regret,
    moving_worlds.regret,
    lost_reports.regret,
    lost_reports.regret_given_up,
    lost_reports.silent,
    silent_option.newcomer,
    conversions.sales,
    coming_and_going.table,
    verdicts.false_winners,
    verdicts.coverage,
    verdicts.until_verdict,
    verdicts.cost,
    paper.quick,
    replay_log.reading_and_judging,
    decision_service.single,
    decision_service.batches,
    decision_service.first_start,
    decision_service.start_up,
    decision_service.snapshot,
    decision_service.memory,
    openfeature.evaluations,
    watching.dashboards,
    watching.exports,
    subjects.file,
    subjects.database,
    replicas.single,
    replicas.two,
    replicas.most,
    far.single,
    removing.partition,
    capacity.disk,
    capacity.start,
    capacity.memory,
)


def file_of(part: Callable[[], None]) -> str:
    """The file of a part, as it is named on the command line."""
    return part.__module__.removeprefix("benchmarks.")


def main() -> None:
    """Run everything, or the named parts, files or groups, and say what was missed."""
    wanted = {name for asked in sys.argv[1:] for name in GROUPS.get(asked, (asked,))}
    names = {part: {file_of(part), f"{file_of(part)}.{part.__name__}"} for part in PARTS}
    known = set().union(*names.values())
    if unknown := sorted(wanted - known):
        sys.exit(f"unknown: {', '.join(unknown)}. Choose from {', '.join(sorted({*known, *GROUPS}))}")
    for part in PARTS:
        if not wanted or wanted & names[part]:
            part()
    print(f"\n{'all bars met' if not missed else 'MISSED: ' + '; '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
