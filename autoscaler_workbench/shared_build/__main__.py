"""Build small tasks by real processes over one shared cache: ``python -m autoscaler_workbench.shared_build``."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from autoscaler_workbench.cli.tables import print_rows
from autoscaler_workbench.shared_build.gang import Gang, Outcome, build
from autoscaler_workbench.shared_build.graph import SHAPES, TASKS, artifacts, digest
from autoscaler_workbench.shared_build.order import Order

_HEADERS = ("builder", "built", "duplicates", "taken over", "end")


def main(
    instances: Annotated[int, typer.Option(min=1, max=50, help="Builders: processes that share nothing but the folder.")] = 6,
    jobs: Annotated[int, typer.Option(min=1, max=50, help="Tasks at once of each builder.")] = 2,
    kills: Annotated[int, typer.Option(min=0, max=50, help="Builders that are killed at random and replaced.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the tasks, of the builders' orders and of the kills.")] = 1,
    shape: Annotated[str, typer.Option(help=f"Of the tasks: {', '.join(SHAPES)}.")] = "mixed",
    lease: Annotated[float, typer.Option(min=0, help="Seconds until a killed builder's claim has run out; 0: no claims.")] = 2.0,
    tasks: Annotated[int, typer.Option(min=120, max=10_000, help="Of the build.")] = TASKS,
    folder: Annotated[Path | None, typer.Option(help="Keep the build there; others may join it.", show_default="a temporary one")] = None,
) -> None:
    """Build 600 small tasks by real processes over one shared cache, and say who built what."""
    if shape not in SHAPES:
        raise typer.BadParameter(f"--shape ({shape}): must be one of {', '.join(SHAPES)}")
    order = Order(shape=shape, seed=seed, tasks=tasks, lease_seconds=lease)
    with TemporaryDirectory() as temporary:
        outcome = build(order, Gang(instances=instances, jobs=jobs, kills=kills, seed=seed), folder or Path(temporary))
    print_rows(_HEADERS, _rows(outcome), figures=_HEADERS[1:4])
    same = outcome.digest == digest(artifacts(order.graph()))
    typer.echo(
        f"{outcome.published} of {tasks} tasks published in {outcome.seconds:.1f} s ({outcome.instance_seconds:.1f} instance-seconds); "
        f"{len(outcome.killed)} builders killed; {len(outcome.duplicates)} built twice ({len(outcome.duplicates) / tasks:.1%}); "
        f"{'bit for bit what one process builds' if same else 'NOT what one process builds'}"
    )
    if not same:
        raise typer.Exit(1)


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    built = Counter(one.builder for one in outcome.built)
    duplicates = Counter(one.builder for one in outcome.duplicates)
    taken_over = Counter(one.builder for one in outcome.taken_over)
    for name in sorted({*built, *outcome.killed}):
        yield name, str(built[name]), str(duplicates[name]), str(taken_over[name]), "killed" if name in outcome.killed else "left"


if __name__ == "__main__":
    typer.run(main)
