"""Reads what the Heavy Job plugin gives jobs, where the fleet file asks it: from each job's configuration, a few a look, once a day."""

from collections.abc import Mapping

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import PluginWeight, Source
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, ControllerView
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler.ports import Controller, Ports

# Each is a request of its own; a configuration changes seldom.
READ_A_LOOK = 5
READ_AGAIN_SECONDS = 86_400.0
# Each pass reads them: those of jobs that have not waited for longest are left out.
JOBS_KEPT = 1000


def heavy_jobs(
    ports: Ports, fleet: Fleet, controller: Controller, view: ControllerView, before: Mapping[str, PluginWeight]
) -> Mapping[str, PluginWeight]:
    """Return the weights of jobs, those of some that wait read anew. What cannot be read is asked for again by the next look."""
    if not fleet.weights.asks(Source.PLUGIN):
        return {}
    known, now = dict(before), ports.clock()
    waiting = dict.fromkeys(item.job for item in view.items if item.job and fleet.weights.source_of(item.job) is Source.PLUGIN)
    due = [job for job in waiting if job not in known or now - known[job].read_at >= READ_AGAIN_SECONDS]
    # Others go first at each look: jobs whose configuration may not be read stay due, and must not keep the rest from their turn.
    first = int(now // MINUTE_SECONDS) * READ_A_LOOK % max(1, len(due))
    for job in [*due[first:], *due[:first]][:READ_A_LOOK]:
        try:
            weight = controller.heavy_weight(job)
        except AutoscalerError as error:
            ports.log("heavy_job_not_read", controller=controller.name, job=job, error=f"{type(error).__name__}: {error}")
            if isinstance(error, ConfigError):
                continue  # of this job alone
            break
        known.pop(job, None)
        known[job] = PluginWeight(weight=weight, read_at=now)
    return dict(list(known.items())[-JOBS_KEPT:])
