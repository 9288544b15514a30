"""`purge` finds the stages of pipelines that ask for a label, too: Jenkins tells that label as it else tells a node."""

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.scene import one_pool, scene
from support.worlds import a_world_node


def test_stages_that_wait_while_all_nodes_with_their_label_are_busy_are_cancelled():
    with scene(one_pool()) as here:
        for number in (1, 2):
            here.jenkins.add_node(a_world_node(f"office-{number}", "windows", executors=1))
            here.submit("long", "windows", 60, kind=Kind.PIPELINE)
        waiting = here.submit("stage", "windows", 5, kind=Kind.PIPELINE)
        here.minutes(2)
        [told] = [entry for entry in here.order("queue")["queue"] if entry["job"] == "stage"]
        assert told["label"] == "windows"
        plan = here.order("purge", label="windows", reason="office moves")["plan"]
        assert [(step["step"], step["outcome"]) for step in plan["steps"]] == [("cancel-item", "done")]
        assert waiting.started_at is None
        assert all(build.ended is None for build in here.builds_of("long"))
        assert here.order("purge", label="office-1", reason="a node's name")["plan"]["steps"] == []
