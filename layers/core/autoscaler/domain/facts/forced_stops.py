"""A stop that EC2 makes without asking the machine's system, since that has not come to an end in time."""

from dataclasses import dataclass

from autoscaler.domain.facts.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceStop:
    """Stop an instance by force that EC2 has shown as stopping for too long. Nothing runs on it; its disk stays."""

    controller: str
    pool: str
    instance_id: str
    reason: Reason
    detail: str
