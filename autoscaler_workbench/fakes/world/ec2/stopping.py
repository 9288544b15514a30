"""Stopping and starting: an instance that is stopped keeps its disk and its id, and comes back in less than a boot.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html, and ec2-instance-lifecycle.html for the states and their order.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.ec2.instance import Instance, Spell

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.ec2.region import Ec2

_EVENT_SECONDS = 1.0
_FORCED_SECONDS = 90.0
BY_API, BY_ITSELF, NO_CAPACITY = "Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown", "Server.InsufficientInstanceCapacity"


def why_not_stopped(instance: Instance) -> tuple[str, str] | None:
    """Say with which code and message EC2 refuses to stop an instance; None where it does not."""
    if instance.market == "spot":
        return "UnsupportedOperation", f"You can't stop the Spot Instance '{instance.id}' because it is associated with a one-time request."
    if instance.stop_protected:
        return "OperationNotPermitted", f"The instance '{instance.id}' may not be stopped. Modify its 'disableApiStop' instance attribute."
    if instance.state not in {"running", "stopping", "stopped"}:
        return "IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it can be stopped."
    return None


def begin_stop(ec2: "Ec2", instance: Instance, why: str) -> None:
    """Let an instance shut down and keep it; whatever runs on it ends now. Stopping what is stopped changes nothing."""
    if instance.state != "running":
        return
    instance.spells[-1].ended_at = ec2.timeline.now
    _change(ec2, instance, "stopping", why)
    ec2.on_end(instance)
    life = instance.life
    ec2.timeline.after(ec2.physics.stop_seconds(ec2.chance), lambda: _stopped(ec2, instance, life))


def force_stop(ec2: "Ec2", instance: Instance) -> None:
    """Cut a stop short that its system does not bring to an end: EC2 does so within a minute or two, unless its host is broken."""
    life = instance.life
    if instance.state == "stopping":
        ec2.timeline.after(_FORCED_SECONDS, lambda: _stopped(ec2, instance, life))


def why_not_started(ec2: "Ec2", instance: Instance, beside: Iterable[Instance] = ()) -> tuple[str, str] | None:
    """Say with which code and message EC2 refuses to start an instance; None where it does not. ``beside``: others of the same request."""
    if instance.state not in {"stopped", "pending", "running"}:
        return "IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it can be started."
    if instance.state == "stopped" and instance.refuses_to_start:
        return instance.refuses_to_start, f"The instance '{instance.id}' cannot be started."
    if instance.state == "stopped" and not ec2.has_room_for([one for one in {instance, *beside} if one.state == "stopped"]):
        return "InsufficientInstanceCapacity", "Insufficient capacity."
    return None


def begin_start(ec2: "Ec2", instance: Instance) -> None:
    """Let a stopped instance run again: pending first, then a part of its boot. Starting what runs changes nothing."""
    if instance.state != "stopped":
        return
    instance.life += 1
    instance.spells.append(Spell(ec2.timeline.now))
    instance.booted_at = None
    _change(ec2, instance, "pending", "")
    life = instance.life
    if instance.fails_to_start:
        ec2.timeline.after(ec2.physics.start_pending_seconds(ec2.chance), lambda: _stopped(ec2, instance, life, instance.fails_to_start))
    else:
        ec2.timeline.after(ec2.physics.start_pending_seconds(ec2.chance), lambda: ec2.run(instance, life))


def _stopped(ec2: "Ec2", instance: Instance, life: int, why: str = "") -> None:
    """Let an instance be stopped, unless it ended, or was started, meanwhile."""
    if not instance.alive() or instance.life != life or instance.hangs_in == instance.state:
        return
    if instance.is_on():
        instance.spells[-1].ended_at = ec2.timeline.now
    _change(ec2, instance, "stopped", why or instance.state_reason)


def _change(ec2: "Ec2", instance: Instance, state: str, why: str) -> None:
    instance.state, instance.state_reason = state, why
    ec2.changes += 1
    ec2.timeline.after(_EVENT_SECONDS, lambda: ec2.announce(instance, "state"))
