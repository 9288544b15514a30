"""Features that decide which jobs an agent takes, what it is launched from, and when it is replaced.

Tried as in `test_features.py`: from the text of a fleet file to the effect, at the minute when it is due.
"""

from collections import Counter

import pytest

from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from autoscaler_workbench.fakes.world.world import break_boots
from support.scene import BOTH, scene
from support.worlds import a_world_node

feature = pytest.mark.feature


# Machines that serve more than one kind of job, or more than one controller


_KINDS = "kinds: {amd64: {}, amd64+gpu: {}}\n"


@feature("domain/launch/placement.py", "config/hosts.py", "domain/scale_in/surplus.py")
@pytest.mark.parametrize("lend", ["idle", "never"])
def test_an_idle_agent_of_a_rare_kind_is_lent_at_the_first_look_and_only_for_the_jobs_that_wait(lend):
    cpu, gpu = (
        "$pool, kind: amd64, executors: 1, max_agents: 1",
        f"$pool, kind: amd64+gpu, lend: {lend}, executors: 1, max_agents: 1, min_agents: 1",
    )
    with scene(f"{_KINDS}pools: {{cpu: {{{cpu}}}, gpu: {{{gpu}}}}}") as here:
        here.minutes(4)
        [node] = here.ready("gpu")
        assert "amd64" not in node.labels
        plain = here.submit("plain", "amd64", 6)
        here.minutes(1)
        assert (plain.node == node.name, len(here.machines("cpu"))) == ((True, 0) if lend == "idle" else (False, 1))
        here.minutes(1)
        assert "amd64" not in node.labels
        special = here.submit("special", "gpu", 2)
        here.minutes(6)
        waited_for = plain.ended_at if lend == "idle" else special.queued_at
        assert (special.node, special.started_at) == (node.name, waited_for)


@feature("domain/launch/purchase.py", "domain/situation/supply.py", "domain/scale_in/sides.py", "control/steps/stopping.py")
@pytest.mark.parametrize("share", ["rotate", "none"])
def test_an_idle_agent_goes_to_the_controller_whose_job_waits_within_two_looks_and_some_seconds(share):
    pool = f"$pool, executors: 1, share: {share}, max_agents: 2, idle_seconds: 1800, boot_seconds: 180"
    with scene(f"{BOTH}pools: {{cpu: {{{pool}}}}}") as here:
        mine = here.submit("mine", "cpu", 2)
        here.until(lambda: mine.ended, within=10)
        here.minutes(2)
        theirs = here.submit("theirs", "cpu", 2, controller="other")
        here.minutes(3)
        assert (theirs.node, len(here.ever())) == ((mine.node, 1) if share == "rotate" else (None, 2))


_BOX = "pools: {box: {executors: 1, share: SHARE}}\nhosts: {box-1: {pool: box, role_id: AROAHOSTBOX1, owner: the ROCm team}}"


@feature("domain/situation/left.py", "control/granting.py", "control/registration.py")
def test_a_host_that_is_cooperative_is_a_node_of_both_controllers_and_takes_jobs_of_both():
    with scene(BOTH + _BOX.replace("SHARE", "cooperative")) as here:
        here.minutes(1)
        builds = [here.submit("mine", "box", 2), here.submit("theirs", "box", 2, controller="other")]
        here.minutes(1)
        assert [build.node for build in builds] == ["box-1", "box-1"]
        assert here.ever() == []
        here.minutes(40)
        assert [node.offline for node in (*here.nodes(), *here.nodes("other"))] == [False, False]


@feature("domain/situation/left.py", "domain/report/machines.py")
def test_people_are_told_of_a_host_that_is_off_once_it_was_so_for_a_quarter_of_an_hour():
    with scene(_BOX.replace("SHARE", "none")) as here:
        here.minutes(3)
        assert here.ready("box")
        here.world.hosts["box-1"].on = False
        here.jenkins.disconnect("box-1")
        here.minutes(14)
        assert here.subjects() == []
        here.minutes(3)
        assert [subject for subject in here.subjects() if "box-1" in subject]


@feature("domain/scale_in/surplus.py", "domain/scale_in/sides.py", "control/steps/ending.py")
def test_a_machine_that_serves_both_controllers_at_once_goes_when_both_have_had_no_job_for_its_idle_seconds():
    with scene(BOTH + "pools: {cpu: {$pool, executors: 1, share: cooperative, max_agents: 2, idle_seconds: 300}}") as here:
        mine = here.submit("mine", "cpu", 2)
        here.until(lambda: mine.ended, within=8)
        here.minutes(1)
        theirs = here.submit("theirs", "cpu", 6, controller="other")
        here.until(lambda: theirs.ended, within=8)
        assert (theirs.node, len(here.ever())) == (mine.node, 1)
        here.minutes(4)
        assert len(here.machines()) == 1
        here.minutes(3)
        assert (here.machines(), here.nodes(), here.nodes("other")) == ([], [], [])


# How much of an agent a build takes


@feature("domain/facts/nodes.py", "domain/situation/supply.py", "domain/lifecycle.py")
def test_an_agent_whose_builds_weigh_as_much_as_it_has_takes_no_more_from_the_first_look_on():
    with scene("weights: {heavy/*: 4}\npools: {cpu: {$pool, executors: 8, max_agents: 4, min_agents: 1}}") as here:
        here.minutes(4)
        assert all(here.submit(f"light-{number}", "cpu", 0.9).started_at for number in range(8))
        here.minutes(1)
        heavy = [here.submit(f"heavy/{number}", "cpu", 10) for number in range(2)]
        here.minutes(1)
        light = here.submit("light", "cpu", 1)
        assert ([build.node is not None for build in heavy], light.node) == ([True, True], None)
        more = [here.submit(f"heavy/{number}", "cpu", 10) for number in range(2, 5)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(4)
        by_node = Counter(build.node for build in heavy + more)
        assert max(by_node.values()) == 2


@feature("domain/report/jobs.py", "control/statistics.py", "control/measure.py", "domain/facts/nodes.py", "domain/report/tracking.py")
def test_a_job_has_its_weight_once_agents_have_reported_three_of_its_builds():
    """A build takes half of a machine's memory."""
    with scene("weights: {'*': learned}\npools: {cpu: {$pool, executors: 4, max_agents: 6, min_agents: 1}}") as here:
        here.world.usage = Usage(here.world.timeline, here.world.controllers, size=Size(memory=8 * GIB, idle=GIB / 2, cache=6 * GIB))
        here.world.usage.needs["big"] = Need(memory=3.7 * GIB)
        here.submit("another", "cpu", 1)
        here.minutes(5)
        for _ in range(3):
            build = here.submit("big", "cpu", 5)
            here.minutes(7)
        here.until(lambda: here.order("needs", pattern="big")["needs"][0]["builds"] == 3, within=7)
        here.minutes(1)
        builds = [here.submit("big", "cpu", 20) for _ in range(2)]
        here.minutes(1)
        assert len(here.machines()) == 1
        builds += [here.submit("big", "cpu", 20) for _ in range(4)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(4)
        assert sorted(Counter(build.node for build in builds).values()) == [2, 2, 2]
        assert build.succeeded


@feature("control/measure.py", "domain/facts/nodes.py")
def test_the_heavy_job_plugins_weight_counts_from_the_first_look_at_which_a_job_waits():
    with scene("weights: {'*': heavy-job}\npools: {cpu: {$pool, executors: 4, max_agents: 6}}") as here:
        here.jenkins.heavy = {"big": 4}
        here.minutes(1)
        builds = [here.submit("big", "cpu", 20) for _ in range(3)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(3)
        assert len({build.node for build in builds}) == 3


# Versions and images, and the replacement of agents


@feature("domain/situation/canary.py", "domain/launch/purchase.py", "adapters/account.py")
def test_one_agent_tries_a_new_image_while_others_are_launched_from_the_old_one_and_then_all_follow():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 9, image_parameter: /ci/image}}") as here:
        account = here.world.ec2.account
        account.images |= {name: image_of("linux", ImageId=name) for name in ("ami-1", "ami-2")}
        account.parameters["/ci/image"] = "ami-1"
        here.submit("job", "cpu", 60)
        here.minutes(4)
        account.parameters["/ci/image"] = "ami-2"
        for number in range(3):
            here.submit(f"job-{number}", "cpu", 60)
        here.minutes(1)
        assert Counter(machine.image for machine in here.machines()) == {"ami-1": 3, "ami-2": 1}
        here.minutes(3)
        for number in range(3, 5):
            here.submit(f"job-{number}", "cpu", 60)
        here.minutes(1)
        assert Counter(machine.image for machine in here.machines()) == {"ami-1": 3, "ami-2": 3}
        assert [reason for reason, _ in here.steps("cordon")] == ["outdated"]


VERSION = "aws:ec2launchtemplate:version"


@feature("domain/situation/canary.py", "domain/scale_in/replace.py")
def test_one_agent_tries_a_new_launch_template_version_and_an_older_one_is_replaced_each_hour():
    pool = (
        "launch_template: autoscaler-linux-f, instance_types: [c5.xlarge], executors: 1, max_agents: 6, min_agents: 3, idle_seconds: 7200"
    )
    with scene(f"pools: {{cpu: {{{pool}}}}}") as here:
        here.minutes(5)
        here.world.ec2.deploy("autoscaler-linux-f")
        for number in range(4):
            here.submit(f"job-{number}", "cpu", 3)
        here.minutes(1)
        assert Counter(machine.tags[VERSION] for machine in here.machines()) == {"1": 3, "2": 1}
        here.minutes(13)
        versions = Counter(machine.tags[VERSION] for machine in here.machines())
        assert versions == {"1": 2, "2": 1}
        here.minutes(46)
        assert Counter(machine.tags[VERSION] for machine in here.machines())["1"] == 2
        here.minutes(5)
        assert Counter(machine.tags[VERSION] for machine in here.machines())["1"] == 1


@feature("domain/scale_in/surplus.py", "domain/situation/builds.py")
@pytest.mark.parametrize(("key", "builds"), [("max_builds: 2", 2), ("reuse: never", 1)])
def test_an_agent_takes_so_many_builds_and_no_more(key, builds):
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, min_agents: 1, {key}}}}}") as here:
        here.minutes(3)
        [machine] = here.machines()
        for number in range(builds):
            assert here.submit(f"job-{number}", "cpu", 1.5).node == here.node_of(machine).name
            here.minutes(1)
            assert here.node_of(machine).offline is (number + 1 == builds)
            here.minutes(1)
        here.minutes(2)
        assert not machine.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("domain/scale_in/replace.py")
def test_an_agent_is_replaced_at_the_first_look_at_which_it_is_older_than_its_max_agent_hours():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, min_agents: 1, max_agent_hours: 0.25}}") as here:
        here.minutes(15)
        [old] = here.machines()
        assert not here.node_of(old).offline
        here.minutes(2)
        assert not old.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("domain/scale_in/replace.py", "control/measure.py")
@pytest.mark.parametrize("quarantine", ["replace", "keep", "off"])
def test_an_agent_on_which_builds_of_four_jobs_in_a_row_fail_goes_into_quarantine_at_the_look_after_the_fourth(quarantine):
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, min_agents: 2, quarantine: {quarantine}}}}}") as here:
        here.minutes(4)
        broken = here.nodes()[0]
        broken.fails_builds = True
        [machine] = [one for one in here.machines() if here.node_of(one) is broken]
        for number in range(4):
            assert not broken.offline
            for which in ("a", "b"):
                here.submit(f"job-{number}-{which}", "cpu", 1.5)
            here.minutes(2)
        here.minutes(1)
        assert (broken.temporarily_offline, machine.alive()) == {"replace": (True, False), "keep": (True, True), "off": (False, True)}[
            quarantine
        ]
        here.minutes(3)
        assert len(here.ready("cpu")) == 2


@feature("domain/scale_in/replace.py", "domain/learn.py", "domain/forecast/durations.py")
def test_an_agent_goes_into_quarantine_once_a_build_ran_on_it_for_ten_times_as_long_as_its_job_ever_did_and_an_hour():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 2, min_agents: 1}}") as here:
        here.submit("another", "cpu", 1)
        here.minutes(4)
        for _ in range(5):
            here.submit("job", "cpu", 1.5)
            here.minutes(3)
        hangs = here.submit("job", "cpu", 600)
        here.minutes(60)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [reason for reason, _ in here.steps("cordon")] == ["far-overdue"]
        assert hangs.ended is None


@feature("domain/lifecycle.py", "domain/situation/states.py")
def test_an_agent_that_lost_its_connection_is_given_up_and_replaced_after_five_minutes():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 2, min_agents: 1}}") as here:
        here.minutes(8)  # an agent that goes away in its first five minutes boots still
        [machine] = here.machines()
        here.jenkins.disconnect(here.node_of(machine).name)
        here.minutes(5)
        assert not here.node_of(machine).temporarily_offline
        here.minutes(3)
        assert not machine.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("domain/situation/bets.py", "domain/learn.py")
def test_once_three_boots_have_failed_one_agent_is_tried_at_growing_intervals():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 1, boot_timeout_seconds: 120}}") as here:
        broken = {"cpu"}
        break_boots(here.world, broken)
        build = here.submit("job", "cpu", 2)
        here.until(lambda: here.steps("terminate") and len(here.ever()) == 4 and not here.machines(), within=25)
        broken.clear()
        assert here.subjects() == ["agents of cpu do not boot"]
        here.minutes(6)
        launched_at = [machine.launched_at for machine in here.ever()]
        assert len(launched_at) == 5
        assert [later - earlier >= least for earlier, later, least in zip(launched_at[2:], launched_at[3:], (60, 300), strict=False)] == [
            True
        ] * 2
        here.minutes(1)
        assert build.started_at
        here.minutes(16)
        assert here.subjects()[-1] == "over: agents of cpu do not boot"


@feature("control/slots.py", "domain/repair/nodes.py", "control/registration.py")
def test_an_agent_takes_a_static_node_and_no_more_are_launched_than_nodes_are_free():
    controllers = "controllers: {main: {url: 'http://main/', secret: jenkins/main, nodes: slots}}\n"
    with scene(f"{controllers}pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 120}}}}") as here:
        here.minutes(1)
        here.jenkins.add_node(a_world_node("rack-1", "cpu", "autoscaler-fleet-f", connected=False))
        builds = [here.submit(f"job-{number}", "cpu", 2) for number in range(2)]
        here.minutes(3)
        assert ([build.node for build in builds], len(here.ever())) == (["rack-1", None], 1)
        here.until(lambda: builds[1].ended, within=6)
        here.minutes(4)
        assert (here.machines(), [(node.name, node.offline) for node in here.nodes()]) == ([], [("rack-1", True)])


@feature("domain/situation/looks.py")
def test_after_a_restart_an_agent_is_kept_for_a_pipeline_until_the_resume_timeout_and_no_longer():
    controllers = "controllers: {main: {url: 'http://main/', secret: jenkins/main, resume_timeout_seconds: 600}}\n"
    with scene(f"{controllers}pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 120}}}}") as here:
        here.jenkins._physics = Physics(resume_from_seconds=3000.0, resume_to_seconds=3000.0)
        build = here.submit("job", "cpu", 30, kind=Kind.PIPELINE)
        here.until(lambda: build.node, within=5)
        here.minutes(1)
        here.jenkins.restart()
        here.minutes(10)
        assert len(here.machines()) == 1
        here.minutes(2)
        assert here.machines() == []
