"""Steps that concern Jenkins alone: beacons, and items of its queue."""

from autoscaler.control.outcomes import Result
from autoscaler.control.steps.acting import Acting, done, skipped
from autoscaler.domain.facts.plan import CancelItem, CreateBeacon, RemoveBeacon
from autoscaler.errors import ConflictError


def create_beacon(acting: Acting, step: CreateBeacon) -> Result:
    """Create the beacon, unless it is there already."""
    try:
        acting.controllers[step.controller].create_node(step.spec)
    except ConflictError:
        return done(step, "it is there already")
    return done(step)


def remove_beacon(acting: Acting, step: RemoveBeacon) -> Result:
    """Delete a beacon, unless somebody connected an agent to it."""
    controller = acting.controllers[step.controller]
    node = controller.node(step.node)
    if node is None:
        return skipped(step, "it is not there any more")
    if not node.offline or not node.idle or node.builds:
        return skipped(step, "somebody uses it")
    controller.delete_node(step.node)
    return done(step)


def cancel_item(acting: Acting, step: CancelItem) -> Result:
    """Take an item out of the queue, if it is still there."""
    if acting.controllers[step.controller].cancel_item(step.item):
        return done(step)
    return skipped(step, "it left the queue by itself")
