"""template.yaml, read; and the little of CloudFormation that a test needs to see what it would make."""

from typing import Any

from autoscaler_workbench.report.dashboard.cloudformation import read_template
from autoscaler_workbench.report.dashboard.cloudformation import resolved as put_in
from packaging_root import ROOT

GIVEN = {
    "AWS::Region": "us-west-2",
    "AWS::Partition": "aws",
    "AWS::AccountId": "123456789012",
    "FleetName": "mxnet-ci",
    "ControllerSecretPrefix": "jenkins/",
    "AgentRolePattern": "autoscaler-agent-*",
    "MetricNamespace": "JenkinsFleet",
    "StateTable.Arn": "arn:aws:dynamodb:us-west-2:123456789012:table/state",
    "RegisterAgentFunction.Arn": "arn:aws:lambda:us-west-2:123456789012:function:register",
    "AgentBootTimeoutSeconds": "900",
    "JavaVersion": "21",
    "BlockInstanceMetadata": "yes",
    "AWS::URLSuffix": "amazonaws.com",
    "RegistrationApi": "a1b2c3d4e5",
    "RegisterAgentFunctionUrl.FunctionUrl": "https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-west-2.on.aws/",
}


TEMPLATE = read_template(ROOT / "template.yaml")
# Of the conditions, those that choose the way in and the caches, at their defaults.
_CHOOSE = ("AsksOverHttpApi", "HasCaches", "HasKeysOfCaches", "HasImageCache", "HasBuildCache", "HasDockerMirror")
_DEFAULTS = ("RegistrationEndpoint", "ImageCachePrefix", "BuildCacheDays", "DockerMirror")
_AS_SHIPPED = {
    "Conditions": {name: TEMPLATE["Conditions"][name] for name in _CHOOSE},
    **{name: TEMPLATE["Parameters"][name]["Default"] for name in _DEFAULTS},
}


def resolved(value: Any) -> Any:
    """A value with what it refers to put in, as far as `GIVEN` knows it; what it does not know stays."""
    return put_in(value, GIVEN | _AS_SHIPPED)
