"""The same for what jobs cost: a change by which dollars are lost, counted twice, or somebody else's."""

from planted.bug import Bug

_UNIT = "tests/unit/test_job_costs.py::test_"
_STORE = "tests/contract/test_costs.py::test_"
COSTS = (
    Bug(
        name="what nobody saw being used is lost",
        file="domain/report/job_costs.py",
        was="        unseen = 0.0 if pool in rates else usd\n",
        becomes="        unseen = 0.0\n",
        found_by=(f"{_UNIT}what_no_look_saw_being_used_is_idle",),
    ),
    Bug(
        name="a machine counts once for each controller that it serves",
        file="domain/report/job_costs.py",
        was="    for record in look.snapshot.living:\n",
        becomes="    for record in look.snapshot.records:\n",
        found_by=(f"{_UNIT}a_machine_that_serves_two_controllers_weighs_once",),
    ),
    Bug(
        name="a look that overlapped a later one counts, too",
        file="domain/report/job_costs.py",
        was="and not is_older and look.snapshot.taken_at > batch.seen_at\n",
        becomes="\n",
        found_by=(f"{_UNIT}a_look_that_is_older_than_the_last_one_changes_nothing",),
    ),
    Bug(
        name="of two that add a batch to its month both do",
        file="adapters/versioned.py",
        was='    return {"TableName": table, "Item": content, **condition}\n',
        becomes='    return {"TableName": table, "Item": content}\n',
        found_by=(f"{_STORE}of_two_that_add_a_batch_to_its_month_the_second_changes_nothing_at_all",),
    ),
    Bug(
        name="a folded row takes its dollars along",
        file="domain/report/job_costs.py",
        was="            kept[into] = kept.get(into, Used()).plus(one)\n",
        becomes="            kept[into] = one\n",
        found_by=("tests/unit/test_costs_listed.py::test_of_too_many_rows_the_smallest_are_folded_and_the_sum_stays",),
    ),
)
