"""Known ways to let plain jobs sit on rare machines, or to keep what was lent."""

from planted.bug import Bug

_TIMELINES, _PROPERTY = "tests/scenarios/test_lending.py", "tests/properties/test_lending.py"

LENDING = (
    Bug(
        name="a rare agent is lent though its operator never wants that",
        function="Loans.borrow",
        was="            if pool.spec.lend is Lending.NEVER:\n",
        becomes="            if False:\n",
        found_by=(f"{_TIMELINES}::test_a_plain_job_never_starts_on_an_agent_that_is_not_lent_even_where_the_plain_pool_is_full",),
    ),
    Bug(
        name="a rare agent is lent though jobs of its own kind wait for it",
        function="Loans._take",
        was="idle[: max(0, len(idle) - needed_by_its_own(self.situation, pool))]",
        becomes="idle",
        found_by=(f"{_TIMELINES}::test_of_two_that_are_idle_the_one_that_its_own_kind_waits_for_is_not_lent",),
    ),
    Bug(
        name="an agent stays lent though its own kind needs it",
        function="take_back",
        was="            elif needed > len(_idle(situation, pool)):\n",
        becomes="            elif False:\n",
        found_by=(f"{_TIMELINES}::test_a_job_of_the_speciality_that_comes_before_a_borrower_has_begun_ends_the_loan",),
    ),
    Bug(
        name="an agent stays lent though nobody waits for it any more",
        function="take_back",
        was="            elif not _is_lent_for(situation, agent):\n",
        becomes="            elif False:\n",
        found_by=(f"{_TIMELINES}::test_once_the_jobs_have_left_the_queue_the_agent_is_taken_back",),
    ),
    Bug(
        name="labels that a pass was cut off from taking back stay",
        function="are_as_wanted",
        was="return lent == labels_to_lend(record, fleet) & node.labels",
        becomes="return True",
        found_by=(f"{_TIMELINES}::test_what_is_cut_off_between_record_and_node_is_made_good",),
    ),
    Bug(
        name="what borrowers do keeps a rare agent running",
        function="PoolView.busy_executors",
        was="return executors - sum(agent.borrowed_executors(self.now) for agent in self.ready if agent.record.lent_until)",
        becomes="return executors",
        found_by=(f"{_TIMELINES}::test_what_borrowers_do_keeps_no_agent_for_its_own_kind",),
    ),
    Bug(
        name="a job that excludes the plain label finds no agent again and again",
        function="note_never_lent",
        was="                    kept[pool.name] = look.now\n",
        becomes="                    pass\n",
        found_by=(f"{_TIMELINES}::test_jobs_that_exclude_the_general_label_are_remembered_and_their_agents_are_lent_no_more",),
    ),
    Bug(
        name="taking back writes no record, and the loan goes on",
        function="take_back",
        was="lent_until=until_at, ",
        becomes="",
        found_by=(f"{_TIMELINES}::test_once_the_jobs_have_left_the_queue_the_agent_is_taken_back",),
    ),
    Bug(
        name="a lent agent is no supply, and one is launched for the job that has borrowed it",
        function="QueuePlacement._borrow",
        was="        self._add_by_labels(agent, agent.node.labels | agent.pool.lent_labels)\n",
        becomes="",
        found_by=(f"{_TIMELINES}::test_a_plain_job_borrows_the_idle_agent_at_once_and_the_labels_are_back_while_it_runs",),
    ),
    Bug(
        name="plain jobs land on rare machines on random days",
        function="labels_wanted",
        was="frozenset(record.lent_labels) if record.is_lent(now) else",
        becomes="frozenset(record.lent_labels) if record.lent_until else",
        found_by=(f"{_PROPERTY}::test_on_loan_alone_for_one_build_at_most_and_everything_comes_back",),
    ),
)
