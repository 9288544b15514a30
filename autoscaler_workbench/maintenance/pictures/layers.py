"""The picture of docs/architecture.md: floors as the import contracts have them, rooms with the first sentence of their docstring."""

import ast
import re
import tomllib
from pathlib import Path
from textwrap import wrap

from autoscaler_workbench.maintenance.pictures.svg import INK, arrow, box, document, line, text

ROOT = Path(__file__).parents[3]
_WIDTH, _LEFT, _RIGHT, _GAP = 1060, 20, 900, 10
_LINE, _LETTER = 16.0, 6.4  # of 12 pixels: how high a line is, how wide a letter
_NAMES = 124  # how much of a room's width its name takes
_OUTSIDE = ("Jenkins", "EC2", "DynamoDB", "CloudWatch")
_FLOOR, _OUTER, _DOMAIN, _ROOM, _DOOR = "#f1f5f9", "#ede9fe", "#dcfce7", "#ffffff", "#fef3c7"
_RULE = "A box may import what is below it, never what is above it; boxes side by side do not know each other."
_SHARES = {"functions": 0.28, "autoscaler_workbench": 0.72}  # of the width; others share a floor evenly
_LABEL = re.compile(r"^(The )?\w+( \w+)?: ")  # "Forecasts: what is learned ..."


class _Picture:
    """What is drawn so far, and where each box is: its top, and its height."""

    def __init__(self) -> None:
        self.parts = [text(_LEFT, 20, _RULE)]
        self.places: dict[str, tuple[float, float]] = {}
        self.y = 34.0

    def add_floor(self, packages: list[str]) -> None:
        """Draw packages side by side, as high as the highest of them."""
        names = ["functions", *packages] if "autoscaler_workbench" in packages else packages
        free = _RIGHT - _LEFT - _GAP * (len(names) - 1)
        widths = [free * _SHARES.get(name, 1 / len(names)) for name in names]
        height = max(_height(name, width) for name, width in zip(names, widths, strict=True))
        x = float(_LEFT)
        for name, width in zip(names, widths, strict=True):
            self._add_box(name, x, width, height)
            x += width + _GAP
        self.y += height + _GAP

    def _add_box(self, name: str, x: float, width: float, height: float) -> None:
        self.places[name] = self.y, height
        fill = _DOMAIN if name == "autoscaler.domain" else _OUTER if "." not in name else _FLOOR
        self.parts.append(box(x, self.y, width, height, fill))
        self._add_words(name, x, self.y, width)
        y = self.y + _height_of_words(name, width) + 2
        for room in _rooms(name):
            room_height = _height_of_words(room, width - 20)
            self.places[room] = y, room_height
            self.parts.append(box(x + 10, y, width - 20, room_height, _DOOR if _is_module(room) else _ROOM))
            self._add_words(room, x + 10, y, width - 20)
            y += room_height + 5

    def _add_words(self, name: str, x: float, y: float, width: float) -> None:
        shown = name.rpartition(".")[2] + (".py" if _is_module(name) else "")
        self.parts.append(text(x + 12, y + 19, shown, size=13, fill=INK, bold=True))
        for number, words in enumerate(_lines(name, width)):
            self.parts.append(text(x + _NAMES, y + 19 + _LINE * number, words, size=12))

    def add_surroundings(self) -> None:
        """Draw what the adapters speak to, and where a pass enters the domain."""
        top, height = self.places["autoscaler.adapters"]
        middle, x = top + height / 2, _RIGHT + 50.0
        for number, name in enumerate(_OUTSIDE):
            y = middle + 34 * (number - (len(_OUTSIDE) - 1) / 2) - 13
            self.parts += [box(x, y, 100, 26, "#ffffff", dashed=True), text(x + 50, y + 18, name, size=12, anchor="middle")]
        self.parts.append(arrow(_RIGHT + 2, middle, x - 4, middle, both=True))
        top, height = self.places["autoscaler.control"]
        start, corner = top + height / 2, _RIGHT + 24.0
        doors = [self.places[f"autoscaler.domain.{name}"] for name in ("decide", "learn")]
        ends = [top + height / 2 for top, height in doors]
        self.parts += [line(_RIGHT, start, corner, start), line(corner, start, corner, ends[-1])]
        self.parts += [arrow(corner, end, _RIGHT - 8, end) for end in ends]
        self.parts += [text(corner + 8, ends[0] + 4, "a pass: snapshot", size=12), text(corner + 8, ends[0] + 20, "in, plan out", size=12)]


def draw() -> str:
    """Draw it from the contracts and the docstrings."""
    picture = _Picture()
    for packages in _layers("autoscaler.errors"):
        picture.add_floor(packages)
    picture.add_surroundings()
    return document(_WIDTH, int(picture.y + 4), picture.parts)


def _height(name: str, width: float) -> float:
    rooms = _rooms(name)
    return _height_of_words(name, width) + sum(_height_of_words(room, width - 20) + 5 for room in rooms) + (7 if rooms else 0)


def _height_of_words(name: str, width: float) -> float:
    return 12 + _LINE * len(_lines(name, width))


def _lines(name: str, width: float) -> list[str]:
    return wrap(_purpose(name), int((width - _NAMES - 12) / _LETTER))


def _rooms(package: str) -> list[str]:
    return [f"{package}.{name}" for floor in _layers(container=package) for name in floor]


def _is_module(name: str) -> bool:
    return name.count(".") == 2 and _file(name).stem != "__init__"


def _layers(of: str = "", *, container: str = "") -> list[list[str]]:
    """The layers of the contract that names this module, or orders the rooms of this package; none where there is none."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    found = (
        one["layers"] for one in contracts if one["type"] == "layers" and (of in one["layers"] or container in one.get("containers", []))
    )
    return [[name.strip() for name in layer.split("|")] for layer in next(found, [])]


def _purpose(name: str) -> str:
    """The first sentence of its docstring; of the functions, which are no package, their names."""
    if name == "functions":
        return "One Lambda handler each: " + ", ".join(sorted(file.parent.name for file in (ROOT / name).glob("*/app.py")))
    said = " ".join((ast.get_docstring(ast.parse(_file(name).read_text(encoding="utf-8"))) or "").split())
    sentence = re.split(r"[.:](?= |$)", _LABEL.sub("", said))[0].replace("`", "")
    return sentence[:1].upper() + sentence[1:]


def _file(name: str) -> Path:
    path = (ROOT if name.startswith("autoscaler_workbench") else ROOT / "layers" / "core") / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
