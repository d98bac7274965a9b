"""A learner whose game depends on more than its seed is noticed."""

import threading
import time
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from belated import FTRL, Decision, cli, lab
from belated.errors import RepeatWarning
from belated.lab.games import repeating
from belated.tunings import Tsallis

SAYS = "a new learner with the same seed plays other arms"


def worn(n_arms: int, _n_rounds: int, _generator: Any) -> Generator[Any, int, None]:
    wear = np.zeros(n_arms)
    while True:
        arm = yield wear
        wear = 0.9 * wear
        wear[arm] += 0.1


WORLDS: dict[str, tuple[Any, Any]] = {
    "fixed": (lab.Bernoulli(means=[0.5, 0.1, 0.9]), lab.Geometric(mean=5)),
    "by arm": (lab.Bernoulli(means=[0.5, 0.1, 0.9]), lab.ArmDelays([lab.Fixed(3), lab.Fixed(1), lab.NoDelay()])),
    "reacting": (lab.Reacting(worn), lab.Fixed(3)),
}


def problem_of(world: str, n_rounds: int = 500) -> lab.Problem:
    return lab.Problem(*WORLDS[world], n_arms=3, n_rounds=n_rounds)


class Greedy:
    """Plays the best mean so far, and any arm in a tenth of the rounds."""

    fingerprint = "1"

    def __init__(self, n_arms: int, *, seed: int) -> None:
        self.k, self.t, self.arms = n_arms, 0, dict[int, int]()
        self.generator, self.seen = np.random.default_rng(seed), {arm: [0.0] for arm in range(n_arms)}

    def ask(self) -> Decision:
        means = [np.mean(self.seen[arm]) for arm in range(self.k)]
        arm = int(self.generator.integers(self.k)) if self.generator.random() < 0.1 else int(np.argmin(means))
        self.t += 1
        self.arms[self.t] = arm
        return Decision(self.t, arm, 1.0)

    def tell(self, round: int, loss: float) -> None:
        self.seen[self.arms.pop(round)].append(loss)


def remembering() -> type[Greedy]:
    """A class whose learners all learn into one dictionary."""

    class Remembering(Greedy):
        known: dict[int, list[float]] = {}  # noqa: RUF012  (a mistake, on purpose)

        def __init__(self, n_arms: int, *, seed: int) -> None:
            super().__init__(n_arms, seed=seed)
            for arm in range(n_arms):
                self.known.setdefault(arm, [0.0])
            self.seen = self.known

    return Remembering


class Unseeded(Greedy):
    """Ignores its seed."""

    def __init__(self, n_arms: int, *, seed: int) -> None:
        super().__init__(n_arms, seed=seed)
        self.generator = np.random.default_rng()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_learner_that_is_not_made_anew_is_noticed(world: str, workers: int) -> None:
    for player in (remembering(), Unseeded):
        with pytest.warns(RepeatWarning, match=f"^{player.__name__}: {SAYS}") as told:
            curves = lab.play(player, problem_of(world), 3, workers=workers)
        assert [one.filename for one in told] == [__file__]
        assert not curves.is_repeatable


def test_a_game_beside_the_first_one_hides_nothing() -> None:
    """The second game would begin with what the first one has learned, and play the same when it is repeated."""
    is_taught, is_over = threading.Event(), threading.Event()
    base: Any = remembering()

    class Waiting(base):  # type: ignore[misc]
        def __init__(self, n_arms: int, *, seed: int) -> None:
            super().__init__(n_arms, seed=seed)
            self.seed = seed

        def ask(self) -> Decision:
            if self.seed == 0 and self.t == 100:
                is_taught.set()
                is_over.wait(0.5)
                time.sleep(0.2)  # until the second game has been repeated
            if self.seed == 1 and self.t == 0:
                is_taught.wait(1)
            if self.seed == 1 and self.t == 499:
                is_over.set()
            decision: Decision = super().ask()
            return decision

    with pytest.warns(RepeatWarning, match=f"^Waiting: {SAYS}"):
        lab.play(Waiting, problem_of("fixed"), 2, workers=2)


def delayed(n_arms: int, seed: int) -> Any:
    """Knows the delay of a round, and plays by it."""

    class Knowing(Greedy):
        needs_delay = True

        def ask(self, delay: int) -> Decision:  # type: ignore[override]
            return super().ask() if delay % 2 else Decision(super().ask().round, 0, 1.0)

        def tell(self, round: int, loss: float) -> None: ...

    return Knowing(n_arms, seed=seed)


@pytest.mark.parametrize("world", WORLDS)
def test_an_honest_learner_is_not_noticed(world: str) -> None:
    """A warning would be an error here."""
    for n_rounds in (1, repeating.ROUNDS, 1100):
        players: list[Any] = [Greedy, lambda n_arms, seed: FTRL(n_arms, Tsallis(), seed=seed)]
        for player in [*players, delayed] if world == "fixed" else players:
            assert lab.play(player, problem_of(world, n_rounds), 2).is_repeatable


def test_a_learner_that_was_given_is_asked_no_more_than_its_game_needs() -> None:
    class Spy(Greedy):
        asked = 0

        def ask(self) -> Decision:
            Spy.asked += 1
            return super().ask()

    lab.play(Spy(3, seed=1), problem_of("fixed"), 1)  # type: ignore[arg-type]
    assert Spy.asked == 500


def test_a_learner_that_can_be_made_only_once_is_noticed() -> None:
    made: list[int] = []

    def once(n_arms: int, seed: int) -> Greedy:
        made.append(seed)
        if made.count(seed) > 1:
            raise OSError("the port is taken")
        return Greedy(n_arms, seed=seed)

    with pytest.warns(RepeatWarning, match=f"^once: {SAYS}"):
        lab.play(once, problem_of("fixed"), 2)  # type: ignore[arg-type]
    assert sorted(made) == [0, 0, 1]


def test_comparisons_and_sweeps_tell_it_once_also_of_games_that_were_kept(tmp_path: Path) -> None:
    losses, delays = WORLDS["fixed"]
    settings = {"losses": losses, "delays": delays, "arms": 3, "rounds": 300, "seeds": 2}
    for folder in (None, tmp_path, tmp_path):  # the last time nothing is played
        with pytest.warns(RepeatWarning, match=f"^Unseeded: {SAYS}") as told:
            results = lab.compare({**settings, "algorithms": [Unseeded, Greedy, "bold"]}, folder=folder)
        assert [one.filename for one in told] == [__file__]
        assert [row.algorithm.name for row in results.rows if not row.curves.is_repeatable] == ["Unseeded"]
    with pytest.warns(RepeatWarning, match=f"^Unseeded: {SAYS}") as told:
        lab.sweep({**settings, "rounds": [200, 300], "algorithms": [Unseeded, Greedy]})
    assert [one.filename for one in told] == [__file__]


@pytest.mark.filterwarnings("default::belated.errors.RepeatWarning")
def test_the_command_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from tests.lab.test_repeating import Unseeded\n")
    wanted = ["compare", "--algorithms", f"{path}:Unseeded,bold", "--arms", "3", "--rounds", "300", "--seeds", "2"]
    output = CliRunner().invoke(cli.app, wanted).output
    assert output.count(SAYS) == 1


@dataclass  # so it has no hash
class Unhashable:
    """Makes a player for each game."""

    kind: type[Greedy]

    def __call__(self, _setting: lab.Setting) -> Any:
        return lambda n_arms, seed: self.kind(n_arms, seed=seed)


def test_a_player_that_cannot_be_a_key_is_looked_at_too() -> None:
    class Bound:
        def make(self, _setting: lab.Setting) -> Any:
            return lambda n_arms, seed: Unseeded(n_arms, seed=seed)

    for player, is_fine in ((Unhashable(Greedy), True), (Unhashable(Unseeded), False), (Bound().make, False)):
        one = lab.Algorithm("one", "-", "-", "nothing", "-", player=player)
        with warnings.catch_warnings(action="ignore", category=RepeatWarning):
            assert lab.play(one, problem_of("fixed"), 2).is_repeatable == is_fine


def test_the_table_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its systems are tested to use their seeds, so their games take no more time than before."""
    monkeypatch.setattr(repeating, "_is_same", lambda *_: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lab.play("bold", problem_of("fixed"), 2)
    mine = lab.named("mine", "bold")
    for _ in range(2):
        with pytest.warns(RepeatWarning):
            lab.play(mine, problem_of("fixed"), 2)
