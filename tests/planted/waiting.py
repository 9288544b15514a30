"""Known ways to let jobs wait for ever, or to say nothing about it."""

from planted.bug import Bug

REFUSING, OTHER_LABELS = "tests/scenarios/test_refusing_executors.py", "tests/scenarios/test_other_labels.py"
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
        was="            if now > until:\n",
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
        name="what cannot be brought back is kept for the jobs that wait",
        file="domain/scale_in/reclaim.py",
        was="may_come_back(agent, pool) and not keeps_failing(cannot_come_back(situation.memory, agent))",
        becomes="may_come_back(agent, pool)",
        found_by=("tests/scenarios/test_failing_steps.py::test_where_the_limit_is_reached_what_cannot_be_brought_back_makes_room",),
    ),
    Bug(
        name="what scale_up could not bring back is forgotten",
        file="control/apply.py",
        was=" or memory != plan.memory:\n",
        becomes=" or memory.trials != plan.memory.trials:\n",
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
        name="an item in a plugin's words has agent after agent launched for it",
        file="domain/situation/distrust.py",
        was="if distrust.now < until_at or passed.get(scope, 0) >= most:",
        becomes="if passed.get(scope, 0) >= most:",
        found_by=(f"{REFUSING}::test_a_lock_costs_one_agent_after_another_ever_more_rarely_and_is_told_once",),
    ),
    Bug(
        name="a free executor that refuses a job counts for it for ever",
        file="domain/situation/promises.py",
        was="        refused |= {job: now for job, seconds in waits.items() if seconds >= BROKEN_SECONDS}",
        becomes="        refused |= {}",
        found_by=(f"{REFUSING}::test_a_throttle_on_each_node_costs_an_agent_for_each_build_and_no_build_waits_for_long",),
    ),
    Bug(
        name="agents are replaced though the controller starts nothing at all",
        file="domain/scale_in/refusing.py",
        was=" or distrust.began_at < free_node.since_at",
        becomes="",
        found_by=(f"{REFUSING}::test_no_agent_is_replaced_if_the_controller_starts_nothing_at_all_and_that_is_told",),
    ),
    Bug(
        name="whatever Jenkins names to an item is taken for bound",
        file="domain/situation/demand.py",
        was="return self._is_beside_a_beacon(name) or resumption.may_wait_for(name, item.waiting_seconds)",
        becomes="return True",
        found_by=(
            "tests/unit/test_demand.py::test_a_node_name_in_place_of_a_label_resolves_through_that_node_and_binds_nothing_without_a_restart",
        ),
    ),
    Bug(
        name="sets of labels have no beacons",
        file="domain/facts/beacons.py",
        was="    if pools:\n        beacons.append(",
        becomes="    del beacons[1:]\n    if not pools:\n        beacons.append(",
        found_by=(f"{OTHER_LABELS}::test_the_only_agent_of_a_label_is_replaced_like_any_other",),
    ),
    Bug(
        name="an agent counts for the labels of its pool, whatever its node has",
        file="domain/situation/supply.py",
        was="        or _has_other_labels(agent, situation.fleet.ownership_label, asked)\n",
        becomes="",
        found_by=(f"{OTHER_LABELS}::test_an_agent_that_a_person_gave_other_labels_serves_what_it_has_and_is_not_drained_for_that",),
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
        name="an outdated agent that an item asks for by name stays drained though no other one can take it",
        file="domain/repair/bring_back.py",
        was="elif agent.mark.kind is MarkClass.OUTDATED and not agent.instance_ended:",
        becomes="elif agent.mark is None:",
        found_by=(
            "tests/unit/test_outdated.py::test_an_outdated_agent_that_an_item_asks_for_by_name_comes_back_since_no_other_can_take_it",
        ),
    ),
    Bug(
        name="whatever was drained for good comes back for an item that names it",
        file="domain/repair/bring_back.py",
        was="elif agent.mark.kind is MarkClass.OUTDATED and not",
        becomes="elif not",
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
