"""Results of stages, through the real handlers: what people read of them, and what they cost in requests."""

import pytest

from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.script import Parallel, Sh, node, stage, submit_script
from support.asked import command, served
from support.deployed import deployed_in_memory, event

CPU = "mxnetlinux-cpu"


@pytest.fixture
def here():
    with deployed_in_memory() as stood, served(stood, "operate"):
        stood.pass_minutes(1)
        yield stood


def a_run(here, job, *steps):
    """Let a pipeline run to its end."""
    flow = submit_script(here.world.controllers["main"], job, *steps)
    while flow.result is None:
        here.pass_minutes(1)
    here.pass_minutes(1)
    return flow


def test_each_stage_has_its_own_results_and_the_share_that_has_none_is_told(here):
    tests = {"good": (node(CPU, Sh(100.0)),), "bad": (node(CPU, Sh(100.0, fails=True)),)}
    tests |= {"x": (stage("same", node(CPU, Sh(100.0))),), "y": (stage("same", node(CPU, Sh(100.0))),)}
    for _ in range(2):
        a_run(here, "app/PR-1", stage("Test", Parallel(tests)))
    answer = here.call("operate", event("jobs") | {"pattern": "app/PR-1"})
    good = {one["signature"]: one["succeeded"] for one in answer["jobs"]}
    assert (good["good"], good["bad"], good["same"]) == (1.0, 0.0, None)
    assert good[""] == pytest.approx(0.5, abs=0.1)
    [figures] = answer["blocks"]
    assert (figures["controller"], figures["blocks"]) == ("main", 8)
    assert figures["unassigned"] == figures["ambiguous"] == pytest.approx(0.5)
    shown = command(here, "jobs", columns=200).output
    assert "50.0% of the last 8 node blocks of pipelines on main count for no agent: 50.0% a name that several blocks have" in shown


class Asked:
    """Counts requests for flow graphs, and their bytes, in each pass of publish_metrics."""

    def __init__(self, here):
        self.here, self.passes = here, []

    def minutes(self, count):
        for _ in range(count):
            before = len(self.here.logged)
            self.here.pass_minutes(1)
            facts = [facts for event, facts in self.here.logged[before:] if event == "graphs_read"]
            self.passes.append((sum(one["runs"] for one in facts), sum(one["bytes"] for one in facts)))
        return self

    @property
    def runs(self):
        return sum(runs for runs, _ in self.passes)


def counts(here):
    return here.state.learned["main"].blocks.counts


def ended(here):
    return [facts for event, facts in here.logged if event == "block_ended"]


def submit_all(here, count, *steps, job="app/PR"):
    for number in range(count):
        submit_script(here.world.controllers["main"], f"{job}-{number}", *steps)


def test_a_run_is_one_request_of_a_few_kilobytes_for_all_blocks_that_left_at_once(here):
    submit_all(here, 1, Parallel({f"t{n}": (node(CPU, Sh(300.0)),) for n in range(5)}))
    asked = Asked(here).minutes(20)
    assert (asked.runs, len(ended(here))) == (1, 5)
    assert max(size for _, size in asked.passes) < 8_000


def test_who_has_no_pipelines_is_asked_for_no_graph(here):
    for number in range(5):
        here.world.controllers["main"].submit(f"job-{number}", CPU, 200.0)
    asked = Asked(here).minutes(20)
    assert asked.runs == 0
    assert here.state.learned["main"].results["mxnetlinux-cpu"].succeeded == 5


def test_at_most_twenty_graphs_are_read_in_a_pass_and_the_rest_in_the_next(here):
    here.call("operate", {"action": "set", "pool": CPU, "min_agents": 25, "max_agents": 30, "minutes": 600})
    here.pass_minutes(10)
    submit_all(here, 25, stage("Test", node(CPU, Sh(150.0))))
    asked = Asked(here).minutes(12)
    assert sorted(runs for runs, _ in asked.passes if runs) == [5, 20]
    assert len({facts["run"] for facts in ended(here)}) == len(ended(here)) == 25
    assert counts(here).unassigned == 0


def test_at_most_two_hundred_kilobytes_are_read_in_a_pass(here):
    here.call("operate", {"action": "set", "pool": CPU, "min_agents": 6, "minutes": 600})
    here.pass_minutes(10)
    many = [Sh(1.0) for _ in range(400)]
    submit_all(here, 6, stage("Test", node(CPU, *many)))
    asked = Asked(here).minutes(25)
    assert max(size for _, size in asked.passes) <= 200_000
    assert len([runs for runs, _ in asked.passes if runs]) >= 3
    assert (len(ended(here)), counts(here).unassigned) == (6, 0)


def test_a_run_with_thousands_of_steps_is_skipped_and_counted_and_asked_for_once(here):
    many = [Sh(0.1) for _ in range(1000)]
    submit_all(here, 1, Parallel({f"t{n}": (node(CPU, Sh(60.0 * n + 100.0), *many),) for n in range(3)}))
    asked = Asked(here).minutes(25)
    assert (asked.runs, ended(here)) == (1, [])
    assert counts(here).too_large == 3
    assert max(size for _, size in asked.passes) < 200_000


def test_what_jenkins_does_not_answer_is_asked_for_again(here):
    submit_all(here, 1, stage("Test", node(CPU, Sh(200.0, fails=True))))
    here.pass_minutes(2)
    here.server.jenkins["main"].faults.plan(Fault("jenkins job", status=500, times=4))
    here.pass_minutes(15)
    assert [str(facts["result"]) for facts in ended(here)] == ["failed"]
