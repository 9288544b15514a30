"""The Builds port on the simulated world, in memory and over HTTP: what no test may do to a live Jenkins."""

from dataclasses import replace

import pytest

from autoscaler.adapters.jenkins import builds as builds_over_http
from autoscaler.adapters.jenkins import builds as runs
from autoscaler.adapters.jenkins.builds import JenkinsBuilds, read_job
from autoscaler.adapters.jenkins.session import StartingError
from autoscaler.domain.facts.runs import ItemState, Parameter
from autoscaler.errors import ConfigError, NoAnswerError, RefusedBuildError, UnansweredError
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind, Started
from autoscaler_workbench.fakes.world.jenkins.handing import CURRENT_VERSION, DROPS_BUILDS
from support.live_jobs import BEGUN
from support.rig import begun, ended, world_rig
from support.worlds import stand


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_start_that_is_not_answered_may_have_happened(kind):
    with world_rig(kind) as here:
        job = here.define("job", "nothing")
        for after, waiting in ((False, 0), (True, 1)):
            here.stand.faults.plan(Fault("jenkins build", after=after))
            with pytest.raises(UnansweredError):
                here.builds.start(job, None)
            assert len(here.stand.jenkins.queue) == waiting


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize(("version", "state"), [(DROPS_BUILDS, ItemState.UNKNOWN), (CURRENT_VERSION, ItemState.WAITING)])
def test_what_is_handed_to_a_node_that_goes_offline_is_dropped_by_old_versions_alone(kind, version, state):
    with world_rig(kind) as here:
        jenkins = here.stand.jenkins
        jenkins.version, jenkins.handing_seconds = version, 5.0
        here.add_agent("agent-1", "cpu")
        item = here.builds.start(here.define("job", "cpu", 600.0), None)
        here.stand.world.move_to(here.stand.world.timeline.now + 1.0)
        view = here.controller.look()
        [pending] = view.items
        [node] = [node for node in view.nodes if node.agent]
        assert (pending.id, pending.buildable, node.idle, here.builds.item(item).state) == (item, False, False, ItemState.WAITING)
        jenkins.set_offline("agent-1", "maintenance", "somebody")
        here.stand.world.move_to(here.stand.world.timeline.now + 6.0)
        assert here.builds.item(item).state is state
        assert [left.id for left in here.controller.look().items] == ([item] if state is ItemState.WAITING else [])


@pytest.mark.parametrize("kind", ["memory", "http"])
@pytest.mark.parametrize("ends", ["began", "cancelled"])
def test_for_five_minutes_jenkins_tells_what_became_of_an_item(kind, ends):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu" if ends == "began" else "gpu")
        item = here.builds.start(here.define("job", "cpu", 1.0), None)
        if ends == "cancelled":
            here.controller.cancel_item(item)
        known = ItemState.STARTED if ends == "began" else ItemState.CANCELLED
        for seconds, state in ((0.0, known), (299.0, known), (2.0, ItemState.UNKNOWN)):
            here.stand.world.move_to(here.stand.world.timeline.now + seconds)
            assert here.builds.item(item).state is state


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_after_a_restart_jenkins_tells_nothing_of_what_left_its_queue_before(kind):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 1.0)
        item, waits = here.builds.start(job, None), here.builds.start(here.define("waits", "nothing"), None)
        ended(here, begun(here, job, item))
        here.stand.jenkins.restart()
        assert here.controller.look().problem, "it is down"
        here.until(lambda: here.controller.look().problem is None, "it is back")
        assert (here.builds.item(item).state, here.builds.item(waits).state) == (ItemState.UNKNOWN, ItemState.WAITING)


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_controller_that_is_down_answers_nobody_and_one_that_starts_says_so(kind):
    with world_rig(kind) as here:
        job = here.define("job", "nothing")
        here.stand.jenkins.restart()
        with pytest.raises(NoAnswerError):
            here.builds.job(job, 0.0)
        with pytest.raises(UnansweredError):
            here.builds.start(job, None)
        here.stand.world.timeline.sleep(4.0)
        with pytest.raises(StartingError):
            here.builds.job(job, 0.0)
        here.stand.world.timeline.sleep(4.0)
        assert here.builds.job(job, 0.0).entries == ()


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_matrix_has_failed_once_one_of_its_configurations_lost_its_agent_and_tells_what_it_was_started_with(kind):
    with world_rig(kind) as here:
        for name in ("agent-1", "agent-2"):
            here.add_agent(name, "cpu")
        job = here.define("matrix", "cpu", 60.0, declares=("REF",))
        jobs = here.stand.api.jobs.jobs
        jobs["folder/matrix"] = replace(jobs["folder/matrix"], configurations=("os=linux", "os=bsd"))
        item = here.builds.start(job, {"REF": "main"})
        here.until(lambda: all(here.builds.run(f"{job}/{part}/1") for part in ("os=linux", "os=bsd")), "its parts run")
        part = here.builds.run(f"{job}/os=linux/1")
        here.kill_agent(part.node)
        whole = ended(here, f"{job}/1")
        assert (here.builds.run(part.path).result, here.builds.run(f"{job}/os=bsd/1").result, whole.result) == (
            "FAILURE",
            "SUCCESS",
            "FAILURE",
        )
        assert (whole.item, whole.parameters, whole.interruptions) == (item, (Parameter(name="REF", value="main"),), ())
        assert part.upstream == (whole.path,)
        assert here.builds.job(f"{job}/os=linux", 0.0).entries[0].run == part.path


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_configuration_of_a_matrix_shows_its_label_only_in_what_it_waits_for(kind):
    """Its axes say where it runs; the label expression of the job that it is stays null (AbstractProject.getAssignedLabelString)."""
    with world_rig(kind) as here:
        here.add_node("other", "other")
        here.stand.api.jobs.jobs["m"] = Job(Kind.FREESTYLE, "cpu", 60.0, configurations=("label=cpu,os=linux",))
        here.builds.start("job/m", None)
        [item] = here.controller.look().items
        assert (item.label, item.wait.label) == (None, "cpu")


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_pipeline_whose_machine_was_stopped_waits_for_it_and_fails_once_it_is_back(kind):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("pipe", "cpu", 600.0, kind=Kind.PIPELINE)
        run = begun(here, job, here.builds.start(job, None))
        here.until(lambda: BEGUN in here.console(run), "sh has begun")
        here.stand.jenkins.disconnect("agent-1", killed_by="its machine was stopped")
        here.stand.world.move_to(here.stand.world.timeline.now + 200.0)
        assert here.builds.run(run).building
        here.stand.jenkins.connect("agent-1")
        assert (ended(here, run).result, ended(here, run).interruptions) == ("FAILURE", ())


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_restart_ends_a_freestyle_build_and_a_pipeline_goes_on(kind):
    with world_rig(kind) as here:
        for name in ("agent-1", "agent-2"):
            here.add_agent(name, "cpu")
        jobs = here.define("job", "cpu", 300.0), here.define("pipe", "cpu", 300.0, kind=Kind.PIPELINE)
        freestyle, pipeline = (begun(here, job, here.builds.start(job, None)) for job in jobs)
        here.until(lambda: not (here.controller.node("agent-1").idle or here.controller.node("agent-2").idle), "both have their nodes")
        here.stand.jenkins.restart()
        assert here.controller.look().problem, "it is down"
        here.until(lambda: here.controller.look().problem is None, "it is back")
        assert (here.builds.run(freestyle).building, here.builds.run(pipeline).building) == (False, True)
        assert here.builds.run(freestyle).interruptions == ()
        assert ended(here, pipeline).result == "SUCCESS"


@pytest.mark.parametrize("status", [500, 502, 504])
def test_an_error_page_after_a_start_proves_nothing(status):
    with world_rig("http") as here:
        job = here.define("job", "nothing")
        here.stand.faults.plan(Fault("jenkins build", after=True, status=status))
        with pytest.raises(UnansweredError):
            here.builds.start(job, None)


def test_a_job_that_is_disabled_is_not_started():
    with world_rig("memory") as here:
        job = here.define("job", "nothing")
        here.stand.api.jobs.jobs["folder/job"] = Job(Kind.FREESTYLE, None, 1.0, disabled=True)
        assert not here.builds.job(job, 0.0).buildable
        with pytest.raises(RefusedBuildError):
            here.builds.start(job, None)
        assert here.stand.jenkins.queue == []


def test_an_account_without_job_build_is_told_which_permission_it_lacks():
    with world_rig("memory") as here:
        job = here.define("job", "nothing")
        here.stand.api.lacks.add("hudson.model.Item.Build")
        with pytest.raises(ConfigError, match=r"hudson\.model\.Item\.Build"):
            here.builds.start(job, None)


def test_a_crumb_is_sent_once_jenkins_asks_for_one():
    with stand("http", read_token=lambda: "pw", passwords={"u": "pw"}) as here:
        here.api.jobs.jobs["job"] = Job(Kind.FREESTYLE, "nothing", 1.0)
        JenkinsBuilds(here.controller.connection).start("job/job", None)
        assert [build.job for build in here.jenkins.queue] == ["job"]


def test_a_job_with_more_builds_than_are_listed_is_not_known_as_a_whole(monkeypatch):
    for module in (runs, builds_over_http):
        monkeypatch.setattr(module, "BUILDS_LISTED", ((0, 3), (2, 6), (5, 9)))
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 1.0)
        before = here.stand.world.timeline.now
        for count in range(1, 12):
            begun(here, job, here.builds.start(job, None))
            known = here.builds.job(job, before)
            assert len(known.entries) == min(count, 9)
            assert len({entry.run for entry in known.entries}) == len(known.entries)
            assert known.is_whole is (count < 9)
        recent = here.builds.job(job, here.stand.world.timeline.now - 1.0)
        assert (recent.is_whole, len(recent.entries)) == (True, 3)


@pytest.mark.parametrize("deleted", [1, 2])
def test_a_build_that_is_deleted_between_two_lists_leaves_no_gap_unnoticed(monkeypatch, deleted):
    for module in (runs, builds_over_http):
        monkeypatch.setattr(module, "BUILDS_LISTED", ((0, 3), (2, 9)))
    builds = [{"url": f"http://j/job/a/{number}/", "building": False, "timestamp": 1000 * number} for number in range(9, 0, -1)]
    first, following = builds[:3], builds[deleted:][2:8]
    known = read_job({"builds": first}, {"items": []}, "job/a", 0.0, "me", [{"allBuilds": following}])
    assert known.is_whole is False


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_rebuild_names_the_build_that_it_repeats_which_is_no_parent_of_it(kind):
    with world_rig(kind) as here:
        here.add_agent("agent-1", "cpu")
        job = here.define("job", "cpu", 1.0, declares=("REF",))
        first = begun(here, job, here.builds.start(job, {"REF": "x"}))
        [build] = here.stand.jenkins.builds
        here.stand.api.jobs.rebuild(build, "anna")
        here.until(lambda: len(here.builds.job(job, 0.0).entries) == 2, "it waits or has begun")
        again = max(here.builds.job(job, 0.0).entries, key=lambda entry: entry.item)
        assert (again.repeats, again.is_by_person, again.is_ours, again.has("REF", "x")) == ((first,), True, False, True)
        here.until(lambda: all(entry.build for entry in here.builds.job(job, 0.0).entries), "it has begun")
        assert [entry.build.upstream for entry in here.builds.job(job, 0.0).entries] == [(), ()]
        assert all(entry.build == here.builds.run(entry.run) for entry in here.builds.job(job, 0.0).entries)


def test_the_builds_that_caused_another_one_are_named():
    with world_rig("memory") as here:
        here.add_agent("agent-1", "cpu")
        started = Started(upstream=("job/a%20b/job/up/7",))
        build = here.stand.jenkins.submit("folder/down", "cpu", 1.0, started_with=started)
        here.until(lambda: build.started_at is not None, "it begins")
        assert here.builds.run(build.run_path.rstrip("/")).upstream == ("job/a%20b/job/up/7",)
