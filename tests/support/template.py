"""template.yaml, read; and the little of CloudFormation that a test needs to see what it would make."""

from typing import Any

import yaml

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
    "RegisterAgentFunctionUrl.FunctionUrl": "https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-west-2.on.aws/",
}


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short tags as plain values."""


def _tagged(loader: Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    return {suffix: loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", _tagged)
TEMPLATE = yaml.load((ROOT / "template.yaml").read_text(encoding="utf-8"), Loader)  # noqa: S506 - a SafeLoader


def resolved(value: Any) -> Any:
    """A value with what it refers to put in, as far as `GIVEN` knows it; what it does not know stays."""
    match value:
        case {"Join": [separator, parts]}:
            return separator.join(resolved(part) for part in parts)
        case {"Sub": text}:
            for name, given in GIVEN.items():
                text = text.replace(f"${{{name}}}", given)
            return text
        case {"Ref": name} | {"GetAtt": name} if name in GIVEN:
            return GIVEN[name]
        case dict():
            return {key: resolved(below) for key, below in value.items()}
        case list():
            return [resolved(below) for below in value]
        case _:
            return value
