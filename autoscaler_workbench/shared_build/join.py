"""Join a build as one more builder, and leave when all is published."""

import argparse
import time
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom

from autoscaler_workbench.shared_build.builder import Builder
from autoscaler_workbench.shared_build.cache import Cache, Link
from autoscaler_workbench.shared_build.claims import Claims
from autoscaler_workbench.shared_build.order import Log, Order


def main() -> None:
    """Work in real time."""
    arguments = argparse.ArgumentParser(prog="python -m autoscaler_workbench.shared_build.join", description=__doc__)
    arguments.add_argument("folder", type=Path, help="of the build; all builders share it")
    arguments.add_argument("name", help="of this builder; no two have the same")
    arguments.add_argument("jobs", type=int, help="tasks at once")
    arguments.add_argument("--seed", type=int, help="of its order; default: another one each time")
    arguments.add_argument("--begin", type=int, metavar="TASKS", help="begin a build of so many tasks where the folder has none")
    asked = arguments.parse_args()
    if asked.begin:
        with suppress(FileExistsError):  # another builder was first, and this one joins it
            Order(tasks=asked.begin).write(asked.folder)
    if not Order.is_in(asked.folder):
        arguments.error(f"FOLDER ({asked.folder}): has no build; --begin 600 begins one")
    order, log = Order.read(asked.folder), Log(asked.folder, asked.name)
    link = Link(asked.folder / "link", order.link_bytes_per_second, time.time, time.sleep)
    Builder(
        name=asked.name,
        tasks=order.graph(),
        cache=Cache(asked.folder, link),
        claims=Claims(asked.folder, asked.name, order.lease_seconds, time.time),
        log=log.add,
        clock=time.monotonic,
        sleep=time.sleep,
    ).run(asked.jobs, Random(asked.seed) if asked.seed is not None else SystemRandom())
    log.close()


if __name__ == "__main__":
    main()
