"""Every link and anchor in the documents, and every page that the code names, exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")})
SOURCES = ("src", "tests", "benchmarks", "examples", "deploy")
CODE = {".py", ".yaml", ".conf", ".service", ".html", ".js"}


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue  # another site
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `title`, twice\n[good](#a-title-twice) [gone](none.md) [bad](page.md#b) [web](https://a.b)\n")
    assert broken(page) == ["none.md", "page.md#b"]


def test_every_page_that_the_code_names_exists() -> None:
    for folder in SOURCES:
        for path in (path for path in (ROOT / folder).rglob("*") if path.suffix in CODE):
            for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text()):
                assert (ROOT / name).exists(), f"{path.relative_to(ROOT)}: {name}"


def test_every_test_that_the_documents_name_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"`(tests/[\w*/.]+)`", page.read_text()):
            assert list(ROOT.glob(name)), f"{page.relative_to(ROOT)}: {name}"


def test_the_tests_that_durability_names_are_there() -> None:
    document = (ROOT / "docs" / "durability.md").read_text()
    rows = re.findall(r"^\| .* \| `(\S+\.py)::(.*)` \|$", document, re.MULTILINE)
    assert len(rows) > 20
    for file, names in rows:
        for name in re.split("`, `", names):
            where, _, alone = name.rpartition("::")
            file = where or file  # noqa: PLW2901  # names without a file are in the last one that was named
            assert f"def {alone}(" in (ROOT / "tests" / file).read_text(), f"{file} has no test {alone}"
