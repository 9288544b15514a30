"""The same for what is judged instead of an alarm each, for looks between the ticks, and for the webhook."""

from planted.bug import Bug

_PROBLEMS, _NOTES = "tests/unit/test_problems.py::test_", "tests/unit/test_pass_notes.py::test_"
_LOOKS, _WEBHOOK = "tests/handlers/test_looking_often.py::test_", "tests/handlers/test_webhook.py::test_"
WATCHING = (
    Bug(
        name="a condition begins anew at each look and never lasts",
        function="_since",
        was="    return span.since_at if span is not None and now - span.seen_at < FORGOTTEN_SECONDS else now\n",
        becomes="    return now\n",
        found_by=(f"{_PROBLEMS}each_condition_rings_once_it_has_lasted_and_ends",),
    ),
    Bug(
        name="one good look ends what must be seen twice to end",
        function="_stays",
        was="return rule is not None and not rule.strict and age <= _ONE_LOOK_SECONDS",
        becomes="return False",
        found_by=(f"{_PROBLEMS}one_look_that_sees_otherwise_ends_nothing_that_is_seen_again",),
    ),
    Bug(
        name="what a message of its own says is told twice",
        function="_is_told_otherwise",
        was="    return any(name.startswith(begins) for name in seen)\n",
        becomes="    return False\n",
        found_by=(f"{_PROBLEMS}what_a_message_of_its_own_says_is_not_said_twice",),
    ),
    Bug(
        name="a problem is over though the next look may see it again",
        function="_over",
        was="{*seen, *(between_looks - {*problems})}",
        becomes="seen",
        found_by=(f"{_PROBLEMS}a_problem_that_one_look_did_not_see_is_not_over_before_its_span_is",),
    ),
    Bug(
        name="values of pools are sent as metrics",
        function="essential",
        was="if datum.name in ESSENTIAL and len(datum.dimensions) == 1]\n",
        becomes="if datum.name in ESSENTIAL]\n",
        found_by=(f"{_PROBLEMS}few_values_of_the_whole_fleet_are_sent",),
    ),
    Bug(
        name="a missing pass between two is not seen",
        function="data_of_notes",
        was="sum(b - a > MISSED_SECONDS for a, b in pairwise(times))",
        becomes="sum(b - a > 10 * MISSED_SECONDS for a, b in pairwise(times))",
        found_by=(f"{_NOTES}a_pass_that_is_missing_between_two_is_seen",),
    ),
    Bug(
        name="a message that comes twice is two looks",
        function="why_skipped",
        was='    return "" if ports.slots.take(slot, ports.clock()) else "slot-taken"\n',
        becomes='    ports.slots.take(slot, ports.clock())\n    return ""\n',
        found_by=(f"{_LOOKS}a_slot_is_one_look_however_often_the_queue_wakes",),
    ),
    Bug(
        name="each notification is a look",
        function="ask_for_look",
        was='if ports.slots.take(f"{asks}#{number}", now):',
        becomes='if ports.slots.take(f"{asks}#{ports.new_id()}", now):',
        found_by=(f"{_WEBHOOK}many_notifications_within_five_seconds_are_two_looks_and_later_ones_others",),
    ),
    Bug(
        name="of notifications that come together only the first has a look",
        function="ask_for_look",
        was='("askmore", "hookmore", (number + 1) * ASKED_EVERY_SECONDS)',
        becomes='("ask", "hook", now)',
        found_by=(f"{_WEBHOOK}a_job_that_is_told_of_soon_after_another_is_seen_by_a_look_that_comes_after_it",),
    ),
    Bug(
        name="jobs whose configuration may not be read keep others from being weighed",
        function="heavy_jobs",
        was="for job in a_part_of(due, READ_A_LOOK, now):",
        becomes="for job in due[:READ_A_LOOK]:",
        found_by=("tests/unit/test_heavy_jobs.py::test_jobs_whose_configuration_may_not_be_read_keep_no_other_from_being_read",),
    ),
    Bug(
        name="a token that callers go on using is not read again",
        function="SharedSecret.is_known",
        was="self._token, self._read_at = _Shared.read(",
        becomes="if given != self._token or not given:\n                    self._token, self._read_at = _Shared.read(",
        found_by=(f"{_WEBHOOK}a_secret_that_was_replaced_is_refused_after_five_minutes_though_callers_go_on_using_it",),
    ),
    Bug(
        name="while Secrets Manager is away, a token counts for ever",
        function="_KEPT_SECONDS",
        was="_KEPT_SECONDS = 900.0",
        becomes="_KEPT_SECONDS = 900_000.0",
        found_by=(f"{_WEBHOOK}while_secrets_manager_is_away_the_token_counts_for_ten_minutes_more",),
    ),
    Bug(
        name="a request of any size is read",
        function="read_body",
        was="len(body[: most_bytes + 1]",
        becomes="len(body[:most_bytes]",
        found_by=("tests/handlers/test_large_requests.py::test_an_agent_whose_report_is_too_large_is_told_who_it_is_and_the_log_names_it",),
    ),
)
