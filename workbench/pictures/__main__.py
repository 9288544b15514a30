"""Draw every picture of docs/."""

from pathlib import Path

from workbench.pictures import day, layers, loop

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = {"loop.svg": loop.draw, "architecture.svg": layers.draw}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (DOCS / name).write_text(draw(), encoding="utf-8")
    (DOCS / "day.png").write_bytes(day.draw())
