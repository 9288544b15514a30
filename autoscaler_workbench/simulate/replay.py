"""Replay a trace in the world: arrivals as recorded, stages when the stages before them have finished."""

import re
from collections import defaultdict
from collections.abc import Iterable

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.simulate.traces import Row, Trace

_RUN_NUMBER = re.compile(r"^(.*)#(\d+)$")


class Replay:
    """One trace on one controller; ``builds``: queued so far; ``judged``: without the lead-in."""

    def __init__(self, trace: Trace, controller: Controller) -> None:
        """Put every arrival on the time-line."""
        self._controller = controller
        self._left: dict[tuple[str, str], int] = defaultdict(int)  # rows of a run's stage that have not finished
        self._after: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self._judged_at = trace.judged_at
        self.builds: list[Build] = []
        self.judged: list[Build] = []
        self.rows = len(trace.rows)
        self.judged_rows = sum(row.queued_at >= trace.judged_at for row in trace.rows)
        controller.defined |= {_job_of(row)[0].partition("/")[0] for row in trace.rows}
        for row in trace.rows:
            self._left[row.run, row.stage] += 1
        for row in trace.rows:
            before = (row.run, row.depends_on)
            if row.run and row.depends_on and self._left[before] and row.depends_on != row.stage:
                self._after[before].append(row)
            else:
                controller.timeline.at(row.queued_at, lambda row=row: self._queue(row))  # type: ignore[misc]

    @property
    def queued_all(self) -> bool:
        """Whether the turn of every row has come."""
        return len(self.builds) == self.rows

    def _queue(self, row: Row) -> None:
        job, number = _job_of(row)
        kind = Kind.PIPELINE if row.run else Kind.FREESTYLE
        build = self._controller.submit(
            job,
            row.label,
            row.duration_seconds,
            kind=kind,
            number=number,
            on_end=lambda _build: self._ended(row),
            started_with=Started(parameters=row.parameters),
        )
        build.stage = row.job.partition(" ")[2] if row.run else ""
        self.builds.append(build)
        if row.queued_at >= self._judged_at:
            self.judged.append(build)

    def _ended(self, row: Row) -> None:
        if not row.run:
            return
        stage = (row.run, row.stage)
        self._left[stage] -= 1
        if not self._left[stage]:
            self._queue_all(self._after.pop(stage, []))

    def _queue_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._queue(row)


def _job_of(row: Row) -> tuple[str, int | None]:
    """A stage of a pipeline runs under its pull request's or branch's job, as multibranch projects have it."""
    if not row.run:
        return row.job.replace(" ", "_"), None
    found = _RUN_NUMBER.match(row.run)
    name, number = (found[1], int(found[2])) if found else (row.run, 1)
    return f"{row.job.split(' ')[0]}/{name}", number
