"""The picture of docs/comparison.md: totals of ours, the best rivals and the clairvoyant, from the first table of that page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autoscaler_workbench.maintenance.pictures.svg import INK, document, text

_PAGE = Path(__file__).parents[3] / "docs" / "comparison.md"
_WIDTH, _PANEL, _LEFT, _TOP = 980, 315, 24, 74
_BAR, _ROW = 20, 44
_OURS, _RIVAL, _BOUND = "#0369a1", "#94a3b8", "#dcfce7"
_CELL = re.compile(r"(?P<name>[a-z][a-z0-9-]*)? ?\*{0,2}\$(?P<usd>[\d,.]+)\*{0,2}(?: ± [\d.]+)?(?:, (?P<wait>\d+ s))?")


@dataclass(frozen=True, slots=True)
class _Bar:
    name: str
    usd: float
    label: str


def draw() -> str:
    """Draw one panel for each trace."""
    parts = [
        text(_LEFT, 30, "Total cost of a week: the bill, and the hours that jobs waited at $20 an hour", size=16, fill=INK, bold=True),
    ]
    for place, (trace, bars) in enumerate(_panels()):
        parts += _panel(_LEFT + place * _PANEL, trace, bars)
    parts.append(
        text(_LEFT, _TOP + 5 * _ROW + 22, "Shorter is better. The clairvoyant knows every job in advance: a bound, not a rival.", size=12.5)
    )
    return document(_WIDTH, _TOP + 5 * _ROW + 40, parts)


def _panels() -> Iterator[tuple[str, list[_Bar]]]:
    blocks = _PAGE.read_text(encoding="utf-8").split("\n\n")
    header, _, *rows = next(block for block in blocks if block.startswith("| policy |")).splitlines()
    (_, *policies), *columns = zip(*map(_cells, (header, *rows)), strict=True)
    for trace, *column in columns:
        yield trace, [_bar(policy, cell) for policy, cell in zip(policies, column, strict=True)]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _bar(policy: str, cell: str) -> _Bar:
    found = _CELL.fullmatch(cell)
    if not found:
        raise ValueError(f"docs/comparison.md: {cell!r} is no total such as 'gitlab $7,384 ± 40, 576 s'")
    wait = f", p95 wait {found['wait']}" if found["wait"] else ""
    return _Bar(found["name"] or policy, float(found["usd"].replace(",", "")), f"${found['usd']}{wait}")


def _panel(x: float, trace: str, bars: list[_Bar]) -> list[str]:
    parts = [text(x, _TOP - 14, trace, size=13.5, fill=INK, bold=True)]
    longest = max(bar.usd for bar in bars)
    for place, bar in enumerate(bars):
        y = _TOP + place * _ROW
        fill = {"ours": _OURS, "clairvoyant": _BOUND}.get(bar.name, _RIVAL)
        width = (_PANEL - 40) * bar.usd / longest
        parts.append(text(x, y + 12, f"{bar.name}: {bar.label}", size=12, fill=INK, bold=bar.name == "ours"))
        parts.append(f'<rect x="{x:g}" y="{y + 17:g}" width="{width:.1f}" height="{_BAR}" fill="{fill}" stroke="#64748b"/>')
    return parts
