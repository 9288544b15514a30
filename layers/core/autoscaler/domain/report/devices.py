"""Graphics cards as a machine last reported them: who holds which one, and how many commands wait."""

from collections.abc import Iterator

from autoscaler.domain.facts.telemetry import Device
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration


def told_devices(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say it in one line; nothing where the machine has none."""
    told = situation.snapshot.devices.get(agent.record.machine)
    if told is None:
        return
    waiting = f"; {counted(told.waiting, 'command')} waiting for one" if told.waiting else ""
    stale = "" if told.is_fresh(situation.now) else ", too long ago to say anything of now"
    ago = duration(max(0.0, situation.now - told.told_at))
    yield f"its devices: {', '.join(map(_told, told.devices))}{waiting}; told {ago} ago{stale}"


def _told(device: Device) -> str:
    return f"{device.id} ({device.kind}) {device.state}" + (f" by {device.user}" if device.user else "")
