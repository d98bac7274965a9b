"""`belated list` and `belated compare`."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from belated import lab
from belated.cli.application import app, console
from belated.cli.tables import print_cells
from belated.errors import BelatedError, MismatchWarning, UnfinishedWarning
from belated.folders import make_folder
from belated.lab.algorithms import ALGORITHMS, BY_NAME, entry_points, find
from belated.lab.algorithms.entry_points import FromPackage
from belated.lab.algorithms.specs import TUNINGS
from belated.lab.comparisons import dask_games
from belated.lab.comparisons.comparison import Comparison, read_toml
from belated.lab.comparisons.results import FILES, Results
from belated.lab.comparisons.tables import HEADINGS, meaning_of_star, short
from belated.lab.literature.naming import PROBLEMS, note_of_losses, settings_of_problem
from belated.lab.problems.parsing import AROUND, AROUND_LOSSES, DELAYS, LOSSES, SEVERAL, settings_of
from belated.progress import while_busy
from belated.reports import Table as Cells
from belated.suggestions import unknown_name

INTERRUPTED = 130  # the exit status after Ctrl-C, as of other programs


@app.command("list")
def list_() -> None:
    """Show the algorithms, losses and delays that can be compared, a line each."""
    lines = ["[bold]algorithms[/bold] (source, what it needs in advance, mark)"]
    for algorithm in ALGORITHMS:
        about = f"{algorithm.citation}, needs {algorithm.needs}, {algorithm.mark}"
        lines.append(f"  [cyan]{algorithm.name:22}[/cyan] {algorithm.summary} ({about})")
    lines.extend(["\n[bold]tunings[/bold] (for other settings, as in shadow:scale=2)"])
    lines.extend(_line(name, kind) for name, kind in TUNINGS.items())
    lines.append("\n[bold]algorithms of other packages, and your own[/bold]")
    lines.extend(map(_of_package, entry_points.installed().values()))
    lines.append("  An algorithm of your own is mine.py:NAME, a file and a name in it (docs/players.md).")
    for title, known in (("losses", {**LOSSES, **AROUND_LOSSES}), ("delays", {**DELAYS, **AROUND, **SEVERAL})):
        lines.append(f"\n[bold]{title}[/bold]")
        lines.extend(_line(name, rule) for name, rule in known.items())
    lines.append(f"\n[bold]problems of the literature[/bold], for --problem\n  {', '.join(PROBLEMS)}")
    lines.append("\nA file (.csv, .parquet, .npy) works for both. RULE stands for any other one.")
    console.print("\n".join(lines), soft_wrap=True, highlight=False)


def _line(name: str, rule: type) -> str:
    """A rule's name with its settings, and its first sentence."""
    fields = settings_of(rule).values()
    settings = ",".join(_told(field) for field in fields if field.default is not None)
    summary = (rule.__doc__ or "").splitlines()[0]
    optional = ", ".join(field.name for field in fields if field.default is None)
    summary += f" May be set: {optional}." if optional else ""
    called = ":".join(filter(None, (name, settings, "RULE" if name in {**AROUND, **AROUND_LOSSES} else "")))
    called = f"{name}:RULE+RULE" if name in SEVERAL else called
    return f"  [cyan]{called:34}[/cyan] {summary}"


def _told(field: Any) -> str:
    """A setting with its default. One without is shown as a list of numbers, or only by its name."""
    if field.default is not MISSING:
        return f"{field.name}={field.default}"
    return f"{field.name}=A/B" if "Sequence" in str(field.type) else str(field.name)


def _of_package(point: FromPackage) -> str:
    """An algorithm of another package, or why it cannot be used."""
    where = escape(f"{point.package} {point.version}")
    try:
        about = find(point.name).summary or "-"
    except BelatedError as error:
        about = f"cannot be used. {error}"
    if point.name in (*BY_NAME, *TUNINGS):
        about = "cannot be used, because an algorithm of Belated has this name"
    return f"  [cyan]{escape(point.name):22}[/cyan] {escape(about)} ({where})"


def tell(message: str) -> None:
    """Print a line about the games."""
    console.print(message, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def without_warnings() -> Iterator[None]:
    """No warnings of the lab. What is printed below the table says the same. Other warnings are printed as a line."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: tell(f"Warning. {message}")
        for kind in (MismatchWarning, UnfinishedWarning):
            warnings.simplefilter("ignore", kind)
        yield


def play(comparison: Comparison, workers: int, dask: str | None, out: Path | None) -> Results:
    """Play a comparison here or on Dask."""
    with nullcontext() if dask is None else dask_games.connect(dask, workers) as client, without_warnings():
        if out is not None:
            make_folder(out)
        try:
            return lab.compare(comparison, workers=workers, client=client, folder=out, tell=tell)
        except KeyboardInterrupt:
            if out is not None:
                tell(f"Interrupted. Finished games are in {out}. Run the same command again to play the rest.")
            raise


def show(results: Results) -> None:
    """Print the ranked table."""
    cells = Cells(results.title, HEADINGS, results.summary())
    print_cells(cells, console, texts=(HEADINGS.index("needs in advance"),))
    for warning in results.warnings:
        tell(f"! {warning}")
    remarks = meaning_of_star(results.rows), results.note, note_of_losses(results.comparison.losses)
    for remark in filter(None, remarks):
        tell(remark)


def show_differences(results: Results, against: str | None) -> None:
    """Print how much more regret each algorithm has than one of them, on the same seeds."""
    differences = results.differences(against)
    if not differences:
        return
    if len(results.comparison.seed_numbers) == 1:
        tell("One seed says nothing about chance. So no interval and no winner is shown. Play two or more seeds.")
        return
    title = f"regret minus that of {differences[0].against}, on the same seeds"
    rows = [(one.algorithm, short(one.mean), short(one.interval), one.winner or "not known") for one in differences]
    print_cells(Cells(title, ("algorithm", "difference", "+-", "less regret"), rows), console, texts=(3,))


def split_algorithms(text: str) -> list[str]:
    """The algorithms of a list with commas. A setting after a comma belongs to the algorithm before it.

    >>> split_algorithms("bold, shadow:scale=2,switch_threshold=1")
    ['bold', 'shadow:scale=2,switch_threshold=1']
    """
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if names and re.match(r"\w+\s*=", part):
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


@app.command()
def compare(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file with algorithms, losses, delays, arms, rounds or seeds. Flags take precedence."
        ),
    ] = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas, such as bold,shadow:scale=2,mine.py:MyLearner. The default is all."
        ),
    ] = None,
    problem: Annotated[
        str | None, typer.Option(help="A problem of the literature by name. It sets losses, delays, arms and rounds.")
    ] = None,
    losses: Annotated[
        str | None, typer.Option(help=f"A rule, such as bernoulli:gap=0.2, or a file. [{Comparison.losses}]")
    ] = None,
    delays: Annotated[
        str | None, typer.Option(help=f"A rule, such as geometric:mean=50, or a file. [{Comparison.delays}]")
    ] = None,
    arms: Annotated[int | None, typer.Option(help=f"Number of arms. [{Comparison.arms}]")] = None,
    rounds: Annotated[int | None, typer.Option(help=f"Number of rounds. [{Comparison.rounds}]")] = None,
    seeds: Annotated[int | None, typer.Option(help=f"Games for each algorithm. [{Comparison.seeds}]")] = None,
    against: Annotated[
        str | None, typer.Option(help="Show paired differences from this one. [the learner with the least regret]")
    ] = None,
    workers: Annotated[int, typer.Option(help="Threads, or processes with --dask local.")] = 2,
    dask: Annotated[
        str | None,
        typer.Option(help="Play on Dask. Give the address of its scheduler, such as tcp://10.0.0.1:8786, or local."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"A folder for {', '.join(FILES[:-1])} and {FILES[-1]}. Every game is kept there as it ends, "
            "and the same command again plays only the missing ones."
        ),
    ] = None,
) -> None:
    """Compare algorithms on one problem. Prints a ranked table and can write results and a figure."""
    settings = {} if problem is None else settings_of_problem(problem)
    settings |= read_toml(config) if config else {}
    flags = {"losses": losses, "delays": delays, "arms": arms, "rounds": rounds, "seeds": seeds}
    settings |= {name: value for name, value in flags.items() if value is not None}
    if algorithms is not None:
        settings["algorithms"] = split_algorithms(algorithms)
    comparison = Comparison(**settings)
    names = [algorithm.name for algorithm in comparison.players]
    if against is not None and against not in names:
        raise unknown_name("algorithm of this comparison", against, names, " --against takes one of these.")
    results = play(comparison, workers, dask, out)
    show(results)
    if against is None or against in [row.algorithm.name for row in results.rows]:
        show_differences(results, against)
    if not results.is_whole:
        hint = "" if out is None else " Run the same command again to play the rest."
        tell(f"Interrupted. Only the algorithms that finished all seeds are shown.{hint}")
    if out is not None:
        with while_busy("writing the results"):
            results.write(out)
        tell(f"{', '.join(FILES[:-1])} and {FILES[-1]} are in {out}")
    if not results.is_whole:
        raise typer.Exit(INTERRUPTED)
