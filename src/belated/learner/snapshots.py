"""A learner's state as lists, numbers and strings that any JSON library keeps exactly."""

import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated import kernels, tunings
from belated.arrays import Floats
from belated.errors import ImproperRule, InvalidInput, SnapshotError
from belated.learner.arms import Arms, parse_arms
from belated.learner.mixing import NO_CONTROL, NO_MIX, SLACK, Mix
from belated.learner.outcomes import OutcomeRange
from belated.learner.state import (
    NOT_PROVISIONAL,
    State,
    Stretch,
    blank,
    blank_bets,
    first_stretch,
    has_means,
    has_shadow,
)
from belated.tunings import Means, Tuning

FORMAT = "belated.FTRL"
VERSION, MIXED_VERSION = 6, 7  # of a snapshot without a mix, which older releases read too, and with one
KEPT_FIELDS = (  # of the clock; the others follow from the ledger
    *("round", "left", "solves", "backlog", "skipped", "alpha", "beta"),
    *("drift", "charge", "base", "late_base", "capped", "reported", "suffered", "peak_uncharged"),
    *("any_charge", "any_step", "any_start"),
)
KEPT_SHADOW = ("savings", "squares", "alarm", "played")
SETTINGS = ("boldness", "scale", "provisional")
KEPT_MEANS = tuple(name for name in kernels.MEANS.names or () if name not in SETTINGS)
ROWS_OF_MEANS = ("estimates", "x", "count", "sum", "missing", "drawn", "mark", "lost_own")  # of the policy on means
STRETCH_SUMS = ("proven", "measured", "proven_any", "head_start")
KEPT_ROWS = {"x": kernels.X, "v": kernels.V, "y": kernels.Y, "open": kernels.OPEN}  # of the policies with rates
TUNINGS: dict[str, Any] = {
    name: cls
    for name, cls in vars(tunings).items()
    if isinstance(cls, type) and issubclass(cls, Tuning) and is_dataclass(cls)
}


def encode(state: State, *, is_packed: bool = False) -> dict[str, Any]:
    """Plain data that `decode` turns back into the same state.

    With `is_packed` the ledger is bytes, which takes a hundredth of the time if millions of decisions are open.
    """
    state.compact()
    used = state.ledger[: int(state.clock["rows"][0])]
    mixed = _encode_mix(state)
    return {
        "format": FORMAT,
        "version": MIXED_VERSION if mixed else VERSION,
        "arms": list(state.arms.names) or state.n_arms,
        **({"arms_ever": state.arms.born} if state.arms.born else {}),
        "tuning": _encode_tuning(state.tuning),
        "refresh": state.refresh,
        **({} if state.outcomes is None else {"outcomes": asdict(state.outcomes)}),
        "clock": {name: state.clock[name][0].item() for name in KEPT_FIELDS},
        "ledger": {
            name: used[name].tobytes() if is_packed else used[name].tolist() for name in _columns(state.policies)
        },
        "estimated_losses": state.policies[0, kernels.LOSSES].tolist(),
        **_encode_policy(state.policies[0]),
        **({"shadow": _encode_shadow(state)} if state.has_shadow else {}),
        **({"means": _encode_means(state)} if state.has_means else {}),
        **({"stretch": _encode_stretch(state.stretch)} if state.offset else {}),
        **({} if state.provisional == NOT_PROVISIONAL else {"provisional": state.provisional}),
        **mixed,
        "generator": _encode_generator(state.generator),
        "uniforms": list(state.uniforms),
        "bets": state.bets.tolist(),
    }


def _encode_mix(state: State) -> dict[str, Any]:
    """What is mixed into the distribution, and what it has cost. Nothing if nothing ever was."""
    charge = state.clock["mix_charge"][0].item()
    return {"mix": {**state.mix._asdict(), "charge": charge}} if state.mix != NO_MIX or charge else {}


def _columns(policies: Floats) -> list[str]:
    """The columns of the ledger that mean something."""
    unused = {"bold_advantage": not has_shadow(policies), "centre": not has_means(policies)}
    return [name for name in kernels.LEDGER.names or () if not unused.get(name)]


def _encode_policy(policy: Floats) -> dict[str, list[float]]:
    return {name: policy[row].tolist() for name, row in KEPT_ROWS.items()}


def _encode_shadow(state: State) -> dict[str, Any]:
    """The careful policy, and the comparison of both."""
    record = state.clock["shadow"]
    return {**{name: record[name][0].item() for name in KEPT_SHADOW}, **_encode_policy(state.policies[1])}


def _encode_means(state: State) -> dict[str, Any]:
    """The policy on means, and what it has noticed."""
    record, rows = state.clock["means"], state.policies[kernels.ON_MEANS].tolist()
    return {**{name: record[name][0].item() for name in KEPT_MEANS}, **dict(zip(ROWS_OF_MEANS, rows, strict=True))}


def _encode_stretch(stretch: Stretch) -> dict[str, Any]:
    """What is left of the time before the arms changed."""
    still = stretch.arms != kernels.TAKEN
    waiting = {"rounds": stretch.rounds[still].tolist(), "arms": stretch.arms[still].tolist()}
    sums = {name: getattr(stretch, name) for name in STRETCH_SUMS}
    rest = {"kept_since": stretch.kept_since.tolist(), "bounds": [list(bound) for bound in stretch.bounds]}
    return {"offset": stretch.offset, "earlier": waiting, **rest, **sums}


def decode(data: Any, tuning: Tuning | None = None) -> State:
    """The state of a snapshot. Anything else is refused with a SnapshotError."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        hint = ". Pass the result of json.loads" if isinstance(data, str | bytes) else ""
        raise SnapshotError(f"not a snapshot of a learner: expected a dict with format {FORMAT!r}{hint}")
    version = MIXED_VERSION if "mix" in data else VERSION
    if type(data.get("version")) is not int or data["version"] != version:
        raise SnapshotError(
            f"the snapshot has version {data.get('version')!r}, but this release reads version {version}. "
            "Restore it with the release that wrote it, or enter your records into a new learner with record and tell"
        )
    try:
        return _decode(data, tuning)
    except (SnapshotError, ImproperRule):  # the rule is the caller's own
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SnapshotError(f"the snapshot is damaged: {type(error).__name__}: {error}") from error


def _decode(data: dict[str, Any], tuning: Tuning | None) -> State:
    arms, refresh = _decode_arms(data["arms"], data.get("arms_ever", 0)), _integer(data, "refresh")
    losses = _array("estimated_losses", data["estimated_losses"], np.dtype(float), arms.n)  # before memory is reserved
    tuning = _decode_tuning(data["tuning"], tuning)
    provisional = _provisional(data, tuning)
    clock, policies = blank(arms.n, tuning, provisional)
    for name in KEPT_FIELDS:
        clock[name] = _array(name, [data["clock"][name]], kernels.CLOCK[name], 1)
    columns = {name: _unpacked(column, kernels.LEDGER[name]) for name, column in _dictionary(data, "ledger").items()}
    rows = len(columns["round"])
    ledger = np.zeros(max(rows, 1), kernels.LEDGER)
    for name in _columns(policies):
        ledger[name][:rows] = _array(name, columns[name], kernels.LEDGER[name], rows)
    policies[: kernels.ON_MEANS, kernels.LOSSES] = losses
    _decode_policy(policies[0], data)
    if has_shadow(policies):
        shadow = _dictionary(data, "shadow")
        _decode_policy(policies[1], shadow)
        for name in KEPT_SHADOW:
            clock["shadow"][name] = _array(name, [shadow[name]], kernels.SHADOW[name], 1)
    if has_means(policies):
        means = _dictionary(data, "means")
        for name in KEPT_MEANS:
            clock["means"][name] = _array(name, [means[name]], kernels.MEANS[name], 1)
        for row, name in enumerate(ROWS_OF_MEANS):
            policies[kernels.ON_MEANS, row] = _array(name, means[name], np.dtype(float), arms.n)
    uniforms = _array("uniforms", data["uniforms"], np.dtype(float), len(data["uniforms"])).tolist()
    outcomes = OutcomeRange(**_dictionary(data, "outcomes")) if "outcomes" in data else None
    mix, clock["mix_charge"] = _decode_mix(data, arms.n)
    _check(clock[0], ledger[:rows], policies, tuning, refresh, uniforms)
    _derive(clock[0], ledger[:rows])
    generator = _decode_generator(data["generator"])
    settings, stretch = (arms, tuning, refresh, outcomes, provisional), _decode_stretch(data, arms.n)
    bets = _decode_bets(data["bets"], arms.n)
    return State(*settings, clock, policies, ledger, bets, generator, uniforms, stretch, mix)


def _decode_mix(data: dict[str, Any], n_arms: int) -> tuple[Mix, float]:
    if "mix" not in data:
        return NO_MIX, 0.0
    given = _dictionary(data, "mix")
    names = ("floor", "holdout", "charge")
    floor, holdout, charge = [_array(name, [given[name]], np.dtype(float), 1).item() for name in names]
    control = _integer(given, "control")
    most, is_control = float(data["clock"]["round"]), NO_CONTROL <= control < n_arms
    if not (0 <= floor * n_arms <= 1 + SLACK and 0 <= holdout < 1 and is_control and 0 <= charge <= most):
        raise SnapshotError("the snapshot is damaged: mix is out of range or contradicts the rest")
    return Mix(floor, holdout, control), charge


def _decode_bets(values: Any, n_arms: int) -> Floats:
    """The products of the bets, which are positive, and their logarithms."""
    bets, blank = np.array(values), blank_bets(n_arms)
    if (
        bets.shape != blank.shape
        or bets.dtype.kind not in "iuf"
        or not (np.isfinite(bets).all() and (bets[:, 0] > 0).all())
    ):
        raise SnapshotError(f"the snapshot is damaged: bets must hold {blank.size} finite numbers, got {values!r:.80}")
    return bets.astype(float)


def _provisional(data: dict[str, Any], tuning: Tuning) -> float:
    if "provisional" not in data:
        return NOT_PROVISIONAL
    [loss] = _array("provisional", [data["provisional"]], np.dtype(float), 1).tolist()
    if not 0 <= loss <= 1:
        raise SnapshotError(f"the snapshot is damaged: provisional must lie between 0 and 1, got {loss!r}")
    if not isinstance(tuning, Means):
        raise SnapshotError(f"the snapshot is damaged: it is provisional, but its tuning is {tuning!r}")
    return float(loss)


def _decode_stretch(data: dict[str, Any], n_arms: int) -> Stretch:
    if "stretch" not in data:
        return first_stretch(n_arms)
    stretch = _dictionary(data, "stretch")
    waiting = _dictionary(stretch, "earlier")
    rounds = _array("earlier.rounds", waiting["rounds"], np.dtype(np.int64), len(waiting["rounds"]))
    indices = _array("earlier.arms", waiting["arms"], np.dtype(np.int64), rounds.size)
    sums = [_array(name, [stretch[name]], np.dtype(float), 1).item() for name in STRETCH_SUMS]
    offset, kept_since = _integer(stretch, "offset"), _array("kept_since", stretch["kept_since"], rounds.dtype, n_arms)
    are_rounds = ((kept_since >= 0) & (kept_since <= offset)).all()
    is_sound = are_rounds and offset >= 0 and min(sums) >= 0 and ((indices >= kernels.GONE) & (indices < n_arms)).all()
    if not (is_sound and (np.diff(rounds, prepend=0, append=offset + 1) > 0).all()):
        raise SnapshotError("the snapshot is damaged: stretch is out of range or contradicts the rest")
    proven, measured, proven_any, head_start = sums
    size = kernels.GRID.size + 1
    bounds = tuple(tuple(_array("bounds", bound, np.dtype(float), size).tolist()) for bound in stretch["bounds"])
    return Stretch(offset, rounds, indices, kept_since, proven, measured, proven_any, bounds, head_start)


def _decode_arms(arms: Any, born: Any) -> Arms:
    """Names, a number, or the numbers that are left after some were retired."""
    if type(born) is not int or born < 0:
        raise SnapshotError(f"the snapshot is damaged: arms_ever must be a number of arms, got {born!r}")
    if isinstance(arms, list) and arms and all(type(arm) is int for arm in arms):
        if (np.diff(arms, prepend=-1, append=born) <= 0).any():
            raise SnapshotError(
                f"the snapshot is damaged: arms must be ascending numbers below {born}, got {arms!r:.80}"
            )
        return Arms(len(arms), tuple(arms), born)
    try:
        return parse_arms(arms)._replace(born=born)
    except InvalidInput as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from None


def _decode_policy(policy: Floats, data: dict[str, Any]) -> None:
    for name, row in KEPT_ROWS.items():
        policy[row] = _array(name, data[name], np.dtype(float), policy.shape[1])


def _dictionary(data: dict[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(data.get(name), dict):
        raise SnapshotError(f"the snapshot is damaged: {name} must be a dictionary, got {data.get(name)!r:.80}")
    return dict(data[name])


def _integer(data: dict[str, Any], name: str) -> int:
    if type(data[name]) is not int:
        raise SnapshotError(f"the snapshot is damaged: {name} must be an integer, got {data[name]!r}")
    return int(data[name])


def _unpacked(column: Any, dtype: np.dtype[Any]) -> Any:
    """The values of a column of the ledger, which may be bytes."""
    return np.frombuffer(column, dtype) if isinstance(column, bytes) else column


def _array(name: str, values: Any, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    array = np.array(values)
    kinds = "iu" if dtype.kind == "i" else "iuf"
    if array.shape != (size,) or (size and array.dtype.kind not in kinds) or not np.isfinite(array).all():
        raise SnapshotError(f"the snapshot is damaged: {name} must hold {size} finite numbers, got {values!r:.80}")
    return array.astype(dtype)


def _derive(clock: Any, ledger: Any) -> None:
    """Fill in the clock's fields that count rows of the ledger, all of which are open."""
    late = ledger["probability"] < 0
    counted, charged = ledger["round"] > clock["skipped"], ledger["round"] > clock["capped"]
    clock["rows"] = ledger.size
    clock["outstanding"] = np.count_nonzero(~late)
    clock["counted"], clock["late_counted"] = np.count_nonzero(counted), np.count_nonzero(counted & late)
    clock["charged"], clock["late_charged"] = np.count_nonzero(charged), np.count_nonzero(charged & late)
    clock["next_skip"], clock["next_cap"] = np.count_nonzero(~counted), np.count_nonzero(~charged)


def _largest_charge(clock: Any, n_arms: int, tuning: Tuning) -> float:
    """1 a round, and 1 for a mix. A stale one may cost 2 more, 1 for each round it missed, and a fall of beta.
    An alarm adds a lead.

    A stale one may have had a larger beta than any that was played here, but not than with all rounds outstanding.
    """
    lead = float(clock["means"]["lead"]) if clock["shadow"]["alarm"] else 0.0
    n_rounds, beta = max(0, int(clock["round"])), float(clock["beta"])
    if n_arms > 1:
        backlog = max(0, int(clock["backlog"])) + n_rounds
        beta = max(beta, tuning.rates(n_arms, n_rounds + 1, n_rounds, backlog)[1])
    return lead + n_rounds * (4 + n_rounds + beta * math.log(n_arms))


def _check(clock: Any, ledger: Any, policies: Floats, tuning: Tuning, refresh: int, uniforms: list[float]) -> None:
    """Refuse what the kernels rely on and do not check again."""
    n_arms, losses, on_means = policies.shape[2], policies[: kernels.ON_MEANS, kernels.LOSSES], has_means(policies)
    probabilities = ledger["probability"]
    x, v, y, weights = (policies[: kernels.ON_MEANS, row] for row in KEPT_ROWS.values())
    if on_means and not clock["means"]["stage"]:  # the other two have not been solved for
        x, y = policies[kernels.ON_MEANS :, kernels.X], np.exp(v)
    elif on_means:
        x = policies[:, kernels.X]
    is_late = (probabilities < 0) & (probabilities == -float(clock["solves"]))
    charged = ledger["round"] > clock["capped"]
    is_solved = clock["solves"] >= 1
    sound = {
        "refresh": refresh >= 1 and clock["left"] <= (refresh if is_solved else 0),
        "round": 0 <= clock["round"] <= 2**53 and 0 <= clock["solves"] <= clock["round"],
        "backlog": 0 <= clock["backlog"] <= 2**62,
        "skipped": 0 <= clock["skipped"] <= clock["round"],
        "capped": 0 <= clock["capped"] <= clock["round"],
        "rates": min(clock["alpha"], clock["beta"]) >= 0 and max(clock["alpha"], clock["beta"]) <= kernels.LARGEST_RATE,
        "charge": 0 <= clock["charge"] <= _largest_charge(clock, n_arms, tuning)
        and 0 <= clock["drift"] <= clock["round"],
        "base": _close(clock["base"], ledger["base"][charged]),
        "late_base": _close(clock["late_base"], ledger["base"][charged & is_late]),
        "ledger.round": (np.diff(ledger["round"], prepend=0, append=clock["round"] + 1) > 0).all(),
        "ledger.arm": ((ledger["arm"] >= 0) & (ledger["arm"] < n_arms)).all(),
        "ledger.probability": (is_late | ((probabilities >= 1e-300) & (probabilities <= 1))).all(),
        "estimated_losses": ((losses >= (-1e300 if on_means else 0)) & (losses <= 1e300)).all(),
        "x": (x >= 0).all() and ((np.abs(x.sum(axis=1) - 1) < 1e-9).all() if is_solved else not x.any()),
        "v": ((v >= 0) & (v <= kernels.V_MAX)).all(),
        "y": (np.abs(np.log(np.maximum(y, 1e-300)) - v) < 1e-9).all() or not is_solved,
        "reported": 0 <= clock["suffered"] <= clock["reported"] <= clock["round"],
        "any_charge": max(abs(clock["any_charge"]), clock["any_step"]) <= 1e300 and clock["any_step"] >= 0,
        "any_start": 0 <= clock["any_start"] <= clock["round"],
        "open": ((weights >= 0) & (weights <= 1e300)).all(),
        "peak_uncharged": 0 <= clock["peak_uncharged"] <= clock["round"],
        "shadow": _is_sound_shadow(clock["shadow"], len(policies)),
        "means": not on_means or _are_sound_means(clock, policies[kernels.ON_MEANS], int(clock["round"])),
        "uniforms": all(0 <= uniform < 1 for uniform in uniforms),
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise SnapshotError(f"the snapshot is damaged: {name} is out of range or contradicts the rest")


def _is_sound_shadow(shadow: Any, n_policies: int) -> bool:
    """An alarm makes it careful for ever. All is 0 without a shadow, which is sound too."""
    is_consistent = shadow["alarm"] in (0, 1) and shadow["alarm"] <= shadow["played"] < n_policies
    return bool(shadow["squares"] >= 0 and is_consistent)


def _are_sound_means(clock: Any, rows: Floats, n_rounds: int) -> bool:
    """The stage fits what is played, sums of losses fit their counts, and nothing is known that was not reported."""
    means, played = clock["means"], int(clock["shadow"]["played"])
    estimates, _, counts, sums, missing, drawn, marks, lost = rows
    slack = 1e-6 * (1 + counts)
    are_rows_sound = (
        (np.abs(estimates) <= 1e300).all()
        and (np.minimum(counts, missing) >= 0).all()
        and counts.sum() >= clock["reported"]
        and means["lowest"] == estimates.min()
        and ((sums >= -slack) & (sums <= counts + slack)).all()
        and (np.abs(drawn) <= 2**53).all()
        and (np.abs(lost) <= 1e300).all()
        and ((marks >= -(2**53)) & (marks <= clock["reported"]) & (marks == np.floor(marks))).all()
    )
    is_stage_sound = (
        means["stage"] in (0, 1, 2)
        and means["is_moving"] in (0, 1)
        and means["is_over"] in (0, 1)
        and means["leader"] in (0, 1, kernels.ON_MEANS)
        and played in ((1,) if means["stage"] == 2 else (0, kernels.ON_MEANS) if n_rounds == 0 else (kernels.ON_MEANS,))
        and (clock["shadow"]["alarm"] == 1) == (means["stage"] == 2)
        and 0 <= means["start"] <= n_rounds
        and 0 <= means["solved"] <= n_rounds
        and 0 <= means["longest"] <= 2**53
        and 0 <= means["start_backlog"] <= clock["backlog"]
        and 0 <= means["over_round"] <= n_rounds
        and 0 <= means["over_open"] <= 1e300
        and 0 <= means["lost"] <= n_rounds
    )
    are_sums_sound = (
        min(means["known"], means["settled"]) >= 0
        and max(means["known"], means["settled"]) <= means["told"] <= clock["reported"]
        and -1e-6 <= means["centres"] <= clock["reported"] + 1e-6
        and 0 <= means["squares"] <= 1e300
        and max(abs(means["run"]), abs(means["products"]), abs(means["lead"])) <= 1e300
        and 0 <= min(means["alpha"], means["beta"]) <= max(means["alpha"], means["beta"]) <= kernels.LARGEST_RATE
    )
    return bool(are_rows_sound and is_stage_sound and are_sums_sound)


def _close(total: float, bases: Floats) -> bool:
    return bool(abs(total - bases.sum()) <= 1e-6 * (1 + np.abs(bases).sum()))


def _encode_tuning(tuning: Tuning) -> dict[str, Any]:
    """The name and attributes of a tuning. Other values become their repr, which is only compared."""
    name = type(tuning).__name__ if type(tuning) in TUNINGS.values() else f"own:{type(tuning).__name__}"
    plain = (bool, int, float, str, type(None))
    settings = {key: value if isinstance(value, plain) else repr(value) for key, value in vars(tuning).items()}
    return {"name": name, **settings}


def _decode_tuning(data: dict[str, Any], tuning: Tuning | None) -> Tuning:
    if tuning is None:
        settings = dict(data)
        name = settings.pop("name")
        if name not in TUNINGS:
            raise SnapshotError(
                f"the snapshot was made with the tuning {name!r}, which is not built in: pass it to restore"
            )
        built: Tuning = TUNINGS[name](**settings)
    else:
        built = tuning
    if _encode_tuning(built) != data:
        raise SnapshotError(f"the snapshot was made with the tuning {data!r}, not with {built!r}")
    return built


def _encode_generator(generator: np.random.Generator) -> dict[str, Any]:
    """128-bit integers as hexadecimal text, because many JSON libraries stop at 64 bits."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return {"name": state["bit_generator"], **{part: hex(value) for part, value in state["state"].items()}}


def _decode_generator(data: dict[str, str]) -> np.random.Generator:
    if data["name"] != "PCG64":
        raise SnapshotError(f"the snapshot's generator {data['name']!r} is not PCG64, the only one learners use")
    words = {part: int(data[part], 16) for part in ("state", "inc")}
    if not (words["inc"] % 2 == 1 and all(0 <= word < 2**128 for word in words.values())):
        raise SnapshotError("the snapshot is damaged: no PCG64 generator has this state")
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = {"bit_generator": "PCG64", "state": words, "has_uint32": 0, "uinteger": 0}
    return generator
