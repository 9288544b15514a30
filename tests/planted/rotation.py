"""Known ways to lose a build, a node or a machine while an agent goes from one controller to another."""

from planted.bug import Bug

_TIMELINES = "tests/scenarios/test_rotation.py"

ROTATION = (
    Bug(
        name="an agent is given away that its own jobs wait for",
        file="domain/situation/rotation.py",
        was="spare = max(0, len(idle) - _own_need(situation, view))",
        becomes="spare = len(idle)",
        found_by=(f"{_TIMELINES}::test_of_two_that_are_idle_the_one_that_is_needed_here_stays",),
    ),
    Bug(
        name="a busy agent is given away",
        file="domain/situation/rotation.py",
        was="[agent for agent in view.ready if agent.idle and _may_leave(situation, agent)]",
        becomes="[agent for agent in view.ready if _may_leave(situation, agent)]",
        found_by=(f"{_TIMELINES}::test_a_busy_agent_is_left_where_it_is",),
    ),
    Bug(
        name="an agent that nobody waits for any more goes all the same, or stays marked",
        file="domain/scale_in/rotate.py",
        was="    if agent.record.instance_id in destinations(situation, agent.pool.name):\n        return None\n",
        becomes="    if True:\n        return None\n",
        found_by=(f"{_TIMELINES}::test_where_nobody_waits_any_more_it_stays",),
    ),
    Bug(
        name="the node that an agent has left stays for ever",
        file="domain/decide.py",
        was="    finish_rotations,  # nodes",
        becomes="    # nodes",
        found_by=(f"{_TIMELINES}::test_after_it_was_given_away_its_old_node_is_deleted_by_the_next_pass",),
    ),
    Bug(
        name="an agent is told of its next controller while it is connected to the last one",
        file="domain/report/registration.py",
        was="    if record is not None and record.leaves:\n",
        becomes="    if record is not None and False:\n",
        found_by=(f"{_TIMELINES}::test_while_its_old_node_is_there_it_is_told_to_ask_again",),
    ),
    Bug(
        name="a rotation is learned as a start that took no time",
        file="domain/situation/boot_times.py",
        was="        if record.is_measured and 0.0 < seconds <= agent.pool.boot_timeout_seconds:\n",
        becomes="        if 0.0 < seconds <= agent.pool.boot_timeout_seconds:\n",
        found_by=(f"{_TIMELINES}::test_it_comes_back_when_jobs_wait_there_again",),
    ),
)
