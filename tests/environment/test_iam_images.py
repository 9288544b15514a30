"""Roles of image.yaml, by the policy evaluator: what we wrote of them. AWS' own managed policies are attached by name, not evaluated."""

import pytest

from support.iam import asked, decided
from support.images import ALL, KNOWN, REGION, images
from support.translated import ACCOUNT

pytestmark = pytest.mark.needs("node")

SSM = f"arn:aws:ssm:{REGION}"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d"
# As of https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSSMManagedInstanceCore.html, the part that reads parameters.
READS_PARAMETERS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["ssm:GetParameter", "ssm:GetParameters"], "Resource": "*"}],
}
# And of https://docs.aws.amazon.com/aws-managed-policy/latest/reference/EC2ImageBuilderExecutionPolicy.html, the part that passes roles.
PASSES_ROLES = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": "arn:aws:iam::*:role/*",
            "Condition": {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn", "vmie.amazonaws.com"]}},
        }
    ],
}
ROLES = {
    "BuildRole": ["AmazonSSMManagedInstanceCore", "EC2InstanceProfileForImageBuilder"],
    "ImageBuilderRole": ["EC2ImageBuilderExecutionPolicy"],
    "CleanUpRole": ["service-role/EC2ImageBuilderLifecycleExecutionPolicy"],
}


def policies_of(role, **parameters):
    return [policy["PolicyDocument"] for policy in images(**ALL, **parameters)[role]["Properties"].get("Policies", [])]


@pytest.mark.parametrize("role", ROLES)
def test_of_aws_own_policies_a_role_has_those_that_its_service_asks_for(role):
    arns = images(**ALL)[role]["Properties"]["ManagedPolicyArns"]
    assert arns == [f"arn:aws:iam::aws:policy/{name}" for name in ROLES[role]]


def test_there_is_no_other_role():
    assert {name for name, r in images(**ALL).items() if r["Type"] == "AWS::IAM::Role"} == set(ROLES)


@pytest.mark.parametrize("role", ["ImageBuilderRole", "CleanUpRole"])
def test_only_image_builder_may_be_these_roles(role):
    [statement] = images(**ALL)[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement == {"Effect": "Allow", "Principal": {"Service": "imagebuilder.amazonaws.com"}, "Action": "sts:AssumeRole"}


def test_image_builder_names_this_fleet_s_images_and_writes_no_other_parameter():
    ours = [asked("ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter/autoscaler/mxnet-ci/image/{kind}") for kind in ("linux", "gpu", "arm64")]
    ours += [asked("ec2:DescribeImages", "*")]
    ours += [asked("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64")]
    others = [
        asked("ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter/autoscaler/other/image/linux"),
        asked("ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter/database/password"),
        asked("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/database/password"),
        asked("ssm:GetParametersByPath", f"{SSM}:{ACCOUNT}:parameter/database"),
        asked("kms:Decrypt", KEY, **{"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}),
        asked("iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/x"),
    ]
    assert set(decided(policies_of("ImageBuilderRole"), ours).values()) == {"Allowed"}
    assert set(decided(policies_of("ImageBuilderRole"), others).values()) == {"ImplicitlyDenied"}


def test_a_base_image_of_your_own_is_found_by_its_parameter():
    mine = [asked("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/ci/debian")]
    assert set(decided(policies_of("ImageBuilderRole", LinuxBaseParameter="/ci/debian"), mine).values()) == {"Allowed"}
    assert set(decided(policies_of("ImageBuilderRole"), mine).values()) == {"ImplicitlyDenied"}


def test_an_instance_that_builds_reads_no_parameter_of_yours_though_aws_policy_lets_it():
    """What a component of somebody else's runs there, runs as root."""
    both = [READS_PARAMETERS, *policies_of("BuildRole")]
    theirs = [asked("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/database/password")]
    aws = [asked("ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/aws/service/ami-amazon-linux-latest/x")]
    assert set(decided(both, theirs).values()) == {"ExplicitlyDenied"}
    assert set(decided(both, aws).values()) == {"Allowed"}
    assert set(decided([READS_PARAMETERS], theirs).values()) == {"Allowed"}, "the policy of AWS would not let it anyway"


def test_an_instance_that_builds_gets_the_role_for_it_and_no_other_though_aws_policy_lets_image_builder():
    both = [PASSES_ROLES, *policies_of("ImageBuilderRole")]
    ours = [asked("iam:PassRole", KNOWN["BuildRole.Arn"], **{"iam:PassedToService": "ec2.amazonaws.com"})]
    admin = [asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **{"iam:PassedToService": "ec2.amazonaws.com"})]
    assert set(decided(both, ours).values()) == {"Allowed"}
    assert set(decided(both, admin).values()) == {"ExplicitlyDenied"}


def test_a_policy_more_for_builds_is_attached_only_where_it_is_given():
    mine = f"arn:aws:iam::{ACCOUNT}:policy/pull"
    assert mine in images(**ALL, BuildPolicyArn=mine)["BuildRole"]["Properties"]["ManagedPolicyArns"]
