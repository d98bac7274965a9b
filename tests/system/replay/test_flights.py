"""The script that derives the shipped flights from their source."""

from tests.replay.test_flights import DIGEST, digest


def test_the_script_makes_the_shipped_file() -> None:
    from belated.replay.data import derive  # noqa: PLC0415

    assert digest(derive.derive()) == DIGEST
