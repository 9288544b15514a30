"""Time-lines of pipelines: each node block counts for the node on which it ran, and for no other."""

from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.script import Parallel, Sh, catch_error, node, retry, stage, submit_script, timeout
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

LONG = 90.0  # enough for a look to see it


def a_day(agents=4, **facts):
    day = Day(in_memory(a_pool("cpu", **({"min_agents": agents, "max_agents": 8} | facts))))
    return day.minutes(10)


def run(day, *steps, job="folder/ci"):
    return submit_script(day.jenkins, job, *steps)


def ended(day):
    """Node, block and end of each node block that found its node."""
    return [(facts["node"], facts["block"], str(facts["result"])) for event, facts in day.fleet.logged if event == "block_ended"]


def ends(day):
    return sorted((block, end) for _, block, end in ended(day))


def ran_on(day, number=0):
    return day.jenkins.builds[number].node


def counted(day, name):
    found = day.fleet.metrics.published
    return sum(v for _, datum in found if datum.name == name and len(datum.dimensions) == 1 for v in datum.values)


def results(day):
    return counted(day, "BuildsSucceeded"), counted(day, "BuildsFailed")


def counts(day):
    return day.fleet.state.learned["main"].blocks.counts


def test_each_block_counts_for_its_node_and_none_of_them_twice():
    day = a_day()
    tests = Parallel({"gpu tests": (node("cpu", Sh(LONG, fails=True)),), "cpu tests": (node("cpu", Sh(2 * LONG)),)})
    flow = run(day, stage("Build", node("cpu", Sh(LONG))), stage("Test", tests))
    day.minutes(10)
    assert flow.result == "FAILURE"
    assert ends(day) == [("Build", "succeeded"), ("cpu tests", "succeeded"), ("gpu tests", "failed")]
    of = {build.stage: build.node for build in day.jenkins.builds}
    assert {(on, block) for on, block, _ in ended(day)} == {(of[name], name) for name in of}
    assert results(day) == (2, 1)
    assert counts(day).assigned == 3
    assert counts(day).unassigned == 0


def test_a_run_that_is_over_counts_once_more_for_nobody():
    day = a_day()
    run(day, stage("Build", node("cpu", Sh(LONG))))
    day.minutes(10)
    assert (results(day), len(ended(day))) == ((1, 0), 1)


def test_a_name_of_several_blocks_counts_for_nobody_and_is_counted():
    day = a_day()
    same = (stage("Test", node("cpu", Sh(LONG))),)
    other = (stage("Test", node("cpu", Sh(LONG, fails=True))),)
    run(day, Parallel({"a": same, "b": other, "c": (node("cpu", Sh(LONG)),)}))
    day.minutes(10)
    assert ends(day) == [("c", "succeeded")]
    assert (counts(day).assigned, counts(day).ambiguous) == (1, 2)


def elsewhere(day, number=0):
    """Let no other block begin on the node of a build."""
    day.minutes(1)
    day.jenkins.set_offline(ran_on(day, number), "look at it", "somebody")


def test_one_after_the_other_blocks_of_one_name_are_told_apart():
    day = a_day()
    run(day, stage("Test", node("cpu", Sh(LONG))), stage("Test", node("cpu", Sh(LONG, fails=True))))
    elsewhere(day)
    day.minutes(9)
    assert [(on, end) for on, _, end in ended(day)] == [(ran_on(day, 0), "succeeded"), (ran_on(day, 1), "failed")]


def test_nested_branches_each_count_for_their_node():
    day = a_day(agents=6)
    inner = Parallel({"py39": (node("cpu", Sh(LONG)),), "py310": (node("cpu", Sh(LONG, fails=True)),)})
    run(day, stage("All", Parallel({"linux": (stage("Unit", inner),), "docs": (node("cpu", Sh(LONG)),)})))
    day.minutes(10)
    assert ends(day) == [("docs", "succeeded"), ("py310", "failed"), ("py39", "succeeded")]


def test_stages_inside_a_block_are_names_of_that_block():
    day = a_day()
    run(day, node("cpu", stage("Unit", Sh(LONG)), stage("Lint", Sh(LONG, fails=True))), job="a")
    run(day, stage("Outer", node("cpu", Sh(LONG), stage("Unit", Sh(LONG)))), job="b")
    day.minutes(10)
    assert sorted(end for _, _, end in ended(day)) == ["failed", "succeeded"]
    assert counts(day).unassigned == 0


def test_each_attempt_of_a_retry_counts_for_the_node_that_it_ran_on():
    day = a_day()
    flow = run(day, stage("Test", retry(3, node("cpu", Sh(LONG)))))
    elsewhere(day)
    day.jenkins.nodes[ran_on(day)].fails_builds = True
    day.minutes(9)
    assert flow.result == "SUCCESS"
    assert [(on, end) for on, _, end in ended(day)] == [(ran_on(day, 0), "failed"), (ran_on(day, 1), "succeeded")]


def test_attempts_on_one_executor_that_all_fail_are_a_failure_of_its_node():
    """A look cannot see where one attempt ends and the next one begins."""
    day = a_day(agents=1, max_agents=1)
    run(day, stage("Test", retry(2, node("cpu", Sh(LONG, fails=True)))))
    day.minutes(8)
    assert ends(day) == [("Test", "failed")]
    assert results(day) == (0, 1)


def test_attempts_on_one_executor_that_end_differently_count_for_nobody():
    day = a_day(agents=1, max_agents=1)
    run(day, stage("Test", retry(2, node("cpu", Sh(LONG)))))
    day.minutes(1)
    day.jenkins.nodes[ran_on(day)].fails_builds = True
    day.minutes(1)
    day.jenkins.nodes[ran_on(day)].fails_builds = False
    day.minutes(6)
    assert (ends(day), counts(day).ambiguous) == ([], 1)


def test_a_retry_inside_a_block_that_works_at_last_is_a_success():
    day = a_day()
    broken = next(iter(day.jenkins.nodes.values()))
    run(day, node("cpu", retry(2, Sh(LONG))))
    day.minutes(1)
    broken = day.jenkins.nodes[ran_on(day)]
    broken.fails_builds = True
    day.minutes(1)
    broken.fails_builds = False
    day.minutes(5)
    assert ends(day) == [("", "succeeded")]


def test_an_error_that_is_caught_inside_a_block_says_nothing_of_its_node():
    day = a_day()
    run(day, stage("Lint", node("cpu", catch_error(Sh(LONG, fails=True)))))
    run(day, stage("Test", catch_error(node("cpu", Sh(LONG, fails=True)))), job="other")
    day.minutes(6)
    assert ends(day) == [("Lint", "error-caught"), ("Test", "failed")]
    assert results(day) == (0, 1)


def test_tests_that_fail_count_as_those_of_a_freestyle_build():
    day = a_day()
    run(day, stage("Test", node("cpu", Sh(LONG, unstable=True))))
    day.minutes(6)
    assert (ends(day), results(day)) == ([("Test", "unstable")], (0, 1))


def test_a_block_that_a_person_stops_says_nothing():
    day = a_day()
    run(day, stage("Test", timeout(node("cpu", Sh(1000.0)))))
    day.minutes(2)
    day.jenkins.abort(day.jenkins.builds[0])
    day.minutes(3)
    assert (ends(day), results(day)) == ([("Test", "aborted")], (0, 0))


def test_declarative_agents_of_stages_do_not_blame_the_agent_around_them():
    """``agent`` of a stage inside the ``agent`` of the pipeline: the block around fails, too, and not by its own node."""
    day = a_day()
    run(day, node("cpu", stage("Checkout", Sh(LONG)), stage("GPU", node("cpu", Sh(LONG, fails=True)))))
    day.minutes(10)
    outer, inner = sorted(ended(day), key=lambda one: one[1])
    assert (outer[1:], inner[1:]) == (("Checkout", "failed-inside"), ("GPU", "failed"))
    assert inner[0] != outer[0]
    assert results(day) == (0, 1)


def test_blocks_that_follow_each_other_on_one_executor_between_looks_are_told_apart():
    day = a_day(agents=1, max_agents=1)
    run(day, stage("Build", node("cpu", Sh(LONG, fails=False))), stage("Test", node("cpu", Sh(LONG, fails=True))))
    day.minutes(8)
    assert [(block, end) for _, block, end in ended(day)] == [("Build", "succeeded"), ("Test", "failed")]


def test_a_block_too_short_for_a_look_counts_for_its_node_and_takes_nothing_from_another():
    day = a_day()
    run(day, Parallel({"short": (node("cpu", Sh(5.0, fails=True)),), "long": (node("cpu", Sh(LONG)),)}))
    day.minutes(5)
    assert ends(day) == [("", "failed"), ("long", "succeeded")]
    assert {on for on, name, _ in ended(day) if not name} == {build.node for build in day.jenkins.builds if build.stage == "short"}
    assert results(day) == (1, 1)


def test_a_restart_neither_ends_a_block_nor_counts_it_twice():
    day = a_day()
    flow = run(day, stage("Test", node("cpu", Sh(600.0))))
    day.minutes(3)
    day.jenkins.restart()
    day.minutes(30)
    assert flow.result == "SUCCESS"
    assert (ends(day), results(day)) == ([("Test", "succeeded")], (1, 0))
    assert counts(day).unassigned == 0


def test_a_deleted_run_counts_for_nobody_and_nobody_asks_for_it_again():
    day = a_day()
    run(day, stage("Test", node("cpu", Sh(LONG))))
    day.minutes(1)
    day.jenkins.runs.clear()
    day.minutes(5)
    assert (ends(day), results(day), counts(day).run_gone) == ([], (0, 0), 1)


def test_a_block_that_lost_its_agent_is_told_from_one_that_failed():
    day = a_day()
    run(day, stage("Test", node("cpu", Sh(3600.0))))
    day.minutes(2)
    day.jenkins.disconnect(ran_on(day))
    day.minutes(12)
    assert (ends(day), results(day)) == ([("Test", "lost")], (0, 0))


def work(day, minutes):
    """Each minute a run of three tests at once, each long enough for a look."""
    for minute in range(minutes):
        tests = {f"tests {n}": (node("cpu", Sh(70.0)),) for n in range(3)}
        run(day, stage("Test", Parallel(tests)), job=f"ci/PR-{minute % 7}")
        day.minutes(1)


def test_a_machine_on_which_all_stages_fail_is_found_within_three_failures():
    day = a_day(agents=4, max_agents=6)
    work(day, 20)
    broken = next(on for on in day.jenkins.nodes.values() if on.builds)
    broken.fails_builds = True
    work(day, 20)
    assert {on for on, _, end in ended(day) if end == "failed"} == {broken.name}
    assert broken.name not in day.jenkins.nodes
    [taken] = [step for step in day.done(Cordon) if step.reason is Reason.FAILURE_STREAK]
    assert (taken.node, taken.detail[:8]) == (broken.name, "3 builds")


def test_stages_that_fail_everywhere_are_no_machines_fault():
    day = a_day(agents=6)
    work(day, 5)
    for on in day.jenkins.nodes.values():
        on.fails_builds = True
    work(day, 15)
    assert not any(":quarantine:" in on.reason for on in day.jenkins.nodes.values())


def test_the_blocks_of_one_run_that_fail_are_no_proof_against_the_machine_they_share():
    """The code of that run is the likelier cause, even if another run succeeds elsewhere."""
    day = a_day(agents=2, max_agents=2, executors=6)
    run(day, Parallel({f"ok {n}": (node("cpu", Sh(LONG)),) for n in range(2)}), job="good")
    day.minutes(1)
    run(day, Parallel({f"t {n}": (node("cpu", Sh(LONG, fails=True)),) for n in range(8)}), job="bad")
    day.minutes(1)
    run(day, Parallel({f"ok {n}": (node("cpu", Sh(4 * LONG)),) for n in range(2)}), job="good")
    day.minutes(15)
    assert len([end for _, _, end in ended(day) if end == "failed"]) == 8
    assert not any(":quarantine:" in on.reason for on in day.jenkins.nodes.values())
