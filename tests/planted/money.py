"""Known ways to launch twice, and to spend more than a limit allows."""

from planted.bug import Bug

MONEY = (
    Bug(
        name="the month counts spot at what was expected, not at what is paid",
        file="domain/facts/metering.py",
        was="usd = record.reserved_usd_per_hour if price is None else price + volume",
        becomes="usd = record.usd_per_hour",
        found_by=("tests/scenarios/test_spot_prices.py::test_the_month_counts_what_spot_costs_and_not_what_it_was_expected_to_cost",),
    ),
    Bug(
        name="a spot price that EC2 never told costs nothing",
        file="domain/facts/metering.py",
        was="usd = record.reserved_usd_per_hour if price is None else price + volume",
        becomes="usd = (price or 0.0) + volume",
        found_by=("tests/scenarios/test_spot_prices.py::test_on_demand_counts_at_its_own_price",),
    ),
    Bug(
        name="what is started again costs the minute before its start, too",
        file="domain/facts/metering.py",
        was="return max(0.0, now - max(since, began_at))",
        becomes="return max(0.0, now - since)",
        found_by=("tests/scenarios/test_meter.py::test_each_launch_and_start_is_metered_from_its_second_on",),
    ),
    Bug(
        name="a launch is sent again before EC2 lists what it launched",
        file="control/launches.py",
        was="    elif age < LISTED_AFTER_SECONDS:\n        return\n",
        becomes="",
        found_by=("tests/scenarios/test_lost_launches.py::test_what_ec2_does_not_list_yet_is_waited_for_before_anything_is_sent_again",),
    ),
    Bug(
        name="a launch that was met in part is sent again",
        file="control/launches.py",
        was="if mine and (len(mine) >= intent.count or age >= LISTED_AFTER_SECONDS):",
        becomes="if mine and (len(mine) >= intent.count or age >= RESEND_LAUNCH_SECONDS):",
        found_by=("tests/scenarios/test_lost_launches.py::test_a_launch_that_was_met_in_part_is_settled_by_what_is_listed",),
    ),
    Bug(
        name="agents in use go on beyond the month's limit",
        file="domain/decide.py",
        was="    stop_for_month_limit,  # the month's money is spent, or the hours of the day are used\n",
        becomes="",
        found_by=("tests/scenarios/test_month_limit.py::test_the_month_ends_at_its_limit_and_what_runs_is_finished",),
    ),
    Bug(
        name="what retires comes back beyond the month's limit",
        file="domain/launch/placement.py",
        was="if not (pool.on_hold or situation.stopped_by(name))",
        becomes="if not pool.on_hold",
        found_by=("tests/unit/test_month_limit.py::test_nothing_is_launched_not_even_for_the_minimum_and_what_retires_stays_so",),
    ),
    Bug(
        name="jobs that ask for a label which one node has keep that node beyond the month's limit",
        file="domain/situation/situation.py",
        was="    if stopped := _stopped_levels(look.fleet, memory, look.now):\n",
        becomes="    if stopped := ():\n",
        found_by=("tests/scenarios/test_month_limit.py::test_the_month_ends_at_its_limit_and_what_runs_is_finished",),
    ),
    Bug(
        name="an agent that a begun pipeline waits for is given up at the month's limit",
        file="domain/situation/demand.py",
        was="return pins & {name for item in begun if item.run for name in (*item.wait.nodes, item.wait.named)}",
        becomes="return pins & {name for item in begun if item.run is None for name in (*item.wait.nodes, item.wait.named)}",
        found_by=("tests/unit/test_month_limit.py::test_a_part_of_a_pipeline_that_runs_gets_the_node_it_waits_for",),
    ),
    Bug(
        name="a launch that was not answered is sent again beyond the month's limit",
        file="control/launches.py",
        was="on_hold = used or overrides",
        becomes="on_hold = overrides",
        found_by=("tests/scenarios/test_month_limit.py::test_a_launch_that_was_never_answered_is_not_sent_again",),
    ),
    Bug(
        name="a record is closed before its launch is noted",
        file="control/apply.py",
        was="        if not self.remembered:\n",
        becomes="        if False:\n",
        found_by=("tests/scenarios/test_launch_rate.py::test_launches_count_though_the_memory_cannot_be_saved",),
    ),
    Bug(
        name="a launch that is noted and recorded counts twice",
        file="domain/facts/metering.py",
        was="return {record.instance_id: record.launched_at} | {",
        becomes="return {f'{record.instance_id} ': record.launched_at} | {",
        found_by=("tests/unit/test_budget.py::test_a_launch_that_is_noted_and_not_forgotten_yet_counts_once",),
    ),
    Bug(
        name="spot is reserved at what it is expected to cost",
        file="domain/facts/fleet.py",
        was="most = self.usd_per_hour if self.most_usd_per_hour is None else self.most_usd_per_hour",
        becomes="most = self.usd_per_hour",
        found_by=("tests/unit/test_budget.py::test_a_launch_is_reserved_at_the_most_it_may_cost",),
    ),
    Bug(
        name="the most to pay for spot is reserved and not sent",
        file="adapters/ec2.py",
        was="    if offering.spot_max_usd_per_hour is not None:\n",
        becomes="    if False:\n",
        found_by=("tests/contract/test_compute.py::test_the_most_to_pay_for_spot_is_sent_and_what_is_dearer_by_then_is_not_had",),
    ),
    Bug(
        name="what runs on spot is reserved at what it is expected to cost",
        file="domain/launch/budget.py",
        was="if is_off(record) else record.reserved_usd_per_hour for",
        becomes="if is_off(record) else record.usd_per_hour for",
        found_by=(
            "tests/unit/test_budget.py::test_what_runs_is_reserved_at_the_most_it_may_cost_and_a_record_of_an_older_version_at_its_price",
        ),
    ),
    Bug(
        name="an event that is delivered twice runs twice at once",
        file="control/passes.py",
        was='owner = f"{invocation.pass_id}/{ports.new_id()}"',
        becomes="owner = invocation.pass_id",
        found_by=("tests/scenarios/test_faults.py::test_an_event_that_is_delivered_twice_at_once_launches_once",),
    ),
    Bug(
        name="the SDK sends a launch again by itself",
        file="bootstrap.py",
        was='return boto3.client("ec2", config=_SDK_ONCE)',
        becomes='return boto3.client("ec2", config=_SDK)',
        found_by=(
            "tests/handlers/test_launching_once.py::test_a_launch_whose_answer_is_lost_and_whose_repetition_is_throttled_launches_once",
        ),
    ),
)
