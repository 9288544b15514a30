"""Tries whether the account may build and cancel: by requests of which Jenkins looks at the permission first, and then does nothing."""

from collections.abc import Iterator
from itertools import islice
from math import inf

from autoscaler.build_ports import Builds
from autoscaler.domain.facts.runs import ItemState, job_path_of, matrix_of
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.errors import AutoscalerError, DoubtfulError, RefusedBuildError, TransientError, UnansweredError

_RUNS_TRIED = 5
Told = tuple[bool | None, str]  # None: it could not be tried; and what is to be said of it


def may_build(view: ControllerView, builds: Builds, needed_by: str) -> Told:
    """Ask for a build in the way that its job does not take: Jenkins starts nothing."""
    path = next((job_path_of(matrix_of(run) or run) for run in _runs(view)), "")
    try:
        job = builds.job(path, inf) if path else None
        if job is None:
            return None, f"no build runs that it could be tried on; {needed_by} needs it"
        builds.start(job.path, None if job.declares else {})
    except DoubtfulError as error:
        return None, f"it could not be tried: {error}; {needed_by} needs it"
    except (RefusedBuildError, UnansweredError):
        return True, ""
    except AutoscalerError as error:
        return False, f"{error}; {needed_by} needs it"
    return True, ""


def may_cancel(view: ControllerView, builds: Builds) -> Told:
    """Cancel an item that has left the queue, or stop a pipeline that has ended; of another build that has ended nobody asks for it."""
    try:
        for run in islice(_runs(view), _RUNS_TRIED):
            if _is_tried_on_item(run, builds) or _is_tried_on_pipeline(run, builds):
                return True, ""
    except TransientError as error:
        return None, f"it could not be tried: {error}; runs needs it"
    except AutoscalerError as error:
        return False, f"{error}; builds that nobody wants any more go on without it (runs)"
    return None, "no build has begun in the last five minutes, and no pipeline has ended, that it could be tried on; runs needs it"


def _is_tried_on_item(path: str, builds: Builds) -> bool:
    """Jenkins knows an item for five minutes after it left, and looks at the permission before it sees that it is too late."""
    run = builds.run(path)
    if run is None or builds.item(run.item).state is not ItemState.STARTED:
        return False
    builds.cancel(run.item)
    return True


def _is_tried_on_pipeline(path: str, builds: Builds) -> bool:
    """Jenkins looks at the permission before it sees that the pipeline does not run."""
    job = builds.job(job_path_of(path), 0.0)
    before = [entry.run for entry in job.entries if entry.run and entry.run != path] if job else []
    for one in before[:_RUNS_TRIED]:
        run = builds.run(one)
        if run is not None and run.is_pipeline and not run.building:
            builds.stop(one)
            return True
    return False


def _runs(view: ControllerView) -> Iterator[str]:
    found = [*(build.run for node in view.nodes for build in node.builds), *(item.run for item in view.items)]
    return (run for run in dict.fromkeys(found) if run)
