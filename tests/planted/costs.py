"""The same for what jobs cost: a change by which dollars are lost, counted twice, or somebody else's."""

from planted.bug import Bug

_UNIT = "tests/unit/test_job_costs.py::test_"
_SUMMARY = "tests/scenarios/test_month_summary.py::test_"
_STORE = "tests/contract/test_costs.py::test_"
COSTS = (
    Bug(
        name="what nobody saw being used is lost",
        function="_shared",
        was="if pool in rates else usd)",
        becomes="if pool in rates else 0.0)",
        found_by=(f"{_UNIT}what_no_look_saw_being_used_is_idle",),
    ),
    Bug(
        name="a machine weighs once for each controller that it serves",
        function="_machines",
        was="    for record in look.snapshot.living:\n",
        becomes="    for record in look.snapshot.records:\n",
        found_by=(f"{_UNIT}a_machine_that_serves_two_controllers_weighs_once",),
    ),
    Bug(
        name="a look that overlapped a later one counts, too",
        function="is_news",
        was="and not is_older and look.snapshot.taken_at > batch.seen_at\n",
        becomes="\n",
        found_by=(f"{_UNIT}a_look_that_is_older_than_the_last_one_changes_nothing",),
    ),
    Bug(
        name="of two that add a batch to its month both do",
        function="Table.next_version",
        was="form, value, condition, version or None",
        becomes="form, value, None, version or None",
        found_by=(f"{_STORE}of_two_that_add_a_batch_to_its_month_the_second_changes_nothing_at_all",),
    ),
    Bug(
        name="a folded row takes its dollars along",
        function="bounded",
        was="            kept[into] = kept.get(into, Used()).plus(one)\n",
        becomes="            kept[into] = one\n",
        found_by=("tests/unit/test_costs_listed.py::test_of_too_many_rows_the_smallest_are_folded_and_the_sum_stays",),
    ),
    Bug(
        name="the message of a month is forgotten where it could not be sent",
        function="notify",
        was="month=told.month if ABOUT + after.month in failed else after.month)",
        becomes="month=after.month)",
        found_by=(f"{_SUMMARY}what_fails_at_midnight_is_told_once_later",),
    ),
    Bug(
        name="a month is told of before all of it is known",
        function="last_month",
        was="        if open_month and open_month <= last:\n            return told.month, None\n",
        becomes="",
        found_by=(f"{_SUMMARY}what_fails_at_midnight_is_told_once_later",),
    ),
    Bug(
        name="people are told of a month with each look",
        function="is_worth_saving",
        was=" or before.month != after.month:\n",
        becomes=":\n",
        found_by=(f"{_SUMMARY}of_a_month_in_which_nothing_ran_nobody_is_told_and_it_is_asked_for_once",),
    ),
    Bug(
        name="boots cost nothing",
        function="paid_since",
        was="boot_usd = usd * on_hours if record.state.is_asked_for else 0.0",
        becomes="boot_usd = 0.0",
        found_by=("tests/unit/test_metering.py::test_boots_stopped_agents_and_disks_are_told_apart",),
    ),
)
