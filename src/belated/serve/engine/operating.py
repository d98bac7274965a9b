"""Decide what becomes of a request to pause, freeze, end or edit an experiment."""

from belated.errors import InvalidInput
from belated.serve.domain.experiment import Experiment
from belated.serve.domain.operating import Edit, Operation, check_edit
from belated.serve.domain.refusals import Refusal


def planned(experiment: Experiment, asked: Operation) -> Operation | None:
    """Return what is written down, or None if that is so already. Raises Refusal or InvalidInput."""
    state = experiment.operations.state
    match asked.event:
        case "paused":
            return None if state == "paused" else asked
        case "resumed":
            return asked if state == "paused" else None
        case "frozen" | "unfrozen" if state == "paused":
            raise Refusal("conflict", f"the experiment {experiment.name!r} is paused. Resume it first.")
        case "unfrozen":
            return asked if state == "frozen" else None
        case "frozen" | "ended":
            return _fixed(experiment, asked)
        case "edited":
            return _edit(experiment, asked)


def _fixed(experiment: Experiment, asked: Operation) -> Operation | None:
    """Show one arm to all, for a while or for good."""
    names = [experiment.arms[arm] for arm in experiment.era.arms]
    name, now = asked.arm, experiment.operations
    is_done = now.state == asked.event and now.arm is not None
    shown = experiment.arms[now.arm] if now.arm is not None else ""
    if name is None:
        if is_done:
            return None
        if (best := experiment.best()) is None:
            raise Refusal("conflict", f"no outcome of {experiment.name!r} is known yet. Name the arm to show.")
        name = experiment.arms[best]
    if name not in names:
        raise Refusal("not_found", f"{experiment.name!r} has no arm {name!r} to show. It has {sorted(names)!r:.500}.")
    if is_done and name == shown:
        return None
    if is_done and asked.event == "ended":
        raise Refusal("conflict", f"the experiment {experiment.name!r} has ended with the winner {shown!r}.")
    return Operation(asked.event, name)


def _edit(experiment: Experiment, asked: Operation) -> Operation | None:
    edit = asked.settings or Edit()
    if edit == Edit():
        raise InvalidInput(f"name at least one setting to change: {', '.join(Edit.__struct_fields__)}")
    names = [experiment.arms[arm] for arm in experiment.era.arms]
    return None if check_edit(experiment.settings, edit, names) == experiment.settings else asked


def check_arms_left(experiment: Experiment, names: list[str]) -> None:
    """Check that a change of arms fits the floor, the control and the arm that is shown to all."""
    now, settings = experiment.operations, experiment.settings
    if now.arm is not None and experiment.arms[now.arm] not in names:
        shown = experiment.arms[now.arm]
        raise Refusal(
            "conflict", f"{experiment.name!r} is frozen and shows {shown!r}. Unfreeze it before you retire it."
        )
    if settings.control and settings.control not in names:
        raise Refusal(
            "conflict", f"{settings.control!r} is the control of the holdout. Edit the holdout before you retire it."
        )
    settings.check_mix(names)
