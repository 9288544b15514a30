"""The Controller port: in memory, over HTTP, and on a live controller (`make live`; without one, the stand-in in its place)."""

from dataclasses import fields

import pytest

from autoscaler.domain.facts.fleet import agent_spec
from autoscaler.domain.facts.nodes import Health, beacon_specs
from autoscaler.domain.facts.runs import BuildResult, RunAnswer
from autoscaler.domain.facts.snapshot import OfflineCause
from autoscaler.errors import ConflictError, TransientError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind


def items_of(here, *jobs):
    """The items of these jobs in a new look, next first."""
    view = here.controller.look()
    assert view.problem is None
    return [item for item in view.items if item.job in jobs]


def test_a_look_shows_queue_nodes_and_state(here):
    cpu, agent = here.name("cpu"), here.name("agent-1")
    here.add_agent(agent, cpu)
    running = here.submit("job one", cpu)
    here.until(lambda: not here.controller.node(agent).idle, "the first job runs")
    waiting = here.submit("next", f"{cpu} && !gpu", 60.0)
    here.until(lambda: items_of(here, waiting) and items_of(here, waiting)[0].starved, "the second job waits for an executor")
    view = here.controller.look()
    assert (view.problem, view.quieting_down, bool(view.session)) == (None, False, True)
    [item] = items_of(here, waiting)
    assert (item.label, item.wait.for_executor) == (f"{cpu} && !gpu", True)
    assert 0.0 <= item.waiting_seconds < 600.0
    node = next(node for node in view.nodes if node.name == agent)
    assert (node.idle, node.offline, node.labels >= {agent, cpu}) == (False, False, True)  # plugins may add labels of the platform
    assert [build.job for build in node.builds] == [running]


def test_the_item_that_comes_next_is_listed_first(here):
    jobs = [here.submit(f"job-{number}", here.name("nothing"), 1.0) for number in range(3)]
    here.until(lambda: sum(item.buildable for item in items_of(here, *jobs)) == 3, "all three wait for an executor")
    assert [item.job for item in items_of(here, *jobs)] == jobs


def test_a_pipelines_label_is_known_while_the_beacon_stands(here):
    cpu = here.name("cpu")
    job = here.submit("pipe", f"{cpu}&&linux", 1.0, kind=Kind.PIPELINE)
    here.until(lambda: any(item.run for item in items_of(here, job)), "it waits for a node")
    if all(not node.agent for node in here.controller.look().nodes):
        assert items_of(here, job)[0].wait.label is None
    here.own_node(beacon_specs(here.fleet, "main")[0].name)
    here.controller.create_node(beacon_specs(here.fleet, "main")[0])
    here.until(lambda: any(item.wait.label for item in items_of(here, job)), "its label is told")
    [item] = items_of(here, job)
    assert (item.label, item.wait.label) == (None, f"{cpu}&&linux")
    assert item.run.endswith("/job/pipe/1")


@pytest.mark.parametrize("job", ["größe", 'quo"te', "a b", "日本"], ids=["umlaut", "quote", "blank", "japanese"])
def test_jobs_of_any_name_are_read(here, job):
    full_name = here.submit(job, f'"{here.name("weird label")}"', 1.0)
    here.until(lambda: items_of(here, full_name) != [], "it waits")
    [item] = items_of(here, full_name)
    assert item.label == f'"{here.name("weird label")}"'


def test_an_item_is_cancelled_once(here):
    job = here.submit("unwanted", here.name("nothing"), 1.0)
    here.until(lambda: items_of(here, job) != [], "it waits")
    [item] = items_of(here, job)
    assert here.controller.cancel_item(item.id)
    assert items_of(here, job) == []
    assert not here.controller.cancel_item(999_999_999)


def test_offline_and_back_again(here):
    node = here.name("cpu-1")
    here.add_node(node)
    here.controller.set_offline(node, "autoscaler:f:retire:<p> & 'q'")
    seen = here.controller.node(node)
    assert (seen.offline, seen.temporarily_offline, seen.cause) == (True, True, OfflineCause.PERSON)
    assert seen.reason == "autoscaler:f:retire:<p> & 'q'"
    here.controller.toggle_offline(node, "not read")
    assert not here.controller.node(node).temporarily_offline


def test_the_toggle_turns_both_ways(here):
    node = here.name("cpu-1")
    here.add_node(node)
    here.controller.toggle_offline(node, "ours & 'theirs'")
    seen = here.controller.node(node)
    assert (seen.temporarily_offline, seen.reason) == (True, "ours & 'theirs'")


def test_setting_offline_replaces_whatever_mark_there_is(here):
    node = here.name("cpu-1")
    here.add_node(node)
    here.controller.set_offline(node, "disk swap")
    here.controller.set_offline(node, "ours")
    assert here.controller.node(node).reason == "ours"


def test_labels_and_mode_are_replaced_and_nothing_else(here):
    name, cpu = here.name("agent-1"), here.name("cpu")
    here.add_agent(name, cpu)
    before = here.controller.node(name)
    here.controller.set_labels(name, ["a&b", "zwei"], instead_of=[cpu], exclusive=True)
    after = here.controller.node(name)
    assert after.labels >= {name, "a&b", "zwei"}  # a plugin may add what it finds by itself
    assert cpu not in after.labels
    assert (after.executors, after.description, after.offline) == (before.executors, before.description, False)
    here.controller.set_labels(name, [cpu], instead_of=["a&b", "never there"], exclusive=False)
    restored = here.controller.node(name).labels
    assert restored >= {name, cpu, "zwei"}
    assert "a&b" not in restored


def test_a_node_has_other_executors_and_a_build_on_one_too_many_goes_on(here):
    name, cpu = here.name("agent-1"), here.name("cpu")
    here.add_agent(name, cpu)
    before = here.controller.node(name)
    here.controller.set_labels(name, [cpu], instead_of=[cpu], exclusive=True, executors=before.executors + 3)
    assert here.controller.node(name).executors == before.executors + 3
    here.controller.set_labels(name, [cpu], instead_of=[cpu], exclusive=True)
    assert here.controller.node(name).executors == before.executors + 3
    here.controller.set_labels(name, [cpu], instead_of=[cpu], exclusive=True, executors=1)
    after = here.controller.node(name)
    assert (after.executors, after.offline, after.labels) == (1, False, before.labels)


def test_a_node_that_is_marked_offline_keeps_its_labels_and_its_mark(here):
    name, cpu = here.name("agent-1"), here.name("cpu")
    here.add_agent(name, cpu)
    here.controller.set_offline(name, "disk swap, ask Anna")
    with pytest.raises(ConflictError):
        here.controller.set_labels(name, ["other"], instead_of=[cpu], exclusive=True)
    node = here.controller.node(name)
    assert (node.labels, node.reason) == ({name, cpu}, "disk swap, ask Anna")


def test_a_controller_tells_its_version(here):
    assert here.controller.look().version > (2, 300)


def test_a_draining_node_is_not_idle_until_its_build_is_done(here):
    cpu, node = here.name("cpu"), here.name("cpu-1")
    here.add_agent(node, cpu)
    here.submit("job", cpu, here.build_seconds)
    here.until(lambda: not here.controller.node(node).idle, "it is busy")
    here.controller.set_offline(node, "drain")
    seen = here.controller.node(node)
    assert (seen.idle, seen.offline, len(seen.builds)) == (False, True, 1)
    here.until(lambda: here.controller.node(node).idle, "its build is done")
    assert here.controller.node(node).builds == ()


def test_a_created_node_is_as_it_was_specified(here):
    pool = next(iter(here.fleet.pools.values()))
    spec = agent_spec(here.fleet, pool, "i-0ab1")
    here.own_node(spec.name)
    here.controller.create_node(spec)
    node = here.controller.node(spec.name)
    assert node.labels == {spec.name, *pool.labels, here.fleet.ownership_label}
    assert (node.executors, node.offline, node.cause, node.description) == (1, True, OfflineCause.NONE, spec.description)
    with pytest.raises(ConflictError):
        here.controller.create_node(spec)


def test_an_agents_secret_can_be_read_and_is_its_nodes_own(here):
    for node in (here.name("cpu-1"), here.name("cpu-2")):
        here.add_node(node)
    first, second = (here.controller.agent_secret(here.name(text)) for text in ("cpu-1", "cpu-2"))
    assert len(first) == 64
    assert first != second
    assert here.controller.agent_secret(here.name("cpu-1")) == first
    with pytest.raises(TransientError):
        here.controller.agent_secret(here.name("nobody"))


def test_deleting_twice_is_harmless(here):
    node = here.name("cpu-1")
    here.add_node(node)
    here.controller.delete_node(node)
    here.controller.delete_node(node)
    assert here.controller.node(node) is None


def test_names_with_odd_signs_are_reached(here):
    node = here.name("a b-ü(1)")
    here.add_node(node)
    here.controller.set_offline(node, "x")
    assert here.controller.node(node).temporarily_offline


def test_how_a_run_ended_is_told_once_it_has(here):
    cpu, agent = here.name("cpu"), here.name("agent-9")
    here.add_agent(agent, cpu)
    job = here.submit("größe 1+1~日本", cpu, here.build_seconds)
    here.until(lambda: here.controller.node(agent).builds, "it runs")
    [build] = here.controller.node(agent).builds
    assert build.job == job
    assert here.controller.result(build.run) is None
    assert here.controller.whether_ended(build.run) is RunAnswer.RUNS
    here.until(lambda: here.controller.node(agent).idle, "it has ended")
    here.until(lambda: here.controller.result(build.run), "its end is told")
    end = here.controller.result(build.run)
    assert end.result is BuildResult.SUCCEEDED
    assert here.build_seconds - 1.0 <= end.seconds <= here.build_seconds + 300.0, "a busy machine begins late and ends late"
    assert here.controller.whether_ended(build.run) is RunAnswer.ENDED
    assert here.controller.whether_ended(f"{build.run}99") is RunAnswer.NOT_TOLD
    assert here.controller.result(f"{build.run}99") is None


def test_the_node_monitors_are_read_for_agents_and_the_controller(here):
    """Each monitor looks by itself, some seconds after an agent came online and then every hour: until then it tells nothing."""
    agent = here.name("agent-8")
    here.add_agent(agent, here.name("cpu"))

    def silent():
        told = here.controller.health()
        readings = {"the agent's": told.get(agent, Health()), "the controller's": told.get("", Health())}
        return [f"{whose} {f.name}" for whose, health in readings.items() for f in fields(Health) if getattr(health, f.name) is None]

    here.until(lambda: silent() == [], "all monitors have looked", hint=lambda: f"still silent: {', '.join(silent())}")
    told = here.controller.health()
    assert told[agent].disk_bytes > 0
    assert told[agent].memory_bytes > 0
    assert told[agent].response_seconds >= 0
    assert told[""].disk_bytes > 0


def test_a_job_that_the_heavy_job_plugin_gives_no_weight_weighs_one_and_so_does_one_that_is_not_there(here):
    job = here.submit("größe 1+1~light", here.name("nothing"), 1.0)
    assert here.controller.heavy_weight(job) == 1
    assert here.controller.heavy_weight(here.name("never/there")) == 1
