"""The picture of docs/warm-pool.md: dollars against waiting with and without a warm pool, from the table of docs/benchmarks.md."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from autoscaler_workbench.maintenance.pictures.svg import INK, QUIET, document, line, text

_PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"
_TITLE = "## Stopped agents: dollars against waiting"
_WIDTH, _HEIGHT, _PANEL, _LEFT, _TOP = 980, 330, 310, 64, 76
_PLOT_WIDTH, _PLOT_HEIGHT = 230, 190
_WITHOUT, _WITH = "#94a3b8", "#0369a1"
_ROW = re.compile(r"\| (?P<load>[^|]+) \| \$(?P<usd>[\d.]+) \|(?P<figures>.*)\|")
_Point = tuple[float, float]


def draw() -> str:
    """Draw one panel for each week: each point is one price of an hour of waiting."""
    parts = [
        text(24, 30, "Dollars against waiting, at $3, $7, $20, $60 and $200 for an hour that a job waits", size=16, fill=INK, bold=True),
        text(24, 50, "grey: without a warm pool", size=12.5),
        text(214, 50, "blue: with one. Lower and further left is better.", size=12.5, fill=_WITH),
    ]
    for place, (load, (without, with_)) in enumerate(_weeks().items()):
        parts += _panel(_LEFT + place * _PANEL, load, without, with_)
    return document(_WIDTH, _HEIGHT, parts)


def _weeks() -> dict[str, tuple[list[_Point], list[_Point]]]:
    """Read bill and p95 wait of each week, without and with."""
    section = _PAGE.read_text(encoding="utf-8").partition(_TITLE)[2].partition("\n## ")[0]
    weeks: defaultdict[str, tuple[list[_Point], list[_Point]]] = defaultdict(lambda: ([], []))
    for row in _ROW.finditer(section):
        usd, p95, warm_usd, warm_p95 = (float(figure.strip(" $s").replace(",", "")) for figure in row["figures"].split("|"))
        weeks[row["load"]][0].append((usd, p95))
        weeks[row["load"]][1].append((warm_usd, warm_p95))
    if not weeks:
        raise ValueError(f"docs/benchmarks.md: has no table below {_TITLE!r}")
    return dict(weeks)


def _panel(x: float, load: str, without: Sequence[_Point], with_: Sequence[_Point]) -> Iterator[str]:
    most_usd, most_s = (max(point[axis] for point in (*without, *with_)) for axis in (0, 1))
    bottom = _TOP + 20 + _PLOT_HEIGHT
    yield text(x, _TOP + 4, load, size=13.5, fill=INK, bold=True)
    yield line(x, bottom, x + _PLOT_WIDTH, bottom) + line(x, _TOP + 20, x, bottom)
    yield text(x + _PLOT_WIDTH, bottom + 18, f"${most_usd:,.0f}", size=12, anchor="end")
    yield text(x, bottom + 18, "$0", size=12) + text(x + _PLOT_WIDTH / 2, bottom + 36, "the bill", size=12, anchor="middle")
    yield text(x - 6, _TOP + 30, f"{most_s:.0f} s", size=12, anchor="end") + text(x - 6, bottom, "0 s", size=12, anchor="end")
    for points, colour in ((without, _WITHOUT), (with_, _WITH)):
        placed = [(x + _PLOT_WIDTH * usd / most_usd, bottom - _PLOT_HEIGHT * seconds / most_s) for usd, seconds in points]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in placed)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        yield from (f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{colour}"/>' for px, py in placed)
    yield text(x, bottom + 54, "p95 wait upwards", size=11.5, fill=QUIET)
