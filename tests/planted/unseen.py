"""Planted bugs in what nobody could see, and in builds that have ended."""

from planted.bug import Bug

_OUTAGES, _QUIET = "tests/scenarios/test_unseen_controllers.py", "tests/scenarios/test_quiet_mode.py"
_ENDED, _OVERDUE = "tests/scenarios/test_ended_builds.py", "tests/scenarios/test_overdue_elsewhere.py"

UNSEEN = (
    Bug(
        name="an outage of the controller counts against boots",
        function="_join",
        was="of.pool.boot_timeout_seconds + of.blind_seconds",
        becomes="of.pool.boot_timeout_seconds",
        found_by=(f"{_OUTAGES}::test_an_outage_of_the_controller_is_no_failed_boot_and_the_agents_that_boot_meanwhile_serve",),
    ),
    Bug(
        name="a controller that is seen only now and then reaches no deadline",
        function="_next",
        was="if now - looks.at > LOOK_GAP_SECONDS:",
        becomes="if now - looks.at > MINUTE_SECONDS:",
        found_by=("tests/unit/test_unseen_time.py::test_seconds_between_whole_looks_count",),
    ),
    Bug(
        name="quiet mode is over when a job has gone",
        function="controllers_seen",
        was="view.quieting_down and (quiet in told or _is_quiet_too_long(situation, view))",
        becomes="view.quieting_down and _is_quiet_too_long(situation, view)",
        found_by=(f"{_QUIET}::test_neither_an_unread_controller_nor_jobs_that_go_end_it",),
    ),
    Bug(
        name="a run is believed at its first word that it has ended",
        function="ENDED_SECONDS",
        was="ENDED_SECONDS, MAY_HAVE_ENDED_SECONDS = 600.0, 3600.0",
        becomes="ENDED_SECONDS, MAY_HAVE_ENDED_SECONDS = 0.0, 0.0",
        found_by=(f"{_ENDED}::test_a_jenkins_that_does_not_tell_whether_a_run_is_in_progress_must_say_so_for_an_hour",),
    ),
    Bug(
        name="one lock makes many machines suspect",
        function="_is_overdue_elsewhere",
        was="> OVERDUE_FACTOR\n        for one in situation.agents",
        becomes="> 1e9\n        for one in situation.agents",
        found_by=(f"{_OVERDUE}::test_builds_that_wait_for_one_lock_make_no_machine_suspect",),
    ),
    Bug(
        name="a build that waits for a person makes its machine suspect",
        function="is_no_fault_of_its_machine",
        was="(run.ended_at is not None or run.waits_for_input)",
        becomes="run.ended_at is not None",
        found_by=(f"{_OVERDUE}::test_a_build_that_waits_for_input_makes_no_machine_suspect_and_costs_no_second_one",),
    ),
    Bug(
        name="what boots for a controller that left is waited for by those that are there",
        function="_booting",
        was="if not is_controller_left(situation, agent.record.controller)):",
        becomes="):",
        found_by=("tests/scenarios/test_left_controllers.py::test_what_boots_for_ever_on_it_keeps_no_agent_from_being_tried_elsewhere",),
    ),
)
