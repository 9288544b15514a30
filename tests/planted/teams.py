"""Known ways to spend more than a team or a pool may, and to let somebody go first whose turn it is not."""

from planted.bug import Bug

_AGENTS = "no_pool_no_team_and_no_fleet_gets_more_agents_than_it_may_have"
_LAUNCHES = "no_more_agents_are_launched_within_an_hour_than_may_be"
_USD = "no_more_dollars_an_hour_and_in_the_month_are_reserved_than_may_be_spent"
_PRIORITY = "where_a_limit_keeps_jobs_waiting_no_pool_of_a_lower_priority_gets_its_room"
_SHARES = "where_a_limit_keeps_several_teams_waiting_none_gets_more_than_brings_it_level_with_the_others"
_TEAMS = "pools=team.pools, ceilings=team.ceilings)"
_POOLS = "ceilings = replace(pool.ceilings, max_agents=pool.max_agents)"
_TURN = "key=lambda line: (line[0], self._order.key(line[1]))"


def breaks(test: str, name: str, *, function: str, was: str, becomes: str, always: str = "") -> Bug:
    """``always``: a test of turns that finds it too, where a seed may draw no fleet that shows it."""
    found_by = (*((f"tests/unit/test_team_turns.py::test_{always}",) if always else ()), f"tests/properties/test_teams.py::test_{test}")
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=found_by)


TEAMS = (
    *(
        breaks(test, f"a team has no limit of {what}", function="levels", was=_TEAMS, becomes="pools=team.pools, ceilings=Ceilings())")
        for test, what in ((_AGENTS, "agents"), (_LAUNCHES, "launches"), (_USD, "dollars"))
    ),
    *(
        breaks(
            test,
            f"a pool has no limit of {what}",
            function="levels",
            was=_POOLS,
            becomes="ceilings = Ceilings(max_agents=pool.max_agents)",
        )
        for test, what in ((_LAUNCHES, "launches"), (_USD, "dollars"))
    ),
    breaks(
        _USD,
        "what a team has spent this month is forgotten",
        function="spent_in_month",
        was="return sum(month.by_pool.get(pool, 0.0) for pool in sorted(level.pools))",
        becomes="return 0.0",
    ),
    breaks(
        _AGENTS,
        "a launch that was not answered yet takes no room in its team",
        function="_count_what_has_no_record",
        was="        for use in of_pool.get(intent.pool, uses[-1:]):\n",
        becomes="        for use in (of_pool.get(intent.pool, uses[-1:])[0], uses[-1]):\n",
    ),
    breaks(
        _AGENTS,
        "an instance without a record takes no room in its team",
        function="_count_what_has_no_record",
        was="        for use in of_pool.get(instance.pool, uses[-1:]):\n",
        becomes="        for use in (of_pool.get(instance.pool, uses[-1:])[0], uses[-1]):\n",
    ),
    breaks(
        _USD,
        "what one pass launches takes no room in its team",
        function="Budget.reserve",
        was="        for use in self.levels_of(pool.name):\n            use.take(",
        becomes="        for use in (self.levels_of(pool.name)[0], self.fleet):\n            use.take(",
    ),
    breaks(
        _PRIORITY,
        "whoever has spent the least goes first, whatever the priority",
        function="_HandingOut.all",
        was=_TURN,
        becomes="key=lambda line: self._order.key(line[1])",
    ),
    breaks(
        _SHARES,
        "whoever waits in the first queue goes first, whatever was spent",
        function="_HandingOut.all",
        was=_TURN,
        becomes="key=lambda line: line[0]",
    ),
    *(
        breaks(
            test,
            f"room is kept for nobody: {what}",
            function="_plan_launches",
            was="    budget.keep(kept_room(situation))\n",
            becomes="",
        )
        for test, what in ((_PRIORITY, "priorities"), (_SHARES, "shares"))
    ),
    *(
        breaks(
            test,
            f"what is left of a limit goes to whoever fits: {what}",
            function="_HandingOut._note_refused",
            was="use.kept_usd_per_hour = left",
            becomes="0.0 * left",
        )
        for test, what in ((_PRIORITY, "priorities"), (_SHARES, "shares"))
    ),
    breaks(
        _SHARES,
        "a team's weight counts for nothing",
        function="spent_for_weight",
        was="return spent_lately(situation.memory.fleet.lately, team.pools) / team.weight",
        becomes="return spent_lately(situation.memory.fleet.lately, team.pools)",
    ),
    breaks(
        _SHARES,
        "what a team gets in one pass counts for nothing",
        function="Order.launch",
        was="self.spent[team.name] += usd_per_hour / team.weight",
        becomes="self.spent[team.name] += 0.0",
    ),
    breaks(
        "where_no_limit_keeps_anybody_waiting_teams_and_priorities_change_nothing",
        "nobody goes first where nobody waits, and nobody gets anything",
        function="_HandingOut.all",
        was="kept = self._kept() if self._is_contested else NOTHING_KEPT",
        becomes="kept = self._kept() if self._is_contested else KeptRoom(saved=dict.fromkeys(self._first, 1e9))",
    ),
    Bug(
        name="an agent whose queue never ends never makes room for those that go first",
        function="REPAIRING",
        was="    hand_over,  # agents of those that come after the ones which limits keep waiting\n",
        becomes="",
        found_by=("tests/scenarios/test_teams.py::test_a_lane_of_higher_priority_never_starves_beside_a_queue_that_never_ends",),
    ),
    breaks(
        "who_hands_over_comes_after_a_pool_that_then_gets_more",
        "a team that has spent less hands over",
        function="_Turns._is_fair",
        was="self._order.key(team.name) >= self._order.key(other.name):",
        becomes="self._order.key(team.name) < self._order.key(other.name):",
    ),
    Bug(
        name="an agent hands over that does not count under the limit",
        function="_Room._for",
        was=" and refused.level.has(agent.pool.name)",
        becomes="",
        found_by=("tests/unit/test_team_turns.py::test_under_a_teams_limit_only_that_team_hands_over",),
    ),
    breaks(
        "no_one_less_would_do_and_each_pool_keeps_its_minimum",
        "a pool hands over its minimum",
        function="_Turns.leaves_for",
        was="staying > agent.pool.min_agents",
        becomes="staying > 0",
        always="what_a_person_keeps_or_holds_what_a_run_that_has_begun_waits_for_and_a_minimum_stay",
    ),
    breaks(
        "whose_limit_it_was_is_said",
        "whose limit it was is not said",
        function="Budget._ask_levels",
        was="return (*refused, use.level.text)",
        becomes='return (*refused, "")',
    ),
)
