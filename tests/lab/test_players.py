"""What may play, under which name, and what is refused with the fix."""

import copy
import math
import random
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from belated import FTRL, Decision, baselines, bounds, cli, lab
from belated.cli.lab import split_algorithms
from belated.errors import GameError, ImproperRule, InvalidInput, RepeatWarning, SharedRandomnessWarning
from belated.lab.algorithms import setting_of
from belated.lab.comparisons.compare import compare
from belated.tunings import Advanced, Exp3, Means, Shadow, Simple, Tsallis, Tuning
from tests.support.catalogue import Own
from tests.support.sweeps import files

WAVE = lab.Problem(lab.Wave(), lab.Fixed(20), n_arms=4, n_rounds=300)


def regret(player: Any, seeds: Any = 3) -> Any:
    return lab.play(player, WAVE, seeds).expected


class Mine:
    """The default learner in disguise."""

    def __init__(self, n_arms: int, *, seed: int, scale: float = 1.0) -> None:
        self.inner = FTRL(n_arms, Simple(scale), seed=seed)
        self.n_arms = n_arms

    @property
    def outstanding(self) -> int:
        return self.inner.outstanding

    def ask(self) -> Decision:
        return self.inner.ask()

    def tell(self, decision: Decision | int, loss: float) -> None:
        self.inner.tell(decision, loss)

    def distribution(self) -> Any:
        return self.inner.distribution()


def make_mine(n_arms: int, seed: int, scale: float = 1.0) -> Mine:
    return Mine(n_arms, seed=seed, scale=scale)


@pytest.mark.parametrize(
    ("player", "same_as", "name"),
    [
        ("zs20-simple", Simple(), "zs20-simple"),
        ("zs20-simple:scale=2", Simple(2), "zs20-simple:scale=2"),
        ("simple:scale=2", Simple(2), "simple:scale=2"),
        ("zs20-discard:scale=2", Advanced(2, discard=True), "zs20-discard:scale=2"),
        ("advanced:scale=2,discard=True", Advanced(2, discard=True), "advanced:scale=2,discard=True"),
        ("dew:eta=0.25", Exp3(0.25), "dew:eta=0.25"),
        ("shadow:scale=2,switch_threshold=1", Shadow(2, 1), "shadow:scale=2,switch_threshold=1"),
        (Shadow(scale=2), Shadow(2), "Shadow(scale=2)"),
        (Shadow(), "shadow", "Shadow()"),
        (Own(), Simple(2), "Own()"),
        (Tsallis, Tsallis(), "Tsallis"),
        (Mine, Simple(), "Mine"),
        (make_mine, Simple(), "make_mine"),
        (FTRL(4, Simple(2), seed=99), Simple(2), "FTRL(Simple(scale=2))"),
        (lambda n_arms, seed: Mine(n_arms, seed=seed), Simple(), "function"),
        (lab.named("me", Mine), Simple(), "me"),
        (lab.named("me", "shadow:scale=2"), Shadow(2), "me"),
        (lab.named("me", lab.find("dew")), "dew", "me"),
    ],
)
def test_anything_plays_under_its_name(player: Any, same_as: Any, name: str) -> None:
    np.testing.assert_array_equal(regret(player), regret(same_as))
    comparison = lab.Comparison([player, "uniform"], WAVE.losses, WAVE.delays, arms=4, rounds=300, seeds=3)
    assert [algorithm.name for algorithm in comparison.players] == [name, "uniform"]
    (row,) = [row for row in compare(comparison).rows if row.algorithm.name == name]
    direct = lab.play(same_as, WAVE, 3, checkpoints=lab.default_checkpoints(300).tolist())
    np.testing.assert_array_equal(row.curves.expected, direct.expected)


def test_a_learner_of_the_table_takes_settings() -> None:
    def make(n_arms: int, seed: int) -> Any:
        return baselines.Composite(n_arms, 30, seed=seed)

    np.testing.assert_array_equal(regret("composite:d=30"), regret(make))


def test_names_that_are_derived_are_unique() -> None:
    first, second = (lambda n_arms, seed: FTRL(n_arms, seed=seed) for _ in range(2))
    comparison = lab.Comparison([first, second, Mine, lab.named("x", Mine)])
    assert [algorithm.name for algorithm in comparison.players] == ["function", "function 2", "Mine", "x"]
    with pytest.raises(
        InvalidInput, match=r"compared once only, got Shadow\(\), Shadow\(\)\. For another name use lab.named"
    ):
        lab.Comparison([Shadow(), Shadow()])
    for wrong in ("", "two\nlines"):
        with pytest.raises(InvalidInput, match="the name of an algorithm must be a text"):
            lab.named(wrong, Mine)


def test_a_tuning_of_mine_has_its_certificate_as_the_bound() -> None:
    setting = setting_of(WAVE, 0)
    for player, bound in (
        (Own(), bounds.certificate(4, setting.delays, Own())),
        ("simple:scale=2", bounds.certificate(4, setting.delays, Simple(2))),
        (Means(scale=2), bounds.means_worst_case(4, setting.delays, Means(scale=2))),
        (lab.named("x", "bold"), lab.find("bold").bound(setting)),
        (Mine, None),
    ):
        assert lab.Comparison([player]).players[0].bound(setting) == bound


def test_seeds_are_a_number_or_themselves() -> None:
    np.testing.assert_array_equal(regret(Simple(), 3), regret(Simple(), [0, 1, 2]))
    results = compare(lab.Comparison(("zs20-simple",), WAVE.losses, WAVE.delays, arms=4, rounds=300, seeds=[5, 3]))
    (row,) = results.rows
    assert row.curves.seeds.tolist() == [5, 3]
    assert results.tidy()["seed"].unique().sort().to_list() == [3, 5]
    assert "2 seeds" in results.title
    np.testing.assert_array_equal(row.curves.expected, lab.play(Simple(), WAVE, [5, 3]).expected)
    for wrong in (0, -1, [], [1, 1], "8", 1.5, [0.5], None, True):
        with pytest.raises(InvalidInput, match="seed"):
            lab.play(Simple(), WAVE, wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="seed"):
            lab.Comparison(("dew",), seeds=wrong)  # type: ignore[arg-type]


# What cannot play


def test_a_learner_instance_is_reseeded_or_refused() -> None:
    learner = FTRL(4, Simple(), seed=1, refresh=2)
    played = lab.play(learner, WAVE, 3)
    by_function = lab.play(lambda n_arms, seed: FTRL(n_arms, Simple(), seed=seed, refresh=2), WAVE, 3)
    np.testing.assert_array_equal(played.expected, by_function.expected)
    assert played.interval[-1] > 0
    learner.ask()
    one = Mine(4, seed=1)
    with pytest.raises(InvalidInput, match=r"has already played\. .* Give the class, or a function \(n_arms, seed\)"):
        lab.play(learner, WAVE, 1)
    with pytest.raises(InvalidInput, match=r"cannot be given a new seed.*Give the class, or a function"):
        lab.play(one, WAVE, 2)
    np.testing.assert_array_equal(regret(one, [1]), regret(Simple(), [1]))
    assert one.inner.round == 0  # a copy has played
    one.ask()
    with pytest.raises(InvalidInput, match="has already played"):
        lab.play(one, WAVE, [1])


def test_games_that_share_a_learner_or_random_numbers_are_refused() -> None:
    generator = np.random.default_rng(1)

    class Sharing(Mine):
        def __init__(self, n_arms: int, *, seed: int) -> None:
            super().__init__(n_arms, seed=seed)
            self.helpers = {"draws": [generator]}

    for workers in (1, 2):
        learner = Mine(4, seed=1)
        for player in (lambda _n_arms, _seed, learner=learner: learner, Sharing):
            with pytest.raises(InvalidInput, match="gave two games the same learner, or two learners with one random"):
                lab.play(player, WAVE, 2, workers=workers)
    untouched = Counter()
    with pytest.raises(InvalidInput, match=r"seed 1, round 1: .*A learner plays one game only") as caught:
        lab.play(lambda _n_arms, _seed: untouched, WAVE, 2)
    assert "has the round 302" in str(caught.value)  # it was asked once more, for what would be another game


@pytest.mark.filterwarnings("default::belated.errors.SharedRandomnessWarning")
@pytest.mark.filterwarnings("default::belated.errors.RepeatWarning")
def test_the_command_tells_of_random_numbers_that_all_share(tmp_path: Path) -> None:
    path = tmp_path / "shared.py"
    path.write_text(
        "import numpy as np\nfrom belated import FTRL\n"
        "def mine(n_arms, seed):\n    return FTRL(n_arms, seed=np.random.randint(2**31))\n"
    )
    wanted = ["compare", "--algorithms", f"{path}:mine", "--rounds", "20", "--seeds", "2"]
    result = CliRunner().invoke(cli.app, wanted, catch_exceptions=False)
    output = result.output
    assert result.exit_code == 0
    assert "Warning. " in output
    assert "random numbers of the module numpy.random were drawn" in output
    assert "SharedRandomnessWarning" not in output


GLOBAL = np.random.default_rng(1)


class DrawsFromGlobal(Mine):
    """Draws from a generator that stands beside the class."""

    def ask(self) -> Decision:
        assert all(GLOBAL.random() < 1 for _ in range(2))  # named in a function inside
        return super().ask()


class NamesGlobal(Mine):
    """Has an attribute of the same name, which is another thing."""

    GLOBAL = 3

    def ask(self) -> Decision:
        assert self.GLOBAL == 3
        return super().ask()


def test_learners_that_draw_from_one_global_generator_are_refused() -> None:
    def enclosed(generator: Any) -> Any:
        def make(n_arms: int, seed: int) -> Mine:
            return Mine(n_arms, seed=seed + int(generator.integers(1000)))

        return make

    for player in (DrawsFromGlobal, enclosed(np.random.default_rng(1)), enclosed(GLOBAL)):
        for workers in (1, 2):
            with pytest.raises(InvalidInput, match="two learners with one random generator"):
                lab.play(player, WAVE, 2, workers=workers)
        with warnings.catch_warnings(action="ignore", category=RepeatWarning):
            alone = lab.play(player, WAVE, 1)
        assert alone.is_whole
        assert alone.is_repeatable == (player is DrawsFromGlobal)  # which does not use what it draws
    np.testing.assert_array_equal(regret(NamesGlobal), regret(Mine))


def test_learners_that_share_an_array_are_refused() -> None:
    class Learnt(Counter):
        def __init__(self, array: Any) -> None:
            super().__init__()
            self.helpers = [{"losses": array}]

    class Shared:
        losses, table = np.zeros(4), np.zeros((9, 4))

    given = [lambda: Shared.losses, lambda: Shared.losses[::-1], lambda: Shared.table[2:5].T, lambda: Shared.table]
    for get in given:
        player: Any = lambda _n_arms, _seed, get=get: Learnt(get())  # noqa: E731
        for workers in (1, 2):
            with pytest.raises(InvalidInput, match=r"share an array, .* array\.flags\.writeable = False"):
                lab.play(player, WAVE, 3, workers=workers)
    lab.play(lambda _n_arms, _seed: Learnt(Shared.losses.copy()), WAVE, 3)
    lab.play(lambda _n_arms, seed: Learnt(Shared.table[:, seed]), WAVE, 3)  # columns of their own
    Shared.losses.flags.writeable = False
    lab.play(lambda _n_arms, _seed: Learnt(Shared.losses), WAVE, 3)


def test_a_seed_that_is_ignored_is_refused() -> None:
    class Drawing(Counter):
        def __init__(self, *draws: Any) -> None:
            super().__init__()
            self.draws, self.last = draws[:-1], draws[-1]

    def drawing(sources: Callable[[int], list[Any]]) -> Callable[[int, int], Drawing]:
        return lambda _n_arms, seed: Drawing(*sources(seed))

    makers: list[Callable[[int], Any]] = [
        np.random.default_rng,
        np.random.RandomState,
        np.random.PCG64,
        random.Random,
        lambda seed: FTRL(4, seed=seed),
    ]

    def check(make: Callable[[int], Any]) -> None:
        for workers in (1, 2):
            with pytest.raises(InvalidInput, match=r"gave the same random numbers to the seeds \d and \d. Pass"):
                lab.play(drawing(lambda _seed: [make(7)]), WAVE, 2, workers=workers)
        lab.play(drawing(lambda seed: [make(7), make(seed)]), WAVE, 2)
        player = lab.named("one", drawing(lambda seed: [make(seed)]))
        for seeds in ([1, 2], [2, 3]):
            lab.play(player, WAVE, seeds)

    for make in makers:
        check(make)
    lab.play(lambda _n_arms, _seed: Drawing(random.SystemRandom()), WAVE, 2)
    lab.play(lambda _n_arms, _seed: Counter(), WAVE, 2)  # draws nothing


@pytest.mark.parametrize("algorithm", lab.ALGORITHMS, ids=lambda one: one.name)
def test_every_algorithm_of_the_table_uses_its_seed(algorithm: lab.Algorithm) -> None:
    lab.play(lab.named("other", algorithm), WAVE, 2)


@pytest.mark.parametrize("package", ["river", "SMPyBandits", "coba", "mabwiser"])
def test_a_policy_of_another_package_is_sent_to_its_adapter(package: str) -> None:
    class UCB:
        def __repr__(self) -> str:
            raise ValueError("no rewards yet")  # as those of river do

    UCB.__module__ = f"{package}.bandit.ucb"
    for player in (UCB(), UCB):
        with pytest.raises(
            InvalidInput, match=rf"UCB is of {package}.* Use belated.adapters.{package.lower()}.learner"
        ):
            lab.play(player, WAVE, 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"Use belated\.adapters"):
        lab.Comparison([UCB()])


class Counter:
    """Plays every arm in turn, without random numbers."""

    outstanding = 0

    def __init__(self) -> None:
        self.n_arms, self.t = 4, 0

    def ask(self) -> Decision:
        self.t += 1
        return Decision(self.t, self.t % 4, 1.0)

    def tell(self, decision: Decision | int, loss: float) -> None:
        pass


class NoSeed(Counter):
    """Takes no seed."""

    def __init__(self, n_arms: int) -> None:
        super().__init__()


class Unfinished(Tuning):
    """Has no rates."""


@pytest.mark.parametrize(
    ("player", "message"),
    [
        (7, "cannot play 7"),
        (None, "cannot play None"),
        (NoSeed, r"NoSeed\(n_arms, seed=seed\) cannot be called.*Give the class, or a function"),
        (lambda _: None, r"function\(n_arms, seed\) cannot be called"),
        (Exp3, "Exp3 cannot be made with its settings"),
        (Unfinished, "Unfinished cannot play. It has no rates"),
        (dict, "dict is neither a tuning nor a class of learners"),
        ("nobody", "unknown algorithm 'nobody'"),
        ("mine.py", "mine.py is a file. Write mine.py:NAME"),
        ("missing.py:X", "missing.py: No such file"),
        ("shadow:scle=2", "unknown setting of shadow 'scle'. Did you mean scale"),
        ("shadow:scale=big", "scale must be a number, got 'big'"),
        ("shadow:scale=-1", "scale must be a positive finite number"),
        ("advanced:discard=2", "discard must be a truth value .true or false., got '2'"),
        ("masoudian2022:longest_delay=1.5", "longest_delay must be a whole number, got '1.5'"),
        ("exp3", "Exp3 cannot be made with its settings"),
        ("uniform:x=1", "uniform has no settings"),
        ("composite:d=1", "d must be a whole number from 2"),
        (FTRL(3), "the learner has 3 arms, but the problem has 4"),
        (FTRL(["a", "b", "c", "d"]), "without names or outcomes"),
    ],
)
def test_what_cannot_play_is_refused_before_any_work(player: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        lab.play(player, WAVE, 1)
    with pytest.raises(InvalidInput, match=message):
        lab.Comparison([player, "dew"], arms=4)


def test_a_comparison_needs_algorithms() -> None:
    empty: list[Any] = [(), [], "dew", None, 3]
    for wrong in empty:
        with pytest.raises(InvalidInput, match="algorithms must be one or more names"):
            lab.Comparison(wrong)


class Faulty(Counter):
    """Fails in one of its methods, in the fifth round."""

    def __init__(self, n_arms: int, *, seed: int, fails: str) -> None:
        super().__init__()
        self.fails = fails
        if fails == "make":
            raise KeyError("missing")

    def ask(self) -> Decision:
        if self.fails == "ask" and self.t == 4:
            raise InvalidInput("from inside")
        return super().ask()

    def tell(self, decision: Decision | int, loss: float) -> None:
        if self.fails == "tell" and self.t == 4:
            raise IndexError


@pytest.mark.parametrize(
    ("fails", "message", "cause"),
    [
        ("make", r"could not be made \(KeyError: 'missing'\)", KeyError),
        ("ask", r"failed to decide round 5 \(InvalidInput: from inside\)", InvalidInput),
        ("tell", r"failed to take a report at the end of round 4 \(IndexError", IndexError),
    ],
)
def test_a_crash_says_where_and_keeps_its_cause(fails: str, message: str, cause: type[Exception]) -> None:
    def faulty(n_arms: int, seed: int) -> Faulty:
        return Faulty(n_arms, seed=seed, fails=fails)

    problem = lab.Problem(lab.Bernoulli(), lab.NoDelay(), 4, 20)
    with pytest.raises(GameError, match=rf"^faulty, seed 3: it {message}") as caught:
        lab.play(faulty, problem, [3])
    assert isinstance(caught.value.__cause__, cause)


def test_no_game_is_charged_for_running_its_file(tmp_path: Path) -> None:
    """On Dask a worker runs it when the first game begins."""
    path = tmp_path / "slow.py"
    path.write_text(
        "import time\nfrom belated.tunings import Simple\n"
        "until = time.thread_time() + 0.5\nwhile time.thread_time() < until: pass\nmine = Simple()\n"
    )
    found = lab.find(f"{path}:mine")
    for name in [name for name in sys.modules if name.startswith("belated_file_slow_")]:
        del sys.modules[name]  # as in another process
    assert lab.play(found, WAVE, 1).seconds < 0.4


def unreadable(_self: Any) -> Any:
    raise ZeroDivisionError("no")


def exits(_self: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("feedback", np.array(["sum", "loss"]), r"its feedback must be one of loss, sum, vector, got array"),
        ("feedback", property(unreadable), r"its attributes cannot be read \(ZeroDivisionError: no\)"),
        ("needs_delay", np.array([True, False]), r"its attributes cannot be read \(ValueError"),
        ("n_arms", np.array([4, 4]), r"its attributes cannot be read \(ValueError"),
        ("ask", exits, r"it failed to decide round 1 \(SystemExit: 3\)"),
    ],
)
def test_odd_attributes_are_refused(attribute: str, value: Any, message: str) -> None:
    odd: Any = type("Odd", (), {"ask": lambda _: None, "tell": lambda *_: None, attribute: value})
    with pytest.raises((InvalidInput, GameError), match=f"^odd, seed 3: {message}"):
        lab.play(lab.named("odd", lambda _n_arms, _seed: odd()), WAVE, [3])


class Crashing(Tuning):
    """A rule that fails in the fifth round."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return 1.0 / (round - 5), 1.0


def test_a_rule_that_crashes_says_so() -> None:
    with pytest.raises((GameError, ImproperRule), match="Crashing"):
        lab.play(Crashing(), WAVE, 1)

    class Dividing(Tuning):
        def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
            return round / outstanding, 1.0

    with pytest.raises(GameError, match=r"Dividing.., seed 2: its rates failed \(ZeroDivisionError") as caught:
        lab.play(Dividing(), WAVE, [2])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_algorithm_must_give_a_player() -> None:
    for gives, message in ((lambda _: 3, "it must give a tuning"), (lambda _: 1 / 0, "could not be prepared")):
        wrong = lab.Algorithm("wrong", "-", "-", "nothing", "-", gives)  # type: ignore[arg-type]
        with pytest.raises((InvalidInput, GameError), match=f"(?i)wrong.*{message}"):
            lab.play(wrong, WAVE, 1)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (lambda _: 1 / 0, r"failed \(ZeroDivisionError"),
        (lambda _: "3", "must be a number, or None if there is none, got '3'"),
        (lambda _: math.nan, "must be a number, or None if there is none, got nan"),
        (lambda _: np.ones(2), "must be a number, or None if there is none, got array"),
    ],
)
def test_a_bound_is_a_number_or_none(bound: Any, message: str) -> None:
    wrong = lab.Algorithm("wrong", "-", "-", "nothing", "-", lambda _: Simple(), bound)
    with pytest.raises((InvalidInput, GameError), match=f"wrong, seed 0: its bound {message}"):
        compare(lab.Comparison([wrong], arms=2, rounds=5, seeds=1))


class DrawsFromNumPy(Mine):
    """Draws from the generator that all of NumPy shares."""

    def ask(self) -> Decision:
        np.random.random()  # noqa: NPY002
        return super().ask()


class DrawsFromPython(Mine):
    """Draws from the generator that all of Python shares."""

    def ask(self) -> Decision:
        random.random()  # noqa: S311  (a simulation)
        return super().ask()


@pytest.mark.parametrize(
    ("player", "module"), [(DrawsFromNumPy, r"numpy\.random"), (DrawsFromPython, "random")], ids=["NumPy", "Python"]
)
@pytest.mark.parametrize(
    "play",
    [
        lambda player: lab.play(player, WAVE, 2, workers=2),
        lambda player: lab.compare(lab.Comparison([player, "means"], rounds=20, arms=3, seeds=2)),
        lambda player: lab.sweep({"algorithms": ["means", player], "rounds": 20, "arms": 3, "seeds": 2}),
    ],
    ids=["play", "compare", "sweep"],
)
def test_random_numbers_that_all_share_are_told(player: Any, module: str, play: Callable[[Any], Any]) -> None:
    message = f"^{player.__name__}: random numbers of the module {module} were drawn"
    with pytest.warns(SharedRandomnessWarning, match=message) as told:
        play(player)
    assert [warning.filename for warning in told] == [__file__]


# Files


SOURCE = '''
"""Players of mine."""

import math
from dataclasses import dataclass

from belated import FTRL, lab
from belated.tunings import Simple, Tuning


@dataclass(frozen=True)
class Mine(Tuning):
    """A rule of mine."""

    scale: float = 1.0

    def rates(self, n_arms, round, outstanding, backlog):
        return math.sqrt(round), self.scale * math.sqrt(2 * backlog / math.log(n_arms))


made = Mine(2.0)


def function(n_arms, seed, scale=1.0, word="no", count: int = 1, flag: bool = False):
    assert (type(word), type(count), type(flag)) == (str, int, bool)
    return FTRL(n_arms, Simple(scale), seed=seed)


def anything(n_arms, seed, **settings):
    return FTRL(n_arms, Simple(settings["scale"]), seed=seed)


learner = FTRL(4, Simple(2.0), seed=1)
whole = lab.Algorithm("whole", "an algorithm", "me", "nothing", "-", lambda _: Simple(2.0), lambda _: 77.0)
number = 3
'''


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(
    "name",
    [
        "Mine:scale=2",
        "made",
        "made:scale=2",
        "function:scale=2,word=yes,count=3,flag=true",
        "anything:scale=2",
        "learner",
        "whole",
    ],
)
def test_a_name_in_a_file_plays(mine: str, name: str) -> None:
    np.testing.assert_array_equal(regret(f"{mine}:{name}"), regret(Simple(2)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Mne", "unknown name in .*mine.py 'Mne'. Did you mean"),
        ("", "unknown name in .*mine.py ''"),
        ("Mine:scle=2", "unknown setting of .*mine.py:Mine 'scle'. Did you mean scale"),
        ("function:count=x", "count must be a whole number, got 'x'"),
        ("number", "number is 3, which cannot play"),
        ("learner:scale=2", "this one has no settings, so leave out 'scale=2'"),
        ("function:n_arms=3", "unknown setting"),
    ],
)
def test_a_name_in_a_file_that_cannot_play_is_refused(mine: str, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        lab.find(f"{mine}:{name}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\nimport nothing_like_it\n", "fails in line 2. ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("x = 1\n\nx = = 2\n", "fails in line 3. SyntaxError"),
        ("raise SystemExit(3)\n", "fails in line 1. SystemExit: 3"),
        (b"\xff\xfe", "is not a Python file in UTF-8"),
    ],
)
def test_a_file_that_fails_says_where(tmp_path: Path, code: Any, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(code if isinstance(code, bytes) else code.encode())
    before = set(sys.modules)
    with pytest.raises(InvalidInput, match=message):
        lab.find(f"{path}:Mine")
    assert not [name for name in set(sys.modules) - before if "broken" in name]


def test_a_changed_file_is_read_again_and_its_games_are_new(mine: str, tmp_path: Path) -> None:
    def told(*names: str) -> str:
        messages: list[str] = []
        comparison = lab.Comparison([f"{mine}:{name}" for name in names], rounds=50, seeds=2)
        compare(comparison, folder=tmp_path / "out", tell=messages.append)
        return " ".join(messages)

    assert told("Mine") == ""
    assert "2 of 2 games" in told("Mine")
    assert told("Mine:scale=2") == ""
    assert "4 of 6 games" in told("Mine", "Mine:scale=2", "function:scale=3")
    Path(mine).write_text(SOURCE.replace("2 * backlog", "3 * backlog"))
    assert told("Mine") == ""
    assert "2 of 2 games" in told("Mine")


def test_players_that_are_kept_are_told_apart(tmp_path: Path) -> None:
    players: list[Any] = [Simple(), Simple(2), Shadow(), Tsallis, FTRL, FTRL(4, Simple()), FTRL(4, Simple(), refresh=2)]
    players += [baselines.BOLD, "simple:scale=3", "composite:d=30", "composite:d=31", lab.named("me", "bold")]
    for number, player in enumerate(players, 1):
        comparison = lab.Comparison([lab.named("one name", player)], arms=4, rounds=20, seeds=1)
        compare(comparison, folder=tmp_path)
        assert len(files(tmp_path)) == number
    mine = type("Mine", (Mine,), {"fingerprint": "1"})
    compare(lab.Comparison([mine], rounds=20, seeds=1), folder=tmp_path)
    for wrong in (Mine, make_mine, lambda n_arms, seed: Mine(n_arms, seed=seed), Own(), Counter()):
        with pytest.raises(InvalidInput, match=r"attribute `fingerprint`.*as in mine.py:MyLearner"):
            compare(lab.Comparison([wrong], arms=4, rounds=20, seeds=1), folder=tmp_path)


# Packages


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Installs a package as pip does, into a folder of its own."""

    def installed(name: str, points: str, code: str, version: str = "1.0") -> Path:
        folder = tmp_path / f"{name}-{version}"
        about = folder / f"{name}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text(f"[belated.algorithms]\n{points}\n")
        (folder / f"{name}.py").write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return folder

    return installed


def listed() -> str:
    result = CliRunner().invoke(cli.app, ["list"], catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return result.output


def test_the_package_of_the_page_plays(install: Any) -> None:
    """The code and the entry point are those of docs/players.md."""
    page = (Path(__file__).parents[2] / "docs" / "players.md").read_text()
    code = page.split("`greedy_bandits.py`")[1].split("```python\n")[1].split("```")[0]
    points = page.split('[project.entry-points."belated.algorithms"]\n')[1].split("\n```")[0]
    install("greedy_bandits", points.replace('"', ""), code)
    assert "greedy " in listed()
    assert "(greedy_bandits 1.0)" in listed()
    comparison = lab.Comparison(
        ["greedy", "greedy:share=0.5", "uniform"], "bernoulli:gap=0.4", "none", rounds=400, seeds=3
    )
    ranked = [row.algorithm.name for row in compare(comparison).rows]
    assert ranked == ["greedy", "greedy:share=0.5", "uniform"]


def test_entry_points_are_kept_by_version_and_source(install: Any, tmp_path: Path) -> None:
    code = "from belated import FTRL\n\n\ndef make(n_arms, seed):\n    return FTRL(n_arms, seed=seed)\n"
    for number, (version, text) in enumerate([("1.0", code), ("2.0", code), ("3.0", code + "\n")], 1):
        install("mypackage", "theirs = mypackage:make", text, version)
        sys.path_importer_cache.clear()
        comparison = lab.Comparison(["theirs"], rounds=20, seeds=1)
        for _ in range(2):
            compare(comparison, folder=tmp_path / "out")
            assert len(files(tmp_path / "out")) == number
        sys.path.pop(0)


def test_broken_entry_points_are_listed_and_stop_nothing(install: Any) -> None:
    install("broken_one", "shattered = broken_one:make", "raise RuntimeError('oh [no]')\n")
    install(
        "gone", "vanished = nowhere_at_all:make\nnameless = gone:missing\nunplayable = gone:x\nbold = gone:x", "x = 3\n"
    )
    install("first", "both = first:x", "x = 1\n")
    install("second", "both = second:x", "x = 1\n")
    output = " ".join(listed().split())
    for text in (
        "shattered cannot be used. shattered of broken_one 1.0 cannot be loaded. RuntimeError: oh [no]",
        "vanished of gone 1.0 cannot be loaded. ModuleNotFoundError: No module named 'nowhere_at_all'",
        "nameless of gone 1.0 cannot be loaded. AttributeError",
        "unplayable is 3, which cannot play",
        "both is in more than one package (first, second). Uninstall all but one",
        "bold cannot be used, because an algorithm of Belated has this name",
    ):
        assert text in output, output
    with pytest.raises(InvalidInput, match=r"shattered of broken_one 1\.0 cannot be loaded"):
        lab.find("shattered")
    with pytest.raises(InvalidInput, match="Did you mean shattered"):
        lab.find("shaterred")
    assert lab.find("bold").mark == "read"


# The command


def test_a_list_with_commas_keeps_settings_together() -> None:
    assert split_algorithms("a,b:c=1,d=2, e ,,mine.py:f:g=1,h=2,i") == ["a", "b:c=1,d=2", "e", "mine.py:f:g=1,h=2", "i"]
    assert split_algorithms("a=1") == ["a=1"]


LIAR = """

from belated import Decision


class Liar:
    outstanding = 0

    def __init__(self, n_arms, *, seed):
        self.n, self.t = n_arms, 0

    def distribution(self):
        return [1 / self.n] * self.n

    def ask(self):
        self.t += 1
        return Decision(self.t, 0, 1 / self.n)

    def tell(self, decision, loss):
        pass
"""


def test_the_command_compares_a_file_and_marks_a_liar(mine: str) -> None:
    Path(mine).write_text(SOURCE + LIAR)
    arguments = ["compare", "--algorithms", f"bold,shadow:scale=2,switch_threshold=1,{mine}:Mine,{mine}:Liar"]
    arguments += ["--losses", "bernoulli:gap=0.5", "--arms", "2", "--rounds", "500", "--seeds", "2"]
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False, env={"COLUMNS": "300"})
    assert result.exit_code == 0
    assert "mine.py:Liar !" in result.output
    assert "mine.py:Liar: distribution() does not fit the arms that ask() draws" in result.output
    assert result.output.count(" !") == 1
    assert "shadow:scale=2,switch_threshold=1 " in result.output


@dataclass(frozen=True)
class Frozen(Tuning):
    """A rule with settings that are shown if they are not the default."""

    scale: float = 1.0
    words: tuple[str, ...] = ("a",)

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        return 1.0, self.scale


def test_settings_of_a_tuning_are_in_its_name() -> None:
    names = [
        lab.Comparison([player]).players[0].name
        for player in (Frozen(), Frozen(2), Frozen(2, ("b",)), copy.copy(Frozen(0.5)))
    ]
    assert names == ["Frozen()", "Frozen(scale=2)", "Frozen(scale=2, words=('b',))", "Frozen(scale=0.5)"]
