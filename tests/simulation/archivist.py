"""An operator who archives and erases while servers run. The command may be killed at any call of its journal."""

from typing import TYPE_CHECKING, Any, Final, final

from greenlet import greenlet

from belated.errors import StoreError
from belated.serve.archive.settling import settle
from belated.serve.domain.entries import EntryKind
from belated.serve.store.bases import is_removed_by
from belated.serve.store.journal import Removal
from belated.serve.store.removal import begin, loaded, put_base, remove
from tests.simulation.journal import SimulatedJournal
from tests.simulation.model import SKEW
from tests.simulation.servers import FaultyLine

if TYPE_CHECKING:
    from tests.simulation.world import World

GRACES: Final = (0, 20, 100)  # turns that servers get to read of a base


@final
class Archivist:
    """Runs one command after another. To the model it is a server without a state."""

    number = -1

    def __init__(self, world: "World") -> None:
        self._world, self._skew = world, world.random.randint(-SKEW, SKEW)
        self.is_cut = self.has_broken_disk = False
        self.since, self.losses, self.engine = world.now, 0, None
        self.journal: SimulatedJournal | None = None
        self._task: greenlet | None = None

    def clock(self) -> int:
        return self._world.now + self._skew

    def turn(self) -> None:
        """Begin a command now and then, or go on with it."""
        if self._task is None or self._task.dead:
            if self._world.random.random() > 0.1:
                return
            self._task = greenlet(self._run)
        self._task.switch()

    def crash(self) -> None:
        """Kill the command where it is."""
        if self._task is not None and not self._task.dead:
            self._task.throw()

    def _run(self) -> None:
        world = self._world
        self.since, self.losses, self.has_broken_disk = world.now, world.model.losses, False
        self.journal = journal = SimulatedJournal(world.database, FaultyLine(world, self))  # type: ignore[arg-type]
        try:
            fold = loaded(journal)
            which = self._choice(fold.seq)
            base = put_base(journal, fold, self.clock())
            removal = Removal(base.seq, **which)
            going = [one.seq for one in world.database.entries.values() if is_removed_by(removal, one)]
            settle(journal, journal.find(going).values(), fold.tail.short_mark(), self.clock())
            for _ in range(world.random.choice(GRACES)):
                world.pause("the command waits for the servers")
            begin(journal, base, 0.0)
            world.happened["removed"] += remove(journal, removal)
        except StoreError as error:
            world.note(f"the command fails: {error}")

    def _choice(self, until: int) -> dict[str, Any]:
        world = self._world
        there = [one for one in world.database.entries.values() if one.seq <= until]
        decisions = [one.seq for one in there if one.kind is EntryKind.DECIDED]
        dice = world.random.random()
        if dice < 0.2:
            return (
                {"experiments": tuple(world.random.sample(sorted(world.database.names.values()), 1))} if there else {}
            )
        if dice < 0.6:
            return {"decisions_until": world.random.randint(0, until)}
        return {"decisions": tuple(world.random.sample(decisions, len(decisions) // 4))}
