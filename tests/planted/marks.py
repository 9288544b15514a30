"""The same for marks of Jenkins' monitors, and for instances that EC2 takes back."""

from planted.bug import Bug

_TAKEN = "tests/scenarios/test_interruptions.py::test_"
_ENDED = "tests/scenarios/test_ended_launches.py::test_"
_STARTS = "tests/scenarios/test_failed_starts.py::test_"
_MARKS = "tests/scenarios/test_monitors_marks.py::test_"

MARKS = (
    Bug(
        name="a monitor's mark is taken for a person's",
        function="_phase_of_node",
        was="node.cause is not OfflineCause.PERSON",
        becomes="False",
        found_by=(f"{_MARKS}minimum_agents_are_replaced_too",),
    ),
    Bug(
        name="a person's mark is taken for a monitor's",
        function="_phase_of_node",
        was="node.cause is not OfflineCause.PERSON",
        becomes="True",
        found_by=(f"{_MARKS}what_a_person_took_offline_stays",),
    ),
    Bug(
        name="a monitor's mark that was taken back is replaced by ours",
        function="cordon",
        was="(step.over_monitor and not before.temporarily_offline,",
        becomes="(False,",
        found_by=("tests/scenarios/test_marks.py::test_what_a_monitor_has_brought_online_meanwhile_stays_online",),
    ),
    Bug(
        name="a controller whose agents are all marked is never to blame",
        function="_begun",
        was="    if len(fresh) < MOST_AT_LEAST or 2 * len(fresh) <= connected:\n",
        becomes="    if True:\n",
        found_by=(f"{_MARKS}most_agents_of_a_controller_are_not_to_blame",),
    ),
    Bug(
        name="agents that are marked as soon as they connect are launched for ever",
        function="scale_down",
        was="    failures += failed_by_marks(situation.memory, situation.agents, situation.versions)\n",
        becomes="",
        found_by=(f"{_MARKS}an_image_that_a_monitor_minds_is_no_fleet_for_each_job",),
    ),
)

INTERRUPTIONS = (
    Bug(
        name="what EC2 takes back while it boots is counted on",
        function="_join",
        was="    if of.record.is_interrupted(now) and phase in _TAKEN_BACK:\n",
        becomes="    if False:\n",
        found_by=(f"{_TAKEN}another_is_launched_in_the_next_look_and_of_something_else_if_there_is_anything",),
    ),
    Bug(
        name="what EC2 takes back while it boots becomes an agent",
        function="_Request._connect_instance",
        was="        if self._is_taken_back(verdict.record):\n",
        becomes="        if False:\n",
        found_by=(f"{_TAKEN}it_never_becomes_an_agent_and_powers_off_when_it_asks",),
    ),
    Bug(
        name="what EC2 takes back while it boots is a failed boot",
        function="scale_down",
        was="    lost = taken_back(snapshot.records, snapshot.end_reasons).keys() |",
        becomes="    lost = set() |",
        found_by=(f"{_TAKEN}machines_that_are_all_taken_back_close_no_pool",),
    ),
    Bug(
        name="what EC2 ends because something is short is a failed boot",
        function="scale_down",
        was=".keys() | short_ends(snapshot)",
        becomes=".keys()",
        found_by=(f"{_ENDED}the_quota_is_told_and_no_failed_boot_and_one_agent_is_tried_each_five_minutes",),
    ),
    Bug(
        name="launches that EC2 ends because something is short teach nothing",
        function="_trials_of",
        was=", *short_launches(known, look)]",
        becomes="]",
        found_by=(f"{_ENDED}stopped_agents_make_way_for_launches_that_ec2_ends_for_the_quota_of_volumes",),
    ),
    Bug(
        name="what EC2 ends while it is pending counts in each look that shows it",
        function="short_launches",
        was="if one.scope not in known or record.began_at >= known[one.scope].failed_at:",
        becomes="if True:",
        found_by=(f"{_ENDED}launches_that_end_in_several_looks_are_one_failure",),
    ),
    Bug(
        name="a launch that EC2 accepts shows that it runs",
        function="_won",
        was="if before.launch and not outcome.name:",
        becomes="if False:",
        found_by=(f"{_ENDED}the_quota_is_told_and_no_failed_boot_and_one_agent_is_tried_each_five_minutes",),
    ),
    Bug(
        name="others are tried while the agent that is tried is pending",
        function="_won",
        was="until_at=now + CAPACITY_PAUSES[0]",
        becomes="until_at=now",
        found_by=(f"{_ENDED}while_the_agent_that_is_tried_is_pending_no_other_is_launched",),
    ),
    Bug(
        name="a machine that runs does not show that launches work again",
        function="_trials_of",
        was="        outcomes += running(known, look)\n",
        becomes="",
        found_by=(f"{_ENDED}soon_after_the_quota_is_raised_all_jobs_run_and_the_message_is_over",),
    ),
    Bug(
        name="a start that EC2 ends because something is short is a failed one",
        function="_go_on_starting",
        was="if keeps_from_starting(code := code_of_end(why)):",
        becomes="if False:\n            code = why",
        found_by=(f"{_STARTS}an_agent_whose_start_ec2_ends_because_something_is_short_is_kept_and_no_start_has_failed",),
    ),
    Bug(
        name="whatever EC2 ends is no failed boot",
        function="taken_back",
        was=" if code in _BY_EC2_ITSELF}",
        becomes=" if code}",
        found_by=(f"{_TAKEN}what_ended_for_another_reason_is_a_failed_boot_still",),
    ),
    Bug(
        name="a record is replaced though somebody has changed it since it was read",
        function="DynamoState.change_record",
        was="same(state=expected, revision=record.revision)",
        becomes="same(state=expected)",
        found_by=("tests/contract/test_state_records.py::test_who_has_not_read_the_last_change_changes_nothing",),
    ),
    Bug(
        name="a lost race is written all the same",
        function="note",
        was="        record = read\n",
        becomes="        record = type(record)(**{**{n: getattr(record, n) for n in record.__slots__}, 'revision': read.revision})\n",
        found_by=("tests/scenarios/test_two_writers.py::test_an_agent_that_registers_while_a_person_reserves_it_stays_theirs",),
    ),
    Bug(
        name="a mark of another version is taken for a person's",
        function="read_mark",
        was="    return Mark(fleet=fleet, kind=kind, pass_id=pass_id, written=written) if is_a_mark else None\n",
        becomes="    return None\n",
        found_by=("tests/scenarios/test_later_versions.py::test_an_agent_with_an_unknown_mark_ends_its_builds_and_goes_once_it_is_idle",),
    ),
    Bug(
        name="nothing that a later version wrote is unknown",
        function="Form.load",
        was="to_json(raw) if _has_more(",
        becomes="to_json(raw) if False and _has_more(",
        found_by=("tests/contract/test_later_versions.py::test_what_a_later_version_wrote_is_written_back_at_every_level",),
    ),
    Bug(
        name="what a later version wrote in an element of a list is dropped",
        function="_pairs",
        was="    return [*zip(known, raw, strict=True)] if len(raw) == len(known) else []\n",
        becomes="    return []\n",
        found_by=("tests/contract/test_later_versions.py::test_it_goes_with_what_it_was_written_beside",),
    ),
)
