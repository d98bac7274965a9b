"""A learner's state as plain data: lists, numbers and strings that any JSON library keeps exactly."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from belated import kernels, tunings
from belated.errors import SnapshotError
from belated.tunings import Tuning

FORMAT = "belated.FTRL"
VERSION = 1
KEPT_ROWS = {"losses": kernels.LOSSES, "x": kernels.X, "v": kernels.V}  # the rest of `policy` is workspace
TUNINGS = {cls.__name__: cls for cls in Tuning.__subclasses__() if cls.__module__ == tunings.__name__}


class State(NamedTuple):
    """What a snapshot holds, as the learner keeps it."""

    n_arms: int
    tuning: Tuning
    refresh: int
    clock: Any
    ledger: Any
    policy: NDArray[np.float64]
    generator: np.random.Generator
    uniforms: list[float]


def encode(state: State) -> dict[str, Any]:
    """Plain data that `decode` turns back into the same state."""
    used = state.ledger[: int(state.clock["rows"][0])]
    return {
        "format": FORMAT,
        "version": VERSION,
        "n_arms": state.n_arms,
        "tuning": _encode_tuning(state.tuning),
        "refresh": state.refresh,
        "clock": {name: state.clock[name][0].item() for name in kernels.CLOCK.names or ()},
        "ledger": {name: used[name].tolist() for name in kernels.LEDGER.names or ()},
        **{name: state.policy[row].tolist() for name, row in KEPT_ROWS.items()},
        "generator": _encode_generator(state.generator),
        "uniforms": list(state.uniforms),
    }


def decode(data: Any, tuning: Tuning | None = None) -> State:
    """The state of a snapshot; anything else is refused with a SnapshotError."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        hint = "; pass what json.loads gives" if isinstance(data, str | bytes) else ""
        raise SnapshotError(f"not a snapshot of a learner: expected a dict with format {FORMAT!r}{hint}")
    if data.get("version") != VERSION:
        raise SnapshotError(f"snapshot version {data.get('version')!r} is not {VERSION}, the one this release reads")
    try:
        return _decode(data, tuning)
    except SnapshotError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SnapshotError(f"the snapshot is damaged: {type(error).__name__}: {error}") from error


def _decode(data: dict[str, Any], tuning: Tuning | None) -> State:
    n_arms, refresh = _integer(data, "n_arms"), _integer(data, "refresh")
    clock = np.zeros(1, kernels.CLOCK)
    for name in kernels.CLOCK.names or ():
        clock[name] = _array(name, [data["clock"][name]], kernels.CLOCK[name], 1)
    rows = len(data["ledger"]["round"])
    ledger = np.zeros(max(rows, 1), kernels.LEDGER)
    for name in kernels.LEDGER.names or ():
        ledger[name][:rows] = _array(name, data["ledger"][name], kernels.LEDGER[name], rows)
    kept = {row: _array(name, data[name], np.dtype(float), n_arms) for name, row in KEPT_ROWS.items()}
    policy = np.zeros((kernels.ROWS, n_arms))
    for row, values in kept.items():
        policy[row] = values
    uniforms = _array("uniforms", data["uniforms"], np.dtype(float), len(data["uniforms"])).tolist()
    arrays = clock, ledger, policy
    settings = n_arms, _decode_tuning(data["tuning"], tuning), refresh
    state = State(*settings, *arrays, _decode_generator(data["generator"]), uniforms)
    _check(state, rows)
    return state


def _integer(data: dict[str, Any], name: str) -> int:
    if type(data[name]) is not int:
        raise SnapshotError(f"the snapshot is damaged: {name} must be an integer, got {data[name]!r}")
    return int(data[name])


def _array(name: str, values: Any, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    array = np.array(values)
    kinds = "iu" if dtype.kind == "i" else "iuf"
    if array.shape != (size,) or (size and array.dtype.kind not in kinds) or not np.isfinite(array).all():
        raise SnapshotError(f"the snapshot is damaged: {name} must hold {size} finite numbers, got {values!r:.80}")
    return array.astype(dtype)


def _check(state: State, rows: int) -> None:
    """The invariants that the kernels rely on: they do not check an index again."""
    clock, ledger, policy = state.clock[0], state.ledger[:rows], state.policy
    rounds, probabilities = ledger["round"], ledger["probability"]
    late = (probabilities < 0) & (probabilities == -float(clock["solves"]))
    is_open = (probabilities > 0) | late
    counted, charged = is_open & (rounds > clock["skipped"]), is_open & (rounds > clock["capped"])
    x = policy[kernels.X]
    sound = {
        "n_arms": state.n_arms >= 1,
        "refresh": state.refresh >= 1 and clock["left"] <= state.refresh,
        "clock": min(clock["round"], clock["solves"], clock["backlog"], clock["alpha"], clock["beta"]) >= 0
        and clock["round"] <= 2**53
        and max(clock["alpha"], clock["beta"]) <= kernels.LARGEST_RATE
        and 0 <= clock["charge"] <= clock["round"]
        and clock["drift"] >= 0
        and np.isclose(clock["base"], ledger["base"][charged].sum(), rtol=1e-6, atol=1e-6)
        and np.isclose(clock["late_base"], ledger["base"][charged & late].sum(), rtol=1e-6, atol=1e-6)
        and clock["rows"] == rows
        and clock["outstanding"] == np.count_nonzero(probabilities > 0)
        and clock["counted"] == np.count_nonzero(counted)
        and clock["charged"] == np.count_nonzero(charged)
        and clock["late_counted"] == np.count_nonzero(counted & late)
        and clock["late_charged"] == np.count_nonzero(charged & late)
        and 0 <= clock["next_skip"] <= (np.append(np.flatnonzero(counted), rows)[0])
        and 0 <= clock["next_cap"] <= (np.append(np.flatnonzero(charged), rows)[0]),
        "ledger": bool(is_open.all())
        and bool((np.diff(rounds) > 0).all())
        and bool(((rounds >= 1) & (rounds <= clock["round"])).all())
        and bool(((ledger["arm"] >= 0) & (ledger["arm"] < state.n_arms)).all())
        and bool((probabilities <= 1).all()),
        "losses": bool((policy[kernels.LOSSES] >= 0).all()),
        "x": bool((x >= 0).all()) and (abs(x.sum() - 1) < 1e-9 or (clock["solves"] == 0 and not x.any())),
        "v": bool(((policy[kernels.V] >= 0) & (policy[kernels.V] <= kernels.V_MAX)).all()),
        "uniforms": all(0 <= uniform < 1 for uniform in state.uniforms),
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise SnapshotError(f"the snapshot is damaged: {name} contradicts the rest")


def _encode_tuning(tuning: Tuning) -> dict[str, Any]:
    """The name and attributes of a tuning; of what is no plain value, its repr, to be compared only."""
    plain = (bool, int, float, str, type(None))
    settings = {key: value if isinstance(value, plain) else repr(value) for key, value in vars(tuning).items()}
    return {"name": type(tuning).__name__, **settings}


def _decode_tuning(data: dict[str, Any], tuning: Tuning | None) -> Tuning:
    if tuning is None:
        settings = dict(data)
        name = settings.pop("name")
        if name not in TUNINGS:
            raise SnapshotError(
                f"the snapshot was made with the tuning {name!r}, which is not built in: pass it to restore"
            )
        built = TUNINGS[name](**settings)
    else:
        built = tuning
    if _encode_tuning(built) != data:
        raise SnapshotError(f"the snapshot was made with the tuning {data!r}, not with {built!r}")
    return built


def _encode_generator(generator: np.random.Generator) -> dict[str, Any]:
    """128-bit integers as hexadecimal text: many JSON libraries stop at 64 bits."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return {"name": state["bit_generator"], **{part: hex(value) for part, value in state["state"].items()}}


def _decode_generator(data: dict[str, str]) -> np.random.Generator:
    if data["name"] != "PCG64":
        raise SnapshotError(f"the snapshot's generator {data['name']!r} is not PCG64, the only one learners use")
    words = {part: int(data[part], 16) for part in ("state", "inc")}
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = {"bit_generator": "PCG64", "state": words, "has_uint32": 0, "uinteger": 0}
    return generator
