"""Planted bugs in what is ours: machines with our tags that we did not launch, and the nodes of another autoscaler."""

from planted.bug import Bug

_BY_HAND = "tests/scenarios/test_launched_by_hand.py"
FOREIGN = (
    Bug(
        name="what carries our tags is ours, whoever launched it",
        file="adapters/ec2.py",
        was="return state if is_launched or has_ended else InstanceState.FOREIGN",
        becomes="return state",
        found_by=(f"{_BY_HAND}::test_a_machine_that_somebody_gave_our_tags_is_left_alone_and_told",),
    ),
    Bug(
        name="a machine of an Auto Scaling group is ours",
        file="adapters/ec2.py",
        was="_FLEET_ID_TAG in tags and _GROUP_TAG not in tags",
        becomes="_FLEET_ID_TAG in tags",
        found_by=(f"{_BY_HAND}::test_an_instance_of_an_auto_scaling_group_is_not_ours_whatever_people_tagged_it_with",),
    ),
    Bug(
        name="a record of a machine that we did not launch is an agent, and ended as one",
        file="domain/situation/agents.py",
        was="if record.state is not RecordState.GONE and not is_foreign:",
        becomes="if record.state is not RecordState.GONE:",
        found_by=(f"{_BY_HAND}::test_a_record_that_an_earlier_release_made_of_it_ends_nothing",),
    ),
    Bug(
        name="an agent whose tags EC2 shows late is forgotten, and launched twice",
        file="domain/situation/agents.py",
        was="is InstanceState.FOREIGN and not is_new",
        becomes="is InstanceState.FOREIGN",
        found_by=(f"{_BY_HAND}::test_an_own_instance_whose_tags_ec2_shows_late_stays_an_agent",),
    ),
    Bug(
        name="a machine with copied tags and the role of agents gets a node and its secret",
        file="domain/report/registration.py",
        was="if identity.state is InstanceState.FOREIGN:",
        becomes="if False:",
        found_by=(
            "tests/handlers/test_register_agent.py::test_an_instance_that_nobody_but_a_person_launched_gets_nothing_whatever_its_tags_say",
        ),
    ),
    Bug(
        name="what is adopted has had its time to boot since its launch",
        file="control/launches.py",
        was="            rotated_at=now,\n",
        becomes="",
        found_by=(f"{_BY_HAND}::test_an_agent_that_is_adopted_after_the_state_was_lost_gets_its_time_to_boot_from_then",),
    ),
)
