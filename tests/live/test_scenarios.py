"""Scenarios on a live controller: the real passes on a real Jenkins, with instances that exist only here (`make live`)."""

import pytest

from autoscaler.control import nodes, passes
from autoscaler.domain.facts.nodes import Mark, MarkClass, beacon_specs
from autoscaler.domain.facts.orders import DrainNodes
from autoscaler.domain.facts.plan import Cordon, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.states import SECOND_LOOK_SECONDS
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.live_scene import needs_a_restart, restart


def test_labels_are_resolved_from_zero_nodes(scene):
    """Nothing of this fleet is there; a pipeline's label is known only once the beacon stands, and then its pool is launched."""
    live, fleet = scene.live, scene.fleet
    cpu, gpu = fleet.pools
    for spec in beacon_specs(fleet, "main"):
        live.own_node(spec.name)
    jobs = {
        live.submit("freestyle", f"{cpu} && !{gpu}", 5.0): cpu,
        live.submit("pipeline", gpu, 5.0, kind=Kind.PIPELINE): gpu,
        live.submit("nobody", f"{live.prefix}-sparc", 5.0): None,
    }
    live.until(lambda: {item.job for item in live.look().items if item.starved} >= set(jobs), "all three wait for an executor")
    plan = scene.run(passes.scale_up)
    assert ("create-beacon", "done") in [(step["step"], step["outcome"]) for step in plan["steps"]]
    live.until(lambda: any(item.wait.label for item in live.look().items if item.job.endswith("/pipeline")), "the pipeline's label is told")
    scene.run(passes.scale_up)
    launched = [instance.tags["autoscaler:pool"] for instance in scene.world.alive()]
    assert sorted(launched) == sorted([cpu, gpu])
    held = [(held["reason"], held["detail"]) for held in scene.run(passes.scale_up)["held"]]
    assert any(reason == Reason.UNSERVABLE and f"{live.prefix}-sparc" in detail for reason, detail in held)


def test_a_persons_mark_stays_a_persons(scene):
    """We mark only what is unmarked, and take back only the very mark that is ours; whoever came in between keeps the last word."""
    live, pool = scene.live, next(iter(scene.fleet.pools))
    node = f"{live.prefix}-marked"
    live.add_node(node, pool)
    facts = {"controller": "main", "pool": pool, "node": node, "reason": Reason.SURPLUS, "detail": "a test"}
    mark = Mark(fleet=scene.fleet.name, kind=MarkClass.RETIRE, pass_id="p-1")
    cordon, uncordon = Cordon(mark=mark, **facts), Uncordon(mark=mark, **facts)

    live.controller.set_offline(node, "disk swap, ask Anna")
    assert nodes.cordon(live.controller, cordon).outcome == "skipped"
    assert live.node(node).reason == "disk swap, ask Anna"

    live.controller.toggle_offline(node, "")
    assert nodes.cordon(live.controller, cordon).outcome == "done"
    assert live.node(node).reason == mark.text
    live.controller.set_offline(node, "mine now")
    assert nodes.uncordon(live.controller, uncordon).outcome == "skipped"
    assert "does not carry our mark" in nodes.may_terminate(live.controller, node, mark)
    assert (live.node(node).temporarily_offline, live.node(node).reason) == (True, "mine now")

    live.controller.toggle_offline(node, "")
    assert nodes.uncordon(live.controller, uncordon).outcome == "skipped"
    assert not live.node(node).temporarily_offline
    assert nodes.cordon(live.controller, cordon).outcome == "done"
    assert nodes.uncordon(live.controller, uncordon).outcome == "done"
    assert not live.node(node).temporarily_offline


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_a_drain_waits_for_the_build(scene, kind):
    """A person drains a busy agent: its build ends as it would have, and only then the instance and the node go."""
    live, pool = scene.live, next(iter(scene.fleet.pools))
    instance = scene.launch_by_hand(pool)
    node = scene.node_of(instance)
    job = live.submit("long", pool, live.build_seconds, kind=kind).rpartition("/")[2]
    live.until(lambda: not live.node(node).idle, "the build runs")

    plan = scene.run(passes.carry_out, DrainNodes(nodes=(node,), reason="a test", request_id=None))
    assert [(step["step"], step["node"], step["outcome"]) for step in plan["steps"]] == [("cordon", node, "done")]
    seen_busy = 0
    while live.result(job) is None:
        steps = scene.run(passes.scale_down)["steps"]
        if live.result(job) is None:
            seen_busy += 1
            assert "terminate" not in [step["step"] for step in steps]
            assert [i.id for i in scene.world.alive()] == [instance]
            live.pass_time(live.poll_seconds)
    assert (live.result(job), seen_busy > 0) == ("SUCCESS", True)

    scene.run(passes.scale_down)
    scene.ahead_seconds += SECOND_LOOK_SECONDS  # a second look, a minute later: for our clock, not for whoever runs this
    scene.run(passes.scale_down)
    assert scene.world.alive() == []
    assert live.controller.node(node) is None


def test_a_drain_goes_on_through_a_restart_of_jenkins(scene):
    """The pipeline resumes on its agent, drained as it is, and ends. Then the agent goes."""
    live, pool = scene.live, next(iter(scene.fleet.pools))
    needs_a_restart(live)
    instance = scene.launch_by_hand(pool)
    node = scene.node_of(instance)
    job = live.submit("long", pool, 3 * live.build_seconds, kind=Kind.PIPELINE).rpartition("/")[2]
    live.until(lambda: not live.node(node).idle, "the build runs")
    live.until_sh_runs(live.node(node).builds[0].run)
    scene.run(passes.carry_out, DrainNodes(nodes=(node,), reason="a test", request_id=None))
    scene.look()
    restart(live)
    while live.result(job) is None:
        scene.run(passes.scale_up)
        scene.look()
        if live.result(job) is None:
            assert [i.id for i in scene.world.alive()] == [instance]
            live.pass_time(live.poll_seconds)
    assert live.result(job) == "SUCCESS"
    for _ in range(30):  # for our clock: until a resumption would be over
        scene.minutes_later()
    assert scene.world.alive() == []
    assert live.controller.node(node) is None


def test_labels_change_under_a_build_and_on_an_idle_node_nothing_is_lost(scene):
    """What lending does: a job borrows a node by a label that it is given, and ends as it would have though the label is taken back."""
    live, pools = scene.live, list(scene.fleet.pools)
    rare, plain = f"{live.prefix}-rare", pools[0]
    node = live.add_node(f"{live.prefix}-lent", rare)
    live.start_agent(node)
    own, lent = (rare,), (rare, plain)
    borrower = live.submit("borrower", plain, live.build_seconds).rpartition("/")[2]
    live.until(lambda: any(item.starved for item in live.look().items), "it waits: nothing has its label")
    live.controller.set_labels(node, lent, instead_of=own, exclusive=True)
    live.until(lambda: not live.node(node).idle, "it has begun on the node that was lent to it")
    live.controller.set_labels(node, own, instead_of=lent, exclusive=True)
    later = live.submit("later", plain, 1.0).rpartition("/")[2]
    live.until(lambda: live.result(borrower) is not None, "its build ends")
    assert (live.result(borrower), live.result(later)) == ("SUCCESS", None)
    assert plain not in live.node(node).labels
    special = live.submit("special", rare, 1.0).rpartition("/")[2]
    live.until(lambda: live.result(special) is not None, "a job of its own kind runs there")
    assert (live.result(special), live.result(later), live.node(node).offline) == ("SUCCESS", None, False)
