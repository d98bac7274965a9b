"""Sweeps that are interrupted continue where they stopped, and a folder never gives another game's result."""

import os
import shutil
import signal
import threading
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from belated import FTRL, lab
from belated.errors import InvalidInput, StoreError, UnfinishedWarning
from belated.lab.comparisons import fingerprint, finished_games, sweep
from belated.lab.comparisons.compare import compare
from belated.lab.comparisons.comparison import Comparison
from belated.lab.games.curves import Played
from belated.tunings import Shadow, Simple
from tests.support.sweeps import files, same

SMALL = Comparison(("zs20-simple", "bold"), "wave", "fixed:d=20", arms=4, rounds=500, seeds=3)


def heard(comparison: Comparison, folder: Path) -> str:
    """What a comparison tells of the games it takes from a folder."""
    messages: list[str] = []
    compare(comparison, folder=folder, tell=messages.append)
    return " ".join(messages)


def test_kept_games_are_the_same_bits_and_are_not_played_again(tmp_path: Path, monkeypatch: Any) -> None:
    first = compare(SMALL, workers=2)
    assert same(compare(SMALL, folder=tmp_path), first)
    monkeypatch.setattr(sweep, "play_whole", None)  # nothing can be played
    messages: list[str] = []
    again = compare(SMALL, folder=tmp_path, tell=messages.append)
    assert same(again, first)
    assert messages == [f"6 of 6 games were in {tmp_path} already"]
    assert all(row.curves.rounds_per_second > 0 for row in again.rows)


def test_more_seeds_and_algorithms_play_only_what_is_new(tmp_path: Path) -> None:
    compare(SMALL, folder=tmp_path)
    larger = Comparison(("uniform", "bold"), "wave", "fixed:d=20", arms=4, rounds=500, seeds=4)
    assert heard(larger, tmp_path) == f"3 of 8 games were in {tmp_path} already"
    assert len(files(tmp_path)) == 6 + 1 + 4


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda _: b"",
        lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
        lambda content: bytes(len(content)),
        lambda content: content + b"more",
    ],
)
def test_a_torn_game_is_played_again(tmp_path: Path, harm: Any) -> None:
    first = compare(SMALL, folder=tmp_path)
    torn = files(tmp_path)[2]
    torn.write_bytes(harm(torn.read_bytes()))
    assert heard(SMALL, tmp_path) == f"5 of 6 games were in {tmp_path} already"
    assert same(compare(SMALL, folder=tmp_path), first)


def test_a_game_under_another_name_is_not_taken(tmp_path: Path) -> None:
    first = compare(SMALL, folder=tmp_path)
    shutil.copy(files(tmp_path)[0], files(tmp_path)[-1])
    assert heard(SMALL, tmp_path) == f"5 of 6 games were in {tmp_path} already"
    assert same(compare(SMALL, folder=tmp_path), first)


def test_other_sweeps_do_not_mix(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"algorithms": ("zs20-simple",), "losses": "wave", "delays": "fixed:d=20", "seeds": 1}
    fields |= {"arms": 4, "rounds": 500}
    matrix = np.random.default_rng(1).random((500, 4))
    changed = matrix.copy()
    changed[499, 3] = np.nextafter(changed[499, 3], 1)
    others: list[dict[str, Any]] = [
        {},
        {"arms": 5},
        {"rounds": 501},
        {"losses": "wave:strength=0.5"},
        {"delays": "fixed:d=21"},
        {"delays": "permuted:fixed:d=20"},
        {"algorithms": ("zs20-discard",)},
        {"losses": lab.GivenLosses(matrix)},
        {"losses": lab.GivenLosses(changed)},
        {"algorithms": (mine("zs20-simple", "1", 1.0),)},
        {"algorithms": (mine("zs20-simple", "2", 1.0),)},
        {"delays": Late(3)},
        {"delays": Late(4)},
    ]
    for number, other in enumerate(others):
        assert heard(Comparison(**fields | other), tmp_path) == ""
        assert len(files(tmp_path)) == number + 1


def test_a_file_counts_by_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "delays.csv"
    comparison = Comparison(("zs20-simple",), "wave", str(path), arms=4, rounds=500, seeds=2)
    path.write_text("delay\n3\n4\n")
    first = compare(comparison, folder=tmp_path)
    path.rename(tmp_path / "same.csv")
    moved = Comparison(("zs20-simple",), "wave", str(tmp_path / "same.csv"), arms=4, rounds=500, seeds=2)
    assert heard(moved, tmp_path) == f"2 of 2 games were in {tmp_path} already"
    path.write_text("delay\n3\n400\n")
    assert heard(comparison, tmp_path) == ""
    assert compare(comparison, folder=tmp_path).rows[0].regret != first.rows[0].regret


def test_another_environment_plays_anew(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("belated", "numpy", "arithmetic"):
        compare(SMALL, folder=tmp_path)
        other = {**fingerprint.environment(), name: "another"}
        with monkeypatch.context() as patch:
            patch.setattr(fingerprint, "environment", lambda other=other: other)
            assert heard(SMALL, tmp_path) == ""


def test_an_environment_without_numba_says_so(monkeypatch: Any) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(fingerprint, "version", version)
    here = fingerprint.environment()
    assert fingerprint.environment.__wrapped__() == {**here, "numba": "not installed"}


@pytest.mark.parametrize("name", ["proper.py", "kernels/groups.py", "lab/literature/games.py", "adapters/policies.py"])
def test_whatever_a_game_runs_counts(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    here = fingerprint.environment()["belated"]
    for pattern in fingerprint.SOURCES:
        for path in fingerprint.PACKAGE.glob(pattern):
            copy = tmp_path / path.relative_to(fingerprint.PACKAGE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path)
    monkeypatch.setattr(fingerprint, "_arithmetic", lambda: "")
    assert fingerprint.environment.__wrapped__()["belated"] == here
    with (tmp_path / name).open("a") as file:
        file.write("\n")
    assert fingerprint.environment.__wrapped__()["belated"] != here


class Late(lab.Delays):
    """A rule of my own, with a setting."""

    fingerprint = "1"

    def __init__(self, d: int) -> None:
        self.d = d

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        return np.full(n_rounds, self.d)


class Unmarked(lab.Delays):
    """A rule of my own that has no fingerprint."""

    def draw(self, n_arms: int, n_rounds: int, generator: np.random.Generator) -> Any:
        return np.zeros(n_rounds, np.int64)


def mine(name: str, fingerprint: str | None, scale: float) -> lab.Algorithm:
    return lab.Algorithm(name, "-", "-", "nothing", "-", lambda _: Simple(scale=scale), fingerprint=fingerprint)


def test_objects_of_my_own_need_a_fingerprint_to_be_kept(tmp_path: Path) -> None:
    class Marked(lab.Losses):
        fingerprint = "1"

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def blocks(self, n_arms: int, n_rounds: int, delay: int, generator: np.random.Generator) -> Any:
            yield np.zeros((n_rounds, n_arms))

    for comparison in (
        Comparison((mine("mine", None, 1.0),), rounds=50, seeds=1),
        Comparison((mine("mine", "", 1.0),), rounds=50, seeds=1),
        Comparison(("dew",), delays=Unmarked(), rounds=50, seeds=1),
        Comparison(("dew",), delays=lab.Permuted(Unmarked()), rounds=50, seeds=1),
        Comparison(("dew",), losses=Marked(Unmarked()), rounds=50, seeds=1),
        Comparison(("dew",), losses=Marked(lambda: 3), rounds=50, seeds=1),
        Comparison(("dew",), losses=Marked(np.array([object()])), rounds=50, seeds=1),
    ):
        with pytest.raises(InvalidInput, match=r"an object of your own.*attribute `fingerprint`"):
            compare(comparison, folder=tmp_path)
        assert not list(tmp_path.iterdir())
        assert compare(comparison).rows  # without a folder there is nothing to confuse


def even(n_arms: int, n_rounds: int, _: np.random.Generator) -> Any:
    for _round in range(n_rounds):
        yield [0.5] * n_arms


class Evenly:
    """The same with a setting."""

    def __init__(self, loss: float) -> None:
        self.loss = loss

    def __call__(self, n_arms: int, n_rounds: int, _: np.random.Generator) -> Any:
        for _round in range(n_rounds):
            yield [self.loss] * n_arms


def test_losses_that_react_are_kept_by_their_own_mark(tmp_path: Path) -> None:
    for rule in (even, Evenly(0.5)):
        with pytest.raises(InvalidInput, match=r"an object of your own.*attribute `fingerprint`"):
            compare(Comparison(("bold",), lab.Reacting(rule), rounds=50, seeds=1), folder=tmp_path)
    pennies = lab.Duel([[0, 1], [1, 0]])
    for losses in (
        lab.Reacting(even, fingerprint="1"),
        lab.Reacting(even, fingerprint="2"),
        lab.Reacting(Evenly(0.5), fingerprint="1"),
        lab.Reacting(Evenly(0.6), fingerprint="1"),
        pennies.against(Simple()).losses,
        pennies.against(Simple(scale=2)).losses,
        lab.Duel([[0, 1], [1, 1]]).against(Simple()).losses,
    ):
        comparison = Comparison(("bold",), losses, "none", arms=2, rounds=50, seeds=1)
        assert heard(comparison, tmp_path) == ""
        assert heard(comparison, tmp_path) == f"1 of 1 games were in {tmp_path} already"


def make_function(scale: Any) -> Any:
    def function(n_arms: int, seed: int) -> FTRL:
        return FTRL(n_arms, Simple(scale), seed=seed)

    function.fingerprint = "1"  # type: ignore[attr-defined]
    return function


def make_default(scale: Any) -> Any:
    def function(n_arms: int, seed: int, *, scale: Any = scale) -> FTRL:
        return FTRL(n_arms, Simple(scale), seed=seed)

    function.fingerprint = "1"  # type: ignore[attr-defined]
    return function


def make_class(scale: Any) -> Any:
    class Learner:
        fingerprint = "1"
        factor = scale

        def __init__(self, n_arms: int, *, seed: int) -> None:
            self.inner = FTRL(n_arms, Simple(self.factor), seed=seed)

        def ask(self) -> Any:
            return self.inner.ask()

        def tell(self, round: int, loss: float) -> None:
            self.inner.tell(round, loss)

    return Learner


def make_method(scale: Any) -> Any:
    class Learner:
        fingerprint = "1"

        def __init__(self, n_arms: int, *, seed: int) -> None:
            self.inner = FTRL(n_arms, Simple(scale), seed=seed)

        def ask(self) -> Any:
            return self.inner.ask()

        def tell(self, round: int, loss: float) -> None:
            self.inner.tell(round, loss)

    return Learner


def make_nested(scale: Any) -> Any:
    return make_outer(lambda: scale)


def make_outer(scale: Any) -> Any:
    def function(n_arms: int, seed: int) -> FTRL:
        return FTRL(n_arms, Simple(scale()), seed=seed)

    function.fingerprint = "1"  # type: ignore[attr-defined]
    return function


def make_algorithm(scale: Any) -> Any:
    return mine("mine", "1", scale)


@pytest.mark.parametrize(
    "make",
    [make_function, make_default, make_class, make_method, make_nested, make_algorithm],
    ids=lambda f: f.__name__,
)
def test_what_a_function_made_with_other_settings_is_another_player(make: Any, tmp_path: Path) -> None:
    """They have one name and one fingerprint. Without their settings, one would get the games of the other."""

    def kept(scale: float) -> str:
        comparison = Comparison([lab.named("mine", make(scale))], "wave", "fixed:d=5", arms=3, rounds=50, seeds=1)
        return heard(comparison, tmp_path)

    assert kept(1.0) == kept(100.0) == ""
    assert "1 of 1" in kept(1.0)


def test_losses_that_a_function_made_with_other_settings_are_other_losses(tmp_path: Path) -> None:
    def losses(loss: float) -> lab.Reacting:
        def rule(n_arms: int, _n_rounds: int, _generator: Any) -> Any:
            while True:
                yield [loss] * n_arms

        return lab.Reacting(rule, fingerprint="1")

    heard_of = [heard(Comparison(("bold",), losses(loss), rounds=20, seeds=1), tmp_path) for loss in (0.5, 0.6, 0.5)]
    assert heard_of[:2] == ["", ""]
    assert "1 of 1" in heard_of[2]


def test_functions_that_hold_each_other_have_a_fingerprint() -> None:
    def one() -> Any:
        return two

    def two() -> Any:
        return one

    assert fingerprint._held(one) == [["two", two.__qualname__, []]]
    endless: list[Any] = []
    endless.append(endless)
    assert fingerprint._held(lambda: (endless, late)) == [["endless", "list", []]]  # type: ignore[has-type]
    late = 1


def test_settings_are_told_apart_by_value_and_kind() -> None:
    values: list[Any] = [
        1,
        1.0,
        True,
        "1",
        None,
        np.float64(1),
        (1,),
        [1],
        {"a": 1},
        {"b": 1},
        0.1,
        np.nextafter(0.1, 1),
    ]
    values += [
        np.ones(2),
        np.ones(2, np.float32),
        np.ones((2, 1)),
        Shadow(),
        Shadow(switch_threshold=1.6),
        Late(1),
        Late(2),
    ]
    assert len({fingerprint.fingerprint_of(value) for value in values}) == len(values)
    assert fingerprint.fingerprint_of(Late(1)) == fingerprint.fingerprint_of(Late(1))
    with pytest.raises(InvalidInput, match="an object of your own"):
        fingerprint.fingerprint_of(FTRL(3))  # a learner has a generator inside


def test_a_folder_that_cannot_be_written_stops_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "games").touch()
    with pytest.raises(StoreError, match=r"a game cannot be kept in .*games: File exists"):
        compare(SMALL, folder=tmp_path)


def test_a_game_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    compare(SMALL, folder=tmp_path)
    path = files(tmp_path)[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match=r"cannot be read: Is a directory\. Make it readable or delete it"):
        compare(SMALL, folder=tmp_path)


def test_an_interrupted_sweep_keeps_every_finished_game(tmp_path: Path) -> None:
    def interrupt(setting: Any) -> Any:
        if setting.seed == 1 and not done.is_set():
            done.set()
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(2.0)  # the main thread needs its turn
        return Simple()

    done = threading.Event()  # a list would count as a setting of the function
    slow = lab.Algorithm("slow", "-", "-", "nothing", "-", interrupt, fingerprint="1")
    comparison = Comparison(("zs20-simple", slow), rounds=100, seeds=3)
    with pytest.warns(UnfinishedWarning, match="slow"):
        rows = compare(comparison, folder=tmp_path).rows
    assert [row.algorithm.name for row in rows] == ["zs20-simple"]
    assert heard(comparison, tmp_path) in [f"{n} of 6 games were in {tmp_path} already" for n in (4, 5)]
    assert same(compare(comparison, folder=tmp_path), compare(comparison))


def test_bounds_that_are_missing_stay_missing(tmp_path: Path) -> None:
    regrets = [np.array([0.1, -0.0]), np.array([np.pi, 1e300]), np.array([1, np.nan]), np.array([2.0, 3.0])]
    arms: Any = np.array([[1, 0, 0], [2, 3, 1]], np.int32)
    played = Played(regrets[0], regrets[1], regrets[2], regrets[3], arms, evidence=-0.25)
    finished_games.write(tmp_path, "key", finished_games.FinishedGame(played, 0.5, None, 1.5))
    found = finished_games.read(tmp_path, "key", 2, 3)
    assert found is not None
    assert found[1:] == (0.5, None, 1.5)
    pairs: Any = [map(np.asarray, pair) for pair in zip(found.played, played, strict=True)]
    for kept, part in pairs:
        assert (kept.dtype, kept.shape, kept.tobytes()) == (part.dtype, part.shape, part.tobytes())
    assert finished_games.read(tmp_path, "key", 3, 3) is None
    assert finished_games.read(tmp_path, "key", 2, 2) is None
    assert compare(Comparison(("masoudian-2024",), rounds=50, seeds=1), folder=tmp_path).rows[0].bound is None


@pytest.mark.parametrize("function", ["log", "sin", "exp", "log1p"])
def test_a_machine_that_computes_other_bits_has_another_environment(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit in one of the functions is enough. Losses and delays are drawn with them."""
    here, exact = fingerprint.environment()["arithmetic"], getattr(np, function)

    def off_by_one_bit(values: Any) -> Any:
        result = exact(values)
        result[17] = np.nextafter(result[17], np.inf)
        return result

    monkeypatch.setattr(np, function, off_by_one_bit)
    assert fingerprint.environment.__wrapped__()["arithmetic"] != here
