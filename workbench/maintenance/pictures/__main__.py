"""Draw every picture of docs/."""

from pathlib import Path

from workbench.maintenance.pictures import day, layers, loop, rivals

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = {"loop.svg": loop.draw, "architecture.svg": layers.draw, "rivals.svg": rivals.draw}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (DOCS / name).write_text(draw(), encoding="utf-8")
    (DOCS / "day.png").write_bytes(day.draw())
