"""As much of SVG as boxes with words and arrows need."""

from collections.abc import Iterable
from xml.sax.saxutils import escape

INK, QUIET = "#0f172a", "#475569"
_LINE = "#334155"
_HEADS = (
    '<defs><marker id="to" markerWidth="10" markerHeight="8" refX="9" refY="4" orient="auto"><path d="M0,0 L10,4 L0,8 z" fill="#334155"/>'
    '</marker><marker id="from" markerWidth="10" markerHeight="8" refX="1" refY="4" orient="auto"><path d="M10,0 L0,4 L10,8 z" '
    'fill="#334155"/></marker></defs>'
)


def document(width: int, height: int, parts: Iterable[str]) -> str:
    """Put parts together on white."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    body = "\n".join(parts)
    font = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    return f'{head} {font}>\n{_HEADS}\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'


def box(x: float, y: float, width: float, height: float, fill: str, *, dashed: bool = False) -> str:
    """A rectangle with round corners."""
    stroke = 'stroke="#94a3b8" stroke-dasharray="6 4"' if dashed else f'stroke="{_LINE}" stroke-width="1.5"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" fill="{fill}" {stroke}/>'


def text(  # noqa: PLR0913 - what a line of words has
    x: float, y: float, words: str, *, size: float = 13, fill: str = QUIET, bold: bool = False, anchor: str = "start"
) -> str:
    """One line of words."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size:g}"{weight} fill="{fill}">{escape(words)}</text>'


def titled(x: float, y: float, width: float, height: float, fill: str, title: str, *lines: str) -> str:
    """A box with a title and lines below it, all centred."""
    middle = x + width / 2
    words = [text(middle, y + 26, title, size=16, fill=INK, bold=True, anchor="middle")]
    words += [text(middle, y + 48 + 18 * place, line, anchor="middle") for place, line in enumerate(lines)]
    return "".join([box(x, y, width, height, fill), *words])


def line(x1: float, y1: float, x2: float, y2: float, heads: str = "") -> str:
    """A straight line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{_LINE}" stroke-width="1.6"{heads}/>'


def arrow(x1: float, y1: float, x2: float, y2: float, *, both: bool = False) -> str:
    """A straight arrow."""
    return line(x1, y1, x2, y2, (' marker-start="url(#from)"' if both else "") + ' marker-end="url(#to)"')


def curve(path: str, colour: str) -> str:
    """A dashed curve with a head."""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="5 4" marker-end="url(#to)"/>'
