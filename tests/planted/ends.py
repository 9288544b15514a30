"""Ways in which ends that EC2 refuses, shows late, or did for others could go unnoticed, or keep jobs waiting."""

from planted.bug import Bug

_ENDS = "tests/scenarios/test_ends.py::"
_REFUSED = (f"{_ENDS}test_an_end_that_ec2_refuses_is_asked_for_ever_more_rarely_counted_and_told_once_in_its_words",)
_OTHERS = (f"{_ENDS}test_machines_that_somebody_else_ends_or_stops_are_counted_and_told_once_with_the_builds_that_were_lost",)

ENDS = (
    Bug(
        name="what EC2 refuses to end is asked for each minute",
        function="_end_again",
        was="stuck.tried_at - stuck.since_at",
        becomes="0.0",
        found_by=_REFUSED,
    ),
    Bug(
        name="what EC2 has refused to end once is asked for an hour later",
        function="_end_again",
        was="stuck.tried_at - stuck.since_at",
        becomes="_LONGEST_PAUSE_SECONDS",
        found_by=(f"{_ENDS}test_a_passing_refusal_of_an_end_is_no_reason_to_wait_an_hour",),
    ),
    Bug(
        name="what EC2 refuses to end keeps its place for ever",
        function="_holds_no_place",
        was=" or is_refused or ",
        becomes=" or ",
        found_by=_REFUSED,
    ),
    Bug(
        name="what EC2 has agreed to end keeps its place while EC2 shows it",
        function="_holds_no_place",
        was=" or past.is_ending",
        becomes="",
        found_by=(f"{_ENDS}test_machines_that_ec2_shows_as_running_an_hour_after_their_end_hold_no_place",),
    ),
    Bug(
        name="nobody hears that others end agents",
        function="ended_by_others",
        was="is_by_others(look, agent)",
        becomes="False",
        found_by=_OTHERS,
    ),
    Bug(
        name="why an agent ended is not asked for again where EC2 did not answer",
        function="_end_reasons",
        was="if past.ended_why}",
        becomes="if past.ended_why is not None}",
        found_by=(f"{_ENDS}test_a_reason_that_ec2_could_not_be_asked_for_is_asked_for_again",),
    ),
    Bug(
        name="nobody hears which builds were lost when others end agents",
        function="_jobs_on",
        was="if sighting.node == agent.record.node",
        becomes="if not sighting.node",
        found_by=_OTHERS,
    ),
)
