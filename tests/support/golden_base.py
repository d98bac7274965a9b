"""Writes a store whose early entries were removed, to check that later releases can still read its base."""

import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

from belated.serve.domain.fold import VERSION
from tests.support import histories
from tests.support.engines import Driven
from tests.support.removals import removed


def write(path: Path) -> dict[str, tuple[int, int]]:
    """Write the store, and return the decisions and the open decisions of each experiment."""
    with tempfile.TemporaryDirectory() as folder:
        driven, generator = Driven(Path(folder), seed=7), np.random.default_rng(7)
        histories.begin(driven)
        histories.live(driven, generator, 60)
        removed(driven.engine.journal, at=driven.clock.now, decisions_until=100)
        driven.engine.catch_up()
        histories.live(driven, generator, 10)
        experiments = driven.engine.fold.by_name.items()
        counts = {name: (one.counts.decisions, one.counts.outstanding) for name, one in experiments}
        driven.engine.journal.close()
        with closing(apsw.Connection(str(driven.path))) as database:
            database.execute("VACUUM INTO ?", (str(path),))
    return counts


if __name__ == "__main__":
    target = Path(__file__).parents[1] / "serve" / "data" / f"store-with-base-of-version-{VERSION}.db"
    print(target.name, write(target))  # noqa: T201
