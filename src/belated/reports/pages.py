"""Pages with tables and figures. A page is one HTML file that needs no other. Its data lies beside it."""

import base64
import csv
import io
import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, final

import belated
from belated.cells import Table
from belated.extras import needs
from belated.folders import make_folder
from belated.progress import while_busy
from belated.reports.charts import Columns, Figure, render

with needs("lab"):
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

RESULTS = "results.json"
VERSIONED = ("numpy", "numba", "polars", "matplotlib")


@final
@dataclass(frozen=True)
class Section:
    """A heading with a badge, words, tables and figures. `anchor` is its address on the page."""

    anchor: str
    title: str
    badge: str = ""  # one of the words that page.html has a colour for, or nothing
    headline: str = ""
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    notes: str = ""  # small print


@final
@dataclass(frozen=True)
class Page:
    """A whole report. `facts` are what one needs to repeat it."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    facts: Mapping[str, Any]
    results: Any  # for programs, in results.json
    has_mathematics: bool = False  # False leaves a name such as v_t as it is


def versions() -> dict[str, str]:
    """The versions that made the numbers."""
    return {
        "belated": belated.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in VERSIONED},
        "machine": f"{platform.system()} {platform.machine()}",
    }


def prepare(out: Path) -> None:
    """Create the folder of a report, or refuse it before any work."""
    make_folder(out, "figures", "numbers")


def as_csv(columns: Columns) -> str:
    """The columns as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue()


def plain(value: Any) -> Any:
    """Values that JSON has. Named tuples become objects, NaN and infinity become null."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [plain(of) for of in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def mathematics(words: str) -> Markup:
    """Escaped HTML, with o_t and n^(3/4) as subscript and superscript."""
    safe = str(escape(words))
    safe = re.sub(r"(?<![\w/-])([A-Za-zβ])_([A-Za-z]+)(?![\w-])", r"\1<sub>\2</sub>", safe)
    return Markup(re.sub(r"\^(?:\(([^)]*)\)|([\d.]+\d))", lambda found: f"<sup>{found[1] or found[2]}</sup>", safe))  # noqa: S704


def _embedded(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _pictures(figure: Figure, out: Path) -> dict[str, str]:
    """Write the files of a figure. Returns what the page shows of it."""
    images, numbers = render(figure), as_csv(figure.columns)
    for kind, image in images.items():
        (out / "figures" / f"{figure.name}.{kind}").write_bytes(image)
    (out / "numbers" / f"{figure.name}.csv").write_text(numbers, encoding="utf-8")
    return {
        "name": figure.name,
        "title": figure.title,
        "svg": _embedded("image/svg+xml", images["svg"]),
        "csv": _embedded("text/csv", numbers.encode()),
    }


def forget_earlier(out: Path, files: Sequence[str]) -> None:
    """Remove files of an earlier report in this folder that this one does not have."""
    try:
        earlier = json.loads((out / RESULTS).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in set(earlier) - set(files):
        if name.startswith(("figures/", "numbers/")) and ".." not in name:
            (out / name).unlink(missing_ok=True)


def write(page: Page, out: Path) -> Path:
    """Write report.html, figures/, numbers/ and results.json into a folder. Returns the path of the page."""
    with while_busy("writing the report"):
        return _write(page, out)


def _write(page: Page, out: Path) -> Path:
    prepare(out)
    environment = Environment(
        loader=PackageLoader("belated.reports", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = [figure for section in page.sections for figure in section.figures]
    files = [f"figures/{figure.name}.{kind}" for figure in figures for kind in ("png", "svg")]
    files += [f"numbers/{figure.name}.csv" for figure in figures]
    forget_earlier(out, files)
    environment.filters["mathematics"] = mathematics if page.has_mathematics else escape
    pictures = {figure.name: _pictures(figure, out) for figure in figures}
    facts = {**page.facts, "versions": ", ".join(f"{name} {version}" for name, version in versions().items())}
    html = environment.get_template("page.html").render(page=page, pictures=pictures, facts=facts)
    (out / "report.html").write_text(html, encoding="utf-8")
    results = {
        "title": page.title,
        **page.facts,
        "versions": versions(),
        "files": ["report.html", *files],
        "results": plain(page.results),
    }
    (out / RESULTS).write_text(json.dumps(results, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return out / "report.html"
