"""The Account port, with real boto3 over HTTP."""

import pytest

from autoscaler.adapters.account import AwsAccount
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import aws_over_http, stand

FIRST, SECOND = an_offering(subnet="subnet-a"), an_offering("g4dn.2xlarge", subnet="subnet-b", usd_per_hour=2.0)
FLEET = a_fleet(a_pool("cpu", offerings=(FIRST, SECOND)))


@pytest.fixture
def here():
    with stand("http", FLEET) as stood:
        yield stood


@pytest.fixture
def account(here):
    paths = {name: name for name in ("ec2", "service-quotas", "iam", "cloudformation")} | {"lambda": "lambda-settings"}
    clients = {service: aws_over_http(service, here.server, path) for service, path in paths.items()}
    return AwsAccount(clients.__getitem__, FLEET)


def test_subnets_that_there_are_not_and_types_that_cannot_be_had_are_told_by_pool(here, account):
    assert account.not_offered() == {}
    here.world.ec2.zones = {"subnet-a": "us-west-2a", "subnet-b": "us-west-2b"}
    here.world.ec2.unknown_subnets = {"subnet-b"}
    here.world.ec2.withdrawn = {"c5.18xlarge"}
    told = account.not_offered()
    assert told == {"cpu": ("c5.18xlarge cannot be had in subnet-a (us-west-2a)", "there is no subnet subnet-b")}


def test_what_is_unsafe_in_a_launch_template_is_told_by_pool(here, account):
    assert account.unsafe_templates({}) == {}
    del here.world.ec2.template_data["cpu"]["UserData"]
    assert account.unsafe_templates({}) == {"cpu": ("UserData is missing: nothing would make an agent of the instance",)}


def test_the_key_of_volumes_is_told_of_pools_that_stop_agents(here):
    key = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d"
    root, _ = here.world.ec2.template_data["cpu"]["BlockDeviceMappings"]
    root["Ebs"]["KmsKeyId"] = key
    warm = a_pool("cpu", offerings=(FIRST,), warm_pool=WarmPool(min_agents=0, max_agents=5, max_age_seconds=1e6))
    keys = [
        AwsAccount(lambda service: aws_over_http(service, here.server, service), fleet).volume_keys() for fleet in (a_fleet(warm), FLEET)
    ]
    assert keys == [{"cpu": key}, {}]


def test_the_image_that_a_parameter_names_is_checked_instead_of_the_launch_templates(here, account):
    here.world.ec2.account.images["ami-arm"] = image_of("linux", ImageId="ami-arm", Architecture="arm64")
    told = account.unsafe_templates({"cpu": "ami-arm"})
    assert told == {"cpu": tuple(f"{kind} cannot boot the image ami-arm: that is of arm64" for kind in ("c5.18xlarge", "g4dn.2xlarge"))}
    assert account.unsafe_templates({"cpu": "ami-gone"}) == {"cpu": ("there is no image ami-gone, or this account may not use it",)}


def test_sizes_are_told_of_types_that_there_are(here, account):
    assert account.vcpus() == {"c5.18xlarge": 72, "g4dn.2xlarge": 8}
    here.world.ec2.withdrawn = {"c5.18xlarge"}
    assert account.vcpus() == {"g4dn.2xlarge": 8}


def test_the_role_for_spot_is_there_or_not(here, account):
    assert account.has_spot_role() is True
    here.world.ec2.account.spot_role = False
    assert account.has_spot_role() is False


def test_the_limit_on_executions_is_the_accounts(here, account):
    here.world.ec2.account.concurrent_executions = 10
    here.world.ec2.account.reserved_executions = 3
    executions = account.executions()
    assert (executions.limit, executions.unreserved, executions.for_each) == (10, 7, None)


def test_instances_of_fleets_that_no_stack_has_are_told_and_stacks_are_asked_for_only_then(here, account):
    assert account.instances_of_no_stack() == {}
    assert "cloudformation DescribeStacks" not in here.faults.seen
    launched = []
    for fleet in ("old", "old", "neighbour", "f"):
        launch = Launch(
            controller="main",
            pool="cpu",
            count=1,
            market=Market.ON_DEMAND,
            offerings=(FIRST,),
            keep_until=0.0,
            intent_id=None,
            reason=Reason.MANUAL,
            detail="",
        )
        [(instance_id, _, _)] = here.compute.launch(here.compute.compose(launch, f"l-{len(launched)}")).instances
        here.world.ec2.instances[instance_id].tags["autoscaler:fleet"] = fleet
        launched.append(instance_id)
    here.world.ec2.account.stacks = ("f", "neighbour")
    here.world.move_to(here.world.timeline.now + 120.0)
    assert account.instances_of_no_stack() == {"old": tuple(sorted(launched[:2]))}


def test_quotas_are_told_by_name(here, account):
    here.world.ec2.quotas = {"Running On-Demand P instances": 64.0}
    assert [(quota.name, quota.vcpus) for quota in account.quotas()] == [("Running On-Demand P instances", 64.0)]


@pytest.mark.parametrize(
    ("call", "method"),
    [
        ("ec2 DescribeSubnets", "not_offered"),
        ("ec2 DescribeInstanceTypeOfferings", "not_offered"),
        ("ec2 DescribeLaunchTemplateVersions", "unsafe_templates"),
        ("ec2 DescribeImages", "unsafe_templates"),
        ("ec2 DescribeRouteTables", "unsafe_templates"),
        ("iam GetRole", "has_spot_role"),
        ("lambda GetAccountSettings", "executions"),
        ("ec2 DescribeInstanceTypes", "vcpus"),
        ("service-quotas ListServiceQuotas", "quotas"),
    ],
)
def test_a_question_that_is_denied_says_which(here, account, call, method):
    here.faults.plan(Fault(call, times=9, status=403, code="AccessDenied"))
    with pytest.raises(TransientError, match=call.split()[1]):
        getattr(account, method)(*([{}] if method == "unsafe_templates" else []))
