"""No value of a parameter opens more than one name: what a policy is made of is neither empty nor a pattern that anything matches."""

import json
import re

import pytest

from support.template import TEMPLATE
from support.translated import stack, translated

PARAMETERS = TEMPLATE["Parameters"]
# What is left out of every policy if it is empty, as a test below shows.
OFF_IF_EMPTY = {"ImageCachePrefix", "ImageParameterArns", "StateTableName", "VolumeKmsKeyArn", "WebhookSecretName"}


def documents(resources):
    """Every policy that a stack gives somebody, or puts on something."""
    keys = ("Policies", "PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy", "RepositoryPolicy", "ResourcePolicy")
    return [resource["Properties"][key] for resource in resources.values() for key in keys if key in resource.get("Properties", {})]


def named(value):
    return set(re.findall(r'"Ref": "(\w+)"|\$\{(\w+)\}', json.dumps(value)))


@pytest.fixture(scope="module")
def in_policies():
    """The parameters of which a policy is made. Not a list of the module: to translate takes seconds, and each worker reads each module."""
    return sorted({name for pair in named(documents(translated()["Resources"])) for name in pair} & PARAMETERS.keys())


def allows(parameter, value):
    facts = PARAMETERS[parameter]
    return value in facts["AllowedValues"] if "AllowedValues" in facts else bool(re.search(facts.get("AllowedPattern", ""), value))


def test_the_parameters_are_found(in_policies):
    assert {"AgentRolePattern", "ControllerSecretPrefix", "FleetName", "MetricNamespace"} | OFF_IF_EMPTY <= set(in_policies)


@pytest.mark.parametrize(
    "value", ["*", "?", "**", "a*b*", "*a", "a?", "${aws:username}", "a b*", "arn:aws:ssm:us-west-2:123456789012:parameter/*"]
)
def test_what_matches_more_than_it_says_is_refused(in_policies, value):
    assert [parameter for parameter in in_policies if allows(parameter, value)] == []


def test_an_empty_one_is_refused_unless_nothing_is_allowed_by_it(in_policies):
    assert {parameter for parameter in in_policies if allows(parameter, "")} == OFF_IF_EMPTY


@pytest.mark.parametrize("parameter", sorted(OFF_IF_EMPTY))
def test_a_parameter_that_is_empty_leaves_nothing_empty_in_a_policy(parameter):
    assert allows(parameter, "")
    written = json.dumps(documents(stack(**(dict.fromkeys(OFF_IF_EMPTY, "ci") | {parameter: ""}))))
    assert not any(empty in written for empty in ('""', ":secret:-", ':table/"', "repository//*"))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("ControllerSecretPrefix", "jenkins/"),
        ("ControllerSecretPrefix", "/ci/Jenkins_1+=.@-"),
        ("WebhookSecretName", "ci/webhook"),
        ("AgentRolePattern", "autoscaler-agent-*"),
        ("AgentRolePattern", "ci/agents/*"),
        ("AgentRolePattern", "builder"),
        ("ImageParameterArns", "arn:aws:ssm:us-west-2:123456789012:parameter/ci/linux-image"),
        ("ImageParameterArns", "arn:aws-cn:ssm:cn-north-1::parameter/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"),
        ("MetricNamespace", "CI/Jenkins fleet"),
        ("OtherAgentRoles", ""),
        (
            "OtherAgentRoles",
            "AROAEXAMPLE1=arn:aws:iam::123456789012:instance-profile/ci/gpu,AROAEXAMPLE2=arn:aws:iam::123456789012:instance-profile/b",
        ),
    ],
)
def test_what_people_write_is_allowed(parameter, value):
    assert allows(parameter, value)


@pytest.mark.parametrize("value", ["*", "agent=x", "AROAX", "AROAX=arn:aws:iam::123456789012:instance-profile/*", "AROAX=*"])
def test_roles_that_the_function_would_refuse_are_refused_by_the_deployment(value):
    assert not allows("OtherAgentRoles", value)
