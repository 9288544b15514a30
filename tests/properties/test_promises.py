"""The promises of the design, over random fleets, queues, agents and worlds."""

from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st

from autoscaler.domain import decide
from autoscaler.domain.facts.memory import ControllerSession, Learned, Memory, Observation, Window
from autoscaler.domain.facts.plan import Cordon, DeleteNode, Launch, Terminate, Uncordon
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState, Wait
from autoscaler.domain.forecast.durations import pool_key
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.learn import assess
from autoscaler.domain.repair.two_looks import Condition
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_mark,
    a_node,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_instance,
    an_intent,
    an_item,
    an_offering,
)

POOLS = ("cpu", "gpu", "utility")
LABELS = st.sampled_from(["cpu", "gpu", "utility", "cpu||gpu", "!gpu", "linux", "sparc", "cpu-1", "gpu-2"])


@st.composite
def fleets(draw):
    pools = [
        a_pool(
            name,
            labels=frozenset({name, "linux"}),
            executors=draw(st.integers(1, 4)),
            max_agents=draw(st.integers(1, 8)),
            min_agents=draw(st.integers(0, 1)),
            warm_executors=draw(st.integers(0, 2)),
            offerings=(an_offering(usd_per_hour=draw(st.floats(0.05, 30.0))),),
            wait_usd_per_hour=draw(st.floats(0.0, 100.0)),
            max_wait_seconds=draw(st.floats(0.0, 4000.0)),
        )
        for name in POOLS
    ]
    return a_fleet(
        *pools,
        max_agents=draw(st.integers(1, 15)),
        max_launches_per_hour=draw(st.integers(1, 15)),
        max_usd_per_hour=draw(st.floats(1.0, 200.0)),
        max_usd_per_month=draw(st.floats(1.0, 400.0)),
    )


@st.composite
def agents(draw, number):
    """A record, perhaps its node in any state, perhaps its instance in any state, and what was seen of it before."""
    pool, name, instance_id = draw(st.sampled_from(POOLS)), f"n-{number}", f"i-{number}"
    state = draw(st.sampled_from(list(RecordState)))
    builds = tuple(a_build(f"{name}-{n}", run=f"job/r{draw(st.integers(0, 3))}/1") for n in range(draw(st.integers(0, 2))))
    marked = draw(st.sampled_from(["", a_mark().text, a_mark().text, "a person's words", "autoscaler:other:retire:p"]))
    node = a_node(
        name,
        pool,
        "linux",
        "autoscaler-fleet-f",
        builds=builds,
        executors=max(len(builds), draw(st.integers(1, 4))),
        idle=not builds and draw(st.booleans()),
        offline=bool(marked) or draw(st.booleans()),
        temporarily_offline=bool(marked),
        cause=OfflineCause.PERSON if marked else OfflineCause.NONE,
        reason=marked,
        description=f"Agent on instance {instance_id}.",
    )
    requested = state is RecordState.REQUESTED
    record = a_record(
        instance_id,
        pool=pool,
        node=None if requested else name,
        state=state,
        launched_at=draw(st.sampled_from([NOW - 10, NOW - 800, NOW - 1000, LONG_AGO])),
    )
    instance = draw(st.sampled_from([*InstanceState, InstanceState.RUNNING, InstanceState.RUNNING]))
    look = Observation(
        condition=draw(st.sampled_from(Condition)),
        first_at=NOW - draw(st.sampled_from([1.0, 59.0, 61.0, 301.0])),
        last_at=NOW - draw(st.sampled_from([1.0, 59.0, 200.0])),
        invocation=draw(st.sampled_from(["now", "earlier"])),
        session=draw(st.sampled_from(["s1", "s0", ""])),
        idle_before_at=draw(st.sampled_from([None, NOW - 6.0])),
    )
    return record, (node if not requested and draw(st.booleans()) else None), instance, look


@st.composite
def snapshots(draw):
    drawn = [draw(agents(number)) for number in range(draw(st.integers(0, 7)))]
    nodes = [node for _, node, _, _ in drawn if node]
    names = [node.name for node in nodes] or ["n-0"]
    waits = st.one_of(
        LABELS.map(lambda label: Wait(for_executor=True, label=label)),
        LABELS.map(lambda label: Wait(for_executor=True, named=label)),
        st.sampled_from(names).map(lambda name: Wait(for_executor=True, nodes=(name,))),
        st.sampled_from(names).map(lambda name: Wait(for_executor=False, nodes=(name,))),
        st.just(Wait(for_executor=True)),
    )
    items = tuple(
        an_item(n, why=draw(waits), run=f"job/r{draw(st.integers(0, 5))}/1", waiting_seconds=draw(st.floats(0, 5000)))
        for n in range(draw(st.integers(0, 12)))
    )
    view = a_view(
        *nodes,
        items=items,
        problem=draw(st.sampled_from([None, None, None, "503"])),
        quieting_down=draw(st.sampled_from([False, False, False, True])),
        session=draw(st.sampled_from(["s1", "s1", "s1", "s2"])),
    )
    life = ControllerSession(
        session="s1",
        since_at=NOW - draw(st.sampled_from([10.0, 1e5, 1e5])),
        restarted=draw(st.booleans()),
        suspects=dict.fromkeys(draw(st.lists(st.sampled_from(names), max_size=2, unique=True)), ("job/lost/1",)),
    )
    most = draw(st.integers(0, 3))
    memory = Memory(
        sessions={"main": life} if draw(st.booleans()) else {},
        windows={f"main/{pool}": Window(opened_at=LONG_AGO, seen_at=NOW - 60, peaks=((NOW - 60, most),)) for pool in POOLS},
        observations={record.instance_id: look for record, _, _, look in drawn},
    )
    known = {record.instance_id: state for record, _, state, _ in drawn}
    listed = tuple(
        an_instance(r.instance_id, pool=r.pool, state=known[r.instance_id])
        for r, _, _, _ in drawn
        if known[r.instance_id] not in {InstanceState.NOT_FOUND, InstanceState.TERMINATED}
    )
    return a_snapshot(
        view,
        records=tuple(record for record, _, _, _ in drawn),
        instances=listed,
        fates={i: s for i, s in known.items() if s in {InstanceState.NOT_FOUND, InstanceState.TERMINATED}},
        intents=tuple(
            an_intent(f"l-{n}", pool=draw(st.sampled_from(POOLS)), count=draw(st.integers(1, 3))) for n in range(draw(st.integers(0, 2)))
        ),
        memory=memory,
        learned={"main": Learned(samples={pool_key("cpu"): (draw(st.floats(1.0, 9000.0)),)})},
    )


def nodes_by_name(snapshot):
    return {node.name: node for node in snapshot.controllers["main"].nodes}


def has_ended(snapshot, instance_id):
    states = dict(snapshot.fates) | {instance.id: instance.state for instance in snapshot.instances}
    return states[instance_id].ended or states[instance_id] is InstanceState.NOT_FOUND


@given(snapshots(), fleets())
def test_no_agent_goes_while_a_build_may_run_on_it(snapshot, fleet):
    """Promise 1: terminated only when marked by us, idle, seen idle before, and waited for by nobody."""
    nodes, view = nodes_by_name(snapshot), snapshot.controllers["main"]
    pinned = {name for item in view.items for name in (*item.wait.nodes, item.wait.named)}
    suspects = snapshot.memory.sessions["main"].suspects if snapshot.memory.sessions else ()
    for step in decide.scale_down(snapshot, fleet).steps:
        node = nodes.get(getattr(step, "node", None) or "")
        if isinstance(step, Terminate) and node is not None:
            note(step)
            assert view.complete
            assert not view.quieting_down
            assert node.idle
            assert not node.builds
            assert node.name not in pinned
            assert node.name not in suspects
            assert step.mark is not None or step.reason in {"instance-stopped", "condemned"}
            assert step.instance_id in snapshot.memory.observations or step.reason == "condemned"
        if isinstance(step, DeleteNode) and step.node in pinned:
            assert has_ended(snapshot, step.instance_id), "only a machine that is gone loses a node that is waited for"


@given(snapshots(), fleets())
def test_nothing_is_given_up_where_jenkins_cannot_be_believed(snapshot, fleet):
    doubtful = [
        replace(snapshot, controllers={"main": replace(snapshot.controllers["main"], **facts)})
        for facts in ({"problem": "503"}, {"session": "another"}, {"quieting_down": True})
    ]
    there = nodes_by_name(snapshot)
    for doubted in doubtful:
        for step in decide.scale_down(doubted, fleet).steps:
            # What was condemned before, and has no node any more, may still be terminated: nothing runs on it.
            assert not isinstance(step, Cordon)
            assert not (isinstance(step, Terminate | DeleteNode) and step.node in there), step


@given(snapshots(), fleets())
def test_a_node_that_is_not_ours_or_that_a_person_marked_is_never_touched(snapshot, fleet):
    nodes = nodes_by_name(snapshot)
    for plan in (decide.scale_down(snapshot, fleet), decide.scale_up(snapshot, fleet)):
        for step in plan.steps:
            node = nodes.get(getattr(step, "node", None) or "")
            if (
                isinstance(step, Cordon | Uncordon | Terminate)
                and node is not None
                and node.temporarily_offline
                and step.reason != "condemned"
            ):
                assert node.reason.startswith("autoscaler:f:")


@given(snapshots(), fleets())
def test_no_limit_is_exceeded(snapshot, fleet):
    """Promise 3: what is there, what was asked for and what is asked for now stay within every limit."""
    plan = decide.scale_up(snapshot, fleet)
    room = Budget(assess(snapshot, fleet))
    steps = [step for step in plan.steps if isinstance(step, Launch)]
    new = sum(step.count for step in steps)
    if new:
        rate = sum(step.count * max(o.usd_per_hour for o in step.offerings) for step in steps)
        assert room.agents + new <= fleet.limits.max_agents
        assert room.launched + new <= fleet.limits.max_launches_per_hour
        assert rate <= fleet.limits.max_usd_per_hour
    for step in steps:
        assert room.agents_in(step.pool) + step.count <= fleet.pools[step.pool].max_agents


@given(snapshots(), fleets())
def test_deciding_twice_is_deciding_the_same(snapshot, fleet):
    assert decide.scale_up(snapshot, fleet) == decide.scale_up(snapshot, fleet)
    assert decide.scale_down(snapshot, fleet) == decide.scale_down(snapshot, fleet)


@given(snapshots(), fleets())
def test_every_step_and_every_hold_gives_its_reason(snapshot, fleet):
    for plan in (decide.scale_up(snapshot, fleet), decide.scale_down(snapshot, fleet)):
        assert all(step.reason and step.detail for step in plan.steps)
        assert all(held.reason for held in plan.held)


@given(snapshots(), fleets())
def test_no_agent_gets_two_steps_that_contradict(snapshot, fleet):
    for plan in (decide.scale_up(snapshot, fleet), decide.scale_down(snapshot, fleet)):
        nodes = [step.node for step in plan.steps if isinstance(step, Cordon | Uncordon | Terminate) and step.node]
        assert len(nodes) == len(set(nodes))


@given(snapshots(), fleets())
def test_a_pass_on_a_believable_controller_leaves_no_servable_starving_item_without_a_word(snapshot, fleet):
    """Promise 4 and 5: a mature item is served, waits for something on its way, or a held reason says why not."""
    plan = decide.scale_up(snapshot, fleet)
    view = snapshot.controllers["main"]
    situation = assess(snapshot, fleet)
    mature = [want for want in situation.demands["main"].wants if want.mature]
    alive = [a for a in situation.agents if a.phase in {"ready", "requested", "connecting", "retiring", "lost"}]
    if mature and view.complete and not view.quieting_down and not alive and not snapshot.intents:
        assert plan.held or [step for step in plan.steps if isinstance(step, Launch)]
