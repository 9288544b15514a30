"""What image.yaml makes with given parameters."""

from typing import Any

from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by, read_template
from packaging_root import ROOT
from support.translated import ACCOUNT

FILE = ROOT / "image.yaml"
TEMPLATE = read_template(FILE)
REGION = "us-west-2"
KNOWN = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
    "BuildRole.Arn": f"arn:aws:iam::{ACCOUNT}:role/ci-images-BuildRole-1ABC",
}
KINDS = {"Linux": "LinuxImage", "Gpu": "GpuImage", "Arm": "Arm64Image", "Windows": "WindowsImage"}
ALL = dict.fromkeys(KINDS.values(), "yes")


def images(**parameters: str) -> dict[str, Any]:
    """The resources of a stack with these parameters, the others at their defaults."""
    unknown = parameters.keys() - TEMPLATE["Parameters"].keys()
    assert not unknown, f"image.yaml has no parameter {', '.join(sorted(unknown))}"
    return made_by(TEMPLATE, {**KNOWN, "FleetName": "mxnet-ci", **defaults_of(TEMPLATE), **parameters})


def of_kind(made: dict[str, Any], kind: str) -> dict[str, Any]:
    """The properties of all resources of a kind, by name."""
    return {name: r["Properties"] for name, r in made.items() if r["Type"] == f"AWS::ImageBuilder::{kind}"}
