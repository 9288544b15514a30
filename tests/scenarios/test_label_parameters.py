"""Jobs whose label is a parameter: the agent that it names is launched, and it alone."""

import pytest

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def start(day, kind, *labels, seconds=900.0):
    """A build for each label, of one job that is told by a parameter where to run."""
    jobs = day.fleet.apis["main"].jobs
    jobs.jobs["job"] = Job(kind, None, seconds, declares={"AGENT_LABEL": "", "RUN": ""}, label_parameter="AGENT_LABEL")
    return [jobs.build("job", {"AGENT_LABEL": label, "RUN": f"{number}"}, "somebody") for number, label in enumerate(labels)]


def pool_of(day, build):
    return next(i.tags["autoscaler:pool"] for i in day.world.ec2.instances.values() if i.tags.get("autoscaler:node") == build.node)


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_each_build_gets_an_agent_where_its_parameter_says(kind):
    day = Day(in_memory(a_pool("cpu"), a_pool("gpu"), a_pool("arm")), by_adapters=True).minutes(3)
    builds = start(day, kind, "gpu", "arm", "gpu && !arm")
    day.minutes(30)
    assert [pool_of(day, build) for build in builds] == ["gpu", "arm", "gpu"]
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert len(day.world.ec2.instances) == 3, "no agent is launched in vain"
    assert day.failed == 0


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_a_second_build_for_a_label_of_which_one_agent_is_busy_gets_another(kind):
    day = Day(in_memory(a_pool("cpu"), a_pool("gpu")), by_adapters=True).minutes(3)
    first = start(day, kind, "gpu", seconds=7200.0)
    day.minutes(8)
    second = start(day, kind, "gpu", "gpu")[1:]
    day.minutes(10)
    assert [pool_of(day, build) for build in (*first, *second)] == ["gpu", "gpu"]


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_nothing_is_launched_for_it_in_a_pool_that_takes_jobs_without_a_label(kind):
    """Of a freestyle job the label is not shown with the job; what Jenkins says of why it waits tells it, once there is an agent node."""
    day = Day(in_memory(a_pool("any", exclusive=False), a_pool("gpu")), by_adapters=True).minutes(3)
    start(day, kind, "gpu")
    day.minutes(15)
    assert {i.tags["autoscaler:pool"] for i in day.world.ec2.instances.values()} == {"gpu"}
