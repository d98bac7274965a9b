"""Problems from the literature as named data, with the numbers that their papers printed."""

from belated.lab.literature.papers import (
    chapelle_li_2011,
    dzhoha,
    gael_2020,
    li_2019,
    without_numbers,
    zimmert_seldin_2019,
)
from belated.lab.literature.records import Case, Paper, Published

__all__ = ["PAPERS", "Case", "Paper", "Published"]
PAPERS: tuple[Paper, ...] = (
    chapelle_li_2011.PAPER,
    zimmert_seldin_2019.PAPER,
    li_2019.PAPER,
    gael_2020.PAPER,
    dzhoha.BERNOULLI,
    dzhoha.STROKE,
    without_numbers.THUNE_2019,
    without_numbers.JOULANI_2013,
    without_numbers.VERNADE_2017,
    without_numbers.VERNADE_2020_LINEAR,
    without_numbers.VERNADE_2020_STATES,
)
