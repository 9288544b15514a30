"""Messages about jobs that free executors refuse, and about nodes that take nothing: one for each label, not one for each job."""

from collections.abc import Iterator
from shlex import quote

from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.distrust import Want
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration, listed

_RUNBOOK = "operations.md#free-executors-refuse"


def refusals_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the labels whose jobs wait for too long beside free executors, and the nodes that take no build."""
    for controller in situation.demands:
        distrust = situation.distrust(controller)
        for scope, ration in distrust.rations.items():
            # While an agent is tried no executor refuses the job: it waits for the same cause all the same.
            waiting = [want for want in situation.demands[controller].runnable if want.item.job in ration.jobs]
            if not ration.taken and any(map(_is_overdue, waiting)):
                yield f"refused/{controller}/{scope}", _refused(situation, controller, scope, waiting)
        yield from _useless(situation, controller)


def _is_overdue(want: Want) -> bool:
    return want.item.waiting_seconds >= min((pool.max_wait_seconds for pool in want.pools), default=0.0)


def _refused(situation: Situation, controller: str, scope: str, waiting: list[Want]) -> Seen:
    longest, jobs = max((want.item for want in waiting), key=lambda item: item.waiting_seconds), {want.item.job for want in waiting}
    nodes = [name for name, node in situation.distrust(controller).nodes.items() if not jobs.isdisjoint(node.refused)]
    text = (
        f"{counted(len(waiting), 'job')} for {scope or 'any label'} on {controller}: {longest.job} for {duration(longest.waiting_seconds)}."
    )
    text += f"\n{listed(nodes) or 'Agents that have ended since'} had a free executor for three minutes and did not take them."
    if words := longest.wait.unclear:
        text += f"\nJenkins says: {words}"
    if not scope:
        title = f"{controller} starts no builds though executors are free"
        text += "\nNo build has begun there meanwhile: Jenkins itself, a lock or a plugin keeps them."
    else:
        title = f"free executors do not take jobs for {scope} on {controller}"
    return Seen(title, text, _RUNBOOK, f"autoscaler why {quote(longest.job)}")


def _useless(situation: Situation, controller: str) -> Iterator[tuple[str, Seen]]:
    distrust = situation.distrust(controller)
    # What a label's jobs wait for is one cause: its own message names these nodes.
    refused = {job for ration in distrust.rations.values() if not ration.taken for job in ration.jobs}
    useless = ((name, node) for name, node in distrust.nodes.items() if node.is_useless and node.since_at <= distrust.began_at)
    nodes = [name for name, node in useless if not node.refused.keys() <= refused]
    if nodes:
        jobs = sorted({job for name in nodes for job in distrust.nodes[name].refused})
        text = f"{listed(nodes)} on {controller} had free executors for {listed(jobs)} and took no build, while other nodes did."
        text += "\nThese nodes count for nothing until they take a build. Idle agents are replaced, one after another."
        yield f"refuses/{controller}", Seen(f"{listed(nodes, 2)} take no builds", text, _RUNBOOK, f"autoscaler why {nodes[0]}")
