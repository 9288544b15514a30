"""What opens the shared caches, by the policy evaluator: nothing unless asked, one fleet's only, and agents alone get at it."""

import pytest

from support.iam import asked, decided
from support.translated import ACCOUNT, given, stack

pytestmark = pytest.mark.needs("node")

REGION = "us-west-2"
ECR = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository"
GIVEN = given()
BUCKET, ROLE = GIVEN["BuildCache.Arn"], GIVEN["CacheRole.Arn"]
FROM_AN_INSTANCE = {"ec2:SourceInstanceARN": f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-0123456789abcdef0"}
IMAGES, BUILDS = {"ImageCachePrefix": "ci"}, {"BuildCacheDays": "14"}
PULL = ("BatchCheckLayerAvailability", "BatchGetImage", "BatchImportUpstreamImage", "CreateRepository", "GetDownloadUrlForLayer")
PULLS = [asked("ecr:GetAuthorizationToken", "*"), *(asked(f"ecr:{action}", f"{ECR}/ci/quay/x/y") for action in PULL)]
KEEPS = [asked("s3:ListBucket", BUCKET), *(asked(f"s3:{action}", f"{BUCKET}/a/b") for action in ("GetObject", "PutObject"))]
NOBODY_S = [
    asked("ecr:BatchGetImage", f"{ECR}/other/quay/x"),
    asked("ecr:CreateRepository", f"{ECR}/other"),
    asked("ecr:PutImage", f"{ECR}/ci/quay/x"),
    asked("ecr:InitiateLayerUpload", f"{ECR}/ci/quay/x"),
    asked("ecr:DeleteRepository", f"{ECR}/ci/quay/x"),
    asked("s3:DeleteObject", f"{BUCKET}/a"),
    asked("s3:PutBucketPolicy", BUCKET),
    asked("s3:GetObject", "arn:aws:s3:::another/a"),
    asked("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:ecr-pullthroughcache/hub-AbCdEf"),
    asked("lambda:InvokeFunctionUrl", GIVEN["RegisterAgentFunction.Arn"], **{"lambda:FunctionUrlAuthType": "AWS_IAM"}),
    asked("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **FROM_AN_INSTANCE),
]


def keys(**parameters):
    """What a build holds."""
    return [policy["PolicyDocument"] for policy in stack(**parameters)["CacheRole"]["Properties"]["Policies"]]


def agent(**parameters):
    """All that an agent's own role may do."""
    made = stack(**parameters)
    policies = [r["Properties"] for r in made.values() if r["Type"] == "AWS::IAM::RolePolicy"]
    return [policy["PolicyDocument"] for policy in policies if policy["RoleName"] == GIVEN["AgentRole"]]


def test_there_are_no_keys_where_no_cache_was_asked_for():
    assert {"CacheRole", "AgentCachePolicy", "BuildCache", "ImageCacheRole", "QuayCache"} & set(stack()) == set()
    assert "CacheRole" not in stack(DockerMirror="https://mirror.example.org")


@pytest.mark.parametrize(("cache", "opens", "others"), [(IMAGES, PULLS, KEEPS), (BUILDS, KEEPS, PULLS)], ids=["images", "builds"])
def test_the_keys_open_the_cache_that_was_asked_for_and_nothing_else(cache, opens, others):
    assert set(decided(keys(**cache), opens).values()) == {"Allowed"}
    assert set(decided(keys(**cache), [*others, *NOBODY_S]).values()) == {"ImplicitlyDenied"}


def test_both_caches_have_one_role():
    both = keys(**IMAGES, **BUILDS)
    assert set(decided(both, [*PULLS, *KEEPS]).values()) == {"Allowed"}
    assert set(decided(both, NOBODY_S).values()) == {"ImplicitlyDenied"}


def test_an_agent_gets_the_keys_from_an_instance_and_opens_no_cache_by_itself():
    """So that what a build holds is never the agent's role, by which it could ask who the instance is."""
    mine = [asked("sts:AssumeRole", ROLE, **FROM_AN_INSTANCE)]
    elsewhere = [
        asked("sts:AssumeRole", ROLE),
        asked("sts:AssumeRole", ROLE, **{"ec2:SourceInstanceARN": f"arn:aws:ec2:{REGION}:999999999999:instance/i-1"}),
    ]
    assert set(decided(agent(**IMAGES), mine).values()) == {"Allowed"}
    assert set(decided(agent(**IMAGES), [*elsewhere, *PULLS, *KEEPS, *NOBODY_S]).values()) == {"ImplicitlyDenied"}
    assert set(decided(agent(), mine).values()) == {"ImplicitlyDenied"}


def test_only_the_agents_role_may_assume_theirs():
    [statement] = stack(**BUILDS)["CacheRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement == {"Effect": "Allow", "Principal": {"AWS": GIVEN["AgentRole.Arn"]}, "Action": "sts:AssumeRole"}


def test_ecr_makes_repositories_of_this_cache_with_a_tag_and_no_others():
    role = stack(**IMAGES)["ImageCacheRole"]["Properties"]
    policies = [policy["PolicyDocument"] for policy in role["Policies"]]
    ours = [asked(f"ecr:{action}", f"{ECR}/ci/quay/x") for action in ("CreateRepository", "ReplicateImage", "TagResource")]
    others = [asked(f"ecr:{action}", f"{ECR}/other/x") for action in ("CreateRepository", "TagResource")]
    assert set(decided(policies, ours).values()) == {"Allowed"}
    assert set(decided(policies, [*others, asked("ecr:DeleteRepository", f"{ECR}/ci/quay/x")]).values()) == {"ImplicitlyDenied"}
    assert role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "ecr.amazonaws.com"}


@pytest.mark.parametrize("function", ["ScaleUpFunction", "ScaleDownFunction", "RegisterAgentFunction", "OperateFunction"])
def test_no_function_gets_a_key(function):
    before, after = (stack(**parameters)[f"{function}Role"] for parameters in ({}, {**IMAGES, **BUILDS}))
    assert before == after
