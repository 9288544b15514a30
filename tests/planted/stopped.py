"""The same for agents that are stopped and started again: for each sentence of a promise a change that breaks it."""

from planted.bug import Bug
from planted.promises import breaks

_NOT_BELIEVED = "where_a_controller_cannot_be_believed_nothing_of_it_is_given_up"
_UNREAD = "a_node_that_could_not_be_read_is_neither_missing_nor_idle"
_OFF = "a_stop_is_finished_and_an_agent_started_only_when_ec2_says_that_it_has_stopped"
_LEAKS = "what_is_surely_left_over_is_repaired_by_the_next_pass"
_AGENTS = "no_pool_no_team_and_no_fleet_gets_more_agents_than_it_may_have"
_USD = "no_more_dollars_an_hour_and_in_the_month_are_reserved_than_may_be_spent"

_FAILED = "tests/scenarios/test_failed_starts.py"
_UNTIMED = "tests/scenarios/test_untimed_starts.py"
_STOPPED = "tests/unit/test_warm_pool.py"

STOPPED = (
    breaks(
        _OFF,
        "the node of an instance goes while it stops",
        function="_stopping",
        was="    if agent.instance is InstanceState.STOPPING:\n",
        becomes="    if not agent.instance:\n",
    ),
    breaks(
        _OFF,
        "a stopped agent is started whatever EC2 says of it",
        function="_may_start",
        was="    if instance is None or instance.state is not InstanceState.STOPPED:\n        return False\n",
        becomes="    if instance is None:\n        return False\n",
    ),
    breaks(
        "what_was_stopped_and_runs_again_is_never_terminated_as_stopped",
        "a machine that runs is terminated since its record says that it is stopped",
        function="not_worth_keeping",
        was=" if situation.snapshot.states.get(agent.record.instance_id) is InstanceState.STOPPED]",
        becomes="]",
        always="test_warm_pool.py::test_what_runs_though_its_record_says_that_it_is_stopped_is_not_terminated_as_that",
    ),
    breaks(
        _UNREAD,
        "a stop is finished though the node could not be read",
        function="_stopping",
        was=" and record.node not in situation.snapshot.controllers[record.controller].unread",
        becomes="",
        always="test_warm_pool.py::test_a_node_that_was_not_read_is_neither_deleted_nor_forgotten_by_a_stop",
    ),
    breaks(
        _NOT_BELIEVED,
        "a stop is finished whatever its controller shows",
        function="_stopping",
        was="is_seen = not situation.no_giving_up(record.controller) and record.node",
        becomes="is_seen = record.node",
        always="test_warm_pool.py::test_a_stop_is_not_finished_where_its_controller_is_not_believed",
    ),
    breaks(
        _LEAKS,
        "what a person started is never an agent again",
        function="_by_hand",
        was="    if here.fact(agent, Condition.STARTED):",
        becomes="    if here.fact(agent, Condition.STARTED) and agent.idle:",
    ),
    breaks(
        _LEAKS,
        "the node of what has stopped stays until somebody waits for it no more",
        function="_stopping",
        was="is_free or situation.now - record.changed_at >= DISCONNECT_GRACE_SECONDS:",
        becomes="is_free:",
    ),
    breaks(
        _LEAKS,
        "a stopped agent stays in a pool that keeps none any more",
        function="not_worth_keeping",
        was="        if there and not pool.on_hold:",
        becomes="        if there and pool.spec.warm_pool and not pool.on_hold:",
        always="test_warm_pool.py::test_what_runs_though_its_record_says_that_it_is_stopped_is_not_terminated_as_that",
    ),
    Bug(
        name="what starts takes no room",
        function="Budget.take_start",
        was="        self.reserve(pool, _more_usd(record, otherwise))\n",
        becomes="        self.reserve(pool, _more_usd(record, otherwise), 0)\n",
        found_by=(f"{_STOPPED}::test_of_those_that_are_stopped_as_many_start_as_there_is_room_for",),
    ),
    breaks(
        _AGENTS,
        "a stopped agent starts beyond any limit",
        function="Budget.refusal_of_start",
        was="return self.over_limit(pool, _more_usd(record, otherwise)) or (refusal",
        becomes="return (refusal",
        always="test_warm_pool.py::test_a_start_takes_room_in_each_limit_like_a_launch",
    ),
    Bug(
        name="starts of the hour do not count",
        function="launches_of",
        was=' | {f"{record.instance_id}@{at:.0f}": at for at in record.starts}',
        becomes="",
        found_by=("tests/scenarios/test_warm_pool.py::test_a_start_counts_among_the_launches_of_the_hour",),
    ),
    breaks(
        _USD,
        "what starts costs nothing more than its disk",
        function="_more_usd",
        was="return max(record.reserved_usd_per_hour - record.volume_usd_per_hour, _highest(otherwise))",
        becomes="return 0.0",
    ),
    Bug(
        name="what EC2 refuses to stop is asked for ever",
        function="stop",
        was="        is_final = isinstance(error, StuckError) or has_failed_often(acting.snapshot.memory, step)\n",
        becomes="        is_final = isinstance(error, StuckError)\n",
        found_by=("tests/scenarios/test_stops_refused.py::test_no_agent_is_launched_again_and_again_to_be_stopped",),
    ),
    Bug(
        name="a boot that a wrong clock measured is learned",
        function="times_of",
        was="        if record.is_measured and 0.0 < seconds <= agent.pool.boot_timeout_seconds:\n",
        becomes="        if record.is_measured:\n",
        found_by=("tests/scenarios/test_clock.py::test_a_launch_by_a_wrong_clock_teaches_no_boot_that_there_cannot_have_been",),
    ),
    Bug(
        name="jobs wait for a start that takes too long",
        function="starts_late",
        was="> _late_seconds(pool)",
        becomes="> agent.pool.boot_timeout_seconds",
        found_by=(f"{_FAILED}::test_a_job_waits_for_a_start_that_never_connects_no_longer_than_two_usual_starts",),
    ),
    Bug(
        name="a start that failed counts as a boot that failed",
        function="failed_boots",
        was="of_start=bool(record.life)",
        becomes="of_start=False",
        found_by=(f"{_FAILED}::test_a_job_waits_for_a_start_that_never_connects_no_longer_than_two_usual_starts",),
    ),
    Bug(
        name="agents are stopped however many starts fail",
        function="most_stopped",
        was="trial.width(now) if trial else inf",
        becomes="inf",
        found_by=(f"{_FAILED}::test_after_three_failed_starts_nothing_is_kept_stopped_but_for_one_that_tries_again_later",),
    ),
    Bug(
        name="a machine that EC2 refuses to start stays",
        function="why_kept_no_longer",
        was="refusals.failures >= MACHINE_REFUSALS",
        becomes="refusals.failures >= 1000",
        found_by=(f"{_FAILED}::test_one_machine_that_cannot_be_started_keeps_no_other_from_it_and_goes_after_three_refusals",),
    ),
    Bug(
        name="nothing is launched instead of a start that EC2 refused",
        function="_started",
        was="if step.otherwise and short > 0:",
        becomes="if step.otherwise and short > 1000:",
        found_by=(f"{_FAILED}::test_whatever_ec2_answers_at_a_start_the_job_is_served_by_a_launch_in_the_same_pass",),
    ),
    Bug(
        name="many agents of a version that was never seen to start are stopped",
        function="most_to_stop",
        was="return min(most, 1 + sum(",
        becomes="return min(most, 99 + sum(",
        found_by=(f"{_FAILED}::test_of_a_version_that_was_never_seen_to_start_one_agent_is_stopped",),
    ),
    Bug(
        name="a late start keeps its place at the limit",
        function="_why_no_other",
        was="refused = Budget(situation).over_limit(pool.spec, pool.usd_per_hour)",
        becomes="refused = None",
        found_by=(f"{_FAILED}::test_a_late_start_at_the_limit_makes_room_for_a_launch",),
    ),
    Bug(
        name="stopped agents hold what a launch lacks",
        function="make_way",
        was="holders[: max(0, ceil(starved / pool.executors)",
        becomes="holders[: min(0, ceil(starved / pool.executors)",
        found_by=(f"{_FAILED}::test_stopped_agents_that_nothing_waits_for_make_way_for_a_launch_that_lacks_what_they_hold",),
    ),
    Bug(
        name="what has made way is not counted",
        function="_have_made_way",
        was="record.changed_at >= since_at",
        becomes="record.changed_at < 0.0",
        found_by=(f"{_FAILED}::test_as_many_stopped_agents_make_way_as_the_jobs_need_and_no_more",),
    ),
    Bug(
        name="what is about to be stopped counts nowhere",
        function="stopped_in_time",
        was="count_stopped(pool) + sum(may_be_stopped(situation, agent) for agent in about_to_stop)",
        becomes="count_stopped(pool)",
        found_by=(f"{_FAILED}::test_what_is_about_to_be_stopped_is_not_launched_once_more_in_whatever_order_the_functions_run",),
    ),
    Bug(
        name="a start that is to prove something heeds no hold",
        function="Purchase.start",
        was="if pool.paused or not self._may_start(pool):",
        becomes="if not self._may_start(pool):",
        found_by=(f"{_FAILED}::test_no_agent_is_started_to_see_whether_that_works_while_somebody_holds_the_pool",),
    ),
    Bug(
        name="agents of a pool that somebody holds make way",
        function="_holders",
        was="pool.on_hold or situation.no_giving_up(pool.controller)",
        becomes="situation.no_giving_up(pool.controller)",
        found_by=(f"{_FAILED}::test_stopped_agents_of_a_pool_that_somebody_holds_make_no_way",),
    ),
    Bug(
        name="starts as slow as boots are believed to be quick until ten of them were seen",
        function="usual_start_seconds",
        was="max(believed_seconds, min(few)) if len(few) >= STARTS_TO_DOUBT else believed_seconds",
        becomes="believed_seconds",
        found_by=(
            "tests/scenarios/test_stopping_costs.py::test_if_the_first_three_starts_are_as_slow_as_boots_agents_are_stopped_no_more",
        ),
    ),
    Bug(
        name="after three starts as many agents are stopped as may be needed, however slow these starts were",
        function="starts_to_time",
        was="BOOTS_TO_TRUST if is_slow else STARTS_TO_DOUBT",
        becomes="STARTS_TO_DOUBT",
        found_by=(f"{_UNTIMED}::test_if_the_first_starts_took_longer_than_believed_no_more_than_ten_are_stopped_before_ten_were_timed",),
    ),
    Bug(
        name="a stock of stopped agents takes back what made way for a job",
        function="_for_stopped",
        was=" or _is_short_of_address_or_volume(placement.situation)",
        becomes="",
        found_by=(
            "tests/scenarios/test_failed_starts.py::test_a_stock_of_stopped_agents_is_not_filled_while_jobs_wait_for_what_it_would_hold",
        ),
    ),
    Bug(
        name="starts that failed before any worked are taken for slow ones, and none is tried again",
        function="_taken_from",
        was="last_times(past.starts, [vain[name]] if name in vain else ()) if past.starts else ()",
        becomes="last_times(past.starts, [vain[name]] if name in vain else ())",
        found_by=(f"{_FAILED}::test_once_a_start_works_again_agents_are_stopped_as_before_and_the_message_is_over",),
    ),
)
