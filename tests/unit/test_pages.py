"""The pages hold what they promise a reader: lines that fit, links that lead somewhere, files that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from packaging_root import ROOT

CORE = ROOT / "layers" / "core" / "autoscaler"
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
ELSEWHERE = [ROOT / "autoscaler_workbench" / "data" / "README.md", ROOT / "tests" / "recordings" / "README.md"]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ELSEWHERE])
WRITTEN = "out"  # by commands, and not carried
FOLDERS = {path.name for place in (ROOT, CORE) for path in place.iterdir() if path.is_dir() and path.name != WRITTEN}

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./:<*-])[\w-]+(?:/[\w.*-]+)+")
MODULE = re.compile(r"\b(?:autoscaler|autoscaler_workbench)(?:\.[a-z_]\w*)+\b(?![/-])")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


pages = pytest.mark.parametrize("page", PAGES, ids=named)
decisions = pytest.mark.parametrize("page", DECISIONS, ids=named)


@pages
def test_no_line_is_longer_than_a_window_is_wide(page):
    widest = 120 if page in DECISIONS else 140
    assert [line for line in page.read_text(encoding="utf-8").splitlines() if len(line) > widest] == []


@pages
def test_every_link_leads_to_something_in_the_repository(page):
    assert [target for target in relative_links(page) if not leads_somewhere(page, target)] == []


@pages
def test_every_file_and_module_that_is_named_exists(page):
    code = " ".join(found[0] for found in CODE.finditer(page.read_text(encoding="utf-8")))
    files = [path for path in PATH.findall(code) if path.split("/")[0] in FOLDERS]
    scripts = re.findall(r"(?<![\w/.*-])\w+\.py\b", code)
    assert [path for path in files if not exists(path.rstrip("."))] == []
    assert [name for name in scripts if not any(ROOT.glob(f"*/**/{name}"))] == []
    assert [name for name in MODULE.findall(code) if not is_module(name)] == []


@pages
def test_nothing_is_cited_that_a_reader_cannot_open(page):
    assert re.findall(r"\b(?:design|issue) \d[\d.]*", page.read_text(encoding="utf-8"), re.IGNORECASE) == []


@decisions
def test_a_decision_fits_a_page_and_says_what_was_rejected(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {page.name[:4]} ")
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences", "## Rejected"]
    assert len(lines) <= 60


def test_the_tour_lists_every_decision():
    tour = ROOT / "docs" / "architecture.md"
    assert {f"adr/{page.name}" for page in DECISIONS} <= set(relative_links(tour))


def relative_links(page: Path) -> Iterator[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return (target for target in LINK.findall(text) if not target.startswith(("http://", "https://")))


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    there = (page.parent / name) if name else page
    return there.exists() and (not anchor or anchor in anchors(there))


def anchors(page: Path) -> set[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {slug(heading) for heading in headings} | set(re.findall(r'<a id="([^"]+)">', text))


def slug(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", heading).lower()).replace(" ", "-")


def exists(path: str) -> bool:
    return any(any(place.glob(path)) for place in (ROOT, CORE))


def is_module(name: str) -> bool:
    """A package, a module, or what stands in a module."""
    path = (CORE.parent if name.startswith("autoscaler.") else ROOT) / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file() or path.parent.with_suffix(".py").is_file()


def test_the_readme_is_read_in_a_minute_or_two():
    words = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert sum(any(map(str.isalnum, word)) for word in words) <= 600  # bars of tables are no words
