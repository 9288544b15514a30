"""Known ways to let jobs wait for ever, or to say nothing about it."""

from planted.bug import Bug

WAITING = (
    Bug(
        name="a login proxy's redirect is taken for success",
        file="adapters/jenkins/session.py",
        was='    if not back or led.path.rstrip("/") == asked.path.rstrip("/"):\n',
        becomes="    if False:\n",
        found_by=("tests/contract/test_controller_faults.py::test_a_change_that_a_login_proxy_redirects_has_failed",),
    ),
    Bug(
        name="a rotated token stays refused until the container is replaced",
        file="adapters/jenkins/connection.py",
        was="            self._connected = None\n            return call(self._session())\n",
        becomes="            raise\n",
        found_by=("tests/contract/test_controller_faults.py::test_a_token_that_was_rotated_is_read_again_whatever_is_asked_first",),
    ),
    Bug(
        name="a body that trickles never meets its deadline",
        file="adapters/jenkins/session.py",
        was="            if self._monotonic() > until:\n",
        becomes="            if False:\n",
        found_by=("tests/contract/test_jenkins_http.py::test_a_body_that_trickles_ends_at_the_deadline",),
    ),
    Bug(
        name="a controller that does not answer is asked for each step",
        file="control/apply.py",
        was="isinstance(error, UnansweredError | NoAnswerError)",
        becomes="isinstance(error, UnansweredError)",
        found_by=(
            "tests/scenarios/test_hung_controllers.py::test_a_controller_that_does_not_answer_one_read_costs_no_more_time_in_this_pass",
        ),
    ),
    Bug(
        name="a controller that just failed is waited for again",
        file="control/observe.py",
        was="_SkippedController(c) if c.name in failed else c for c",
        becomes="c for c",
        found_by=("tests/scenarios/test_hung_controllers.py::test_the_second_look_of_scale_up_leaves_out_what_just_failed",),
    ),
    Bug(
        name="what cannot be brought back counts as supply",
        file="domain/launch/placement.py",
        was=" and not cannot_come_back(situation.memory, agent)\n        ]",
        becomes="\n        ]",
        found_by=("tests/unit/test_scale_up.py::test_what_could_not_be_brought_back_is_tried_again_and_not_counted_on",),
    ),
    Bug(
        name="what a build is bound to and cannot be brought back counts as supply",
        file="domain/launch/placement.py",
        was="            if not cannot_come_back(situation.memory, agent):\n                self._add_executors(agent)",
        becomes="            self._add_executors(agent)",
        found_by=("tests/scenarios/test_failing_steps.py::test_a_job_does_not_wait_for_an_agent_that_cannot_be_brought_back",),
    ),
    Bug(
        name="what cannot be brought back is kept for the jobs that wait",
        file="domain/scale_in/reclaim.py",
        was="may_come_back = agent.phase is Phase.RETIRING and not keeps_failing(cannot_come_back(situation.memory, agent))",
        becomes="may_come_back = agent.phase is Phase.RETIRING",
        found_by=("tests/scenarios/test_failing_steps.py::test_where_the_limit_is_reached_what_cannot_be_brought_back_makes_room",),
    ),
    Bug(
        name="what scale_up could not bring back is forgotten",
        file="control/apply.py",
        was=" or memory != plan.memory:\n",
        becomes=" or memory.cool_offs != plan.memory.cool_offs:\n",
        found_by=("tests/scenarios/test_failing_steps.py::test_where_the_limit_is_reached_what_cannot_be_brought_back_makes_room",),
    ),
    Bug(
        name="a step that Jenkins refuses is tried each minute for ever",
        file="domain/situation/breakers.py",
        was="        if one is None or not keeps_failing(one) or now - one.tried_at >= FAILING_TRY_AGAIN_SECONDS:\n",
        becomes="        if True:\n",
        found_by=(
            "tests/scenarios/test_failing_steps.py::test_a_step_without_its_right_is_held_after_three_tries_named_and_rings_until_the_right_is_given",
        ),
    ),
    Bug(
        name="an agent that died young counts as booting",
        file="domain/situation/agents.py",
        was="now < deadline and not of.was_connected",
        becomes="now < deadline",
        found_by=(
            "tests/unit/test_scale_up.py::test_an_agent_that_was_connected_and_is_gone_is_not_on_its_way_though_its_boot_deadline_is_far",
        ),
    ),
    Bug(
        name="agents whose node cannot be made are launched for ever",
        file="domain/situation/breakers.py",
        was="if _never_connected(by_id[step.instance_id], connected):\n",
        becomes="if False:\n",
        found_by=(
            "tests/scenarios/test_missing_rights.py::test_an_agent_that_may_not_be_made_or_connected_is_a_failed_boot_and_the_breaker_names_the_right",
        ),
    ),
    Bug(
        name="an item in a plugin's words has agent after agent launched for it",
        file="domain/situation/demand.py",
        was=' and f"{self._view.name}/{item.id}" not in without',
        becomes="",
        found_by=("tests/unit/test_unclear_items.py::test_what_stood_beside_a_free_executor_is_not_helped_by_another_one_later",),
    ),
    Bug(
        name="items in a plugin's words are neither demand nor named",
        file="domain/facts/snapshot.py",
        was="return self.buildable and bool(self.wait.unclear)",
        becomes="return False",
        found_by=("tests/unit/test_unclear_items.py::test_beyond_the_longest_wait_it_is_named_and_an_agent_is_tried",),
    ),
    Bug(
        name="what cannot be read of the state does not count against the limits",
        file="domain/launch/budget.py",
        was="for record in mine) + self._unread,",
        becomes="for record in mine),",
        found_by=("tests/scenarios/test_unread_state.py::test_one_that_ec2_does_not_list_counts_too",),
    ),
    Bug(
        name="what cannot be read of the state takes no room in its pool",
        file="domain/launch/budget.py",
        was="for record in mine) + self._unread,",
        becomes="for record in mine) + self._unread * is_all,",
        found_by=(
            "tests/scenarios/test_unread_state.py::test_one_that_ec2_does_not_list_takes_room_in_every_limit_since_nobody_knows_its_pool",
        ),
    ),
    Bug(
        name="an instance is adopted whose record cannot be read",
        file="domain/repair/orphans.py",
        was="for record in situation.snapshot.records} | situation.snapshot.unread_records\n",
        becomes="for record in situation.snapshot.records}\n",
        found_by=(
            "tests/scenarios/test_unread_state.py::test_an_instance_whose_record_cannot_be_read_counts_as_alive_and_is_neither_adopted_nor_given_up",
        ),
    ),
    Bug(
        name="orders that cannot be read are taken for none",
        file="domain/facts/overrides.py",
        was="return Overrides(version=version, holds=(everything,))",
        becomes="return Overrides(version=version)",
        found_by=("tests/scenarios/test_unread_state.py::test_orders_that_cannot_be_read_hold_launches_and_say_so",),
    ),
    Bug(
        name="an outdated agent that an item names stays drained though no other one can be launched",
        file="domain/decide.py",
        was="    bring_back_outdated,  # what an item names, where none of these launches replaces it\n",
        becomes="",
        found_by=("tests/unit/test_outdated.py::test_an_outdated_agent_that_an_item_names_comes_back_where_none_can_be_launched",),
    ),
    Bug(
        name="an outdated agent comes back though another one boots for the job",
        file="domain/repair/bring_back.py",
        was="coming = planned | _on_the_way(situation, controller)",
        becomes="coming = planned",
        found_by=("tests/unit/test_outdated.py::test_it_does_not_come_back_while_another_one_boots",),
    ),
    Bug(
        name="whatever was drained for good comes back for an item that names it",
        file="domain/repair/bring_back.py",
        was="outdated = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED",
        becomes="outdated = agent.phase is Phase.DRAINING and agent.mark is not None",
        found_by=("tests/unit/test_outdated.py::test_an_agent_that_is_drained_for_anything_else_does_not_come_back",),
    ),
    Bug(
        name="an outdated agent is drained while its pool can launch no replacement",
        file="domain/scale_in/replace.py",
        was="_allowed(situation, pool, mine) if situation.pools[controller, pool].may_launch else 0",
        becomes="_allowed(situation, pool, mine)",
        found_by=("tests/unit/test_outdated.py::test_no_agent_is_taken_while_no_replacement_can_be_launched",),
    ),
)
