"""One word per thing: the words of docs/architecture.md are names in the code, and no older or second word for the same thing is."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from packaging_root import ROOT

CODE = (ROOT / "layers" / "core" / "autoscaler", ROOT / "autoscaler_workbench")
# What the code once called things, or might by a slip, and what they are called.
FORBIDDEN = {
    "launch walk": "placement",
    "give up": "terminate",
    "giveup": "terminate",
    "give way": "preempt idle",
    "gives way": "preempt idle",
    "giveway": "preempt idle",
    "rhythms": "schedules",
    "sequel": "follower",
    "sequels": "followers",
    "setbacks": "backoff",
    "shortage": "capacity delay",
    "shortages": "capacity delay",
    "lives": "sessions",
    "stranger": "orphan",
    "strangers": "orphans",
    "taking": "disruption budget",
    "wellbeing": "health metrics",
    "standing": "overrides",
    "notices": "interruptions",
    "ledger": "state store",
    "notebook": "state store",
    "contest": "experiment",
    "straight": "in process",
    "faces": "http fakes",
    "outlook": "forecast",
    "foresight": "forecast",
    "foreseen": "forecast",
    "heed": "handle",
    "ripe": "mature",
    "worker": "agent",
    "master": "controller",
}
# Reason codes are what logs, plans and metrics say: they stay.
CODES = "layers/core/autoscaler/domain/facts/reasons.py"


def words_of(name: str) -> tuple[str, ...]:
    """``IdleReturns`` and ``idle_returns`` alike: idle, returns."""
    return tuple(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().strip("_").split("_"))


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


@cache
def names() -> dict[tuple[str, ...], set[str]]:
    """The words of every name that the code gives, and the files that give it."""
    found = defaultdict(set)
    for folder in CODE:
        for file in folder.rglob("*.py"):
            place = str(file.relative_to(ROOT))
            for name in {file.stem, file.parent.name, *_names(ast.parse(file.read_text(encoding="utf-8")))}:
                found[words_of(name)].add(place)
    return found


def in_name(phrase: str, name: tuple[str, ...]) -> bool:
    wanted = tuple(phrase.split())
    return any(name[at : at + len(wanted)] == wanted for at in range(len(name) - len(wanted) + 1))


def glossary() -> list[str]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("\n## Words\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    return [word for row in rows for word in row.split(", ")]


@pytest.mark.parametrize("word", glossary())
def test_a_word_of_the_glossary_is_a_name_in_the_code(word):
    forms = (word, word.removesuffix("s"), f"{word}s")
    assert any(in_name(form, name) for name in names() for form in forms)


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_second_word_for_the_same_thing_is_a_name_in_the_code(word):
    found = {"_".join(name): files - {CODES} for name, files in names().items() if in_name(word, name)}
    offenders = {name: sorted(files) for name, files in found.items() if files}
    assert offenders == {}, f"it is called {FORBIDDEN[word]}"
