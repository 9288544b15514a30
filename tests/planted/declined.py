"""Known ways to scale a pool for jobs that it declines, or to leave jobs waiting that another pool takes."""

from planted.bug import Bug

_DAYS, _FREE = "tests/scenarios/test_max_job_seconds.py::", "tests/scenarios/test_long_jobs_on_free_executors.py::"

DECLINED = (
    Bug(
        name="long jobs on free executors of a pool for short ones are told again after each pause",
        function="_COMES_AND_GOES",
        was='"runs-long/": 3 * DAY_SECONDS',
        becomes='"runs-long/": LIMIT_OVER_SECONDS',
        found_by=(f"{_FREE}test_six_long_builds_on_a_free_agent_are_told_once_with_what_to_do_in_jenkins[linux]",),
    ),
    Bug(
        name="a free agent that a plugin keeps from the jobs its pool declines is at fault",
        function="may_take",
        was="    if taker.pool in want.declined_by:\n        return False\n",
        becomes="",
        found_by=(f"{_DAYS}test_a_free_agent_that_declines_a_job_is_not_counted_for_it_whatever_its_labels_are_and_is_not_at_fault",),
    ),
    Bug(
        name="an agent is lent to a job that its pool declines",
        function="Loans.borrow",
        was="if fleet.declines(self.controller, pool.name, item.job, of_pipeline=bool(item.run)):",
        becomes="if False:",
        found_by=(f"{_DAYS}test_an_agent_of_a_rare_kind_is_not_lent_to_a_job_that_its_pool_declines",),
    ),
    Bug(
        name="a step of a pipeline is declined by what ran in other pools",
        function="Declined.why",
        was=" or (of_pipeline and not decline.is_seen_there)",
        becomes="",
        found_by=(f"{_DAYS}test_parts_of_pipelines_are_judged_by_what_ran_in_the_pool_itself",),
    ),
    Bug(
        name="a stage is foreseen in a pool that declines it",
        function="due",
        was="if not (declined and (job_name_of(path), name) in declined):",
        becomes="if True:",
        found_by=(f"{_DAYS}test_no_agent_is_launched_for_the_stage_of_a_pipeline_that_the_pool_declines",),
    ),
    Bug(
        name="an item that only agents which decline it are free for waits for max_wait_seconds",
        function="read_demand",
        was="    unclear, kept_off = _without_kept_off(unclear, resolver)\n",
        becomes="    kept_off: list[Want | Unmet] = []\n",
        found_by=(f"{_DAYS}test_a_free_agent_that_declines_a_job_is_not_counted_for_it_whatever_its_labels_are_and_is_not_at_fault",),
    ),
    Bug(
        name="that a job takes too long is told each time it waits",
        function="declines_seen",
        was="        yield from _still_told(",
        becomes="        yield from () if True else _still_told(",
        found_by=(f"{_DAYS}test_a_job_that_was_seen_to_take_too_long_gets_an_agent_of_another_pool",),
    ),
)
