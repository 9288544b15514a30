"""Causes of failed boots, for people: EC2's words, Jenkins', those of the machine itself, or its deadline."""

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import BY_EC2, MISSED
from autoscaler.domain.wording import duration

# EC2's own words say little: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
_BY_ITSELF = "Client.InstanceInitiatedShutdown"
_MEANS = {
    _BY_ITSELF: "it powered itself off",
    "Client.InternalError": "mostly because the KMS key of an encrypted volume may not be used",
    "Client.UserInitiatedShutdown": "somebody terminated it",
    "Client.VolumeLimitExceeded": "the quota for volumes is used up",
    "Client.VolumeLimitExceeded.Iops": "the quota for volumes is used up",
    "Server.InternalError": "an error of EC2",
    "Server.ScheduledStop": "scheduled by EC2",
}


def told_end(code: str) -> str:
    """Say why EC2 shows an instance as ended, by EC2's code; "": it does not say."""
    if not code:
        return f"{BY_EC2}that it has ended, and not why"
    return f"{BY_EC2}{code}" + (f": {_MEANS[code]}" if code in _MEANS else "")


def why_not_booted(record: Record, agent: Agent | None, pool: Pool | None, code: str, *, node_gone: bool) -> str:
    """Say why a machine is no agent. ``code``: EC2's reason for its end, "" while it is there."""
    if record.trouble:
        return record.trouble
    if node_gone:
        return f"its node {record.node} was deleted before it connected"
    said = record.problem
    if agent is None or agent.instance_ended:
        # What powers itself off says before why: that it did is no cause.
        return said if said and code == _BY_ITSELF else "; ".join(filter(None, (told_end(code), said)))
    missed = "register" if record.registered_at is None else "connect"
    within = f" within {duration(pool.boot_timeout_seconds)}" if pool else " in time"
    return f"{MISSED}{missed}{within}" + (f": {said}" if said else "")
