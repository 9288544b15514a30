"""The same for what people are told of jobs: a change that makes an answer wrong, or lets a question disturb a pass."""

from planted.bug import Bug

_UNIT = "tests/unit/test_estimates.py::test_"
_HANDLERS = "tests/handlers/test_jobs.py::test_"
_STORE = "tests/contract/test_jobs.py::test_"
JOBS = (
    Bug(
        name="old builds weigh as much as new ones",
        function="note_value",
        was="    left = fading(at - spread.at if spread.count else 0.0)\n",
        becomes="    left = 1.0\n",
        found_by=(f"{_UNIT}a_value_weighs_half_after_thirty_more_and_after_thirty_days",),
    ),
    Bug(
        name="the upper end of a range is the middle",
        function="_range_of",
        was="high=quantile(spread, 1.0 - tail))",
        becomes="high=quantile(spread, 0.5))",
        found_by=(f"{_UNIT}the_range_holds_for_four_builds_in_five",),
    ),
    Bug(
        name="a build that hangs is promised to end soon",
        function="left_of",
        was="    if elapsed > duration.high:\n        return None\n",
        becomes="",
        found_by=(f"{_UNIT}what_is_left_of_a_build_shrinks_then_grows_and_is_unknown_at_last",),
    ),
    Bug(
        name="a branch is predicted from whatever has seen the most builds",
        function="best_row",
        was="    return min(seen, key=lambda row: _expected_error(row, skills), default=None)\n",
        becomes="    return max(seen, key=lambda row: row.durations.count, default=None)\n",
        found_by=(f"{_UNIT}a_branch_is_predicted_from_its_project_where_that_predicts_better",),
    ),
    Bug(
        name="what begins after a quiet while is not followed",
        function="last_look_at",
        was="    if before.running or before.waiting or before.runs:\n",
        becomes="    if before.seen_at:\n",
        found_by=(f"{_HANDLERS}a_build_that_begins_at_once_after_a_quiet_while_counts",),
    ),
    Bug(
        name="the first job of a new fleet is not followed",
        function="last_look_at",
        was="    return situation.now - situation.snapshot.look_every_seconds if before.seen_at else None\n",
        becomes="    return None\n",
        found_by=("tests/seams/test_features.py::test_the_first_job_that_a_fleet_ever_sees_is_counted",),
    ),
    Bug(
        name="a full shard forgets what was seen last",
        function="_kept",
        was="key=lambda row: (-row.seen_at, row.subject, row.pool)",
        becomes="key=lambda row: (row.seen_at, row.subject, row.pool)",
        found_by=(f"{_STORE}a_full_shard_forgets_what_was_seen_longest_ago_and_stays_below_the_limit",),
    ),
    Bug(
        name="two invocations count the same build",
        function="Table.next_version",
        was="same(version=version) if version else NEW",
        becomes="same(version=version) if version else None",
        found_by=(f"{_STORE}of_two_that_replace_a_tracker_only_one_does[moto]",),
    ),
    Bug(
        name="statistics that cannot be kept stop the metrics",
        function="_once",
        was="    except AutoscalerError as error:\n",
        becomes="    except KeyError as error:\n",
        found_by=(f"{_HANDLERS}statistics_that_cannot_be_kept_or_read_stop_no_metric_and_no_why",),
    ),
)
