"""Reads the console of an agent that did not boot, while its instance is there."""

from autoscaler.domain.facts.plan import BootFailure
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports


def keep_console(ports: Ports, failure: BootFailure) -> dict[str, str]:
    """Log why an agent did not boot before its instance is gone. A console that cannot be read does not keep the instance."""
    read: dict[str, str] = {}
    try:
        said = read[failure.instance_id] = ports.compute.console_output(failure.instance_id)
    except AutoscalerError as error:
        said = f"(not read: {error})"
    facts = {"controller": failure.controller, "pool": failure.pool, "instance_id": failure.instance_id, "why": failure.why}
    ports.log("boot_failed", **facts, console=said or "(nothing)")
    return read
