"""Launched versions: what instances were launched from, what each pool launches, and which new image waits to be tried.

If the fleet file names an image's parameter, an image that never booted is tried with one agent; all others are launched as was proven.
"""

from collections.abc import Mapping

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Snapshot, parts_of, version_of


def current_versions(snapshot: Snapshot, fleet: Fleet) -> dict[str, str]:
    """Return the version that each pool is to launch, by pool; proven or not, and only where it is known."""
    current = dict(snapshot.template_versions)
    for name in _with_images(fleet):
        current[name] = version_of(snapshot.template_versions.get(name, ""), snapshot.images.get(name, ""))
    return {name: version for name, version in current.items() if version}


def versions_of_instances(snapshot: Snapshot, fleet: Fleet) -> dict[str, str]:
    """Return the version that each instance was launched from, by id; "" where nobody knows."""
    versions = {instance.id: instance.template_version for instance in snapshot.instances}
    # The key may have left the fleet file: what was launched from an image that it named is not what is launched now.
    # What EC2 does not list any more was launched from what is on record.
    with_images = _with_images(fleet)
    on_record = (record for record in snapshot.records if record.pool in with_images or parts_of(record.version)[1])
    versions |= {record.instance_id: record.version for record in on_record}
    listed = (instance for instance in snapshot.instances if instance.pool in with_images)
    by_image = ((instance.id, version_of(instance.template_version, instance.image)) for instance in listed)
    return versions | {instance_id: version for instance_id, version in by_image if version}


def launched_versions(fleet: Fleet, current: Mapping[str, str], proven: Mapping[str, str]) -> dict[str, str]:
    """Return the version that each pool launches, by pool: where a parameter names its image, the one that was seen to boot."""
    return {**current, **{name: proven[name] for name in _with_images(fleet) if name in proven}}


def versions_to_try(fleet: Fleet, current: Mapping[str, str], proven: Mapping[str, str]) -> dict[str, str]:
    """Return the versions that have yet to boot where another one did, of pools whose image a parameter names."""
    waiting = {name: current[name] for name in _with_images(fleet) if name in current and name in proven}
    return {name: version for name, version in waiting.items() if version != proven[name]}


def _with_images(fleet: Fleet) -> set[str]:
    return {name for name, pool in fleet.pools.items() if pool.image_parameter}
