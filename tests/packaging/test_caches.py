"""The caches that template.yaml makes for builds: each where it was asked for, private, tagged, and emptied by itself."""

import json
import re

import pytest

from autoscaler_workbench.maintenance.user_data import unpacked
from support.template import TEMPLATE
from support.translated import stack

SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ecr-pullthroughcache/hub-AbCdEf"


def rules(**parameters):
    kind = "AWS::ECR::PullThroughCacheRule"
    return {r["Properties"]["EcrRepositoryPrefix"]: r["Properties"] for r in stack(**parameters).values() if r["Type"] == kind}


def user_data(**parameters):
    return stack(**parameters)["LinuxAgents"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]


def test_without_a_parameter_the_user_data_says_nothing_of_caches():
    assert "CACHE" not in user_data()
    assert rules() == {}


def test_registries_that_ask_for_no_account_are_cached_under_the_fleet_s_prefix():
    assert {prefix: rule["UpstreamRegistryUrl"] for prefix, rule in rules(ImageCachePrefix="mxnet-ci").items()} == {
        "mxnet-ci/ecr-public": "public.ecr.aws",
        "mxnet-ci/quay": "quay.io",
        "mxnet-ci/k8s": "registry.k8s.io",
    }


def test_docker_hub_is_cached_with_an_account_and_only_then():
    hub = rules(ImageCachePrefix="mxnet-ci", DockerHubSecretArn=SECRET)["mxnet-ci/docker-hub"]
    assert (hub["UpstreamRegistryUrl"], hub["CredentialArn"]) == ("registry-1.docker.io", SECRET)
    assert rules(DockerHubSecretArn=SECRET) == {}
    assert "DOCKER_HUB=yes" in user_data(ImageCachePrefix="mxnet-ci", DockerHubSecretArn=SECRET)
    assert "DOCKER_HUB=no" in user_data(ImageCachePrefix="mxnet-ci")


def test_no_prefix_is_longer_than_ecr_takes():
    """30 characters, the name of the registry included: AWS::ECR::PullThroughCacheRule."""
    parameter = TEMPLATE["Parameters"]["ImageCachePrefix"]
    assert max(map(len, rules(ImageCachePrefix="x" * parameter["MaxLength"], DockerHubSecretArn=SECRET))) == 30
    for bad in ("A", "a/b", "-a", "a--b", "a_"):
        assert not re.fullmatch(parameter["AllowedPattern"], bad)


def test_repositories_of_the_cache_carry_the_fleet_s_tag_and_forget():
    made = stack(ImageCachePrefix="mxnet-ci")["ImageCacheRepositories"]["Properties"]
    assert (made["Prefix"], made["AppliedFor"]) == ("mxnet-ci", ["PULL_THROUGH_CACHE"])
    assert made["ResourceTags"] == [{"Key": "autoscaler:fleet", "Value": "mxnet-ci"}]
    [rule] = json.loads(made["LifecyclePolicy"])["rules"]
    assert (rule["selection"]["countNumber"], rule["action"]["type"]) == (30, "expire")


def test_the_bucket_is_private_encrypted_and_empties_itself():
    made = stack(BuildCacheDays="14")
    bucket = made["BuildCache"]["Properties"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    [rule] = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", "14")
    assert bucket["Tags"] == [{"Key": "autoscaler:fleet", "Value": "mxnet-ci"}]
    [statement] = made["BuildCachePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": False}})


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"ImageCachePrefix": "ci"}, {"IMAGE_CACHE=123456789012.dkr.ecr.us-west-2.amazonaws.com/ci", "BUILD_CACHE=", "DOCKER_MIRROR=''"}),
        ({"BuildCacheDays": "7"}, {"IMAGE_CACHE=", "BUILD_CACHE=ci-buildcache-1abcdefghij2", "DOCKER_HUB=no"}),
        ({"DockerMirror": "https://m.example.org"}, {"CACHE_ROLE=", "DOCKER_MIRROR='https://m.example.org'"}),
    ],
    ids=["images", "builds", "mirror"],
)
def test_the_user_data_says_which_caches_there_are(parameters, said):
    lines = unpacked(user_data(**parameters)).splitlines()
    assert said <= set(lines)
    read = ("DOCKER_MIRROR=", 'if [ -n "$IMAGE_CACHE" ]', 'cat >"$ROOT/etc/autoscaler-agent.conf"')
    first = [next(number for number, line in enumerate(lines) if begin in line) for begin in read]
    assert first == sorted(first), "set before it is read, and before the agent starts"


def test_whatever_a_mirror_s_name_is_it_stays_one_word():
    pattern = TEMPLATE["Parameters"]["DockerMirror"]["AllowedPattern"]
    assert re.fullmatch(pattern, "http://10.0.0.5:5000")
    for bad in ("https://a/b", "https://a'b", "https://a b", "ftp://a", "https://$(id)"):
        assert not re.fullmatch(pattern, bad)
