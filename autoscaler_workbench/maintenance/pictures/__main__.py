"""Draw the pictures of docs/ that are named, or all of them: ``python -m autoscaler_workbench.maintenance.pictures architecture.svg``."""

import sys
from collections.abc import Callable
from pathlib import Path

from autoscaler_workbench.maintenance.pictures import layers, loop, rivals, warm

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = {"loop.svg": loop.draw, "architecture.svg": layers.draw, "rivals.svg": rivals.draw, "warm.svg": warm.draw}

if __name__ == "__main__":
    from autoscaler_workbench.maintenance.pictures import day  # altair takes a second

    drawn: dict[str, Callable[[], str | bytes]] = {**PICTURES, "day.png": day.draw}
    for name in sys.argv[1:] or drawn:
        picture = drawn[name]()
        (DOCS / name).write_bytes(picture if isinstance(picture, bytes) else picture.encode())
