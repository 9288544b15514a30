"""The same for machines that serve several controllers at once, and for hosts."""

from planted.bug import Bug

_UNIT = "tests/unit/test_sides.py"
_HOSTS = "tests/scenarios/test_hosts.py"
_DAYS = "tests/scenarios/test_cooperative.py"
_TOLD = "tests/scenarios/test_told_apart.py"
_LEFT = "tests/scenarios/test_sides_of_left_controllers.py"

SIDES = (
    Bug(
        name="a machine is terminated though another side of it is used",
        function="_why_not_ended",
        was="if kept := why_used_elsewhere(situation, agent) if not isinstance(step, Rotate) else None:",
        becomes="if kept := None:",
        found_by=(f"{_UNIT}::test_drained_on_one_side_only_it_stays",),
    ),
    Bug(
        name="a side whose controller cannot be believed counts as drained",
        function="_why_used",
        was="    if (reason := situation.no_giving_up(controller)) is not None:",
        becomes="    if (reason := situation.no_giving_up(controller)) is not None and False:",
        found_by=(f"{_UNIT}::test_where_the_other_side_cannot_be_believed_it_stays",),
    ),
    Bug(
        name="a node whose record was lost counts as drained",
        function="_why_used",
        was='    if side is None:\n        return f"its node on {controller} has no record"\n',
        becomes="    if side is None:\n        return None\n",
        found_by=(f"{_UNIT}::test_drained_on_one_side_only_it_stays",),
    ),
    Bug(
        name="one look at the other side is enough",
        function="is_drained",
        was="    return not situation.protected(agent) and is_settled(situation, agent)",
        becomes="    return not situation.protected(agent)",
        found_by=(f"{_UNIT}::test_drained_on_one_side_only_it_stays",),
    ),
    Bug(
        name="the last read looks at one controller only",
        function="last_read",
        was="        keep = keep or used_elsewhere(acting, before)\n",
        becomes="",
        found_by=(f"{_DAYS}::test_a_build_that_slips_in_on_the_other_side_runs_to_its_end",),
    ),
    Bug(
        name="a machine counts once for each controller that it serves",
        function="Snapshot.living",
        was="r.state is not RecordState.GONE and r.is_instance and",
        becomes="r.state is not RecordState.GONE and",
        found_by=(f"{_UNIT}::test_one_machine_counts_once",),
    ),
    Bug(
        name="executors are free whatever runs on the other side",
        function="free_executors",
        was="        return max(0, min(here, executors - len(builds)))",
        becomes="        return here",
        found_by=(f"{_UNIT}::test_without_devices_as_many_builds_as_it_has_executors_run_on_all_sides_together",),
    ),
    Bug(
        name="executors are free though no device is",
        function="free_executors",
        was="    return max(0, min(here, told.free - _taken_since(situation, told.told_at, builds, sides)))",
        becomes="    return max(0, here)",
        found_by=(f"{_UNIT}::test_executors_are_free_as_far_as_devices_are",),
    ),
    Bug(
        name="what a machine said of its devices holds for ever",
        function="Devices.is_fresh",
        was="        return now - self.told_at <= DEVICES_FRESH_SECONDS",
        becomes="        return True",
        found_by=(f"{_UNIT}::test_executors_are_free_as_far_as_devices_are",),
    ),
    Bug(
        name="what is drained for good on one side goes on taking builds on the other",
        function="CORDONING",
        was="    drain_together,  # drained for good",
        becomes="    # drained for good",
        found_by=(f"{_UNIT}::test_drained_for_good_on_one_side_it_is_drained_on_all",),
    ),
    Bug(
        name="a host is terminated in EC2",
        function="terminate",
        was="    if not record.is_instance:\n        return _disconnect(acting, step)\n",
        becomes="",
        found_by=(f"{_HOSTS}::test_taken_from_the_fleet_file_it_is_drained_and_disconnected_and_its_build_ends_first",),
    ),
    Bug(
        name="an idle host is surplus",
        function="surplus",
        was="not situation.stopped_by(pool.name) and not pool.spec.of_hosts:",
        becomes="not situation.stopped_by(pool.name):",
        found_by=(f"{_HOSTS}::test_idle_for_a_week_it_stays_and_costs_nothing",),
    ),
    Bug(
        name="a host without power is given up",
        function="why_not_wanted",
        was="not any(host.id == record.machine and host.pool == record.pool for host in situation.fleet.hosts.values())",
        becomes="(agent.node is None or agent.node.offline)",
        found_by=(f"{_HOSTS}::test_without_power_it_is_no_supply_and_it_comes_back_by_itself",),
    ),
    Bug(
        name="a side that left the fleet file is left out of the answer, which ends its builds",
        function="_Request._further",
        was="        return [*told, *machine.left({self.id, *(side_id(self.id, name) for name in others)})]",
        becomes="        return told",
        found_by=(f"{_DAYS}::test_taken_from_the_second_controller_it_is_drained_there_and_its_build_ends_first",),
    ),
    Bug(
        name="somebody else's node of a host's name is taken over",
        function="_make_node",
        was="if granted.record.is_host else None",
        becomes="if False else None",
        found_by=(f"{_HOSTS}::test_a_node_of_its_name_that_is_somebody_elses_is_left_alone",),
    ),
    Bug(
        name="a host whose record was lost is told of the first controller, which ends its build on another one",
        function="_Request._where_it_is",
        was="        return said or next((name for name in served if machine.has_node(name)), served[0])",
        becomes="        return served[0]",
        found_by=(f"{_TOLD}::test_a_host_whose_record_is_lost_goes_on_where_it_is_connected",),
    ),
    Bug(
        name="a host whose record was lost leaves its node behind on another controller",
        function="_Request._where_it_is",
        was="        return said or next((name for name in served if machine.has_node(name)), served[0])",
        becomes="        return said or served[0]",
        found_by=(f"{_TOLD}::test_a_host_that_has_just_begun_anew_when_its_record_is_lost_leaves_no_node_on_another_controller",),
    ),
    Bug(
        name="a record that was lost begins at the first life, which ends the build of a later one",
        function="as_it_says",
        was="    if claim is None or claim == record.bindings[0] or claim.life < record.life or record.state.is_given_up:",
        becomes="    if True:",
        found_by=(
            f"{_TOLD}::test_an_agent_that_was_given_to_another_controller_goes_on_in_its_life_though_its_record_is_lost",
            f"{_TOLD}::test_an_agent_that_was_stopped_and_started_goes_on_in_its_life_though_its_record_is_lost",
            f"{_TOLD}::test_a_host_of_several_at_once_goes_on_in_the_life_that_it_is_in_though_its_records_are_lost",
        ),
    ),
    Bug(
        name="an agent whose record is back as it was before is ended as one without a node",
        function="why_used_elsewhere",
        was="_in_use_where_it_was(situation, agent) if record.leaves or agent.node is None else ()",
        becomes="_in_use_where_it_was(situation, agent) if record.leaves else ()",
        found_by=(f"{_TOLD}::test_an_agent_that_was_given_to_another_controller_since_its_record_was_saved_goes_on_there[registered-0]",),
    ),
    Bug(
        name="an agent that took a static node since its record was saved never registers again",
        function="_take_slot",
        was="return _as_labelled(_win(ports, granted, record.node), node) if node else deleted",
        becomes="return _as_labelled(granted, node) if node else deleted",
        found_by=(f"{_TOLD}::test_an_agent_that_took_a_static_node_since_its_record_was_saved_keeps_it_to_its_end",),
    ),
    Bug(
        name="a side without a record is left though a build is on it",
        function="Machine._is_lost_in_use",
        was='return self.ports.or_else(is_busy, "side_not_read", otherwise=True, machine=self.id, controller=controller.name)',
        becomes="return False",
        found_by=(f"{_LEFT}::test_a_build_on_a_machine_that_is_shared_no_more_ends_by_itself_though_the_state_was_lost",),
    ),
    Bug(
        name="a side whose record cannot be read is left out of the answer, which ends its builds",
        function="Machine.told",
        was="stays = self._kept(record) if record is not None and record.node is not None else self._as_it_says(controller)",
        becomes="stays = self._kept(record) if record is not None else None",
        found_by=(f"{_TOLD}::test_a_side_whose_record_cannot_be_read_stays_connected",),
    ),
    Bug(
        name="a side whose record was made anew, and has no node yet, is left out of the answer, which ends its builds",
        function="Machine.told",
        was="stays = self._kept(record) if record is not None and record.node is not None else self._as_it_says(controller)",
        becomes="stays = self._kept(record) if record is not None else self._as_it_says(controller)",
        found_by=("tests/scenarios/test_hosts.py::test_if_its_record_is_lost_it_stays_connected_until_jenkins_answers_for_its_node",),
    ),
    Bug(
        name="the node of the next life is made while Java of the last one tries to connect",
        function="Machine._granted",
        was="        if over := self._last_life(record):\n            return over\n",
        becomes="",
        found_by=(f"{_TOLD}::test_java_of_the_last_life_that_finds_the_next_ones_node_first_takes_no_build_that_is_then_lost",),
    ),
)

_DEVICES = "tests/unit/test_device_reservations.py"

DEVICES = (
    Bug(
        name="a machine of which somebody has a device is terminated",
        function="why_used_elsewhere",
        was="    return (Reason.RESERVED, told_people(reserved, record.node)) if reserved else None\n",
        becomes="    return None\n",
        found_by=(f"{_DEVICES}::test_a_machine_of_which_somebody_has_a_device_is_neither_surplus_nor_terminated_until_that_is_over",),
    ),
    Bug(
        name="a machine of which somebody has a device is surplus",
        function="why_it_stays",
        was="return told_people(reserved, record.node) if reserved else None",
        becomes="return None",
        found_by=(f"{_DEVICES}::test_a_machine_of_which_somebody_has_a_device_is_neither_surplus_nor_terminated_until_that_is_over",),
    ),
    Bug(
        name="a device is reserved for a person while jobs wait for it",
        function="reserve_device",
        was="for pool in dict.fromkeys(one.pool.name for one in mine):\n",
        becomes="for pool in ():\n",
        found_by=(f"{_DEVICES}::test_none_is_reserved_where",),
    ),
    Bug(
        name="the same device is reserved twice before its agent has asked",
        function="free_devices",
        was="    return told.free - since\n",
        becomes="    return told.free\n",
        found_by=(f"{_DEVICES}::test_none_is_reserved_where",),
    ),
    Bug(
        name="a machine is told of people whose time is over",
        function="_Request._people",
        was="tuple(one for one in self._reservations() if not one.is_over(self.ports.clock()))",
        becomes="tuple(self._reservations())",
        found_by=("tests/handlers/test_register_polls.py::test_it_is_told_who_has_a_device_of_it_until_that_is_over",),
    ),
    Bug(
        name="a stopped machine whose records were lost stays for ever, since it gets none on its other side",
        function="_why_used",
        was="    if side is None and agent.instance is InstanceState.STOPPED and _is_left(situation, controller, node):",
        becomes="    if False:",
        found_by=(f"{_DAYS}::test_stopped_by_a_person_it_goes_though_all_records_are_lost",),
    ),
)

COMING = (
    Bug(
        name="each controller launches for itself while a machine boots that will serve both",
        function="_coming_to_all",
        was="    yield from (_is_there_in(agent, pool) for agent in _booting_elsewhere(situation, pool))\n",
        becomes="",
        found_by=(f"{_UNIT}::test_a_machine_that_boots_for_one_controller_comes_to_all",),
    ),
    Bug(
        name="two controllers plan on the same executor",
        function="_shared_slots",
        was="sorted(slots)[_wanted_before(situation, pool) :]:",
        becomes="sorted(slots):",
        found_by=(f"{_UNIT}::test_two_controllers_do_not_plan_on_the_same_executor",),
    ),
    Bug(
        name="what serves a controller that left is not recorded where the state was lost, and is ended under its build",
        function="Machine._unseen",
        was="if not self.pool.of_hosts:",
        becomes="if False:",
        found_by=(f"{_LEFT}::test_a_build_on_a_controller_that_left_ends_by_itself_though_the_state_was_lost_just_before",),
    ),
)
