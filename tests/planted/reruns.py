"""The same for builds that are lost with their agents: each change runs one that was not lost, or twice, or never."""

from planted.bug import Bug

_LOST, _AGAIN = (f"tests/scenarios/{file}.py::test_" for file in ("test_lost_builds", "test_run_again"))


def planted(name: str, *, function: str, was: str, becomes: str, found_by: str) -> Bug:
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=(found_by,))


_REPEATED = "tests/scenarios/test_repeated_builds.py::test_"

_RESTARTS = "tests/scenarios/test_lost_in_restarts.py::test_"

RERUNS = (
    planted(
        "a matrix that a restart took is left to a person",
        function="_answer",
        was="    facts = _with_part(situation, lost, facts)\n",
        becomes="",
        found_by=f"{_RESTARTS}what_was_lost_before_a_restart_is_run_again_once_with_its_parameters",
    ),
    planted(
        "a matrix that somebody deleted is run again in its parts' name",
        function="_with_part",
        was=" or life is None or not life.restarted or life.since_at <= lost.seen_at:",
        becomes=" or life is None:",
        found_by=f"{_RESTARTS}a_matrix_that_somebody_deleted_is_left_to_them_though_its_parts_are_there",
    ),
    planted(
        "a matrix that a restart took begins to count anew",
        function="again_or_left",
        was="unit.item in {origin.item, NO_ITEM}",
        becomes="unit.item == origin.item",
        found_by=f"{_RESTARTS}what_is_lost_in_two_restarts_is_run_again_no_more_often_than_is_allowed",
    ),
    planted(
        "a lost build is started beside what a person has started again",
        function="_answer",
        was="return leave_repeated(situation, lost, facts, unit, repeats) or again_or_left(",
        becomes="return again_or_left(",
        found_by=f"{_REPEATED}what_a_person_has_started_again_is_not_started_beside_that",
    ),
    planted(
        "a start that never arrived is sent beside what a person has started again",
        function="find",
        was="return leave_repeated(situation, lost, facts, unit, repeats) or _once_more(",
        becomes="return _once_more(",
        found_by=f"{_REPEATED}a_start_that_never_arrived_is_not_sent_again_where_a_person_has_started_it_meanwhile",
    ),
    planted(
        "what a person starts right before the start is not looked at",
        function="run_again",
        was="    if _is_repeated_by_now(builds, step):\n",
        becomes="    if False:\n",
        found_by=f"{_REPEATED}what_a_person_starts_between_the_look_and_the_start_counts_too",
    ),
    planted(
        "one press of a person answers for each lost build",
        function="leave_repeated",
        was="    repeats = (entry for entry in entries if item_key(lost.controller, entry.item) not in answering)\n",
        becomes="    repeats = iter(entries)\n",
        found_by=f"{_REPEATED}one_press_without_a_word_of_which_build_answers_for_the_first_of_two_equal_ones",
    ),
    planted(
        "what a person started before the loss answers for it",
        function="_is_repeat",
        was=" or entry.at < since:",
        becomes=":",
        found_by=f"{_REPEATED}what_a_person_started_before_the_loss_answers_for_nothing",
    ),
    planted(
        "a schedule's build answers for a lost one",
        function="_is_repeat",
        was="    if not entry.is_by_person or ",
        becomes="    if ",
        found_by=f"{_REPEATED}a_build_that_no_person_started_answers_for_nothing",
    ),
    planted(
        "a build has been run again as often as its parameter claims",
        function="again_or_left",
        was="is_origin = origin is not None and (",
        becomes="is_origin = origin is not None or (",
        found_by=f"{_REPEATED}a_rebuild_of_what_we_started_is_lost_for_the_first_time",
    ),
    planted(
        "a build is its order's by what its parameter claims",
        function="_claimed",
        was="return origin, order is not None and order.has_started(lost.controller, named[1], item=run.item, run=lost.unit)",
        becomes="return origin, True",
        found_by=f"{_REPEATED}a_rebuild_of_an_ordered_build_is_no_build_of_its_order",
    ),
    planted(
        "a build that a person aborted counts as lost",
        function="is_lost",
        was="        return Interruption.AGENT_GONE in stops or",
        becomes="        return True or",
        found_by=f"{_LOST}a_build_that_a_person_aborted_is_not_lost",
    ),
    planted(
        "a build whose tests failed before its agent went counts as lost",
        function="_failed_before",
        was="run.ended_at < lost.lost_at - SLACK_SECONDS",
        becomes="run.ended_at < 0.0",
        found_by=f"{_LOST}a_build_that_failed_before_its_agent_went_is_not_lost",
    ),
    planted(
        "a pipeline that was retried elsewhere and failed there counts as lost",
        function="_went_on",
        was="    return lost.elsewhere if run.is_pipeline else run.node not in",
        becomes="    return False if run.is_pipeline else run.node not in",
        found_by=f"{_LOST}a_pipeline_that_goes_on_elsewhere_is_not_lost",
    ),
    planted(
        "a build that succeeded in its last minute counts as lost",
        function="_NOT_LOST",
        was='_NOT_LOST = {"SUCCESS", "UNSTABLE", "NOT_BUILT"}',
        becomes='_NOT_LOST = {"UNSTABLE", "NOT_BUILT"}',
        found_by=f"{_LOST}a_build_that_still_succeeded_is_not_lost",
    ),
    planted(
        "a pipeline that waits for its agent is started beside itself",
        function="_answer",
        was="    if facts.is_building:\n        detail",
        becomes="    if False:\n        detail",
        found_by=f"{_LOST}a_pipeline_that_waits_for_its_machine_is_named_and_not_run_again_beside_itself",
    ),
    planted(
        "what a restart of Jenkins ended counts as lost though its agent is back",
        function="_seen_now",
        was="if lost.how == MISSING or (lost.how == _CUT_OFF and resumed):",
        becomes="if lost.how == _CUT_OFF and resumed:",
        found_by=f"{_LOST}a_build_that_a_restart_of_jenkins_ended_is_not_lost",
    ),
    planted(
        "agents that are not back after a restart of Jenkins are not followed",
        function="next_lost",
        was="        if how := _how_it_went(agent) or _after_a_restart(agent, view, look):\n",
        becomes="        if how := _how_it_went(agent):\n",
        found_by=f"{_LOST}whatever_takes_the_agent_the_build_is_run_again_once",
    ),
    planted(
        "what EC2 announces deletes the node before it is noted when its agent went",
        function="handle",
        was="(now.lost, now.trials) != (before.lost, before.trials)",
        becomes="False",
        found_by=f"{_LOST}a_build_that_failed_before_its_agent_went_is_not_lost",
    ),
    planted(
        "the pattern of jobs is not looked at",
        function="is_covered",
        was="return pool.rerun is not None and pool.rerun.covers(job_name_of(run))",
        becomes="return pool.rerun is not None",
        found_by=f"{_AGAIN}only_jobs_that_the_patterns_name_are_run_again",
    ),
    planted(
        "how often it was run again is forgotten",
        function="again_or_left",
        was="new_rerun(situation, lost, unit, times + 1)",
        becomes="new_rerun(situation, lost, unit, 0)",
        found_by=f"{_AGAIN}a_build_that_is_lost_again_gets_an_on_demand_agent_and_is_then_left_to_a_person",
    ),
    planted(
        "a build that is lost again waits for spot once more",
        function="QueuePlacement._place",
        was="self.purchase.note_waiting(pool, inf if firm else want.item.waiting_seconds)",
        becomes="self.purchase.note_waiting(pool, want.item.waiting_seconds)",
        found_by=f"{_AGAIN}a_build_that_is_lost_again_gets_an_on_demand_agent_and_is_then_left_to_a_person",
    ),
    planted(
        "a build is started with an empty password",
        function="_not_repeatable",
        was="    if names := hidden(unit.parameters):\n",
        becomes="    if names := ():\n",
        found_by=f"{_AGAIN}a_password_cannot_be_repeated",
    ),
    planted(
        "a build is started for which its parent does not wait any more",
        function="_in_doubt",
        was="    waited = [up.path for up in facts.upstream if",
        becomes="    waited = [up.path for up in () if",
        found_by=f"{_AGAIN}what_cannot_be_run_again_is_left_to_a_person_once",
    ),
    planted(
        "a start is sent before it is written down",
        function="run_again",
        was="""        if step.is_known:
            store.change_rerun(step.rerun, expected=RerunState.WRITTEN)
        else:
            store.add_rerun(step.rerun, holder=acting.holder)
    except ConflictError""",
        becomes="        pass\n    except ConflictError",
        found_by=f"{_AGAIN}a_start_that_jenkins_does_not_answer_is_found_or_sent_again_and_never_both",
    ),
    planted(
        "a start that was not answered is sent again at once",
        function="find",
        was="    if found:\n        return start(",
        becomes="    if False:\n        return start(",
        found_by=f"{_AGAIN}a_start_that_jenkins_does_not_answer_is_found_or_sent_again_and_never_both",
    ),
    planted(
        "of two builds that may be the one that was started any is taken",
        function="find",
        was="    if not is_told and is_ambiguous:\n",
        becomes="    if False:\n",
        found_by=f"{_AGAIN}what_our_account_started_twice_meanwhile_is_in_doubt_and_nothing_is_sent",
    ),
    planted(
        "a lost build is answered for as often as anybody likes",
        function="DynamoReruns.add_rerun",
        was="self._put(rerun, NEW, None)",
        becomes="self._put(rerun, WriteCondition('attribute_not_exists(nothing)'), None)",
        found_by="tests/contract/test_reruns.py::test_each_lost_build_is_answered_for_once",
    ),
    planted(
        "an error page after a start counts as a refusal",
        function="JenkinsBuilds.start",
        was="            raise UnansweredError(str(error)) from error\n",
        becomes="            raise RefusedBuildError(str(error)) from error\n",
        found_by="tests/contract/test_simulated_builds.py::test_an_error_page_after_a_start_proves_nothing",
    ),
    planted(
        "a build that nobody looked at for long counts as lost",
        function="_in_doubt",
        was="lost.since_at - lost.seen_at > IN_DOUBT_AFTER_SECONDS",
        becomes="False",
        found_by=f"{_AGAIN}a_look_that_nobody_took_for_long_leaves_it_in_doubt_where_jenkins_does_not_tell_when_the_agent_went",
    ),
)
