"""The Compute port, with real boto3 over HTTP and in memory."""

import pytest

from autoscaler.adapters import ec2
from autoscaler.domain.facts.fleet import Market, Volume
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.pools import Source
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.errors import LaunchRefusedError, MismatchError, StuckError, TransientError, UnansweredError
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand

FIRST, SECOND = an_offering(subnet="subnet-a"), an_offering("c6i.16xlarge", subnet="subnet-b", usd_per_hour=2.0)
FLEET = a_fleet(a_pool("cpu", offerings=(FIRST, SECOND)))


@pytest.fixture(params=["memory", "http"])
def here(request):
    with stand(request.param, FLEET) as stood:
        yield stood


def a_launch(count=1, *, market=Market.ON_DEMAND, offerings=(FIRST, SECOND)):
    return Launch(
        controller="main",
        pool="cpu",
        count=count,
        market=market,
        offerings=offerings,
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )


def send(here, count=1, intent_id="l-1", **facts):
    return here.compute.launch(here.compute.compose(a_launch(count, **facts), intent_id))


def test_a_launch_answers_with_its_instances_pending_first_and_tagged(here):
    answer = send(here, 2)
    assert [(kind, market) for _, kind, market in answer.instances] == [("c5.18xlarge", "on-demand")] * 2
    assert answer.errors == ()
    listed = here.compute.instances()
    assert {i.id for i in listed} == {instance_id for instance_id, _, _ in answer.instances}
    assert {(i.state, i.pool, i.controller, i.launch, i.instance_type) for i in listed} == {
        (InstanceState.PENDING, "cpu", "main", "l-1", "c5.18xlarge")
    }
    assert listed[0].launched_at == here.world.timeline.now
    here.world.move_to(here.world.timeline.now + 30)
    assert {i.state for i in here.compute.instances()} == {InstanceState.RUNNING}


def test_the_same_launch_composes_to_the_same_bytes(here):
    assert here.compute.compose(a_launch(), "l-1") == here.compute.compose(a_launch(), "l-1")
    assert here.compute.compose(a_launch(), "l-1") != here.compute.compose(a_launch(), "l-2")


def test_sending_the_same_bytes_again_launches_nothing_more(here):
    assert send(here, 3) == send(here, 3)
    assert len(here.compute.instances()) == 3


def test_the_same_token_with_another_request_is_a_mismatch(here):
    send(here, 1)
    with pytest.raises(MismatchError):
        send(here, 2)
    assert len(here.compute.instances()) == 1


def test_what_one_offering_lacks_the_next_one_gives_and_both_are_told(here):
    here.world.ec2.capacity[FIRST.key] = 1
    answer = send(here, 3)
    assert [kind for _, kind, _ in answer.instances] == ["c5.18xlarge", "c6i.16xlarge", "c6i.16xlarge"]
    assert [(e.code, e.offering_key) for e in answer.errors] == [("InsufficientInstanceCapacity", FIRST.key)]


def test_no_capacity_at_all_is_an_answer_and_kept_under_its_token(here):
    here.world.ec2.capacity |= {FIRST.key: 0, SECOND.key: 0}
    assert send(here).instances == ()
    here.world.ec2.capacity.clear()
    assert send(here).instances == ()
    assert len(send(here, intent_id="l-2").instances) == 1


def test_spot_is_asked_for_as_spot(here):
    spot = an_offering(market=Market.SPOT)
    [(_, _, market)] = send(here, market=Market.SPOT, offerings=(spot,)).instances
    assert market == "spot"
    assert [i.market for i in here.compute.instances()] == ["spot"]


def test_the_most_to_pay_for_spot_is_sent_and_what_is_dearer_by_then_is_not_had(here):
    cheap, dear = (an_offering(kind, market=Market.SPOT, spot_max_usd_per_hour=1.25) for kind in ("c5.large", "m5.large"))
    here.world.ec2.spot_usd_per_hour |= {cheap.key: 1.25, dear.key: 1.3}
    answer = send(here, 2, market=Market.SPOT, offerings=(dear, cheap))
    assert [kind for _, kind, _ in answer.instances] == ["c5.large", "c5.large"]
    assert [(e.code, e.offering_key) for e in answer.errors] == [("SpotMaxPriceTooLow", dear.key)]
    assert len(send(here, intent_id="l-2", market=Market.SPOT, offerings=(an_offering("m5.large", market=Market.SPOT),)).instances) == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_launch_without_answer_may_have_taken_effect(here, after):
    here.faults.plan(Fault("ec2 CreateFleet", after=after))
    with pytest.raises(UnansweredError):
        send(here)
    assert len(here.compute.instances()) == int(after)


def test_a_server_error_may_have_taken_effect(here):
    here.faults.plan(Fault("ec2 CreateFleet", status=500, code="InternalError"))
    with pytest.raises(UnansweredError):
        send(here)


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InvalidLaunchTemplateName.NotFoundException", "VcpuLimitExceeded"])
def test_a_refused_launch_says_with_which_code(here, code):
    here.world.ec2.refuse = (code, "no")
    with pytest.raises(LaunchRefusedError) as refused:
        send(here)
    assert refused.value.code == code


@pytest.mark.parametrize("code", ["InsufficientInstanceCapacity", "RequestLimitExceeded", "UnfulfillableCapacity"])
def test_a_code_that_ec2_answers_as_a_server_error_is_a_refusal_all_the_same(here, code):
    here.faults.plan(Fault("ec2 CreateFleet", status=503, code=code))
    with pytest.raises(LaunchRefusedError) as refused:
        send(here)
    assert refused.value.code == code


def test_only_what_carries_our_tag_is_listed(here):
    send(here)
    next(iter(here.world.ec2.instances.values())).tags["autoscaler:fleet"] = "somebody-else"
    assert here.compute.instances() == ()


def test_instances_are_listed_in_pages_as_large_as_ec2_gives(here, monkeypatch):
    asked, call = [], here.ec2_face.call

    def noting(action, request):
        asked.extend([request.get("MaxResults")] if action == "DescribeInstances" else [])
        return call(action, request)

    monkeypatch.setattr(type(here.ec2_face), "call", lambda _api, action, request: noting(action, request))
    send(here, 12)
    assert len(here.compute.instances()) == 12
    assert asked == [1000]
    monkeypatch.setitem(ec2._IN_PAGES, "PageSize", 5)
    assert len({instance.id for instance in here.compute.instances()}) == 12
    assert asked == [1000, 5, 5, 5]


def test_an_instance_is_tried_on_one_offering_with_the_subnet_where_the_template_takes_it(here):
    here.compute.try_instance("cpu", FIRST)
    del here.world.ec2.template_data["cpu"]["NetworkInterfaces"]
    here.compute.try_instance("cpu", FIRST)
    here.world.ec2.account.refused = {"c5.18xlarge": ("UnauthorizedOperation", "iam:PassRole")}
    with pytest.raises(LaunchRefusedError, match="UnauthorizedOperation: iam:PassRole"):
        here.compute.try_instance("cpu", FIRST)
    here.faults.plan(Fault("ec2 RunInstances"))
    with pytest.raises(UnansweredError, match="RunInstances"):
        here.compute.try_instance("cpu", SECOND)
    assert here.compute.instances() == ()


def test_why_an_instance_has_ended_is_told_by_its_code_and_of_others_nothing(here):
    [(instance_id, _, _)] = send(here).instances
    instance = here.world.ec2.instances[instance_id]
    assert here.compute.end_reasons([instance_id, "i-0123456789abcdef0"]) == {}
    here.world.ec2.interrupt(instance, is_announced=False)
    here.world.move_to(here.world.timeline.now + 200)
    assert here.compute.end_reasons([instance_id]) == {instance_id: "Server.SpotInstanceTermination"}


def test_fates_are_asked_by_id_and_an_unknown_id_fails_nothing(here):
    [(instance_id, _, _)] = send(here).instances
    here.compute.terminate(instance_id)
    assert here.compute.fates([instance_id, "i-0123456789abcdef0"]) == {
        instance_id: InstanceState.SHUTTING_DOWN,
        "i-0123456789abcdef0": InstanceState.NOT_FOUND,
    }
    here.world.move_to(here.world.timeline.now + 60)
    assert here.compute.fates([instance_id])[instance_id] is InstanceState.TERMINATED
    assert here.compute.instances() == ()
    [ended] = here.compute.ended_lately()
    assert (ended.id, ended.state, ended.launched_at > 0.0) == (instance_id, InstanceState.TERMINATED, True)


def test_one_instance_is_asked_for_alone_and_unknown_only_where_ec2_says_so(here):
    [(instance_id, _, _)] = send(here).instances
    assert here.compute.fate(instance_id) is InstanceState.PENDING
    assert here.compute.fate("i-0123456789abcdef0") is InstanceState.NOT_FOUND
    here.faults.plan(Fault("ec2 DescribeInstances", status=503, code="Unavailable"))
    with pytest.raises(TransientError):
        here.compute.fate("i-0123456789abcdef0")


def test_a_new_instance_may_be_missing_from_the_list(here):
    here.world.ec2.lag_seconds = 30.0
    send(here)
    assert here.compute.instances() == ()
    here.world.move_to(here.world.timeline.now + 31)
    assert len(here.compute.instances()) == 1


def test_a_list_of_several_pages_is_read_to_its_end(here):
    here.world.ec2.listing = Listing(page=5)
    launched = {instance_id for instance_id, _, _ in send(here, 12).instances}
    assert {i.id for i in here.compute.instances()} == launched
    assert here.compute.fates(launched) == dict.fromkeys(launched, InstanceState.PENDING)


def test_a_list_of_which_a_page_is_lost_is_no_list(here):
    """Half of the instances must not pass for all of them."""
    here.world.ec2.listing = Listing(page=5)
    send(here, 12)
    asked = []
    here.faults.dice = lambda call: asked.append(call) or (Fault(call) if len(asked) == 2 else None)
    with pytest.raises(TransientError):
        here.compute.instances()
    assert len(asked) == 2


def test_an_instance_that_is_there_may_be_missing_from_the_list_or_from_every_answer(here):
    [(instance_id, _, _)] = send(here).instances
    here.world.ec2.listing = Listing(missing=0.5)
    seen = set()
    for _ in range(20):
        here.world.move_to(here.world.timeline.now + 60)
        seen.add(len(here.compute.instances()))
        assert here.compute.fates([instance_id])[instance_id] is InstanceState.RUNNING
    assert seen == {0, 1}
    here.world.ec2.listing = Listing(empty_until=here.world.timeline.now + 60)
    assert here.compute.fates([instance_id])[instance_id] is InstanceState.NOT_FOUND
    assert here.compute.identity(instance_id) is None
    here.world.move_to(here.world.timeline.now + 60)
    assert here.compute.identity(instance_id) is not None


def test_terminating_twice_and_the_unknown_is_harmless(here):
    [(instance_id, _, _)] = send(here).instances
    for gone in (instance_id, instance_id, "i-0123456789abcdef0"):
        here.compute.terminate(gone)
    assert here.compute.fate(instance_id) in {InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED}
    assert here.compute.fate("i-0123456789abcdef0") is InstanceState.NOT_FOUND


def test_a_protected_instance_stays_and_says_so(here):
    [(instance_id, _, _)] = send(here).instances
    here.world.ec2.instances[instance_id].protected = True
    with pytest.raises(TransientError, match="OperationNotPermitted"):
        here.compute.terminate(instance_id)


@pytest.mark.parametrize("call", ["DescribeInstances", "TerminateInstances"])
def test_other_calls_that_fail_are_the_next_passes_business(here, call):
    send(here)
    here.faults.plan(Fault(f"ec2 {call}", status=503, code="Unavailable"))
    with pytest.raises(TransientError):
        here.compute.instances() if call == "DescribeInstances" else here.compute.terminate("i-1")


def test_an_instances_identity_is_what_ec2_shows_of_it(here):
    [(instance_id, _, _)] = send(here).instances
    identity = here.compute.identity(instance_id)
    assert (identity.fleet, identity.controller) == ("f", "main")
    assert identity.profile == "arn:aws:iam::123456789012:instance-profile/autoscaler-agent"
    assert identity.state is InstanceState.PENDING
    here.compute.terminate(instance_id)
    assert here.compute.identity(instance_id).state is InstanceState.SHUTTING_DOWN


def test_an_instance_that_ec2_does_not_know_has_no_identity(here):
    assert here.compute.identity("i-00000000000000000") is None


def test_an_instance_shows_under_its_nodes_name_however_often_it_is_named(here):
    [(instance_id, _, _)] = send(here).instances
    for _ in range(2):
        here.compute.name_instance(instance_id, "cpu-1", "main")
    tags = here.world.ec2.instances[instance_id].tags
    assert (tags["Name"], tags["autoscaler:node"], tags["autoscaler:pool"]) == ("cpu-1", "cpu-1", "cpu")


@pytest.mark.parametrize(
    "fault", [Fault("ec2 CreateTags", status=0, times=9), Fault("ec2 CreateTags", status=400, code="RequestLimitExceeded", times=9)]
)
def test_naming_an_instance_may_fail_and_be_tried_again(here, fault):
    [(instance_id, _, _)] = send(here).instances
    here.faults.plan(fault)
    with pytest.raises(TransientError):
        here.compute.name_instance(instance_id, "cpu-1", "main")


def test_whatever_ec2_refuses_to_end_is_stuck_and_no_answer_is_not(here):
    [(instance_id, _, _)] = send(here).instances
    here.world.ec2.instances[instance_id].protected = True
    with pytest.raises(StuckError):
        here.compute.terminate(instance_id)
    here.faults.plan(Fault("ec2 TerminateInstances", status=503, code="Unavailable"))
    with pytest.raises(StuckError, match="Unavailable"):
        here.compute.terminate(instance_id)
    here.faults.plan(Fault("ec2 TerminateInstances", status=0))
    with pytest.raises(UnansweredError):
        here.compute.terminate(instance_id)


def test_the_end_of_the_console_is_read_and_an_empty_one_is_empty(here):
    [(instance_id, _, _)] = send(here).instances
    assert here.compute.console_output(instance_id) == ""
    here.world.ec2.instances[instance_id].console = "x" * 20_000 + "Kernel panic: größe <no init>"
    said = here.compute.console_output(instance_id)
    assert said.endswith("Kernel panic: größe <no init>")
    assert len(said) == 8000
    with pytest.raises(TransientError):
        here.compute.console_output("i-00000000000000000")


def test_an_instance_shows_which_version_of_its_template_it_came_from(here):
    here.world.ec2.template_versions["cpu"] = 7
    send(here)
    assert [i.template_version for i in here.compute.instances()] == ["7"]


def test_the_version_that_would_be_launched_now_is_asked_for_where_the_fleet_file_leaves_it_open(here):
    here.world.ec2.template_versions["cpu"] = 7
    assert here.compute.template_versions(["cpu"]) == {"cpu": "7"}
    here.world.ec2.templates.clear()
    assert here.compute.template_versions(["cpu"]) == {}


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_templates_are_found_by_name_and_by_id_and_fixed_versions_ask_nobody(kind):
    pools = a_pool("one", launch_template="lt-0a1"), a_pool("two"), a_pool("three", launch_template_version="3")
    with stand(kind, a_fleet(*pools)) as here:
        here.world.ec2.template_versions |= {"lt-0a1": 4, "two": 5}
        assert here.compute.template_versions(["one", "two", "three"]) == {"one": "4", "two": "5", "three": "3"}
        here.faults.plan(Fault("ec2 DescribeLaunchTemplates", times=9))
        assert here.compute.template_versions(["three"]) == {"three": "3"}
        with pytest.raises(TransientError):
            here.compute.template_versions(["two"])


def test_volumes_are_read_from_the_launch_template_and_the_image_that_is_launched(here):
    root, data = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}, {"DeviceName": "/dev/sdf", "Ebs": {}}
    here.world.ec2.template_data["cpu"] = {"ImageId": "ami-linux", "BlockDeviceMappings": [root, data]}
    small = {"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 30, "VolumeType": "st1"}}]}
    here.world.ec2.account.images["ami-0b"] = image_of("linux", ImageId="ami-0b") | small
    of_template, of_image = Source(template="cpu", version="1"), Source(template="cpu", version="1", image="ami-0b")
    gone, unread = Source(template="gone", version="1"), Source(template="cpu", version="1", image="ami-unknown")
    xvda = Volume(device="/dev/xvda", gib=100.0, kind="gp3")
    assert here.compute.volumes([of_template, of_image, gone, unread]) == {
        of_template: (Volume(device="/dev/sdf"), xvda),
        of_image: (Volume(device="/dev/sdf", gib=30.0, kind="st1"), xvda),
        unread: (Volume(device="/dev/sdf"), xvda),
    }


@pytest.mark.parametrize("call", ["ec2 DescribeLaunchTemplateVersions", "ec2 DescribeImages"])
def test_volumes_that_cannot_be_read_are_told_from_none(here, call):
    here.world.ec2.template_data["cpu"] = {"ImageId": "ami-linux"}
    here.faults.plan(Fault(call, status=403, code="UnauthorizedOperation", times=9))
    with pytest.raises(TransientError):
        here.compute.volumes([Source(template="cpu", version="1")])


def test_a_launch_that_is_only_tried_launches_nothing_and_says_what_would_keep_it(here):
    here.compute.try_launch(a_launch())
    assert here.compute.instances() == ()
    assert send(here).instances  # its token was not used up
    here.world.ec2.refuse = "UnauthorizedOperation", "You are not authorized to perform this operation."
    with pytest.raises(LaunchRefusedError, match=r"UnauthorizedOperation \(ec2:CreateFleet\)") as refused:
        here.compute.try_launch(a_launch())
    assert (refused.value.code, refused.value.denied) == ("UnauthorizedOperation", "ec2:CreateFleet")


def test_an_action_that_is_not_allowed_is_named(here):
    here.world.ec2.refuse = "UnauthorizedOperation", "User: scale-up is not authorized to perform: ec2:CreateTags on resource: *"
    with pytest.raises(LaunchRefusedError) as refused:
        here.compute.try_launch(a_launch())
    assert refused.value.denied == "ec2:CreateTags"
    here.world.ec2.refuse = None
    here.world.ec2.answers = {offering.key: "UnauthorizedOperation" for offering in a_launch().offerings}
    assert {error.denied for error in send(here).errors} == {"iam:PassRole"}


def test_a_try_that_is_not_answered_is_told_from_one_that_is_refused(here):
    here.faults.plan(Fault("ec2 CreateFleet", times=9))
    with pytest.raises(UnansweredError):
        here.compute.try_launch(a_launch())
