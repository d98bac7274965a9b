"""Whatever a caller may give as a player, as an algorithm of the lab."""

import copy
import dataclasses
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable
from weakref import WeakKeyDictionary

from belated import bounds
from belated.errors import InvalidInput
from belated.lab.algorithms import shared
from belated.lab.algorithms.algorithm import Algorithm, Game, Player, Setting
from belated.lab.algorithms.settings import signature_of
from belated.learner.decisions import Learner, MakeLearner
from belated.learner.ftrl import FTRL, check_plain
from belated.tunings import Means, Tuning

_lock = threading.Lock()
_used: "WeakKeyDictionary[Given, dict[int, Any]]" = WeakKeyDictionary()  # generators of the learners made so far
_starts: "WeakKeyDictionary[Given, dict[str, int]]" = WeakKeyDictionary()  # how they started, with the first seed
_memory: "WeakKeyDictionary[Given, shared.Memory]" = WeakKeyDictionary()  # of the first learner
TAKEN = ("n_arms", "seed")  # what the game gives to whatever makes a learner
ADAPTERS = ("coba", "mabwiser", "river", "smpybandits")  # packages whose policies play through belated.adapters
FIX = "Give the class, or a function (n_arms, seed) that makes a learner"


@runtime_checkable
class Source(Protocol):
    """Where a player is found, as plain data. It can be sent to another process, which finds it there again."""

    @property
    def fingerprint(self) -> str:
        """A text that differs whenever the code does."""

    def load(self) -> Any:
        """The player itself."""


@final
@dataclass(frozen=True, eq=False)
class Given:
    """What a caller gave, as the player of an algorithm."""

    what: Any
    settings: tuple[tuple[str, Any], ...] = ()

    def __call__(self, setting: Setting) -> Player:
        player = self.alone(setting)
        return player if isinstance(player, Tuning | Game) else self.apart(player)

    def alone(self, setting: Setting) -> Player:
        """The same, without a look at other games."""
        what = self.what.load() if isinstance(self.what, Source) else self.what
        return prepared(what, dict(self.settings), setting)

    @property
    def is_learner(self) -> bool:
        """Whether a learner was given, and not what makes one."""
        return not isinstance(self.code, type) and hasattr(self.code, "ask")

    @property
    def code(self) -> Any:
        """The function or the class behind it."""
        return self.what.load() if isinstance(self.what, Source) else self.what

    def apart(self, make: MakeLearner) -> MakeLearner:
        """Makes the same learners, but refuses one that has random numbers or arrays of an earlier one."""
        used, starts = _used.setdefault(self, {}), _starts.setdefault(self, {})
        memory, what = _memory.setdefault(self, shared.Memory()), self.code

        def made(n_arms: int, seed: int) -> Learner:
            learner = make(n_arms, seed)
            found = {id(one): one for one in shared.generators_of(learner)}
            code = {id(one): one for part in (what, type(learner)) for one in shared.generators_in_code(part)}
            with _lock:
                is_learnt = memory.is_in(learner)
                is_shared = not (found | code).keys().isdisjoint(used)
                used.update(found | code)  # kept, because another object may get the number of one that is gone
                start = shared.start_of(found.values())
                first = starts.setdefault(start, seed) if start else seed
            if is_shared:
                raise InvalidInput(
                    f"{name_of(self.what)} gave two games the same learner, or two learners with one random generator. "
                    "Their results would depend on the order of the games. Make both anew for each seed"
                )
            if is_learnt:
                raise InvalidInput(
                    f"{name_of(self.what)} gave two games learners that share an array, so one could learn from the "
                    "game of the other. Make it anew for each learner. If none changes it, set array.flags.writeable = "
                    "False"
                )
            if first != seed:
                raise InvalidInput(
                    f"{name_of(self.what)} gave the same random numbers to the seeds {first} and {seed}. Pass the seed "
                    "on, as in np.random.default_rng(seed)"
                )
            return learner

        return made

    def bound(self, setting: Setting) -> float | None:
        """The bound of the algorithm that was given, or the certificate of a tuning."""
        what = self.what.load() if isinstance(self.what, Source) else self.what
        if isinstance(what, Algorithm) and not self.settings:
            return what.bound(setting)
        player = prepared(what, dict(self.settings), setting)
        if isinstance(player, Means):
            return bounds.means_worst_case(setting.n_arms, setting.delays, player)
        return bounds.certificate(setting.n_arms, setting.delays, player) if isinstance(player, Tuning) else None


def prepared(what: Any, settings: Mapping[str, Any], setting: Setting) -> Player:
    """What plays a game, from anything that was given."""
    if isinstance(what, Algorithm):
        player = what.player(setting)
        if not settings:
            return player
        what = player
    if isinstance(what, Tuning):
        return dataclasses.replace(what, **settings) if settings else what  # type: ignore[type-var]
    if isinstance(what, type) and issubclass(what, Tuning):
        tuning: Tuning = what(**settings)
        return tuning
    if isinstance(what, type):
        return lambda n_arms, seed: what(n_arms, seed=seed, **settings)
    if hasattr(what, "ask"):
        return _again(what)
    make: Callable[..., Learner] = what
    return lambda n_arms, seed: make(n_arms, seed, **settings)


def kind_of(name: str, player: Player) -> Callable[..., Any]:
    """The class behind a player of the table, whose settings can be set."""
    if isinstance(player, Tuning):
        return type(player)
    made: Any = player(2, 0) if callable(player) else player
    if isinstance(made, FTRL):
        raise InvalidInput(f"{name} has no settings")
    return type(made)


def settings_of_ftrl(learner: FTRL[Any]) -> dict[str, Any]:
    """What makes a learner like this one, apart from its arms and its seed."""
    status = learner.status
    return {name: getattr(status, name) for name in ("tuning", "refresh", "provisional", "floor")}


def _again(learner: Any) -> Callable[[int, int], Any]:
    """Makes new learners like one that has not played yet. A subclass of FTRL may have anything else inside."""
    if type(learner) is FTRL:
        settings = settings_of_ftrl(learner)
        return lambda n_arms, seed: FTRL(n_arms, seed=seed, **settings)
    return lambda _n_arms, _seed: copy.deepcopy(learner)


def as_algorithm(player: Any, name: str | None = None) -> Algorithm:
    """Anything that can play, as an algorithm. Refuses what cannot play at all."""
    if isinstance(player, Algorithm):
        if name is None:
            return player
        given = player.player if isinstance(player.player, Given) else Given(player)
        return dataclasses.replace(player, name=name, player=given)
    check(player)
    given = Given(player)
    summary = (inspect.getdoc(player) or "").partition("\n")[0]
    return Algorithm(name_of(player) if name is None else name, summary, "-", "-", "-", given, given.bound)


def check(player: Any) -> None:
    """Refuse what cannot play, or has played already."""
    if isinstance(player, Tuning):
        return
    if hasattr(player, "ask") and not isinstance(player, type):
        check_plain(player, "a game")
        if getattr(player, "round", 0) or getattr(player, "outstanding", 0):
            raise InvalidInput(f"{player!r:.100} has already played. A game begins with a new one. {FIX}")
        return
    check_package(player)
    if not callable(player):
        raise InvalidInput(
            f"cannot play {player!r:.100}. Give a name, a tuning, an algorithm, a new learner, a class of learners, or "
            "a function (n_arms, seed) that makes one"
        )
    check_callable(player, {})


def check_package(player: Any) -> None:
    """Refuse a policy of a package that has an adapter. Some of them fail when they are shown, so this shows none."""
    kind = player if isinstance(player, type) else type(player)
    package = kind.__module__.partition(".")[0]
    if package.lower() in ADAPTERS and not hasattr(kind, "ask"):
        raise InvalidInput(
            f"{kind.__name__} is of {package} and has no ask and tell. "
            f"Use belated.adapters.{package.lower()}.learner(...) (docs/adapters.md)"
        )


def check_callable(player: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse a class or function that cannot be called as a game does."""
    name, is_class = name_of(player), isinstance(player, type)
    is_tuning = is_class and issubclass(player, Tuning)  # type: ignore[arg-type]
    if is_class and inspect.isabstract(player):
        missing = ", ".join(sorted(getattr(player, "__abstractmethods__", ())))
        raise InvalidInput(f"{name} cannot play. It has no {missing}")
    if is_class and not is_tuning and not hasattr(player, "ask"):
        raise InvalidInput(f"{name} is neither a tuning nor a class of learners, which have ask and tell. {FIX}")
    signature = signature_of(player)
    try:
        if signature is not None and is_tuning:
            signature.bind(**settings)
        elif signature is not None and is_class:
            signature.bind(2, seed=0, **settings)
        elif signature is not None:
            signature.bind(2, 0, **settings)
    except TypeError as error:
        if is_tuning:
            raise InvalidInput(f"{name} cannot be made with its settings ({error})") from None
        how = "n_arms, seed=seed" if is_class else "n_arms, seed"
        raise InvalidInput(f"{name}({how}) cannot be called with its settings ({error}). {FIX}") from None


def check_games(algorithm: Algorithm, n_arms: int, n_seeds: int) -> None:
    """Refuse a learner that does not fit the problem, or cannot play for several seeds."""
    learner = algorithm.player.what if isinstance(algorithm.player, Given) else None
    if learner is None or isinstance(learner, type) or not hasattr(learner, "ask"):
        return
    own = getattr(learner, "n_arms", n_arms)
    if own != n_arms:
        raise InvalidInput(f"the learner has {own} arms, but the problem has {n_arms}")
    if n_seeds > 1 and type(learner) is not FTRL:
        raise InvalidInput(
            f"{learner!r:.100} cannot be given a new seed, so every game would have the same random numbers. {FIX}"
        )


def name_of(player: Any) -> str:
    """A short name for what was given."""
    if isinstance(player, Tuning):
        return _name_of_tuning(player)
    if type(player) is FTRL:
        return f"FTRL({_name_of_tuning(player.status.tuning)})"
    called = getattr(player, "__name__", None) or type(player).__name__
    return "function" if called == "<lambda>" else str(called)


def _name_of_tuning(tuning: Tuning) -> str:
    """The tuning as it is written in Python, without the settings that have their default."""
    fields = getattr(tuning, "__dataclass_fields__", {})
    defaults = {key: repr(one.default) for key, one in fields.items()}
    values = {key: value for key, value in vars(tuning).items() if repr(value) != defaults.get(key)}
    written = ", ".join(f"{key}={_short(value)}" for key, value in values.items())
    return f"{type(tuning).__name__}({written})"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value!r:.20}"


def with_unique_names(algorithms: Iterable[Algorithm], derived: Sequence[bool]) -> list[Algorithm]:
    """The same algorithms. Of those whose derived names are equal, the second and later ones get a number."""
    seen: dict[str, int] = {}
    named: list[Algorithm] = []
    for algorithm, is_derived in zip(algorithms, derived, strict=True):
        count = seen[algorithm.name] = seen.get(algorithm.name, 0) + 1
        if count > 1 and is_derived:
            algorithm = dataclasses.replace(algorithm, name=f"{algorithm.name} {count}")  # noqa: PLW2901
        named.append(algorithm)
    return named
