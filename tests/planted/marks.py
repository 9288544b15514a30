"""The same for marks of Jenkins' monitors, and for instances that EC2 takes back."""

from planted.bug import Bug

_MARKS = "tests/scenarios/test_monitors_marks.py::test_"

MARKS = (
    Bug(
        name="a monitor's mark is taken for a person's",
        file="domain/situation/agents.py",
        was="    return node.cause is not OfflineCause.PERSON\n",
        becomes="    return False\n",
        found_by=(f"{_MARKS}minimum_agents_are_replaced_too",),
    ),
    Bug(
        name="a person's mark is taken for a monitor's",
        file="domain/situation/agents.py",
        was="    return node.cause is not OfflineCause.PERSON\n",
        becomes="    return True\n",
        found_by=(f"{_MARKS}what_a_person_took_offline_stays",),
    ),
    Bug(
        name="a monitor's mark that was taken back is replaced by ours",
        file="control/nodes.py",
        was="    if step.over_monitor and not before.temporarily_offline:\n",
        becomes="    if False:\n",
        found_by=("tests/scenarios/test_marks.py::test_what_a_monitor_has_brought_online_meanwhile_stays_online",),
    ),
    Bug(
        name="a controller whose agents are all marked is never to blame",
        file="domain/situation/marks.py",
        was="    if len(fresh) < MOST_AT_LEAST or 2 * len(fresh) <= connected:\n",
        becomes="    if True:\n",
        found_by=(f"{_MARKS}most_agents_of_a_controller_are_not_to_blame",),
    ),
    Bug(
        name="agents that are marked as soon as they connect are launched for ever",
        file="domain/decide.py",
        was="    failures += failed_by_marks(memory.marks, situation.agents, situation.versions)\n",
        becomes="",
        found_by=(f"{_MARKS}an_image_that_a_monitor_minds_is_no_fleet_for_each_job",),
    ),
)
