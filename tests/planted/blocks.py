"""Known ways to blame a node for a stage that ran elsewhere, to count it twice, or not at all."""

from planted.bug import Bug

UNIT, DAYS = "tests/unit/test_node_blocks.py", "tests/scenarios/test_stage_results.py"
ASKED, QUARANTINE = "tests/handlers/test_stage_results.py", "tests/scenarios/test_quarantine.py"
BLOCKS = (
    Bug(
        name="the end of a run counts beside its node blocks",
        function="gone_since",
        was=" if key not in before.blocks.running]",
        becomes="]",
        found_by=(f"{DAYS}::test_a_run_that_is_over_counts_once_more_for_nobody",),
    ),
    Bug(
        name="two node blocks that claim one result both have it",
        function="_sure",
        was="for claim in claims.values() if len(claim) == 1]",
        becomes="for claim in claims.values()]",
        found_by=(f"{UNIT}::test_two_that_have_the_same_block_alone_have_none",),
    ),
    Bug(
        name="a node block that waits for its node after a restart has ended",
        function="_choices",
        was="        if len(may_run) > _shown_of(may_run, shown):\n",
        becomes="        if False:\n",
        found_by=(f"{UNIT}::test_a_block_that_no_executor_shows_and_that_goes_on_is_waited_for",),
    ),
    Bug(
        name="a node block may have ended while its executor still showed it",
        function="_fitting",
        was="if _fits(gone, block) and block.ended_as > after]",
        becomes="if _fits(gone, block)]",
        found_by=(f"{UNIT}::test_what_ended_while_an_executor_still_showed_the_name_is_another_block",),
    ),
    Bug(
        name="a node block is blamed for the one inside it",
        function="_end_of",
        was="        return BlockEnd.FAILED_INSIDE\n",
        becomes="        return BlockEnd.FAILED\n",
        found_by=(f"{DAYS}::test_declarative_agents_of_stages_do_not_blame_the_agent_around_them",),
    ),
    Bug(
        name="an error that was caught is a success",
        function="_end_of",
        was="return BlockEnd.CAUGHT if any(_catches(step) for step in own) else BlockEnd.SUCCEEDED",
        becomes="return BlockEnd.SUCCEEDED",
        found_by=(f"{DAYS}::test_an_error_that_is_caught_inside_a_block_says_nothing_of_its_node",),
    ),
    Bug(
        name="as many bytes of graphs are read as there are",
        function="read_graphs",
        was="steps = min(MOST_STEPS, (MOST_BYTES - size) // _BYTES_OF_A_STEP)",
        becomes="steps = MOST_STEPS",
        found_by=(f"{ASKED}::test_at_most_two_hundred_kilobytes_are_read_in_a_pass",),
    ),
    Bug(
        name="a machine is blamed for each failure of one job",
        function="_longer",
        was="jobs = (*streak.jobs, failed.job)[-_NAMED:] if is_alone and failed.job not in streak.jobs else streak.jobs",
        becomes="jobs = (*streak.jobs, f'{failed.job} {streak.failures}')[-_NAMED:]",
        found_by=(f"{QUARANTINE}::test_one_broken_job_takes_no_machine_however_often_it_fails",),
    ),
    Bug(
        name="a machine is blamed for the parts of one matrix",
        function="Ended.job",
        was="return job_name_of(self.run)",
        becomes='return self.run.rpartition("/")[0]',
        found_by=("tests/unit/test_streaks.py::test_the_configurations_of_a_matrix_are_one_job",),
    ),
    Bug(
        name="a build that no look saw counts for nobody",
        function="learn_from_builds",
        was="ended = (*ended_on(gone_since(before, view), results, blocks.ends), *unseen)",
        becomes="ended = ended_on(gone_since(before, view), results, blocks.ends)",
        found_by=("tests/scenarios/test_short_builds.py::test_a_machine_on_which_builds_fail_within_seconds_is_found_within_minutes",),
    ),
)
