"""Planted bugs in what is ours: machines with our tags that we did not launch, and the nodes of another autoscaler."""

from planted.bug import Bug

_BY_HAND = "tests/scenarios/test_launched_by_hand.py"
_TWO = "tests/scenarios/test_two_stacks.py"
FOREIGN = (
    Bug(
        name="what carries our tags is ours, whoever launched it",
        function="_state_of",
        was="return state if is_launched or has_ended else InstanceState.FOREIGN",
        becomes="return state",
        found_by=(f"{_BY_HAND}::test_a_machine_that_somebody_gave_our_tags_is_left_alone_and_told",),
    ),
    Bug(
        name="a machine of an Auto Scaling group is ours",
        function="_state_of",
        was="_FLEET_ID_TAG in tags and _GROUP_TAG not in tags",
        becomes="_FLEET_ID_TAG in tags",
        found_by=(f"{_BY_HAND}::test_an_instance_of_an_auto_scaling_group_is_not_ours_whatever_people_tagged_it_with",),
    ),
    Bug(
        name="a record of a machine that we did not launch is an agent, and ended as one",
        function="_of_agents",
        was=" and (is_new or snapshot.states.get(record.instance_id) is not InstanceState.FOREIGN):",
        becomes=":",
        found_by=(f"{_BY_HAND}::test_a_record_that_an_earlier_release_made_of_it_ends_nothing",),
    ),
    Bug(
        name="an agent whose tags EC2 shows late is forgotten, and launched twice",
        function="_of_agents",
        was="(is_new or snapshot.states.get(record.instance_id) is",
        becomes="(snapshot.states.get(record.instance_id) is",
        found_by=(f"{_BY_HAND}::test_an_own_instance_whose_tags_ec2_shows_late_stays_an_agent",),
    ),
    Bug(
        name="a machine with copied tags and the role of agents gets a node and its secret",
        function="_refusals",
        was="if identity.fleet != fleet.name or identity.state is InstanceState.FOREIGN:",
        becomes="if identity.fleet != fleet.name:",
        found_by=(
            "tests/handlers/test_register_agent.py::test_an_instance_that_nobody_but_a_person_launched_gets_nothing_whatever_its_tags_say",
        ),
    ),
    Bug(
        name="what is adopted has had its time to boot since its launch",
        function="adopt",
        was="        rotated_at=now,\n",
        becomes="",
        found_by=(f"{_BY_HAND}::test_an_agent_that_is_adopted_after_the_state_was_lost_gets_its_time_to_boot_from_then",),
    ),
    Bug(
        name="a stack with labels of its own is told as a mistake",
        function="_others",
        was="if other == situation.fleet.name or _shared(situation, view, nodes)}",
        becomes="}",
        found_by=(f"{_TWO}::test_two_stacks_with_labels_of_their_own_are_no_mistake",),
    ),
    Bug(
        name="two stacks of one name in two regions are never told",
        function="_fleet_of",
        was="is_far or described != (fleet.name, fleet.home)",
        becomes="described[0] != fleet.name",
        found_by=(f"{_TWO}::test_two_stacks_of_one_name_are_told_and_keep_off_each_others_builds",),
    ),
)
