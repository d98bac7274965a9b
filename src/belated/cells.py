"""A table of text. It needs no library, so commands of the service can print one too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Table:
    """Cells as text. The first column is a label, and the others are aligned as numbers unless `is_text`."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    is_text: bool = False
    is_folded: bool = False  # it is long and shown on demand
