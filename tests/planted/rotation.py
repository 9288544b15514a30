"""Known ways to lose a build, a node or a machine while an agent goes from one controller to another."""

from planted.bug import Bug

_TIMELINES = "tests/scenarios/test_rotation.py"
_UNDONE = "tests/scenarios/test_rotation_undone.py"

ROTATION = (
    Bug(
        name="an agent is given away that its own jobs wait for",
        function="spare_elsewhere",
        was="spare = max(0, len(idle) - _own_need(situation, view))",
        becomes="spare = len(idle)",
        found_by=(f"{_TIMELINES}::test_of_two_that_are_idle_the_one_that_is_needed_here_stays",),
    ),
    Bug(
        name="a busy agent is given away",
        function="spare_elsewhere",
        was="[agent for agent in view.ready if agent.idle and _may_leave(situation, agent)]",
        becomes="[agent for agent in view.ready if _may_leave(situation, agent)]",
        found_by=(f"{_TIMELINES}::test_a_busy_agent_is_left_where_it_is",),
    ),
    Bug(
        name="an agent that nobody waits for any more goes all the same, or stays marked",
        function="unwanted_elsewhere",
        was="    if agent.record.instance_id in destinations(situation, agent.pool.name):\n        return None\n",
        becomes="    if True:\n        return None\n",
        found_by=(f"{_TIMELINES}::test_where_nobody_waits_any_more_it_stays",),
    ),
    Bug(
        name="the node that an agent has left stays for ever",
        function="REPAIRING",
        was="    finish_rotations,  # nodes",
        becomes="    # nodes",
        found_by=(f"{_TIMELINES}::test_after_it_was_given_away_its_old_node_is_deleted_by_the_next_pass",),
    ),
    Bug(
        name="an agent is told of its next controller while it is connected to the last one",
        function="_refusals",
        was="    if record is not None and record.leaves:\n",
        becomes="    if record is not None and False:\n",
        found_by=(f"{_TIMELINES}::test_while_its_old_node_is_there_it_is_told_to_ask_again",),
    ),
    Bug(
        name="a rotation is learned as a start that took no time",
        function="times_of",
        was="        if record.is_measured and 0.0 < seconds <= agent.pool.boot_timeout_seconds:\n",
        becomes="        if 0.0 < seconds <= agent.pool.boot_timeout_seconds:\n",
        found_by=(f"{_TIMELINES}::test_it_comes_back_when_jobs_wait_there_again",),
    ),
    Bug(
        name="an agent whose old node was brought online serves nobody for ever",
        function="_stay",
        was="        return given_back(read, left, labels, now) if left is not None and begins else None\n",
        becomes="        return None\n",
        found_by=(f"{_UNDONE}::test_an_agent_whose_old_node_was_brought_online_goes_back_to_it_and_then_where_jobs_wait",),
    ),
    Bug(
        name="the node that an agent leaves is deleted though a build waits for it by name",
        function="finish_rotations",
        was="is_bound=situation.is_bound(left.controller, left.node)",
        becomes="is_bound=False",
        found_by=(f"{_UNDONE}::test_a_job_that_asks_for_the_old_node_by_name_gets_it_before_it_is_deleted",),
    ),
    Bug(
        name="an instance ends though a build is on the node that it leaves",
        function="used_elsewhere",
        was="    left = [(binding.controller, binding.node) for binding in record.leaves]\n",
        becomes="    left = []\n",
        found_by=(f"{_UNDONE}::test_a_build_that_begins_after_the_last_look_on_the_old_node_outlives_the_end_of_the_months_money",),
    ),
)
