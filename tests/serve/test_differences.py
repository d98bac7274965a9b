"""Applying a difference to the old document gives the new one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.serve.http.differences import difference
from tests.support.patches import patched

PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text("a/~0", max_size=3)
DOCUMENTS = st.recursive(
    PLAIN, lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), one, max_size=4)
)


@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_leads_to_the_new_document(old: Any, new: Any) -> None:
    assert patched(old, difference(old, new)) == new


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]}, []),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [{"op": "replace", "path": "/b", "value": 3}]),
        ({"at": [*range(99)]}, {"at": [*range(100)]}, [{"op": "add", "path": "/at/-", "value": 99}]),
        ({"at": [*range(99)]}, {"at": [1, 2]}, [{"op": "replace", "path": "/at", "value": [1, 2]}]),
    ],
)
def test_only_what_has_changed_is_said(old: Any, new: Any, operations: Any) -> None:
    assert difference(old, new) == operations
