"""The same for what ordered runs rest on: each change loses an order, starts it anew, or takes what goes on for ended."""

from planted.bug import Bug

_STORE, _STOPPED = (f"tests/contract/{file}.py::test_" for file in ("test_run_orders", "test_stopped_builds"))
_RUNS = "tests/scenarios/test_runs.py::test_"


def planted(name: str, *, function: str, was: str, becomes: str, found_by: str) -> Bug:
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=(found_by,))


ORDERED = (
    planted(
        "whoever changes an order last overwrites what another one wrote",
        function="DynamoRunOrders.change_order",
        was="same(version=order.version)",
        becomes='WriteCondition("attribute_exists(fleet)")',
        found_by=f"{_STORE}of_two_who_change_an_order_only_the_first_does",
    ),
    planted(
        "an order that has ended is ordered anew under its id",
        function="DynamoRunOrders.add_order",
        was=", self.check((_ENDED_RUNS, put.key[1]), NEW), has_token",
        becomes=", has_token",
        found_by=f"{_STORE}of_two_orders_with_one_id_the_second_is_refused_though_the_first_has_ended",
    ),
    planted(
        "an open order is forgotten as an ended one is",
        function="DynamoRunOrders.change_order",
        was="        if changed.ended_at is None:\n",
        becomes="        if False:\n",
        found_by=f"{_STORE}a_change_is_of_the_next_version_and_says_so",
    ),
    planted(
        "a transaction that is cancelled for want of capacity counts as a lost race",
        function="lost_the_race",
        was="& LOST)",
        becomes="& {*LOST, _CANCELLED})",
        found_by="tests/contract/test_stores.py::test_an_error_of_dynamodb_is_one_that_the_next_look_makes_good",
    ),
    planted(
        "a login page that answers a stop counts as the page of the build",
        function="_refuse_other_page",
        was='if led not in {"", "."} and not f',
        becomes="if False and not f",
        found_by=f"{_STOPPED}a_login_page_that_answers_a_stop_has_stopped_nothing",
    ),
    planted(
        "two runs that Jenkins has put together count twice",
        function="RunKeeper._start",
        was="        if key in self.queued:",
        becomes="        if False:",
        found_by=f"{_RUNS}builds_that_jenkins_has_put_together_are_not_counted_twice",
    ),
    planted(
        "an item that has left the queue is cancelled again and again",
        function="JenkinsBuilds.cancel",
        was="            return state is ItemState.CANCELLED\n",
        becomes="            raise\n",
        found_by=f"{_STOPPED}an_item_is_cancelled_once_and_what_has_left_is_not",
    ),
    planted(
        "an error page of a proxy counts as an item that has left",
        function="JenkinsBuilds.cancel",
        was="error.status != requests.codes.internal_server_error or ",
        becomes="",
        found_by=f"{_STOPPED}a_cancel_for_which_jenkins_fails_is_judged_by_what_became_of_the_item_and_a_proxys_error_page_not_at_all",
    ),
    planted(
        "a build that this account may not stop counts as stopped",
        function="JenkinsBuilds.stop",
        was='            raise RefusedBuildError(f"Jenkins does not stop {path}: {error}") from error\n',
        becomes="            return\n",
        found_by=f"{_STOPPED}an_account_without_job_cancel_is_told_so_for_whatever_it_may_not_do",
    ),
    planted(
        "what was found is sent once more",
        function="judge",
        was="if carried.state is TryState.WRITTEN and job",
        becomes="if last.state is TryState.WRITTEN and job",
        found_by=f"{_RUNS}whatever_call_fails_each_run_is_started_once",
    ),
    planted(
        "a build that was lost is started again for ever",
        function="_wants_a_try",
        was="<= order.resubmit",
        becomes="<= 99",
        found_by=f"{_RUNS}a_build_that_is_lost_too_often_is_left_to_a_person",
    ),
    planted(
        "the first that passes ends nothing",
        function="RunOrder.is_over",
        was="return bool(self.cancelled_by) or delivered",
        becomes="return bool(self.cancelled_by)",
        found_by=f"{_RUNS}the_first_of_a_gang_that_passes_ends_the_others",
    ),
    planted(
        "what waits is not cancelled with its order",
        function="_endings",
        was="elif last.state is TryState.QUEUED and last.item is not None:",
        becomes="elif False:",
        found_by=f"{_RUNS}a_cancelled_order_ends_its_builds_wherever_they_are",
    ),
    planted(
        "a failing worker of a gang is not replaced",
        function="_wants_a_try",
        was="replaced < order.replace",
        becomes="False",
        found_by=f"{_RUNS}a_worker_of_a_gang_that_fails_is_replaced_and_does_not_end_it",
    ),
    planted(
        "a lost build of an order is run again by its pool, too",
        function="_answer",
        was="    if _is_of_an_order(situation, lost, facts) or _is_over(situation, lost, facts):\n        return None\n",
        becomes="    if _is_over(situation, lost, facts) and not _is_of_an_order(situation, lost, facts):\n        return None\n",
        found_by=f"{_RUNS}a_build_that_is_lost_with_its_machine_is_started_again_by_its_order_and_by_nobody_else",
    ),
    planted(
        "builds of orders are not followed where their pool runs nothing again",
        function="_of",
        was="if not (is_covered(agent.pool, run) or any(run in order.runs_on(controller) for order in orders)):",
        becomes="if not is_covered(agent.pool, run):",
        found_by=f"{_RUNS}a_build_that_is_lost_with_its_machine_is_started_again_by_its_order_and_by_nobody_else",
    ),
    planted(
        "two agents boot for a pipeline whose run is not known yet",
        function="announced",
        was="            if not last.run and unknown:\n",
        becomes="            if False:\n",
        found_by=f"{_RUNS}an_agent_boots_while_a_pipeline_still_begins",
    ),
    planted(
        "no agent boots before a pipeline asks for it",
        function="QueuePlacement.place_queue",
        was=", *demand.announced]",
        becomes="]",
        found_by=f"{_RUNS}an_agent_boots_while_a_pipeline_still_begins",
    ),
    planted(
        "what is started is written down only afterwards",
        function="RunKeeper.carry_on",
        was="        written = self._write(order, following.order)\n",
        becomes="        written = following.order if following.actions else self._write(order, following.order)\n",
        found_by=f"{_RUNS}whatever_call_fails_each_run_is_started_once",
    ),
    planted(
        "each build of an order is asked for by itself, however many there are",
        function="OrderLookups._ask",
        was="        if len(tries) > FEW_TRIES or ",
        becomes="        if ",
        found_by="tests/scenarios/test_large_orders.py::test_the_requests_of_a_look_have_a_bound_whatever_number_of_builds_is_open",
    ),
    planted(
        "builds that no list shows are asked for in the same order in each look",
        function="_in_turn",
        was="(number[item[1].id] - first) % len(order.parts)",
        becomes="number[item[1].id]",
        found_by="tests/scenarios/test_large_orders.py::test_each_build_that_no_list_shows_has_its_turn_within_four_looks",
    ),
    planted(
        "a person's rebuild of what was not answered is taken for the order's own",
        function="_entry",
        was="return min((entry for entry in job.entries if",
        becomes="return max((entry for entry in job.entries if",
        found_by="tests/scenarios/test_repeated_builds.py::"
        "test_a_start_of_an_order_that_was_not_answered_is_the_one_that_came_first_and_not_a_rebuild_of_it",
    ),
    planted(
        "each look begins with the oldest order",
        function="RunKeeper.carry_on_all",
        was="        for order in (*orders[first:], *orders[:first]):\n",
        becomes="        for order in orders:\n",
        found_by="tests/scenarios/test_large_orders.py::test_orders_take_turns_if_time_does_not_suffice_for_all",
    ),
)
