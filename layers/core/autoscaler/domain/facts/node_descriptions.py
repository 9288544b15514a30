"""What the description of a node of ours says: its fleet, its instance, and where that fleet runs."""

import re

from autoscaler.domain.facts.fleet import Fleet

_DESCRIBED = re.compile(
    r"Agent (?P<node>\S+) of fleet (?P<fleet>\S+), (?:launched|connected) by the autoscaler "
    r"on instance (?P<instance>(?:i|host)-\S+?)(?: in (?P<home>\S+?))?\."
)

_BEACON = re.compile(r"Kept by the autoscaler of fleet (?P<fleet>\S+) in (?P<home>\S+) with the labels ")  # 0.3.0 did not write its home


def described_instance(fleet: Fleet, node: str, description: str) -> str | None:
    """Read the instance id that we wrote into a node's description; None for any other node, a copy of ours too."""
    found = _DESCRIBED.fullmatch(description)
    return found["instance"] if found and read_description(node, description) == (fleet.name, fleet.home) else None


def read_description(node: str, description: str) -> tuple[str, str] | None:
    """Read the fleet and the home that an autoscaler, ours or another one, wrote into a node's description; None for any other node."""
    if beacon := _BEACON.match(description):
        return beacon["fleet"], beacon["home"]
    found = _DESCRIBED.fullmatch(description)
    return (found["fleet"], found["home"] or "") if found and found["node"] == node else None
