"""Known ways to let a new image stop what the old one does, or never to arrive."""

from planted.bug import Bug

_TIMELINES, _RULES = "tests/scenarios/test_image_parameter.py", "tests/unit/test_image_canary.py"

IMAGES = (
    Bug(
        name="while a new image is tried, it is what everybody gets",
        function="launched_and_to_try",
        was="return {**current, **booted}, to_try",
        becomes="return {**current}, to_try",
        found_by=(f"{_RULES}::test_one_agent_tries_a_new_image_and_the_others_are_launched_from_the_old_one",),
    ),
    Bug(
        name="each controller tries the new image",
        function="Budget.take",
        was="            self.to_begin -= {pool.name}\n",
        becomes="",
        found_by=(f"{_RULES}::test_one_agent_tries_it_over_all_controllers",),
    ),
    Bug(
        name="what tries a new image is the one agent that tries the pool again, and the old image has no turn",
        function="_booting",
        was="if is_booting and not tries_image and not",
        becomes="if is_booting and not",
        found_by=(f"{_RULES}::test_what_tries_a_new_image_is_not_the_one_agent_that_tries_the_pool_again",),
    ),
    Bug(
        name="an agent of which nobody knows the image does not keep another one from trying the new one",
        function="_is_to_begin",
        was='return not {version, ""} & set(under_way)',
        becomes="return not {version} & set(under_way)",
        found_by=(f"{_RULES}::test_one_tries_it_at_a_time",),
    ),
    Bug(
        name="an image that did not boot is tried again at once, and with it each job that comes",
        function="_is_to_begin",
        was="if canary is not None and situation.now < canary.until_at:",
        becomes="if False:",
        found_by=(f"{_TIMELINES}::test_a_broken_image_takes_one_agent_now_and_then_and_keeps_no_job_waiting",),
    ),
    Bug(
        name="a new image that does not boot opens the breaker of the old one",
        function="outcomes_of_boots",
        was="elif is_of_canary(failure, situation.to_try):",
        becomes="elif False:",
        found_by=(f"{_RULES}::test_a_failed_boot_counts_against_the_image_it_was_of_and_no_other",),
    ),
    Bug(
        name="what ended by itself was of an unknown image, and counts against the old one",
        function="versions_of_instances",
        was="    versions |= {record.instance_id: record.version for record in on_record}\n",
        becomes="",
        found_by=(f"{_RULES}::test_a_failed_boot_counts_against_the_image_it_was_of_and_no_other",),
    ),
    Bug(
        name="an image that EC2 refuses pauses the pool",
        function="_note_refused",
        was="if step.tries and is_vain and may_be_the_image(refusal.code)",
        becomes="if False",
        found_by=(f"{_TIMELINES}::test_an_image_that_ec2_refuses_keeps_nothing_else_from_being_launched",),
    ),
    Bug(
        name="a broken old image keeps the new one from being tried",
        function="Purchase._pauses",
        was="return pool.paused is not None and not (pool.paused is Reason.BREAKER_OPEN and self.budget.tries(pool.spec))",
        becomes="return pool.paused is not None",
        found_by=(f"{_TIMELINES}::test_boots_that_keep_failing_do_not_keep_a_new_image_from_being_tried",),
    ),
    Bug(
        name="what a person asks for is not launched, since the new image was tried for it",
        function="Purchase._steps",
        was='f"{intent_id}-tries" if intent_id and name in self._orders else intent_id',
        becomes="intent_id",
        found_by=(f"{_RULES}::test_a_persons_launch_is_two_launches_of_which_each_is_known_by_its_own_name",),
    ),
    Bug(
        name="an image that is put back does not end the canary of the one that was not",
        function="still_tried",
        was="or differ(trial.version, wanted[TrialOf(kind)]",
        becomes="or kind == TrialOf.BOOT and differ(trial.version, wanted[TrialOf(kind)]",
        found_by=(f"{_TIMELINES}::test_an_image_that_is_put_back_is_launched_at_once_and_the_next_one_is_tried_without_delay",),
    ),
)
