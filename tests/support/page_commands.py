"""The commands that the pages tell a reader to type, as a shell would take them apart."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging_root import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
# A block without a language is one of commands.
DATA = {"json", "yaml", "powershell", "sh", "text"}
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`]+)`")
_ASSIGNED = re.compile(r"[A-Z_]+=")


@dataclass(frozen=True, slots=True)
class Command:
    """One command line. ``environment``: what stands before the program; ``says``: the comment behind it."""

    page: str
    line: int
    text: str
    program: str
    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    says: str = ""

    def __str__(self) -> str:
        """Where it stands, and what it is."""
        return f"{self.page}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    """All fenced blocks, in their order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCED.finditer(text):
        yield Block(_named(page), text[: found.start()].count("\n") + 2, found[2], found[3])


def commands_of(page: Path) -> list[Command]:
    """The commands of the fenced blocks, in their order."""
    return [command for block in blocks_of(page) if block.language not in DATA for command in _lines(block)]


def spoken_of(page: Path) -> list[Command]:
    """The commands that stand in a sentence: their words may be placeholders."""
    text = page.read_text(encoding="utf-8")
    prose = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    found = [(prose[: span.start()].count("\n") + 1, " ".join(span[1].split())) for span in _INLINE.finditer(prose)]
    commands = [taken_apart(_named(page), line, said) for line, said in found if said]
    return [command for command in commands if command.program in {"autoscaler", "make", "aws", "sam"}]


def taken_apart(page: str, line: int, text: str) -> Command:
    """Split a command line as a shell does."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # a quote without its end: no command
        words = [text]
    environment = []
    while words and _ASSIGNED.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        environment.append((name, value))
    program = words[0] if words else ""
    if program.startswith((".venv/bin/", ".venv-sam/bin/")):
        program = program.rpartition("/")[2]
    return Command(page, line, text, program, tuple(words[1:]), tuple(environment), text.partition(" # ")[2].strip())


def _lines(block: Block) -> Iterator[Command]:
    joined = re.sub(r"\\\n", lambda _: "\0", block.text)
    number = block.line
    for line in joined.splitlines():
        text = re.sub(r"\s*\0\s*", " ", line).strip()
        if text and not text.startswith("#"):
            yield taken_apart(block.page, number, text)
        number += 1 + line.count("\0")


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))
