"""Known ways to have the wrong numbers at an hour, or the right ones too late."""

from planted.bug import Bug

_TIMELINES = "tests/scenarios/test_pool_schedules.py::"
_HOURS = "tests/unit/test_pool_schedules.py::"
_DAYS = "tests/scenarios/test_hours_per_day.py::"
_FILE = "tests/unit/test_config_schedules.py::"

HOURS = (
    Bug(
        name="the agents of a schedule are launched when it begins",
        function="_prepared",
        was="for seconds in (0.0, lead_seconds(snapshot, pool))",
        becomes="for seconds in (0.0, 0.0)",
        found_by=(f"{_TIMELINES}test_the_agents_of_a_schedule_are_there_when_it_begins_and_not_much_sooner",),
    ),
    Bug(
        name="nine of ten boots are slower than what the agents of a schedule are launched by",
        function="_SHARE_IN_TIME",
        was="_SHARE_IN_TIME = 0.9",
        becomes="_SHARE_IN_TIME = 0.1",
        found_by=(f"{_TIMELINES}test_where_nine_of_ten_boots_were_slower_than_the_file_says_agents_are_launched_as_much_sooner",),
    ),
    Bug(
        name="stopped agents are started as early as others are launched",
        function="lead_seconds",
        was="starts = stopped > 0 and there + stopped >= needed",
        becomes="starts = False",
        found_by=(f"{_TIMELINES}test_stopped_agents_are_started_a_start_before_the_schedule_and_not_a_boot",),
    ),
    Bug(
        name="the minimum of the evening counts while the day's schedule still holds",
        function="_prepared",
        was="min_agents=max(here.min_agents, soon.min_agents)",
        becomes="min_agents=soon.min_agents",
        found_by=(f"{_TIMELINES}test_the_agents_of_a_schedule_stay_until_it_ends_and_go_by_the_usual_rules_then",),
    ),
    Bug(
        name="jobs that wait take the larger maximum before its hour",
        function="_prepared",
        was="max(here.max_agents, min(soon.max_agents, least_agents(soon)))",
        becomes="max(here.max_agents, soon.max_agents)",
        found_by=(f"{_TIMELINES}test_a_maximum_that_a_schedule_raises_is_raised_when_it_begins_and_before_only_for_its_minimum",),
    ),
    Bug(
        name="a schedule beats what an operator ordered for a while",
        function="join",
        was="    fleet = scheduled(snapshot, fleet) if has_schedules else fleet\n    fleet = in_force(fleet, overrides) if",
        becomes="    fleet = scheduled(snapshot, in_force(fleet, overrides))\n    fleet = fleet if",
        found_by=(f"{_TIMELINES}test_what_an_operator_orders_for_a_while_beats_the_schedule",),
    ),
    Bug(
        name="a schedule over midnight is forgotten at midnight",
        function="_spans",
        was="for ahead in range(-1, days_ahead + 1)",
        becomes="for ahead in range(days_ahead + 1)",
        found_by=(f"{_HOURS}test_a_span_over_midnight_belongs_to_the_day_on_which_it_begins",),
    ),
    Bug(
        name="of a time that comes twice the second one counts",
        function="_instant",
        was="    latest = shown.replace(tzinfo=zone).timestamp()\n",
        becomes="    latest = shown.replace(tzinfo=zone, fold=1).timestamp()\n",
        found_by=(f"{_HOURS}test_on_days_on_which_clocks_change_a_time_is_the_first_instant_at_which_they_show_it_or_a_later_one",),
    ),
    Bug(
        name="a time that never comes is the same time by the clocks before",
        function="_instant",
        was="    if _clock(latest, zone) == shown:\n",
        becomes="    if _clock(latest, zone) >= shown:\n",
        found_by=(f"{_HOURS}test_on_days_on_which_clocks_change_a_time_is_the_first_instant_at_which_they_show_it_or_a_later_one",),
    ),
    Bug(
        name="of two schedules that hold the earlier written one wins",
        function="_that_holds",
        was="given |= numbers_of(schedule)",
        becomes="given = numbers_of(schedule) | given",
        found_by=(f"{_HOURS}test_where_two_schedules_hold_the_later_one_has_the_last_word_key_by_key",),
    ),
    Bug(
        name="minima of hours that never meet are refused together",
        function="_in_all",
        was="        if (highest := sum(map(figure, worst.pools))) > most:\n",
        becomes="        if (highest := sum(figure(pool_at_its_widest(pool)) for pool in pools)) > most:\n",
        found_by=(f"{_FILE}test_minima_of_several_pools_count_together_only_where_their_hours_meet",),
    ),
    Bug(
        name="minima that a schedule makes too dear are let through",
        function="FleetSettings.domain",
        was=", *impossible_hours(fleet)]",
        becomes="]",
        found_by=(f"{_FILE}test_minima_of_several_pools_count_together_only_where_their_hours_meet",),
    ),
    Bug(
        name="the hours of the day go on over midnight",
        function="meter_day",
        was="before = day if day.name == today else Day(name=today)",
        becomes="before = day",
        found_by=(f"{_DAYS}test_at_midnight_the_hours_begin_anew",),
    ),
    Bug(
        name="agents at work take builds on after the hours of the day",
        function="Situation.stopped_levels",
        was=", *out_of_hours)",
        becomes=",)",
        found_by=(f"{_DAYS}test_once_the_hours_of_the_day_are_used_nothing_new_starts_and_no_build_is_cut_short",),
    ),
    Bug(
        name="agents are launched for the last minutes of the day's hours",
        function="DAY_RESERVE_HOURS",
        was="DAY_RESERVE_HOURS = 1.0",
        becomes="DAY_RESERVE_HOURS = 0.0",
        found_by=(f"{_DAYS}test_an_hour_is_reserved_for_each_agent_so_that_none_is_launched_for_minutes",),
    ),
    Bug(
        name="what the day's limit stopped stays out of use",
        function="_OF_LIMITS",
        was="_OF_LIMITS = (MarkClass.MONTH_LIMIT, MarkClass.DAY_LIMIT)",
        becomes="_OF_LIMITS = (MarkClass.MONTH_LIMIT,)",
        found_by=(f"{_DAYS}test_an_agent_that_still_runs_at_midnight_takes_builds_again",),
    ),
    Bug(
        name="stopped agents are let go once the hours of the day are used",
        function="why_kept_no_longer",
        was="if level := situation.spent_by(pool.name):",
        becomes="if level := situation.stopped_by(pool.name):",
        found_by=(f"{_DAYS}test_where_agents_are_stopped_they_stay_so_at_the_price_of_their_disks",),
    ),
)
