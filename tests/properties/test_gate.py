"""Each guard of the gate is needed: the same world takes a harm without it, and none with it.

A world is a time-line through the real passes. It is chosen so that the last read of a node, right
before the end of its machine, does not see what the guard sees. ``harms`` names what became of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import isfunction
from math import ceil

import pytest

from autoscaler.domain.facts.fleet import Quarantine, Share, WarmPool
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Reservation
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.controller import DROPS_BUILDS
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_host, a_mark, a_pool, a_pool_of_hosts, an_offering
from support.left_keys import deploy, without_controller, without_pools
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import a_world_node, in_memory

GATE = import_module("autoscaler.domain.gate")

KILLED = "a build is killed"
WAITS_FOR_EVER = "a build waits for ever"
WAITS_BEHIND_A_MARK = "a build waits for minutes behind a mark of ours"
TAKEN = "what somebody wants is ended"
LAUNCHED_ANEW = "an agent is ended that a job waits for, and one is launched in its place"
LEFT = "what nobody needs stays"
ENDED_TWICE = "one machine has two ends"
SERVES_NOBODY = "a machine is started that serves nobody"
BEYOND_ITS_SHARE = "most builds of a pool are killed at once"
LOOKS_IN_VAIN = "each minute has a second look that changes nothing"
SAYS_NOTHING = "nobody says which build keeps it"

SHARED = {"controllers": ("main", "other"), "share": Share.COOPERATIVE}


def harms(day, *, wanted=(), unwanted=(), launches=1):
    """Say what became of a world. ``launches``: so many machines were needed."""
    builds = [build for jenkins in day.world.controllers.values() for build in jenkins.builds]
    found = {
        KILLED: any(build.killed_by for build in builds),
        TAKEN: not all(machine.alive() for machine in wanted),
        LEFT: any(machine.alive() for machine in unwanted),
        LAUNCHED_ANEW: len(day.world.ec2.instances) > launches,
    }
    return {harm for harm, is_there in found.items() if is_there}


# How worlds begin.


def resuming_after(seconds):
    """Pipelines ask for their node so long after a restart."""
    return replace(CALM, resume_from_seconds=seconds, resume_to_seconds=seconds)


def a_day(pool=None, **facts):
    pool = pool or a_pool("cpu", idle_seconds=300.0)
    return Day(in_memory(pool, **facts)).minutes(2)


def an_agent(day, seconds=60.0, **facts):
    """Launch an agent for a build; return its machine."""
    day.queue(1, seconds=seconds, **facts)
    day.minutes(6)
    [machine] = day.world.alive()
    return machine


def drain(day, kind):
    for jenkins in day.world.controllers.values():
        for name in [name for name in jenkins.nodes if name in day.nodes()]:
            jenkins.set_offline(name, a_mark(kind, "earlier").text, "bot")


def states(day):
    return [str(record.state) for record in day.fleet.state.records.values()]


def until(happened, day, most=30):
    for _ in range(most):
        if happened():
            return
        day.minutes(1)
    raise AssertionError(f"not within {most} min")


def retired_and_idle(day):
    """Drain an agent while its build runs, by the mark of surplus; its build ends in this look."""
    machine = an_agent(day, seconds=500.0)
    drain(day, MarkClass.RETIRE)
    until(lambda: day.jenkins.builds[0].ended, day)
    return machine


def given_up(day):
    """Give up an agent that EC2 does not end yet, since its answers fail."""
    machine = an_agent(day)
    day.fleet.faults.plan(Fault("ec2 TerminateInstances", times=99))
    until(lambda: states(day) == ["condemned"], day)
    return machine


def a_pipeline_begins_there_and_jenkins_restarts(day, machine):
    """All before the next look: a person brings the node online, and a pipeline begins there."""
    day.jenkins.toggle(machine.tags["Name"], "", "anna")
    [build] = day.queue(1, seconds=600.0, kind=Kind.PIPELINE)
    day.world.move_to(day.world.timeline.now + 5.0)
    assert build.node == machine.tags["Name"]
    day.fleet.faults.planned.clear()
    day.jenkins.restart()
    return build


def a_shared_day(**facts):
    """One machine serves two controllers at once, and is idle."""
    pool = a_pool("gpu", **SHARED, executors=2, idle_seconds=600.0)
    day = a_day(pool, **facts)
    return day, an_agent(day, label="gpu")


def with_one_stopped(*more, controller="main"):
    pool = a_pool(
        "cpu",
        controllers=(controller,),
        idle_seconds=300.0,
        offerings=(an_offering(volume_usd_per_hour=0.01),),
        warm_pool=WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * 3600.0),
    )
    day = starts_proven(Day(in_memory(pool, *more))).minutes(1)
    day.world.controllers[controller].submit("first", "cpu", 60.0)
    until(lambda: states(day) == ["stopped"], day)
    return day


def shown(day, monkeypatch, change):
    """Let Jenkins' list of nodes show something else, until this is undone."""
    [jenkins] = day.fleet.ports.controllers
    look = jenkins.look
    monkeypatch.setattr(jenkins, "look", lambda: change(look()))


def without_nodes(view, *names):
    return replace(view, nodes=tuple(node for node in view.nodes if node.name not in names))


# What keeps one agent: a world for each of `GUARDS`.


def a_pipeline_that_nobody_sees_yet_is_bound_to_a_drained_agent():
    """Jenkins restarted, and loads the pipeline again only minutes after that."""
    day = a_day(physics=resuming_after(400.0))
    an_agent(day, seconds=1200.0, kind=Kind.PIPELINE)
    drain(day, MarkClass.OPERATOR)
    day.minutes(1)
    day.jenkins.restart()
    return harms(day.minutes(25))


def an_operator_wants_to_look_at_a_suspect_agent():
    day = a_day(a_pool("cpu", min_agents=2, max_agents=4, quarantine=Quarantine.KEEP)).minutes(4)
    broken = next(node for node in day.jenkins.nodes.values() if node.connected)
    broken.fails_builds = True
    for minute in range(10):
        for number in range(2):
            day.jenkins.submit(f"job-{minute}-{number}", "cpu", 70.0)
        day.minutes(1)
        if ":quarantine:" in broken.reason:
            break
    [suspect] = [one for one in day.world.alive() if one.tags["Name"] == broken.name]
    return harms(day.minutes(5), wanted=[suspect], launches=3)


def a_job_waits_for_a_drained_agent_while_scale_up_does_not_run():
    day = a_day()
    retired_and_idle(day)
    day.queue(1, seconds=60.0)
    day.world.move_to(day.world.timeline.now + 60.0)
    day.fleet.scale_down()
    return harms(day.minutes(3))


def an_agent_drains_by_its_labels():
    """Jenkins drops what it hands to a node in the instant of its mark, so labels go first."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=300.0)))
    day.jenkins.version = DROPS_BUILDS
    machine = an_agent(day.minutes(2))
    return harms(day.minutes(15), unwanted=[machine])


def a_person_brings_an_agent_online_that_was_given_up():
    day = a_day()
    machine = given_up(day)
    day.jenkins.toggle(machine.tags["Name"], "", "anna")
    day.fleet.faults.planned.clear()
    return harms(day.minutes(10), unwanted=[machine])


def a_long_build_runs_on_a_drained_agent():
    """Nothing idle is seen of it in any look, so that the two looks keep it as well."""
    day = a_day()
    machine = an_agent(day, seconds=3600.0)
    drain(day, MarkClass.OPERATOR)
    before = len(day.fleet.reports)
    day.minutes(5)
    reports = day.fleet.reports[before:]
    reasons = {held.reason for report in reports for held in report.plan.held}
    found = harms(day, wanted=[machine])
    if any(report.plan.pass_id.endswith("-2") for report in reports):
        found.add(LOOKS_IN_VAIN)
    return found if Reason.STILL_BUSY in reasons else found | {SAYS_NOTHING}


def a_job_follows_the_last_build_of_an_agent_by_seconds():
    """Such as the next stage of a pipeline."""
    day = a_day()
    retired_and_idle(day)
    day.world.move_to(day.world.timeline.now + 10.0)
    day.queue(1, seconds=60.0)
    return harms(day.minutes(3))


# What else the gate asks.


def a_controller_leaves_the_file_while_an_agent_of_it_starts():
    day = with_one_stopped(a_pool("web"), controller="other")
    [machine] = day.world.ec2.instances.values()
    day.fleet.faults.plan(Fault("ec2 StartInstances", times=99))
    day.world.controllers["other"].submit("second", "cpu", 60.0)
    until(lambda: states(day) == ["starting"], day)
    day.fleet.faults.planned.clear()
    deploy(day.fleet, without_controller(day.fleet.fleet, "other"))
    day.minutes(2)
    return harms(day) | ({SERVES_NOBODY} if machine.is_on() else set())


def two_rules_want_one_stopped_machine_to_end():
    """Its pool is one of hosts now: it keeps no stopped agents, and has no instances."""
    day = with_one_stopped()
    calls = []
    day.fleet.faults.meanwhile = calls.append
    file = replace(day.fleet.fleet, hosts={"rocm-1": a_host(pool="cpu")})
    deploy(day.fleet, replace(file, pools={"cpu": a_pool_of_hosts("cpu")}))
    day.minutes(2)
    ends = len(day.done(Terminate)), calls.count("ec2 TerminateInstances")
    assert ends in {(1, 1), (2, 2)}
    return harms(day) | ({ENDED_TWICE} if ends == (2, 2) else set())


def a_pipeline_may_be_on_another_side_of_a_drained_machine():
    """The other controller restarted, and the pipeline is not in its queue yet."""
    day, machine = a_shared_day(physics=resuming_after(60.0))
    day.world.controllers["other"].submit("theirs", "gpu", 600.0, kind=Kind.PIPELINE)
    day.minutes(2)
    drain(day, MarkClass.OPERATOR)
    day.world.controllers["other"].restart()
    return harms(day.minutes(5), wanted=[machine])


def a_person_has_a_device_of_a_drained_machine():
    day, machine = a_shared_day()
    record, now = day.fleet.state.records[machine.id], day.world.timeline.now
    hers = {"person": "alice", "reason": "a test hangs", "by": "ada", "request": "r-1"}
    reservation = Reservation(**hers, since_at=now, until_at=now + 3600.0)
    day.fleet.state.records[machine.id] = replace(record, devices_for=(reservation,))
    drain(day, MarkClass.OPERATOR)
    return harms(day.minutes(5), wanted=[machine])


def a_wrong_fleet_file_lacks_the_pool_for_some_minutes():
    """A node of somebody else has its label, too: if the agent alone had it, the job would be bound to it."""
    day = a_day()
    retired_and_idle(day)
    day.jenkins.add_node(a_world_node("theirs", "cpu", connected=False))
    file = day.fleet.fleet
    day.queue(1, seconds=60.0)
    deploy(day.fleet, without_pools(file, "cpu"))
    day.minutes(3)
    deploy(day.fleet, file)
    return harms(day.minutes(3))


def a_slot_that_was_given_up_is_online_while_its_controller_restarts():
    """A mark would keep the pipeline away that is to go on there, and is not in the queue yet: until it is missed, minutes later."""
    day = a_day(slots={"slot-0": ("cpu",)}, physics=resuming_after(100.0))
    machine = given_up(day)
    build = a_pipeline_begins_there_and_jenkins_restarts(day, machine)
    day.minutes(4)
    waits = build.resumes_on is not None
    day.minutes(26)
    found = harms(day, unwanted=[machine])
    return found | {WAITS_BEHIND_A_MARK} if waits or not build.ended else found


def the_list_shows_no_nodes_for_two_looks():
    """Builds run on all of them. The looks agree, so that some must go: a share of the pool."""
    day = a_day(a_pool("cpu", idle_seconds=3600.0))
    builds = day.queue(8, seconds=1200.0)
    day.minutes(6)
    names = {build.node for build in builds}
    assert len(names) == len(builds)
    with pytest.MonkeyPatch.context() as hidden:
        shown(day, hidden, lambda view: without_nodes(view, *names))
        hidden.setattr(day.fleet.ports.controllers[0], "node", lambda _name: None)
        day.minutes(2)
    killed = sum(bool(build.killed_by) for build in builds)
    assert killed >= 1
    return {BEYOND_ITS_SHARE} if killed > ceil(0.3 * len(builds)) else set()


def the_node_of_an_agent_that_was_given_up_cannot_be_read():
    """Its agent has not come back after a restart, and its pipeline is not in the queue yet."""
    day = a_day(physics=resuming_after(200.0))
    machine = given_up(day)
    name = machine.tags["Name"]
    build = a_pipeline_begins_there_and_jenkins_restarts(day, machine)
    day.jenkins.disconnect(name)
    with pytest.MonkeyPatch.context() as unread:
        shown(
            day,
            unread,
            lambda view: replace(without_nodes(view, name), unread=frozenset({name})),
        )
        day.minutes(6)
    day.jenkins.connect(name)
    day.minutes(20)
    return harms(day, launches=2) if build.ended else {WAITS_FOR_EVER}


# The proofs.


def _nothing(*_facts):
    return None


def _no(*_facts):
    return False


def _many_ends(situation, step, agent, _ended, is_left_out=GATE._is_left_out):
    return is_left_out(situation, step, agent, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """``guard``: its name in the gate; ``instead``: what admits everything in its place.

    Without ``instead`` it is one of `GUARDS`, and is left out there.
    """

    guard: str
    world: Callable[[], set[str]]
    harms: set[str]
    instead: Callable | None = None

    def take_out(self, patch):
        if self.instead is None:
            guards = tuple(guard for guard in GATE.GUARDS if guard.__name__ != self.guard)
            patch.setattr(GATE, "GUARDS", guards)
        else:
            patch.setattr(GATE, self.guard, self.instead)


OF_AN_AGENT = (
    Proof(
        guard="_bound",
        world=a_pipeline_that_nobody_sees_yet_is_bound_to_a_drained_agent,
        harms={KILLED},
    ),
    Proof(
        guard="_kept",
        world=an_operator_wants_to_look_at_a_suspect_agent,
        harms={TAKEN},
    ),
    Proof(
        guard="_wanted_back",
        world=a_job_waits_for_a_drained_agent_while_scale_up_does_not_run,
        harms={LAUNCHED_ANEW},
    ),
    Proof(guard="_without_labels", world=an_agent_drains_by_its_labels, harms={LEFT}),
    Proof(
        guard="_online_again",
        world=a_person_brings_an_agent_online_that_was_given_up,
        harms={LEFT},
    ),
    Proof(
        guard="_busy",
        world=a_long_build_runs_on_a_drained_agent,
        harms={LOOKS_IN_VAIN, SAYS_NOTHING},
    ),
    Proof(
        guard="_seen_once",
        world=a_job_follows_the_last_build_of_an_agent_by_seconds,
        harms={LAUNCHED_ANEW},
    ),
)
OF_A_STEP = (
    Proof(
        guard="is_controller_left",
        world=a_controller_leaves_the_file_while_an_agent_of_it_starts,
        harms={SERVES_NOBODY},
        instead=_no,
    ),
    Proof(
        guard="_is_left_out",
        world=two_rules_want_one_stopped_machine_to_end,
        harms={ENDED_TWICE},
        instead=_many_ends,
    ),
    Proof(
        guard="why_used_elsewhere",
        world=a_pipeline_may_be_on_another_side_of_a_drained_machine,
        harms={KILLED, TAKEN},
        instead=_nothing,
    ),
    Proof(
        guard="why_used_elsewhere",
        world=a_person_has_a_device_of_a_drained_machine,
        harms={TAKEN},
        instead=_nothing,
    ),
    Proof(
        guard="why_in_doubt",
        world=a_wrong_fleet_file_lacks_the_pool_for_some_minutes,
        harms={LAUNCHED_ANEW},
        instead=_nothing,
    ),
    Proof(
        guard="_unbelieved",
        world=a_slot_that_was_given_up_is_online_while_its_controller_restarts,
        harms={WAITS_BEHIND_A_MARK},
        instead=_nothing,
    ),
    Proof(
        guard="_is_repair",
        world=the_list_shows_no_nodes_for_two_looks,
        harms={BEYOND_ITS_SHARE},
        instead=_no,
    ),
    Proof(
        guard="hold_unread",
        world=the_node_of_an_agent_that_was_given_up_cannot_be_read,
        harms={KILLED},
        instead=_nothing,
    ),
)
PROOFS = {proof.world.__name__.replace("_", " "): proof for proof in (*OF_AN_AGENT, *OF_A_STEP)}


@pytest.mark.parametrize("world", PROOFS)
def test_with_all_guards_no_harm_is_done_where(world):
    assert PROOFS[world].world() == set()


@pytest.mark.parametrize("world", PROOFS)
def test_without_its_guard_harm_is_done_where(world, monkeypatch):
    PROOFS[world].take_out(monkeypatch)
    assert PROOFS[world].world() == PROOFS[world].harms


def test_each_guard_of_an_agent_has_its_proof():
    names = [guard.__name__ for guard in GATE.GUARDS]
    assert [proof.guard for proof in OF_AN_AGENT] == names


# They lead to guards, or say what a guard has found.
_NO_GUARDS = {"_why_not", "_why_not_ended", "why_not_yet", "is_node_gone", "hold_back"}


def test_each_guard_of_a_step_has_its_proof():
    """Whatever function the gate asks is one: a new one needs its world."""
    asking = [GATE._admitted, GATE._is_left_out, GATE._why_not, GATE._why_not_ended, GATE.why_not_yet]
    names = {name for function in asking for name in function.__code__.co_names}
    asked = {name for name in names if isfunction(vars(GATE).get(name))} - _NO_GUARDS
    assert asked == {proof.guard for proof in OF_A_STEP}
