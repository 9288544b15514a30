"""Known ways to waste capacity that is paid for anyway, or to lose builds with it."""

from planted.bug import Bug

_DAYS = "tests/scenarios/test_reserved_capacity.py::test_"
_UNIT = "tests/unit/test_capacity_reservations.py::test_"
_CONTRACT = "tests/contract/test_compute_reserved.py::test_"
CAPACITY = (
    Bug(
        name="agents of a block go on taking builds until EC2 ends them",
        function="used_up",
        was="if capacity and situation.now >= pool.closes_at else",
        becomes="if False else",
        found_by=(f"{_DAYS}no_build_is_lost_with_a_block_that_ends_if_builds_take_no_longer_than_usual",),
    ),
    Bug(
        name="a block is left at its end, when EC2 has ended its machines",
        function="CapacityReservation.leaves_at",
        was="return self.ends_at - BLOCK_ENDS_EARLY_SECONDS if self.block else self.ends_at",
        becomes="return self.ends_at",
        found_by=(f"{_UNIT}a_block_closes_half_an_hour_and_a_long_build_before_its_end_a_reservation_at_its_end",),
    ),
    Bug(
        name="long builds are not waited for",
        function="closes_at",
        was="(long_build_seconds(pool.name, learned) if capacity.block else 0.0)",
        becomes="0.0",
        found_by=(f"{_UNIT}a_block_closes_half_an_hour_and_a_long_build_before_its_end_a_reservation_at_its_end",),
    ),
    Bug(
        name="what is paid for anyway costs as much as what is bought",
        function="with_capacity",
        was="replace(one, usd_per_hour=0.0)",
        becomes="replace(one)",
        found_by=(f"{_UNIT}its_machines_cost_nothing_in_decisions_and_the_list_price_in_the_month",),
    ),
    Bug(
        name="the month counts reserved machines only where they are used",
        function="paid_since",
        was="usd = capacity.count * capacity.usd_per_hour",
        becomes="usd = 0.0 * capacity.usd_per_hour",
        found_by=(f"{_DAYS}the_month_counts_them_used_or_not_as_the_bill_does",),
    ),
    Bug(
        name="what runs on after the end of a reservation is free",
        function="_usd_after",
        was="    return pool.capacity.usd_per_hour * (pool.capacity.unpaid_seconds(since, now) / (now - since)) if now > since else 0.0\n",
        becomes="    return 0.0\n",
        found_by=(f"{_DAYS}what_runs_on_in_a_reservation_that_is_over_costs_as_much_by_itself",),
    ),
    Bug(
        name="builds pay for reserved machines that nobody launched",
        function="_not_launched",
        was="        if capacity := spec.capacity:\n",
        becomes="        if capacity := None:\n",
        found_by=(f"{_DAYS}all_jobs_and_what_nobody_used_together_cost_what_was_counted",),
    ),
    Bug(
        name="a launch into a block is asked for on demand",
        function="Ec2Compute.compose",
        was="in_block = pool.capacity is not None and pool.capacity.block",
        becomes="in_block = False",
        found_by=(f"{_CONTRACT}a_launch_into_a_block_is_one_and_no_more_than_there_are_machines",),
    ),
)
