"""The same for the cards of a host: what is believed of them, and who gets one."""

from planted.bug import Bug

_CARDS = "tests/scenarios/test_cards.py"

CARDS = (
    Bug(
        name="what a machine said of its cards before its power failed is believed afterwards",
        file="control/registration.py",
        was="        if self.id in stored.devices and not (self.asked.devices or self.asked.connected):",
        becomes="        if False:",
        found_by=(f"{_CARDS}::test_back_from_a_power_failure_no_card_is_believed_free_until_the_machine_says_so",),
    ),
    Bug(
        name="a machine that does not tell of its cards for once has none, though it is connected",
        file="control/registration.py",
        was="not (self.asked.devices or self.asked.connected):",
        becomes="not self.asked.devices:",
        found_by=(f"{_CARDS}::test_a_machine_that_goes_on_and_does_not_tell_for_once_is_believed_as_it_told_last",),
    ),
    Bug(
        name="an agent with cards asks as seldom as any other",
        file="control/registration.py",
        was="poll_seconds=DEVICES_POLL_SECONDS, people=",
        becomes="poll_seconds=POLL_SECONDS, people=",
        found_by=(f"{_CARDS}::test_the_agent_tells_which_cards_are_held_and_as_many_executors_count_as_free",),
    ),
)
