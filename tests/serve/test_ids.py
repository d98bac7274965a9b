"""Decision ids hold an entry number and a nonce that nobody can guess."""

from uuid import UUID

import numpy as np
import pytest

from belated.serve.domain import ids
from belated.serve.engine import drawing

LONG = [-1, -(2**63), 2**63 - 1, 2**34, -(2**34), 0x0123456789ABCDEF]
SHORT = [0, 1, 2**34 - 1]


@pytest.mark.parametrize("seq", [1, 2**40 - 1, 2**58 - 1])
@pytest.mark.parametrize("nonce", LONG)
def test_an_id_comes_back(seq: int, nonce: int) -> None:
    text = ids.encode(1_700_000_000_123_456, seq, nonce)
    assert ids.decode(text) == ids.decode(text.upper()) == (None, seq, nonce)
    assert (UUID(text).version, str(UUID(text))) == (8, text)


@pytest.mark.parametrize("nonce", SHORT)
def test_an_id_of_an_older_release_comes_back(nonce: int) -> None:
    text = ids.encode(1_700_000_000_123_456, 2**40 - 1, nonce)
    assert ids.decode(text) == (1_700_000_000_123, 2**40 - 1, nonce)
    assert UUID(text).version == 7


def test_ids_of_an_older_release_are_what_they_were() -> None:
    assert ids.encode(1_700_000_000_123_456, 77, 12345) == "018bcfe5-687b-7000-8000-013400003039"


def test_ids_sort_as_their_decisions() -> None:
    numbers = [1, 2, 15, 16, 2**20, 2**48, 2**58 - 1]
    made = [
        ids.encode(0, seq, nonce) for seq, nonce in zip(numbers, np.resize(LONG, len(numbers)).tolist(), strict=True)
    ]
    assert made == sorted(made)


def test_every_bit_of_a_nonce_is_random() -> None:
    made = np.array(drawing.nonces(10_000), np.int64).view(np.uint64)
    assert len(set(made.tolist())) == 10_000
    shares = [float(np.mean(made >> np.uint64(bit) & np.uint64(1))) for bit in range(64)]
    assert 0.47 < min(shares) <= max(shares) < 0.53


def test_a_new_nonce_is_never_short(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter([np.array([5, -7], np.int64), np.array([2**34, 2**34 - 1], np.int64), np.array([9**19, -1], np.int64)])
    monkeypatch.setattr("belated.serve.engine.drawing.secrets.token_bytes", lambda _: next(given).tobytes())
    assert drawing.nonces(2) == [9**19, -1]
