"""The same for hosts with cards that several distributions share: what is believed of the cards, and whose jobs an order is about."""

from planted.bug import Bug

_CARDS = "tests/scenarios/test_cards.py"
_CORNERS = "tests/scenarios/test_debian_corners.py"

CARDS = (
    Bug(
        name="what a machine said of its cards before its power failed is believed afterwards",
        function="_Request._read",
        was="        if self.id in stored.devices and not (self.asked.devices or self.asked.connected):",
        becomes="        if False:",
        found_by=(f"{_CARDS}::test_back_from_a_power_failure_no_card_is_believed_free_until_the_machine_says_so",),
    ),
    Bug(
        name="a machine that does not tell of its cards for once has none, though it is connected",
        function="_Request._read",
        was="not (self.asked.devices or self.asked.connected):",
        becomes="not self.asked.devices:",
        found_by=(f"{_CARDS}::test_a_machine_that_goes_on_and_does_not_tell_for_once_is_believed_as_it_told_last",),
    ),
    Bug(
        name="an agent with cards asks as seldom as any other",
        function="_Request.answer",
        was="        poll_seconds = DEVICES_POLL_SECONDS if self.asked.devices else POLL_SECONDS\n",
        becomes="        poll_seconds = POLL_SECONDS\n",
        found_by=(f"{_CARDS}::test_the_agent_tells_which_cards_are_held_and_as_many_executors_count_as_free",),
    ),
    Bug(
        name="a machine that does not tell of its cards for once lets go of those that people have",
        function="_Request.answer",
        was="poll_seconds=poll_seconds, people=self._people())",
        becomes="poll_seconds=poll_seconds, people=self._people() if self.asked.devices else ())",
        found_by=(f"{_CARDS}::test_a_reserved_card_stays_the_persons_though_the_machine_does_not_tell_of_its_cards_for_once",),
    ),
    Bug(
        name="the purge of one distribution's jobs cancels those of the others",
        function="purge_for_a_person",
        was="            if label not in nodes and asks_for(label, order.label):",
        becomes="            if label not in nodes:",
        found_by=(f"{_CORNERS}::test_one_distributions_jobs_are_purged_and_the_others_go_on",),
    ),
    Bug(
        name="the purge on one controller cancels what waits on the others",
        function="purge_for_a_person",
        was="        if order.controller not in {None, view.name}:\n            continue\n        if not view.complete or",
        becomes="        if not view.complete or",
        found_by=(f"{_CORNERS}::test_a_controller_for_each_distribution",),
    ),
    Bug(
        name="jobs on hold by their label are said to be such as no pool serves",
        function="_starved",
        was="        if holds := resolver.holds_on(item, overrides):",
        becomes="        if (holds := resolver.holds_on(item, overrides)) and False:",
        found_by=("tests/unit/test_overrides.py::test_items_of_a_held_label_are_no_demand_and_are_counted",),
    ),
    Bug(
        name="a host that is back without power for long is not connected again",
        function="Machine.told",
        was="        record = next((one for one in self.stored.records if one.instance_id == name), None)\n",
        becomes="        record = next((one for one in self.stored.records if one.instance_id == name and self.asked.connected), None)\n",
        found_by=(f"{_CARDS}::test_a_host_that_dies_with_leases_held_loses_its_builds_and_no_other_and_comes_back_by_itself",),
    ),
)
