"""The same for agents that people reserve: for each sentence of a promise a change that breaks it."""

from planted.bug import Bug
from planted.promises import breaks

_THEIRS = "what_a_person_has_is_theirs_until_their_time_is_over"
_NO_BUILD = "no_build_is_let_onto_what_a_person_has_or_had_but_one_that_was_there_before"
_MARKED = "what_a_person_has_and_takes_builds_is_marked_by_the_next_pass"
_DAY, _TROUBLE = (f"tests/scenarios/{file}.py::test_" for file in ("test_reservations", "test_reservation_troubles"))
_PHASE = "    if record.reservation and not (is_over and _is_out_of_use(node, mark)):\n        return Phase.RESERVED\n"


def planted(name: str, *, function: str, was: str, becomes: str, found_by: str, on: str = _DAY) -> Bug:
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=(f"{on}{found_by}",))


_UNIT = "tests/unit/test_reserved.py::test_"
RESERVED = (
    breaks(
        _THEIRS,
        "a reserved agent is one like any other",
        function="_phase",
        was="    if record.reservation and not (is_over and takes_none):",
        becomes="    if False:",
        always="test_reserved.py::test_what_is_reserved_is_no_supply_and_neither_surplus_nor_idle_nor_draining",
    ),
    breaks(
        _THEIRS,
        "a reservation ends as soon as the agent is marked",
        function="_phase",
        was="not (is_over and takes_none)",
        becomes="not takes_none",
        always="test_reserved.py::test_what_is_reserved_is_no_supply_and_neither_surplus_nor_idle_nor_draining",
    ),
    breaks(
        _THEIRS,
        "what a person stops in EC2 is terminated under their reservation",
        function="BY_HAND",
        was="a.phase not in (Phase.UNSEEN, Phase.RESERVED)",
        becomes="a.phase is not Phase.UNSEEN",
        always="test_reserved.py::test_one_whose_labels_were_taken_for_another_reason_is_marked_as_reserved",
    ),
    breaks(
        _NO_BUILD,
        "what was reserved is stopped for the warm pool",
        function="may_be_stopped",
        was="record.reservation is None and (agent.mark is None or agent.mark.kind in _NOT_NEEDED)",
        becomes="True",
        always="test_warm_pool.py::test_anything_else_is_terminated",
    ),
    breaks(
        _NO_BUILD,
        "what was reserved and carries the mark of surplus comes back for jobs",
        function="_phase",
        was="mark.kind is MarkClass.RETIRE and record.reservation is None",
        becomes="mark.kind is MarkClass.RETIRE",
        always="test_reserved.py::test_what_was_reserved_and_carries_the_mark_of_surplus_does_not_come_back_for_jobs",
    ),
    Bug(
        name="what was reserved gets its labels back for a job that may start there",
        function="_without_labels",
        was="        if agent.record.reservation:  # no label brings it more\n",
        becomes="        if not agent.record.labels:\n",
        found_by=(f"{_UNIT}what_was_reserved_gets_no_label_back_for_a_job_that_may_start_there_without",),
    ),
    breaks(
        _MARKED,
        "a pass that was cut off before the mark is never made good",
        function="CORDONING",
        was="    keep_reserved,  # what a person has takes no builds\n",
        becomes="",
        always="test_reserved.py::test_one_that_takes_builds_is_marked_also_after_its_time",
    ),
    Bug(
        name="an agent that a person has keeps a pool from booting others, one at a time",
        function="_may_still_connect",
        was=" and not seen and not is_lost\n",
        becomes=" and not is_lost\n",
        found_by=(f"{_UNIT}what_has_registered_for_a_person_does_not_keep_others_of_a_new_version_from_booting",),
    ),
    Bug(
        name="a new image waits for an agent that a person has",
        function="_boots",
        was="is_tried and record.reservation is None",
        becomes="is_tried",
        found_by=(f"{_UNIT}nothing_that_is_launched_for_a_person_tries_a_new_image_and_nothing_waits_for_it",),
    ),
    Bug(
        name="a new image is tried by an agent of which nobody sees whether it connects",
        function="_reserve_any",
        was="    budget.to_begin.clear()  # a person gets what has been tried\n",
        becomes="",
        found_by=(f"{_UNIT}nothing_that_is_launched_for_a_person_tries_a_new_image_and_nothing_waits_for_it",),
    ),
    planted(
        "an agent that was launched for a person takes builds once it has booted",
        function="_connect",
        was="        _keep_builds_away(controller, record, granted.spec.name, fleet)\n",
        becomes="",
        found_by="neither_a_job_that_excludes_other_labels_nor_one_that_names_it_begins_on_one_that_was_launched_for_a_person",
    ),
    planted(
        "jobs are told to wait for a reserved agent by the label that it alone has",
        function="reserve",
        was="    by_labels = bool(record.labels) and not before.temporarily_offline\n",
        becomes="    by_labels = False\n",
        found_by="jobs_that_ask_for_its_label_are_told_of_no_node_and_get_an_agent_of_their_own",
    ),
    planted(
        "a reservation takes one of the agents that a pool keeps for builds",
        function="is_for_builds",
        was="return spec is not None and ready <= spec.min_agents",
        becomes="return spec is not None and ready < spec.min_agents",
        found_by="the_minimum_of_a_pool_is_for_builds_and_another_one_is_launched",
    ),
    planted(
        "a reservation takes the room that a minimum still lacks",
        function="_reserve_any",
        was="budget = with_floors(situation)",
        becomes="budget = Budget(situation)",
        found_by="the_fleets_room_is_for_the_minimum_first_though_its_agents_are_not_there_yet",
    ),
    planted(
        "a reserved agent counts as one of the minimum",
        function="_is_not_to_work_with",
        was=" or record.reservation is not None\n",
        becomes="\n",
        found_by="a_reserved_agent_is_no_part_of_the_minimum",
    ),
    planted(
        "a reservation lasts on while the month's money is spent",
        function="_keep",
        was="    level = situation.stopped_by(agent.pool.name)\n    if level is not None and",
        becomes="    level = situation.stopped_by(agent.pool.name)\n    if level is not None and not agent.idle and",
        found_by="once_the_months_money_is_spent_it_ends_half_an_hour_later_and_none_begins",
    ),
    planted(
        "one request reserves twice",
        function="reserve_for_a_person",
        was="    if _was_reserved(situation, order.request_id):\n",
        becomes="    if False and _was_reserved(situation, order.request_id):\n",
        found_by="the_same_request_reserves_once",
    ),
    planted(
        "a pipeline that was on it before a restart waits for ever",
        function="_DRAINED",
        was="_DRAINED = (Phase.DRAINING, Phase.RESERVED)\n",
        becomes="_DRAINED = (Phase.DRAINING,)\n",
        found_by="a_pipeline_that_was_on_it_when_jenkins_restarted_resumes_and_ends_there",
        on=_TROUBLE,
    ),
    planted(
        "a person's node that was deleted counts as a boot that failed",
        function="never_connected",
        was="not memory.has_connected(record.life_id) and (record.reservation is None or bool(record.trouble))",
        becomes="not memory.has_connected(record.life_id)",
        found_by="a_node_that_a_person_deletes_of_what_was_launched_for_them_is_no_boot_that_failed",
        on=_TROUBLE,
    ),
)
