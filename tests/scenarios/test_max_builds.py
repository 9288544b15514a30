"""Time-lines of agents that have one build each."""

from autoscaler.domain.facts.plan import Terminate
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def test_each_job_has_an_agent_of_its_own_which_goes_after_it_and_nothing_is_killed():
    day = Day(in_memory(a_pool("cpu", max_builds=1, max_agents=20)))
    builds = day.minutes(1).queue(6, seconds=400.0)
    day.minutes(60)
    assert [build.killed_by for build in builds] == [""] * 6
    assert len({build.node for build in builds}) == 6
    assert len(day.done(Terminate)) >= 6
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.failed) == ([], [], 0)
