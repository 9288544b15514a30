"""The stack as CloudFormation would make it: SAM's own translator, then conditions, references and substitutions."""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by
from packaging_root import ROOT
from support.template import TEMPLATE

_INTERPRETER = ROOT / ".venv-sam" / "bin" / "python"
_TEMPLATE = ROOT / "template.yaml"
_URL = "https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-west-2.on.aws/"
_SUFFIXES = {"aws": "amazonaws.com", "aws-cn": "amazonaws.com.cn", "aws-us-gov": "amazonaws.com"}
_REGIONS = {"aws": "us-west-2", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
ACCOUNT = "123456789012"
IMAGE = "ami-0abcdef1234567890"  # what the Systems Manager parameters of the images name


@cache
def translated() -> Mapping[str, Any]:
    """What SAM makes of template.yaml."""
    # The translator lives with the SAM command line: it wants an older pydantic than the layer has.
    assert _INTERPRETER.exists(), "run the tests with `make test`: it installs the SAM command line beside them"
    command = [str(_INTERPRETER), str(ROOT / "tests" / "support" / "translate.py")]
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-west-2"}
    written = _TEMPLATE.read_text(encoding="utf-8")
    done = subprocess.run(command, input=written, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    template: dict[str, Any] = json.loads(done.stdout)
    return template


def stack(partition: str = "aws", **parameters: str) -> dict[str, Any]:
    """The resources of a stack with these parameters, the others at their defaults."""
    return made_by(translated(), given(partition, **parameters))


def outputs(partition: str = "aws", **parameters: str) -> dict[str, Any]:
    """What a stack with these parameters says of itself."""
    template = translated()
    made = made_by({**template, "Resources": {"Outputs": {"Values": template["Outputs"]}}}, given(partition, **parameters))
    return {name: output["Value"] for name, output in made["Outputs"]["Values"].items()}


def given(partition: str = "aws", **parameters: str) -> dict[str, Any]:
    """Parameters, pseudo parameters, and what resources are known by."""
    unknown = parameters.keys() - TEMPLATE["Parameters"].keys()
    assert not unknown, f"template.yaml has no parameter {', '.join(sorted(unknown))}"
    told = {
        name: value.split(",") if TEMPLATE["Parameters"][name]["Type"] == "CommaDelimitedList" else value
        for name, value in parameters.items()
    }
    images = {name: IMAGE for name, parameter in TEMPLATE["Parameters"].items() if parameter["Type"].startswith("AWS::SSM::")}
    return {**_known(partition), "FleetName": "mxnet-ci", **defaults_of(TEMPLATE), **images, **told}


def _known(partition: str) -> dict[str, str]:
    region = _REGIONS[partition]
    functions = {name: r for name, r in translated()["Resources"].items() if r["Type"] == "AWS::Lambda::Function"}
    arn = f"arn:{partition}:lambda:{region}:{ACCOUNT}:function"
    return {
        "AWS::Partition": partition,
        "AWS::Region": region,
        "AWS::AccountId": ACCOUNT,
        "AWS::URLSuffix": _SUFFIXES[partition],
        "AWS::StackName": "ci",
        "AWS::StackId": f"arn:{partition}:cloudformation:{region}:{ACCOUNT}:stack/ci/0a1b",
        "StateTable": "state",
        "StateTable.Arn": f"arn:{partition}:dynamodb:{region}:{ACCOUNT}:table/state",
        "LooksQueue.Arn": f"arn:{partition}:sqs:{region}:{ACCOUNT}:ci-LooksQueue-1ABCDEFGHIJ2",
        "AlarmTopic": f"arn:{partition}:sns:{region}:{ACCOUNT}:ci-AlarmTopic",
        "AgentRole": "ci-AgentRole-1ABCDEFGHIJ2",
        "AgentRole.Arn": f"arn:{partition}:iam::{ACCOUNT}:role/ci-AgentRole-1ABCDEFGHIJ2",
        "AgentRole.RoleId": "AROAEXAMPLEAGENTROLE1",
        "AgentInstanceProfile.Arn": f"arn:{partition}:iam::{ACCOUNT}:instance-profile/ci-AgentInstanceProfile-1ABCDEFGHIJ2",
        "CacheRole.Arn": f"arn:{partition}:iam::{ACCOUNT}:role/ci-CacheRole-1ABCDEFGHIJ2",
        "BuildCache": "ci-buildcache-1abcdefghij2",
        "BuildCache.Arn": f"arn:{partition}:s3:::ci-buildcache-1abcdefghij2",
        "RegisterAgentFunctionUrl.FunctionUrl": _URL,
        "RegistrationApi": "a1b2c3d4e5",
        "RegistrationIntegration": "f6g7h8",
        **{f"{name}.Arn": f"{arn}:{name}" for name in functions},
    }
