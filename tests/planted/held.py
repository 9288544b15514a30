"""Known ways to let jobs of a held label begin, to keep the label, or to launch for jobs that a person holds."""

from planted.bug import Bug

_TIMELINES = "tests/scenarios/test_held_labels.py::test_"
_MEET, _CUT_OFF = (f"tests/scenarios/test_held_labels_{file}.py::test_" for file in ("meet", "cut_off"))


def planted(name: str, *, function: str, was: str, becomes: str, found_by: str) -> Bug:
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=(found_by,))


HELD = (
    planted(
        "a label on hold stays on the nodes",
        function="labels_wanted",
        was=" if labels & fleet.held_labels else labels)",
        becomes=" if False else labels)",
        found_by=f"{_TIMELINES}a_job_of_a_held_label_waits_beside_a_free_executor_and_begins_once_nobody_holds_it",
    ),
    planted(
        "a label whose hold is over is never given back",
        function="is_held_as_wanted",
        was="is_about_it = HELD_LABEL in node.labels or HELD_LABEL in wanted",
        becomes="is_about_it = HELD_LABEL in wanted",
        found_by=f"{_TIMELINES}a_hold_that_ends_by_itself_gives_the_label_back_and_launches_nothing",
    ),
    planted(
        "restored state that knows of one hold of two keeps the label of the other for ever",
        function="is_held_as_wanted",
        was="node.labels & labels_of_ours(record, fleet) == wanted",
        becomes="(HELD_LABEL in node.labels) == (HELD_LABEL in wanted)",
        found_by=f"{_CUT_OFF}state_that_is_restored_and_knows_of_one_hold_of_two_gives_the_other_label_back",
    ),
    planted(
        "an agent is launched in the place of an idle one that gets its label back in this pass",
        function="labels_soon",
        was="    return node.labels - EXCLUSIVE | (frozenset(record.labels) - labels_to_lend(record, fleet) - fleet.held_labels)\n",
        becomes="    return node.labels\n",
        found_by=f"{_TIMELINES}a_hold_that_ends_by_itself_gives_the_label_back_and_launches_nothing",
    ),
    planted(
        "an agent that registers during a hold has the label",
        function="_node_of",
        was=" if held else spec\n",
        becomes=" if False else spec\n",
        found_by=f"{_MEET}an_agent_that_registers_during_the_hold_is_without_the_label_and_takes_other_jobs",
    ),
    planted(
        "an agent is launched for a stage of which Jenkins names a beacon in place of the held label",
        function="_Resolver._held_for",
        was="            return self._nodes[named[0]].labels & held\n",
        becomes="            return frozenset()\n",
        found_by=f"{_MEET}a_stage_whose_label_jenkins_does_not_show_waits_and_nothing_is_launched_for_it",
    ),
    planted(
        "an agent without the label is launched for a job that needs it in the only way that a pool serves",
        function="_Resolver._expression",
        was="            if self._fleet.held_labels:\n                pools",
        becomes="            if False:\n                pools",
        found_by=f"{_TIMELINES}an_expression_that_needs_the_held_label_waits_and_nothing_is_launched_for_it",
    ),
    planted(
        "while nobody knows what was ordered, labels on hold are given back",
        function="_relabel",
        was="if HELD_LABEL in node.labels and situation.overrides.are_unknown:",
        becomes="if False:",
        found_by=f"{_CUT_OFF}while_nobody_knows_what_was_ordered_the_label_is_not_given_back",
    ),
)
