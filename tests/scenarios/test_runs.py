"""Time-lines of runs that people order: each is started once where it was chosen to, and followed to its end."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.started_builds import RerunPolicy, Until
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.fakes.world.faults import Fault, Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.ordering import a_day, asked, builds, cancel, define, instance_of, order, pool_of, states, told

KINDS = pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE], ids=str)


@KINDS
def test_one_job_runs_on_three_pools_and_the_order_has_passed(kind):
    day = a_day()
    define(day, "SUITE", kind=kind)
    entry = order(day, asked(3, vary="pool", strict=True), parameters=[("SUITE", "all")])
    assert [part.label for part in entry.parts] == ["arm", "cpu", "gpu"]
    day.minutes(25)
    entry = told(day, entry.id)
    assert (entry.outcome, entry.summary) == ("passed", "3 of 3 passed")
    assert sorted(pool_of(day, build) for build in builds(day)) == ["arm", "cpu", "gpu"]
    assert [dict(build.started_with.parameters)["SUITE"] for build in builds(day)] == ["all"] * 3
    assert [590 < part.took_seconds < 1200 for part in entry.parts] == [True] * 3
    assert [part.node.partition("-")[0] for part in entry.parts] == [part.pool for part in entry.parts]
    assert len(day.world.ec2.instances) == 3, "no agent is launched in vain"
    assert day.failed == 0


def test_an_agent_boots_while_a_pipeline_still_begins():
    day = a_day()
    define(day, kind=Kind.PIPELINE)
    order(day, asked(on="gpu"))
    assert not day.jenkins.queue, "it asks for its node some seconds later"
    day.fleet.scale_up()
    assert day.agents("gpu") == 1
    day.minutes(15)
    assert len(day.world.ec2.instances) == 1


def test_a_dry_run_says_what_would_be_done_and_does_nothing():
    day = a_day()
    define(day)
    entry = order(day, asked(2, vary="pool"), dry_run=True)
    assert states(entry) == ["to be started"] * 2
    assert entry.ranking
    day.minutes(2)
    assert (builds(day) if "job" in day.jenkins.builds_of else [], day.fleet.run_orders.orders) == ([], {})


def test_the_same_request_orders_once():
    day = a_day()
    define(day)
    first, second = order(day, asked()), order(day, asked())
    day.minutes(20)
    assert first.id == second.id
    assert len(builds(day)) == 1


@pytest.mark.parametrize("rerun", [None, RerunPolicy(times=3)], ids=["without rerun", "with rerun"])
@KINDS
def test_a_build_that_is_lost_with_its_machine_is_started_again_by_its_order_and_by_nobody_else(kind, rerun):
    day = a_day(a_pool("cpu", rerun=rerun), a_pool("gpu"))
    define(day, kind=kind, seconds=1800.0)
    entry = order(day, asked(on="cpu"))
    day.minutes(8)
    day.world.ec2.end(instance_of(day, builds(day)[0]))
    day.minutes(60)
    entry = told(day, entry.id)
    assert [build.ended for build in builds(day)] == [Ended.KILLED, Ended.FINISHED]
    assert (entry.outcome, entry.parts[0].tries) == ("passed", 2)
    assert "lost" in entry.parts[0].why


def test_a_build_that_is_lost_too_often_is_left_to_a_person():
    day = a_day()
    define(day, seconds=3600.0)
    entry = order(day, asked(on="cpu"), resubmit=1)
    for number in (1, 2):
        day.minutes(8)
        day.world.ec2.end(instance_of(day, builds(day)[number - 1]))
    day.minutes(10)
    entry = told(day, entry.id)
    assert (entry.outcome, entry.summary) == ("unfinished", "1 of 1 lost")
    assert len(builds(day)) == 2


def test_a_build_that_fails_is_not_started_again_and_the_order_says_where():
    day = a_day()
    define(day)
    entry = order(day, asked(3, vary="pool"))
    day.minutes(6)
    failing = next(build for build in builds(day) if pool_of(day, build) == "gpu")
    day.jenkins.end(failing, succeeded=False)
    day.minutes(20)
    entry = told(day, entry.id)
    assert (entry.outcome, entry.summary) == ("failed", "1 of 3 failed, on gpu")
    assert len(builds(day)) == 3


@KINDS
def test_the_first_of_a_gang_that_passes_ends_the_others(kind):
    day = a_day(a_pool("cpu", max_agents=3))
    define(day, kind=kind, seconds=3600.0)
    entry = order(day, asked(5), until=Until.FIRST_SUCCESS)
    day.minutes(8)
    running = [build for build in builds(day) if build.node]
    assert len(running) == 3, "two wait"
    day.jenkins.end(running[0], succeeded=True)
    day.minutes(4)
    entry = told(day, entry.id)
    assert (entry.outcome, entry.summary) == ("passed", "passed first on cpu")
    assert sorted(states(entry)) == ["passed", "stopped", "stopped", "stopped", "stopped"]
    assert [build for build in builds(day) if build.ended is None] == []
    assert not day.jenkins.queue


def test_a_worker_of_a_gang_that_fails_is_replaced_and_does_not_end_it():
    day = a_day()
    define(day, seconds=1800.0)
    entry = order(day, asked(2, on="cpu"), until=Until.ALL, replacing=1)
    day.minutes(6)
    day.jenkins.end(builds(day)[0], succeeded=False)
    day.minutes(80)
    entry = told(day, entry.id)
    assert (entry.outcome, len(builds(day))) == ("passed", 3)
    assert sorted(part.tries for part in entry.parts) == [1, 2]


@KINDS
def test_a_cancelled_order_ends_its_builds_wherever_they_are(kind):
    day = a_day(a_pool("cpu", max_agents=1))
    define(day, kind=kind, seconds=3600.0)
    other = define(day, kind=kind, seconds=900.0, job="other").build("other", {"AGENT_LABEL": "cpu"}, "somebody")
    entry = order(day, asked(3))
    day.minutes(25)
    assert sorted(states(told(day, entry.id))) == ["runs", "waits", "waits"] or kind is Kind.PIPELINE
    cancel(day, entry.id)
    day.minutes(4)
    entry = told(day, entry.id)
    assert (entry.outcome, set(states(entry))) == ("cancelled", {"stopped"})
    assert sum(build.node is not None for build in builds(day)) == 1, "what waited never began"
    assert other.ended is Ended.FINISHED, "what others have started is not touched"
    assert not day.jenkins.queue


CALLS = [
    "jenkins buildWithParameters",
    "jenkins job",
    "jenkins queue",
    "run_orders add_order",
    "run_orders change_order",
    "run_orders open_orders",
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_whatever_call_fails_each_run_is_started_once(call, after):
    # Agents are idle: what was started begins at once, and Jenkins merges nothing.
    day = a_day(a_pool("cpu", min_agents=1), a_pool("gpu", min_agents=1)).minutes(6)
    define(day, seconds=300.0)
    day.fleet.faults.plan(Fault(call, after=after))
    try:
        order(day, asked(2, vary="pool"))
    except AutoscalerError:  # a person asks again, with the same request
        order(day, asked(2, vary="pool"))
    day.minutes(25)
    assert day.fleet.faults.seen, "the call was made"
    [kept] = day.fleet.run_orders.orders.values()
    assert told(day, kept.id).outcome == "passed"
    assert [build.ended for build in builds(day)] == [Ended.FINISHED] * 2


@pytest.mark.parametrize(
    ("what", "line"),
    [
        (asked(job="nothing"), "event refused: job (nothing): main shows no such job"),
        (asked(job="plain"), "event refused: job (plain): it declares no parameter AGENT_LABEL on main, by which it is told where to run"),
        (
            asked(on="windows"),
            "event refused: no pool satisfies it: cpu: has no label windows; gpu: has no label windows; arm: has no label",
        ),
        (asked(where=["vcpu>=8"]), "event refused: no pool satisfies it: cpu: nobody says its vcpu (vcpu>=8 was asked)"),
        (asked(4, vary="pool", strict=True), "event refused: only 3 different pools satisfy it (arm, cpu, gpu)"),
        (asked(vary="kind"), "event refused: no pool satisfies it: cpu: it is of no kind (kind)"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_line_before_anything_is_started(what, line):
    day = a_day()
    define(day)
    day.fleet.apis["main"].jobs.jobs["plain"] = type(day.fleet.apis["main"].jobs.jobs["job"])(Kind.FREESTYLE, "cpu", 60.0)
    with pytest.raises(ConfigError) as refused:
        order(day, what)
    assert str(refused.value).startswith(line)
    assert day.fleet.run_orders.orders == {}


def test_nobody_orders_runs_where_the_fleet_file_does_not_say_so():
    day = a_day(runs=False)
    define(day)
    with pytest.raises(ConfigError, match="has no key runs"):
        order(day, asked())


def test_why_tells_of_a_job_how_far_its_order_is_and_why_its_places_were_chosen():
    day = a_day()
    define(day)
    entry = order(day, asked(2, vary="pool"))
    day.minutes(2)
    facts = day.why("job")
    assert f"{entry.id}: job, ordered by alice 2 min ago: 2 waits" in facts
    assert any(line.startswith(f"{entry.id}: arm: 1 of 2 runs; a build would start in ") for line in facts)
    assert day.why(entry.id)[0].startswith(f"{entry.id}: job, ordered by alice")


def test_a_controller_that_the_fleet_file_names_no_more_leaves_its_runs_in_doubt_and_stops_no_pass():
    day = a_day(a_pool("cpu", controllers=("main", "other"), max_agents=1))
    for name in ("main", "other"):
        define(day, controller=name, seconds=3600.0)
    entry = order(day, asked(2, vary="controller"), until=Until.ALL)
    day.minutes(3)
    day.fleet.ports = replace(day.fleet.ports, builds={"main": day.fleet.ports.builds["main"]})
    day.fleet._containers.clear()
    day.minutes(2)
    assert sorted(states(told(day, entry.id))) in (["in-doubt", "runs"], ["in-doubt", "waits"])
    cancel(day, entry.id)
    day.minutes(3)
    assert sorted(states(told(day, entry.id))) == ["in-doubt", "stopped"]


def forget_the_parameter(day):
    """The job is configured anew, without the parameter that tells its builds apart."""
    jobs = day.fleet.apis["main"].jobs.jobs
    jobs["job"] = replace(jobs["job"], declares={"AGENT_LABEL": ""})


def test_builds_that_jenkins_has_put_together_are_not_counted_twice():
    day = a_day(faults=Faults())
    define(day)
    day.fleet.faults.plan(Fault("run_orders add_order", after=True))
    with pytest.raises(AutoscalerError):
        order(day, asked(2, on="cpu"))  # written down; the next look starts its builds
    forget_the_parameter(day)
    day.minutes(30)
    [kept] = day.fleet.run_orders.orders.values()
    entry = told(day, kept.id)
    assert [build.ended for build in builds(day)] == [Ended.FINISHED]
    assert sorted(states(entry)) == ["passed", "refused"]
    assert (entry.outcome, entry.summary) == ("unfinished", "1 of 2 refused")
    [why] = [part.why for part in entry.parts if part.state == "refused"]
    assert why == (
        "Jenkins put it together with another run that waits in its queue: the job declares no AUTOSCALER_RUN_ID any more, "
        "which tells its builds apart"
    )


def test_a_build_of_one_order_is_no_build_of_another_one():
    day = a_day(faults=Faults())
    define(day)
    for request in ("a", "b"):
        day.fleet.faults.plan(Fault("run_orders add_order", after=True))
        with pytest.raises(AutoscalerError):
            order(day, asked(on="cpu"), request_id=request)
    forget_the_parameter(day)
    day.minutes(30)
    outcomes = sorted(told(day, kept.id).outcome for kept in day.fleet.run_orders.orders.values())
    assert ([build.ended for build in builds(day)], outcomes) == ([Ended.FINISHED], ["passed", "unfinished"])
