"""Bugs of weights: agents that take more than they have, and too few or too many agents for heavy jobs."""

from planted.bug import Bug

_TIMELINES = "tests/scenarios/test_job_weights.py"
_UNIT = "tests/unit/test_job_weights.py"

WEIGHTS = (
    Bug(
        name="a full agent keeps its labels",
        function="labels_wanted",
        was="    if is_full:\n        return frozenset(",
        becomes="    if False:\n        return frozenset(",
        found_by=(f"{_TIMELINES}::test_an_agent_whose_builds_weigh_as_much_as_it_has_takes_no_further_ones_until_one_ends",),
    ),
    Bug(
        name="a node shows as many executors as light builds fit while a heavy one waits",
        function="room_on",
        was="more = (pool.executors - taken) // min(weight, pool.executors)",
        becomes="more = pool.executors - taken",
        found_by=(
            f"{_TIMELINES}::test_while_a_heavy_build_waits_an_agent_without_room_for_it_takes_nothing_and_gives_it_the_room_that_comes",
        ),
    ),
    Bug(
        name="a full agent shows no executor for what names its node",
        function="room_on",
        was="executors=len(node.builds) + max(1, more)",
        becomes="executors=len(node.builds) + more",
        found_by=(f"{_UNIT}::test_without_room_one_executor_stays_for_what_names_the_node",),
    ),
    Bug(
        name="a new node takes as many heavy builds as it has executors",
        function="executors_at_first",
        was="max(1, pool.executors // fleet.weights.heaviest)",
        becomes="pool.executors",
        found_by=(f"{_TIMELINES}::test_agents_are_launched_for_what_waits_by_its_weight",),
    ),
    Bug(
        name="a heavy job is planned on one executor",
        function="QueuePlacement.room_for",
        was="self.supply.room(self.servers_of(want), want.weight)",
        becomes="self.supply.room(self.servers_of(want), 1)",
        found_by=(f"{_TIMELINES}::test_agents_are_launched_for_what_waits_by_its_weight",),
    ),
    Bug(
        name="executors that heavy builds take count as free",
        function="free_executors",
        was="here = executors - agent.taken_executors",
        becomes="here = executors - agent.busy_executors",
        found_by=(f"{_UNIT}::test_the_executors_that_heavy_builds_take_are_not_free",),
    ),
    Bug(
        name="what was learned is left out of the situation",
        function="assess",
        was="lambda: (_assess(snapshot, fleet, memo), FOR_EVER)",
        becomes="lambda: (_assess(seen, fleet, memo), FOR_EVER)",
        found_by=(
            f"{_TIMELINES}::test_what_the_heavy_job_plugin_holds_together_is_planned_on_one_machine_and_left_to_jenkins",
            "tests/scenarios/test_reserved_capacity.py::test_a_block_takes_its_last_build_as_early_as_its_builds_are_long",
        ),
    ),
)
