"""The promises of the design, sentence by sentence, over random fleets in the middle of their lives.

Each property asks what a stranger could check with the snapshot and the plan in hand (`support/looks.py`), never the code that decides.
"""

from dataclasses import replace

from hypothesis import given, note

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import CORDONED_LABEL
from autoscaler.domain.facts.metering import begin_again
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import (
    Adopt,
    Cordon,
    DeleteNode,
    FinishStop,
    Forget,
    Launch,
    Lend,
    Relabel,
    Start,
    Stop,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from support.builders import NOW, a_look, a_session, an_intent
from support.fleets import looks
from support.leaks import leaks
from support.looks import OUR_MARK, Look, machines
from support.remembered import tables, with_tables
from support.reserved import by, dearest, no_more_agents_than_may_be, no_more_dollars_than_may_be, no_more_launches_than_may_be

STOPPED = {InstanceState.STOPPING, InstanceState.STOPPED}  # nothing runs there, whoever marked its node


def given_up(look):
    """The agents that are terminated or stopped, with their nodes where they have one."""
    for step in look.down.steps:
        if isinstance(step, Terminate | Stop) and (node := look.node_of(step)) is not None:
            note(step)
            yield step, node


# 1. No build is ever killed to save money.


@given(looks())
def test_an_agent_is_terminated_only_after_we_marked_it_offline(look):
    for step, node in given_up(look):
        assert node.offline
        assert (node.temporarily_offline and node.reason.startswith(OUR_MARK)) or look.states[step.instance_id] in STOPPED


@given(looks())
def test_an_agent_is_terminated_only_while_it_is_idle_one_off_executors_included(look):
    for _, node in given_up(look):
        assert node.idle
        assert not node.builds


@given(looks())
def test_an_agent_is_terminated_only_when_an_earlier_look_saw_it_idle_too(look):
    for step, _ in given_up(look):
        if look.states[step.instance_id] in STOPPED:
            continue  # nothing runs there; who was idle twice was stopped
        before = look.seen(step.instance_id)
        assert before is not None
        assert before.session == look.snapshot.controllers[step.controller].session
        settled = before.idle_before_at is not None and NOW - before.idle_before_at >= 5.0
        just_cordoned = before.condition in {"idle", "unlabelled"} and NOW - before.last_at >= 5.0
        assert settled or just_cordoned or look.seen_twice(step.instance_id, before.session)


@given(looks())
def test_an_agent_is_never_terminated_while_a_build_may_be_bound_to_its_node(look):
    for step, node in given_up(look):
        assert node.name not in look.bound(step.controller)


@given(looks())
def test_where_a_controller_cannot_be_believed_nothing_of_it_is_given_up(look):
    met_lately = {name: a_session(since_at=NOW - 119.0) for name in look.snapshot.controllers}
    unknown = replace(look, snapshot=replace(look.snapshot, memory=replace(look.snapshot.memory, sessions=met_lately)))
    unread = look.with_views(problem="503", nodes=())
    for doubted in (unread, look.with_views(session="s9"), look.with_views(quieting_down=True), unknown):
        for step in decide.scale_down(doubted.snapshot, doubted.fleet).steps:
            # What was condemned before may still be terminated where all nodes were read and it has none: nothing runs on it.
            # What was to start has no node.
            assert not (isinstance(step, Cordon | Stop) and step.node), step
            assert not (isinstance(step, FinishStop) and look.records[step.instance_id].state is not RecordState.STARTING), step
            assert not (isinstance(step, Terminate | DeleteNode) and look.node_of(step)), step
            assert not (doubted is unread and getattr(step, "node", None)), step


@given(looks())
def test_a_node_that_could_not_be_read_is_neither_missing_nor_idle(look):
    unread = {view.name: replace(view, nodes=(), unread=frozenset(node.name for node in view.nodes)) for view in look.views}
    of = {i: "stopped" if state in STOPPED else "nodeless" for i, state in look.states.items()}
    seen = {instance_id: a_look(condition, seconds_ago=400.0) for instance_id, condition in of.items()}
    memory = with_tables(look.snapshot.memory, observations=seen)
    unreadable = replace(look, snapshot=replace(look.snapshot, controllers=unread, memory=memory))
    for step in decide.scale_down(unreadable.snapshot, look.fleet).steps:
        record = look.records.get(getattr(step, "instance_id", ""))
        assert not (
            isinstance(step, Terminate | Stop | FinishStop | Forget)
            and record
            and record.node
            and look.node(record.controller, record.node)
        ), step


@given(looks())
def test_what_ec2_does_not_show_is_not_gone(look):
    nothing = replace(look.snapshot, instances=(), fates=dict.fromkeys(look.states, InstanceState.NOT_FOUND), unknown_alone=frozenset())
    assert not [step for step in decide.scale_down(nothing, look.fleet).steps if isinstance(step, DeleteNode | Forget)]


@given(looks())
def test_nothing_is_done_to_an_agent_whose_record_cannot_be_read(look):
    unread = [record for record in look.snapshot.records if record.node][:1]
    ids = {record.instance_id for record in unread}
    # To who does not know that there is a record, they would be an instance and a node without one.
    seen = {record.instance_id: a_look("stray", seconds_ago=400.0, session="") for record in unread}
    seen |= {f"{r.controller}/{r.node}": a_look("orphan", seconds_ago=400.0, session="") for r in unread}
    memory = look.snapshot.memory
    snapshot = replace(
        look.snapshot,
        memory=with_tables(memory, observations={**tables(memory).observations, **seen}),
        records=tuple(record for record in look.snapshot.records if record not in unread),
        unread=tuple(f"record#{instance_id}" for instance_id in ids),
    )
    nodes = {(record.controller, record.node) for record in unread}
    for step in (*decide.scale_down(snapshot, look.fleet).steps, *decide.scale_up(snapshot, look.fleet).steps):
        assert ids.isdisjoint(machines(step))
        assert (step.controller, getattr(step, "node", "")) not in nodes


@given(looks())
def test_a_node_is_deleted_only_when_its_machine_is_surely_gone(look):
    for step in by(DeleteNode, look.down):
        if look.states[step.instance_id] is InstanceState.TERMINATED:
            continue
        assert look.states[step.instance_id] is InstanceState.NOT_FOUND
        assert step.instance_id in look.snapshot.unknown_alone
        assert NOW - tables(look.snapshot.memory).missing[step.instance_id].since_at >= 7200.0
        assert look.node_of(step).offline


@given(looks())
def test_a_node_that_a_person_or_another_fleet_marked_is_never_touched(look):
    for plan in look.plans:
        for step in by(Cordon | Uncordon | Terminate | Stop | Relabel, plan):
            node = look.node_of(step)
            assert node is None or not node.temporarily_offline or node.reason.startswith(OUR_MARK), step


@given(looks())
def test_a_stop_is_finished_and_an_agent_started_only_when_ec2_says_that_it_has_stopped(look):
    for plan in look.plans:
        for step in by(FinishStop | Start, plan):
            for instance_id in step.instance_ids if isinstance(step, Start) else (step.instance_id,):
                is_on = look.states[instance_id] in {InstanceState.PENDING, InstanceState.RUNNING}
                assert is_on if step.reason is Reason.STARTED_BY_HAND else look.states[instance_id] is InstanceState.STOPPED, step


@given(looks())
def test_what_was_stopped_and_runs_again_is_never_terminated_as_stopped(look):
    for step in by(Terminate, look.down):
        if look.records[step.instance_id].state is RecordState.STOPPED:
            assert look.states[step.instance_id] is InstanceState.STOPPED, step


@given(looks())
def test_what_a_person_has_is_theirs_until_their_time_is_over(look):
    theirs = {record.instance_id: record for record in look.living if look.reserved(record)}
    for plan in look.plans:
        for step in by(Terminate | Stop | FinishStop | Start | Forget | DeleteNode | Lend, plan):
            assert theirs.keys().isdisjoint(machines(step)), step
    nodes = {(record.controller, record.node) for record in theirs.values()}
    for plan in look.plans:
        for step in by(Cordon, plan):
            assert (step.controller, step.node) not in nodes or step.mark.kind is MarkClass.RESERVED, step


@given(looks())
def test_no_build_is_let_onto_what_a_person_has_or_had_but_one_that_was_there_before(look):
    theirs = {(record.controller, record.node): record for record in look.snapshot.records if record.reservation and record.node}
    for plan in look.plans:
        for step in by(Uncordon | Stop | Lend, plan):
            record = theirs.get((step.controller, step.node))
            session = look.snapshot.memory.sessions[step.controller]
            may_resume = step.node in session.suspects or look.snapshot.controllers[step.controller].session != session.session
            assert record is None or (isinstance(step, Uncordon) and may_resume), step


@given(looks())
def test_what_a_person_has_and_takes_builds_is_marked_by_the_next_pass(look):
    for record in look.living:
        node = look.node(record.controller, record.node)
        sound = look.believed(record.controller) and not look.frozen(record.pool)
        if look.reserved(record) and node and not node.offline and sound and CORDONED_LABEL not in node.labels:
            waits = node.name in look.snapshot.memory.sessions[record.controller].suspects
            assert waits or node.name in {step.node for step in by(Cordon | Relabel, look.down)}


# 2. Nothing leaks.


@given(looks())
def test_what_is_surely_left_over_is_repaired_by_the_next_pass(look):
    swept = {(held.controller, held.pool) for held in look.down.held if held.reason is Reason.SWEEP_LIMIT}
    for controller, pool, instance_id, repair in leaks(look):
        if not look.frozen(pool) and (controller, pool) not in swept:
            done = [step for step in look.down.steps if instance_id in machines(step)]
            assert [step for step in done if isinstance(step, repair)], (instance_id, repair, done)


@given(looks())
def test_a_record_is_closed_only_when_neither_its_machine_nor_its_node_is_left(look):
    for step in by(Forget, look.down):
        record = look.records[step.instance_id]
        gone = look.states[step.instance_id].ended or step.instance_id in look.snapshot.unknown_alone
        assert gone
        if record.node is not None:
            assert look.snapshot.controllers[step.controller].complete
            assert look.node(step.controller, record.node) is None
            assert not look.unread(step.controller, record.node)


@given(looks())
def test_what_is_on_its_way_is_not_launched_again(look):
    launches = by(Launch, look.up)
    asked = tuple(
        an_intent(f"new-{n}", pool=s.pool, controller=s.controller, count=s.count, created_at=NOW, usd_per_hour=dearest(s))
        for n, s in enumerate(launches)
    )
    started = {instance_id for step in by(Start, look.up) for instance_id in step.instance_ids}
    records = tuple(begin_again(record, NOW) if record.instance_id in started else record for record in look.snapshot.records)
    snapshot = replace(look.snapshot, records=records, intents=(*look.snapshot.intents, *asked))
    pools = {launch.pool for launch in launches}
    filled = {launch.pool for launch in launches if launch.reason is Reason.FILLS_WARM_POOL}
    for step in by(Launch, decide.scale_up(snapshot, look.fleet)):
        # Agents to be stopped come beside those of the minimum, one look later.
        assert step.pool not in (filled if step.reason is Reason.FILLS_WARM_POOL else pools), step


# 3. Money has a ceiling.


@given(looks())
def test_no_pool_no_team_and_no_fleet_gets_more_agents_than_it_may_have(look):
    no_more_agents_than_may_be(look)


@given(looks())
def test_no_more_agents_are_launched_within_an_hour_than_may_be(look):
    no_more_launches_than_may_be(look)


@given(looks())
def test_no_more_dollars_an_hour_and_in_the_month_are_reserved_than_may_be_spent(look):
    no_more_dollars_than_may_be(look)


# 4. Waiting has a ceiling too.


def answered(look, controller, pools):
    """An agent is launched, started or brought back for these pools, or it is said why not."""
    steps = [step for step in by(Launch | Start | Uncordon, look.up) if step.controller == controller and step.pool in pools]
    return steps or [held for held in look.up.held if held.controller == controller and held.pool in pools]


def waiting(look, controller):
    """Pools that could serve each job which waits, where the month's money lets all of them start something."""
    return [pools for _, pools in look.waiting(controller) if look.believed(controller) and look.stopped.isdisjoint(pools)]


@given(looks())
def test_a_job_that_no_agent_can_ever_take_gets_one_or_it_is_said_why_not(look):
    for view in look.views:
        on_their_way = {intent.pool for intent in look.snapshot.intents if intent.controller == view.name}
        for pools in waiting(look, view.name):
            alive = [record for record in look.snapshot.records if record.pool in pools and record.controller == view.name]
            if not on_their_way & pools and not any(look.may_serve(record) for record in alive):
                assert answered(look, view.name, pools)


@given(looks())
def test_no_job_waits_longer_than_the_operator_allows_while_another_agent_may_be_had(look):
    look = where_all_have_waited_long_and_waiting_costs_little(look)
    for view in look.views:
        there = [record for record in look.snapshot.records if record.controller == view.name and look.may_serve(record)]
        on_their_way = {intent.pool for intent in look.snapshot.intents if intent.controller == view.name}
        for pools in waiting(look, view.name):
            nodes = [look.node(view.name, record.node) for record in there if record.pool in pools]
            full = all(node and len(node.builds) == node.executors and not node.offline for node in nodes)
            long = all(look.snapshot.learned[view.name].samples.get(f"{pool}\n", (600.0,))[0] >= 600.0 for pool in pools)
            if full and long and not on_their_way & pools:
                assert [said for said in answered(look, view.name, pools) if said.reason is not Reason.WORTH_WAITING]


def where_all_have_waited_long_and_waiting_costs_little(look):
    pools = {name: replace(pool, wait_usd_per_hour=0.01) for name, pool in look.fleet.pools.items()}
    views = {view.name: replace(view, items=tuple(replace(item, waiting_seconds=5000.0) for item in view.items)) for view in look.views}
    return Look(replace(look.snapshot, controllers=views), replace(look.fleet, pools=pools))


# 5. Every decision explains itself.


@given(looks())
def test_every_step_and_every_hold_says_why_in_words(look):
    for plan in look.plans:
        assert all(said.reason and said.detail for said in (*plan.steps, *plan.held))


@given(looks())
def test_every_agent_that_we_took_out_of_use_is_acted_upon_or_it_is_said_why_not(look):
    for record in look.living:
        node = look.node(record.controller, record.node)
        ours = node is not None and node.temporarily_offline and node.reason.startswith(OUR_MARK)
        if ours and look.believed(record.controller) and not look.frozen(record.pool):
            steps = [step for step in look.down.steps if getattr(step, "node", "") == node.name]
            assert steps or [held for held in look.down.held if node.name in held.detail or record.instance_id in held.detail]


# What makes a plan one that can be carried out.


@given(looks())
def test_deciding_twice_is_deciding_the_same(look):
    assert decide.scale_up(look.snapshot, look.fleet) == look.up
    assert decide.scale_down(look.snapshot, look.fleet) == look.down


@given(looks())
def test_no_agent_gets_two_steps_that_contradict(look):
    for plan in look.plans:
        nodes = [(step.controller, step.node) for step in by(Cordon | Uncordon | Terminate | Stop, plan) if step.node]
        assert len(nodes) == len(set(nodes))
        machines = [step.instance_id for step in by(Terminate | Stop | FinishStop | Forget, plan)]
        machines += [instance_id for step in by(Start, plan) for instance_id in step.instance_ids]
        assert len(machines) == len(set(machines))


@given(looks())
def test_a_controller_that_is_down_changes_nothing_for_another(look):
    others = [name for name in look.snapshot.controllers if name != "main"]
    for name in others:
        down = replace(look.snapshot.controllers[name], problem="503")
        snapshot = replace(look.snapshot, controllers=look.snapshot.controllers | {name: down})
        before, after = (
            [step for step in plan.steps if step.controller == "main" and isinstance(step, DeleteNode | Forget | Adopt)]
            for plan in (look.down, decide.scale_down(snapshot, look.fleet))
        )
        assert before == after
