"""Volumes that a launch template or an image makes, and that the fleet file does not count."""

import pytest

from autoscaler.adapters.ec2 import volume_findings
from support.builders import a_pool


def volume(device, size=None, **facts):
    return {"DeviceName": device, "Ebs": ({"Encrypted": True} | ({} if size is None else {"VolumeSize": size}) | facts)}


def said(*template, image=(), gib=100.0):
    return list(volume_findings(a_pool("cpu", volume_gib=gib), {"BlockDeviceMappings": template}, {"BlockDeviceMappings": image}))


ROOT, DATA = volume("/dev/xvda", 100), volume("/dev/sdf", 500)


@pytest.mark.parametrize(
    ("template", "image", "gib", "right"),
    [
        ((ROOT, DATA), (), 100.0, "600"),
        ((ROOT,), (DATA,), 100.0, "600"),  # which the image brings
        ((volume("/dev/xvda"),), (volume("/dev/xvda", 8),), 100.0, "8"),  # as large as the image has it
        ((volume("/dev/xvda", 30),), (volume("/dev/xvda", 8),), 100.0, "30"),  # the template's word counts
        ((ROOT, DATA), (), 700.0, "600"),
        ((volume("/dev/xvda"), DATA), (), 100.0, "500"),  # of a size that neither tells, and one that alone is larger
    ],
)
def test_volumes_of_another_size_than_the_price_counts_are_said_with_what_to_set(template, image, gib, right):
    [finding] = said(*template, image=image, gib=gib)
    assert finding.endswith(f"the price counts {gib:g} GiB of volumes: set volume_gib to {right} in the fleet file")


@pytest.mark.parametrize(
    ("template", "image", "gib"),
    [
        ((ROOT,), (), 100.0),
        ((ROOT, DATA), (), 600.0),
        ((ROOT, {"DeviceName": "/dev/sdf", "NoDevice": ""}), (DATA,), 100.0),
        ((ROOT, {"DeviceName": "/dev/xvdb", "VirtualName": "ephemeral0"}), (), 100.0),
        ((volume("/dev/xvda"),), (), 100.0),  # nobody knows
        ((), (), 100.0),
        ((ROOT, DATA), (), None),
    ],
)
def test_nothing_is_said_where_they_are_the_same_or_nobody_knows(template, image, gib):
    assert said(*template, image=image, gib=gib) == []
