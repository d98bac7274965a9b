"""Results as text, LaTeX and Markdown."""

import math
from collections.abc import Sequence

from belated.errors import InvalidInput
from belated.lab.comparisons.row import Row

HEADINGS = ("algorithm", "regret", "+-", "pseudo-regret", "+-", "bound", "/ lower", "rounds/s", "needs in advance")
LATEX_HEADINGS = ("Algorithm", "Regret", "Pseudo-regret", "Proven bound", r"Regret / lower bound")
MEANING = "! The distribution does not fit the drawn arms, so the expected regret means nothing."
SUFFERED = "* The algorithm does not say its distribution, so this is its suffered regret."
SPECIAL = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",  # would be an argument of the line break before it, and so would *
    "*": "{*}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
}


def short(value: float | None) -> str:
    """A number with about three digits, or - if there is none. A small negative one is 0.0 and not -0.0."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.1f}"


def name_of(row: Row) -> str:
    """The name of the algorithm. Marks say that its expected regret means nothing, or is the suffered one."""
    if row.curves.is_suspicious:
        return f"{row.algorithm.name} !"
    return row.algorithm.name if row.curves.has_distribution else f"{row.algorithm.name} *"


def meaning_of_mark(rows: Sequence[Row]) -> str:
    """What the mark of an algorithm says, in one line. Empty if none has it."""
    return MEANING if any(row.curves.is_suspicious for row in rows) else ""


def meaning_of_star(rows: Sequence[Row]) -> str:
    """What the other mark says, in one line. Empty if none has it."""
    return "" if all(row.curves.has_distribution for row in rows) else SUFFERED


def meanings(rows: Sequence[Row]) -> list[str]:
    """What the marks of the algorithms say, a line each."""
    return list(filter(None, (meaning_of_mark(rows), meaning_of_star(rows))))


def ratio_of(row: Row) -> str:
    """The regret divided by the lower bound, or - if there is none or the algorithm does not learn."""
    return "-" if row.ratio is None or not row.is_learner else f"{row.ratio:.1f}"


def text_of(row: Row) -> tuple[str, ...]:
    """The cells of HEADINGS."""
    return (
        name_of(row),
        short(row.regret),
        short(row.interval),
        short(row.pseudo),
        short(row.pseudo_interval),
        short(row.bound),
        ratio_of(row),
        f"{row.curves.rounds_per_second:,.0f}",
        row.algorithm.needs,
    )


def markdown(rows: Sequence[Row]) -> str:
    """A table for Markdown."""
    lines = [HEADINGS, ("---", *("---:" for _ in HEADINGS[1:-1]), "---"), *map(text_of, rows)]
    table = "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines) + "\n"
    return table + "".join(f"\n{meaning}\n" for meaning in meanings(rows))


def latex(rows: Sequence[Row], caption: str | None, label: str | None) -> str:
    """A table for the package booktabs. The least regret and the least pseudo-regret of a learner are bold."""
    learners = [row for row in rows if row.is_learner and not row.curves.is_suspicious]
    best = min((row.regret for row in learners), default=math.nan)
    best_pseudo = min((row.pseudo for row in learners if not math.isnan(row.pseudo)), default=math.nan)
    body = [
        (
            escaped(name_of(row)),
            _measured(row.regret, row.interval, is_best=row.regret == best),
            _measured(row.pseudo, row.pseudo_interval, is_best=row.pseudo == best_pseudo),
            _number(row.bound),
            f"${ratio_of(row)}$" if ratio_of(row) != "-" else "--",
        )
        for row in rows
    ]
    below = rf"\multicolumn{{{len(LATEX_HEADINGS)}}}{{l}}{{\footnotesize %s}} \\"
    tabular = [
        r"\begin{tabular}{l" + "r" * (len(LATEX_HEADINGS) - 1) + "}",
        r"\toprule",
        *(" & ".join(line) + r" \\" for line in (LATEX_HEADINGS,)),
        r"\midrule",
        *(" & ".join(line) + r" \\" for line in body),
        r"\bottomrule",
        *(below % meaning for meaning in meanings(rows)),
        r"\end{tabular}",
    ]
    return "\n".join(_within_table(tabular, caption, label)) + "\n"


def _within_table(tabular: list[str], caption: str | None, label: str | None) -> list[str]:
    """The lines inside a table environment, if there is a caption or a label."""
    for what, text in (("caption", caption), ("label", label)):
        if not isinstance(text, str | None):
            raise InvalidInput(f"the {what} must be text, got {text!r:.200}")
    if caption is None and label is None:
        return tabular
    around = [r"\begin{table}", r"\centering"]
    around += [rf"\caption{{{escaped(caption)}}}"] if caption is not None else []
    around += [rf"\label{{{label}}}"] if label is not None else []
    return [*around, *tabular, r"\end{table}"]


def escaped(text: str) -> str:
    """Text with the characters that LaTeX reads as commands escaped."""
    return "".join(SPECIAL.get(character, character) for character in text)


def _number(value: float | None) -> str:
    text = short(value).replace(",", "{,}").replace("inf", r"\infty")
    return "--" if text == "-" else f"${text}$"


def _measured(mean: float, half: float, *, is_best: bool) -> str:
    """A mean with its interval."""
    if math.isnan(mean):
        return "--"
    number = short(mean).replace(",", "{,}")
    number = rf"\mathbf{{{number}}}" if is_best else number
    return f"${number}$" if math.isnan(half) else rf"${number} \pm {short(half).replace(',', '{,}')}$"
