"""Time-lines of lost builds once the key `rerun` has left the fleet file: nothing more is started, and starts in doubt are settled."""

import pytest

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.file_changes import file_is_now, pool_is_now
from support.lost import RUN_ID, a_day, answers, builds, define, reasons, running

CHANGES = {
    "rerun leaves": lambda day: pool_is_now(day, "cpu", rerun=None),
    "the job is named no more": lambda day: pool_is_now(day, "cpu", rerun=RerunPolicy(jobs=("other",))),
    "the pool leaves": lambda day: file_is_now(day, pools={"gpu": day.fleet.fleet.pools["gpu"]}),
    "rerun leaves one pool of two": lambda day: (pool_is_now(day, "gpu", rerun=RerunPolicy()), pool_is_now(day, "cpu", rerun=None)),
}
every_change = pytest.mark.parametrize("change", CHANGES)


def at_the_call(day, call, what):
    """Do this as soon as the call is sent."""
    day.fleet.faults.meanwhile = lambda name: what() if name == call else None


def subjects(day):
    """What people are told, but for the pool that left: it is told of its agents, too."""
    return [message.subject for message in day.fleet.notifier.sent if "agents of cpu left the fleet file" not in message.subject]


@every_change
@pytest.mark.parametrize("declares", [(), (RUN_ID,)], ids=["no parameter", "the parameter"])
@pytest.mark.parametrize("after", [False, True], ids=["it was not", "it was"])
def test_a_start_in_doubt_is_settled_and_what_was_not_started_is_told(change, declares, after):
    day = a_day(min_agents=2)
    jobs = define(day, "job", *declares)
    _, instance = running(day, jobs, given=dict.fromkeys(declares, "x") if declares else None)
    call = "jenkins buildWithParameters" if declares else "jenkins build"
    day.fleet.faults.plan(Fault(call, after=after))
    at_the_call(day, call, lambda: CHANGES[change](day))
    day.world.ec2.end(instance)
    day.minutes(60)
    assert day.fleet.faults.seen
    if after:
        assert builds(day)[1:] in ([(2, Ended.FINISHED)], [(2, None)])
        assert answers(day) == [("job/job/1", "started", 1)]
        assert (reasons(day), subjects(day)) == ([], [])
    else:
        assert builds(day) == [(1, Ended.KILLED)]
        assert answers(day) == [("job/job/1", "left", 1)]
        assert reasons(day) == [Reason.RERUN_UNWANTED]
        assert "[f] a lost build of job is left to you" in subjects(day)
        assert any("asks for no rerun" in line for line in day.why("job"))
    assert day.fleet.state.memory.lost == {}


@every_change
def test_what_was_not_answered_yet_is_not_run_again_and_nothing_is_kept_of_it(change):
    day = a_day()
    jobs = define(day)
    _, instance = running(day, jobs)
    day.world.ec2.end(instance)
    day.fleet.scale_up()
    CHANGES[change](day)
    day.minutes(30)
    assert builds(day) == [(1, Ended.KILLED)]
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})
