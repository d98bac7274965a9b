"""Text in CSV files that spreadsheets do not run as a formula."""

import re
from typing import Final

FORMULA: Final = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")  # also the wide forms of the first four


def text_cell(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula. `belated replay` removes it.

    Text that has apostrophes before such a character gets one more, so that the first can always be removed.
    """
    return f"'{text}" if FORMULA.match(text) else text
