"""A pool that takes only short jobs, from the text of the fleet file through the handlers to who launches what, and who is told."""

import subprocess
import sys

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.scene import BOTH, scene

QUICK = "queue_maturity_seconds: 0, idle_seconds: 60"
UTILITY = f"$pool, {QUICK}, executors: 1, max_agents: 4, labels: [linux, utility], max_job_seconds: 240"
BIG = f"launch_template: t, instance_types: [c5.9xlarge], {QUICK}, executors: 1, max_agents: 4, labels: [linux, big]"
ALONE = f"pools: {{utility: {{{UTILITY}}}}}"
TWO = f"pools: {{utility: {{{UTILITY}}}, big: {{{BIG}}}}}"
TOLD = "long takes too long for utility"


def has_run(here, job, label, minutes, pool=None, **facts):
    """Let a build of a job run to its end, and its agent go: what is seen next is the job's own."""
    build = here.submit(job, label, minutes, **facts)
    here.until(lambda: build.ended, within=40)
    here.until(lambda: not here.machines(), within=20)
    assert pool is None or build.node.startswith(f"{pool}-")
    return build


def why(here, subject):
    return here.order("why", subject=subject)["facts"]


def counts(here):
    return len(here.machines("utility")), len(here.machines("big"))


def too_long(here):
    return [subject for subject in here.subjects() if "too long" in subject]


def test_a_job_that_was_seen_to_take_too_long_gets_an_agent_of_another_pool():
    with scene(TWO) as here:
        has_run(here, "long", "linux", 6, "utility")  # nobody knows how long it takes, and this pool is cheaper
        again, short = here.submit("long", "linux", 6), here.submit("new", "linux", 2)
        here.minutes(1)
        assert counts(here) == (1, 1)
        assert too_long(here) == [TOLD]
        lines = why(here, "long")
        assert any("utility takes jobs of up to 4 min (max_job_seconds)" in line for line in lines)
        assert "big takes long instead" in lines
        here.until(lambda: again.ended and short.ended, within=20)
        here.submit("long", "linux", 6)
        here.minutes(10)
        assert too_long(here) == [TOLD]


def test_a_job_that_takes_too_long_for_each_pool_with_its_label_launches_nothing_and_is_told_once():
    with scene(ALONE) as here:
        has_run(here, "long", "utility", 6)
        build = here.submit("long", "utility", 6)
        here.minutes(50)
        assert (here.machines(), build.started_at) == ([], None)
        assert here.subjects() == ["long takes too long for every pool that has its labels"]
        assert "no pool takes long" in why(here, "long")


def test_of_many_jobs_that_no_pool_takes_twenty_have_a_message_of_their_own_and_the_others_have_one_together():
    with scene(ALONE.replace("executors: 1, max_agents: 4", "executors: 30, max_agents: 1, max_wait_seconds: 600")) as here:
        builds = [here.submit(f"long-{number}", "utility", 6) for number in range(25)]
        here.until(lambda: all(build.ended for build in builds), within=20)
        here.until(lambda: not here.machines(), within=10)
        for number in range(25):
            here.submit(f"long-{number}", "utility", 6)
        here.minutes(14)
        subjects = here.subjects()
        assert len(too_long(here)) == 21
        assert subjects[-1] == "jobs on main wait: they take too long for each pool that serves utility"


def test_of_a_job_that_another_pool_has_run_the_duration_there_counts():
    with scene(TWO) as here:
        has_run(here, "long", "big", 6, "big")
        here.submit("long", "linux", 6)
        here.minutes(1)
        assert counts(here) == (0, 1)


def test_parts_of_pipelines_are_judged_by_what_ran_in_the_pool_itself():
    """A short step in one pool follows an hour in another: the pipeline must not wait for ever for its last step."""
    with scene(TWO) as here:
        has_run(here, "pipe", "big", 6, "big", kind=Kind.PIPELINE, number=1)
        step = here.submit("pipe", "utility", 1, kind=Kind.PIPELINE, number=1)
        here.until(lambda: step.ended, within=8)


def test_a_job_that_nobody_has_seen_end_is_demand_until_it_is_known():
    with scene(ALONE) as here:
        first = here.submit("long", "utility", 6)
        here.minutes(1)
        second = here.submit("long", "utility", 6)
        here.minutes(1)
        assert len(here.machines()) == 2
        here.until(lambda: first.ended and second.ended, within=20)


def test_once_the_key_is_gone_the_job_is_demand_again_and_the_message_is_over():
    with scene(ALONE) as here:
        has_run(here, "long", "utility", 6)
        build = here.submit("long", "utility", 6)
        here.minutes(4)
        assert here.machines() == []
        here.deploy(ALONE.replace(", max_job_seconds: 240", ""))
        here.minutes(1)
        assert len(here.machines()) == 1
        here.until(lambda: build.ended, within=12)
        here.minutes(16)
        assert [subject for subject in here.subjects() if "over: long" in subject]


FOLLOWS = (
    f"pools: {{build: {{$pool, executors: 1, max_agents: 2, min_agents: 1}}, "
    f"test: {{$pool, {QUICK}, executors: 1, max_agents: 2, boot_seconds: 60LIMIT}}, other: {{{BIG}}}}}"
)


def test_no_agent_is_ready_for_a_follower_that_the_pool_declines():
    """Without the key one is: `test_a_job_that_followed_another_one_five_times_has_an_agent_ready_the_next_time`."""
    with scene(FOLLOWS.replace("LIMIT", "")) as here:
        here.minutes(4)
        for minutes in (6, 7, 6, 7, 6, 7):
            here.submit("image", "build", 2)
            here.minutes(minutes)
            here.submit("test", "test", 2)
            here.minutes(17)
        here.deploy(FOLLOWS.replace("LIMIT", ", max_job_seconds: 60"))
        before = len(here.steps("launch"))
        here.submit("image", "build", 2)
        here.minutes(8)
        assert here.steps("launch")[before:] == []


def test_no_agent_is_launched_for_the_stage_of_a_pipeline_that_the_pool_declines():
    first, then = "build: {$pool, executors: 1, max_agents: 2}", f"test: {{$pool, executors: 1, max_agents: 2, {QUICK}"
    with scene(f"pools: {{{first}, {then}}}}}") as here:

        def run(number):
            def second_stage(_build):
                here.submit("app/main", "test", 3, kind=Kind.PIPELINE, number=number)

            here.submit("app/main", "build", 6, kind=Kind.PIPELINE, number=number, on_end=second_stage)

        for number in range(1, 4):
            run(number)
            here.minutes(20)
        here.deploy(f"pools: {{{first}, {then}, max_job_seconds: 120}}}}")
        before = len(here.ever("test"))
        run(4)
        here.minutes(20)
        assert len(here.ever("test")) == before


def test_a_run_that_people_order_goes_to_a_pool_that_takes_the_job_and_the_order_says_why():
    with scene(f"runs: {{}}\n{TWO}") as here:
        here.define("nightly", "linux", 6, "AGENT_LABEL", "AUTOSCALER_RUN_ID", label_parameter="AGENT_LABEL")
        here.start("nightly", AGENT_LABEL="utility")
        here.until(lambda: all(build.ended for build in here.builds_of("nightly")), within=20)
        here.minutes(3)
        answer = here.order("run", job="nightly", runs=1)
        assert [part["pool"] for part in answer["runs"][0]["parts"]] == ["big"]
        assert "it takes jobs of up to 4 min (max_job_seconds)" in str(answer)
        build = here.builds_of("nightly")[-1]
        here.until(lambda: build.ended, within=20)
        assert build.node.startswith("big-")


def test_an_order_is_refused_if_each_pool_declines_the_job_and_makes_no_demand_if_it_was_given_before():
    free = f"runs: {{}}\n{ALONE.replace(', max_job_seconds: 240', '')}"
    with scene(free) as here:
        here.define("nightly", "utility", 6, "AGENT_LABEL", "AUTOSCALER_RUN_ID", label_parameter="AGENT_LABEL")
        here.start("nightly", AGENT_LABEL="utility")
        here.until(lambda: all(build.ended for build in here.builds_of("nightly")), within=20)
        here.until(lambda: not here.machines(), within=10)
        here.order("run", job="nightly", runs=1)
        here.deploy(f"runs: {{}}\n{ALONE}")
        here.minutes(8)
        assert here.machines() == []
        with pytest.raises(ConfigError, match=r"it takes jobs of up to 4 min \(max_job_seconds\)"):
            here.order("run", job="nightly", runs=1)


def test_each_controller_is_judged_by_what_it_has_seen_itself():
    with scene(BOTH + ALONE) as here:
        has_run(here, "long", "utility", 6)
        here.submit("long", "utility", 6)
        theirs = here.submit("long", "utility", 6, controller="other")
        here.minutes(1)
        assert len(here.machines()) == 1
        here.until(lambda: theirs.ended, within=12)


def test_jobs_without_a_label_are_judged_alike():
    with scene(ALONE.replace("labels", "exclusive: false, labels")) as here:
        has_run(here, "long", None, 6)
        here.submit("long", None, 6)
        here.minutes(5)
        assert here.machines() == []
        assert too_long(here) == ["long takes too long for every pool that has its labels"]


def test_an_agent_that_does_not_take_a_job_which_its_pool_declines_is_not_at_fault():
    """Something in Jenkins may keep the job from it: that is what the operator wants."""
    with scene(ALONE.replace("max_agents: 4", "max_agents: 4, min_agents: 1")) as here:
        here.minutes(3)
        build = here.submit("long", "utility", 6)
        here.until(lambda: build.ended, within=10)
        here.minutes(2)
        [node] = here.ready("utility")
        here.jenkins.veto = lambda _build, _node: "restricted"
        here.submit("long", "utility", 6)
        here.minutes(40)
        assert [node.name for node in here.ready("utility")] == [node.name]
        assert len(here.ever()) == 1


@pytest.mark.parametrize("label", ["linux", "linux || extra"])
def test_a_free_agent_that_declines_a_job_is_not_counted_for_it_whatever_its_labels_are_and_is_not_at_fault(label):
    pools = TWO.replace("labels: [linux, utility]", "min_agents: 1, labels: [linux, utility]")
    with scene(pools) as here:
        here.minutes(3)
        has_run_beside = here.submit("long", label, 6)
        here.until(lambda: has_run_beside.ended, within=10)
        here.minutes(2)
        [node] = here.ready("utility")
        node.labels = (*node.labels, "extra")  # by hand
        here.jenkins.veto = lambda build, at: "restricted" if (build.job, at.name) == ("long", node.name) else None
        again = here.submit("long", label, 6)
        here.minutes(1)
        assert len(here.machines("big")) == 1
        here.until(lambda: again.ended, within=12)
        assert again.node.startswith("big-")


def test_a_free_agent_stays_while_jobs_that_it_declines_wait_for_another_pool_for_half_an_hour():
    pools = TWO.replace("max_agents: 4, labels: [linux, utility]", "max_agents: 1, min_agents: 1, labels: [linux, utility]")
    with scene(pools) as here:
        here.minutes(3)
        first = here.submit("long", "linux", 6)
        here.until(lambda: first.ended, within=10)
        here.order("hold", pool="big", minutes=600)
        [node] = here.ready("utility")
        here.jenkins.veto = lambda build, _node: "restricted" if build.job == "long" else None
        here.submit("long", "linux", 6)
        here.minutes(30)
        assert [one.name for one in here.ready("utility")] == [node.name]
        assert len(here.ever()) == 1
        assert here.submit("short", "linux", 1).node == node.name


def test_an_agent_that_takes_no_short_job_either_is_found_out_beside_long_ones():
    pools = TWO.replace("max_agents: 4, labels: [linux, utility]", "max_agents: 2, min_agents: 1, labels: [linux, utility]")
    with scene(pools) as here:
        here.minutes(3)
        first = here.submit("long", "linux", 6)
        here.until(lambda: first.ended, within=10)
        here.order("hold", pool="big", minutes=600)
        here.jenkins.veto = lambda _build, _node: "restricted"
        here.submit("long", "linux", 6)
        here.submit("short", "linux", 1)
        here.minutes(6)
        assert [reason for reason, _ in here.steps("launch")][-1] == "refused"


def test_an_agent_of_a_rare_kind_is_not_lent_to_a_job_that_its_pool_declines():
    kinds = "kinds: {amd64: {}, amd64+gpu: {}}\n"
    cpu = f"$pool, {QUICK}, kind: amd64, executors: 1, max_agents: 2"
    gpu = "$pool, kind: amd64+gpu, lend: idle, executors: 1, max_agents: 1, min_agents: 1"
    with scene(f"{kinds}pools: {{cpu: {{{cpu}}}, gpu: {{{gpu}, max_job_seconds: 240}}}}") as here:
        here.minutes(4)
        first = here.submit("plain", "amd64", 6)
        here.until(lambda: first.ended, within=12)
        assert first.node.startswith("gpu-")  # nobody knew how long it takes
        here.minutes(2)
        again = here.submit("plain", "amd64", 6)
        here.until(lambda: again.ended, within=12)
        assert again.node.startswith("cpu-")


def test_a_fleet_without_the_key_loads_nothing_of_it():
    asked = f"import sys; sys.path[:0] = {sys.path!r}; {_LIVES}"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


_LIVES = """
from support.scene import scene, one_pool
with scene(one_pool('idle_seconds: 60')) as here:
    here.submit('job', 'cpu', 1)
    here.minutes(6)
    here.order('why', subject='cpu')
    print([name for name in sys.modules if name.endswith(('forecast.declined', 'report.declined'))])
"""
