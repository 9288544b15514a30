"""What `queue` says of items is what the pass does for all queues together."""

from support.scene import BOTH, limits, scene

ONE_AGENT = "pools: {cpu: {$pool, executors: 1, max_agents: 1, queue_maturity_seconds: 0}}"


def entries(here):
    return {entry["controller"]: entry for entry in here.order("queue")["queue"]}


def test_an_agent_that_the_limits_leave_to_one_controller_is_foretold_there_alone():
    with scene(BOTH + limits() + ONE_AGENT) as here:
        here.minutes(2)
        here.submit("first", "cpu", 30)
        here.world.move_to(here.now + 30.0)
        here.submit("second", "cpu", 30, controller="other")
        told = entries(here)
        assert told["main"]["starts_in_seconds"] > 0
        assert (told["other"]["state"], told["other"]["starts_in_seconds"]) == ("no-executor", None)
        here.minutes(4)
        assert [bool(here.builds_of(job, name)[0].started_at) for job, name in (("first", "main"), ("second", "other"))] == [True, False]
