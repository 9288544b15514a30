"""Series made by hand, of what two rules, a person and EC2 do at once: of rare branches."""

from collections.abc import Iterator
from dataclasses import replace
from zoneinfo import ZoneInfo

from autoscaler.domain.facts.fleet import (
    CapacityReservation,
    Lending,
    Pool,
    PoolSchedule,
    Share,
    WarmPool,
)
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import EndInstance, Hold, Overrides, Reserve, Scope
from autoscaler.domain.facts.plan import Had, Refusal
from autoscaler.domain.facts.runs import Graphs, RunGraph
from autoscaler.domain.facts.snapshot import (
    SIDE,
    ControllerView,
    InstanceState,
    OfflineCause,
    RecordState,
    Wait,
)
from autoscaler.domain.facts.started_builds import RerunPolicy
from corpus.case import Answers, Asks, Look
from corpus.hand import HOUR, MINUTE, long_known, look, minutes
from corpus.outcomes import Outcomes
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_host,
    a_mark,
    a_node,
    a_pool,
    a_pool_of_hosts,
    a_record,
    a_reservation,
    a_snapshot,
    a_view,
    an_agent,
    an_instance,
    an_item,
    an_offering,
    cordoned,
)

_WARM = WarmPool(min_agents=0, max_agents=2, max_age_seconds=24 * HOUR)
_TWO = ("main", "other")
_RESERVE = Reserve(
    target="cpu",
    controller=None,
    seconds=HOUR,
    person="bob",
    by="ada",
    reason="r",
    request_id="q",
)


def a_person_reserves_while_a_controller_is_away() -> Iterator[Look]:
    """What its minimum lacks is not known."""
    fleet = a_fleet(a_pool(controllers=_TWO, min_agents=1))
    away = ControllerView.of_nothing("other", "it did not answer", 30.0)
    yield look(Asks.ORDER, fleet, a_snapshot(a_view(), away), NOW, order=_RESERVE)


def ec2_refuses_a_minimum() -> Iterator[Look]:
    """It is tried again, and no job waits."""
    yield from _refused(a_pool(min_agents=1))


def ec2_refuses_a_minimum_of_a_pool_that_stops_agents() -> Iterator[Look]:
    """What is tried can be stopped."""
    yield from _refused(a_pool(min_agents=1, warm_pool=_WARM))


def _refused(pool: Pool) -> Iterator[Look]:
    refusal = Refusal(
        code="InsufficientInstanceCapacity",
        offering_key=pool.offerings[0].key,
        asked=pool.offerings,
    )
    for minute in range(40):
        at, refused = NOW + minute * MINUTE, Outcomes(refused=[("cpu", (refusal,))])
        outcomes = refused if minute == 0 else Outcomes()
        yield look(Asks.UP, a_fleet(pool), a_snapshot(), at, outcomes=outcomes)


def the_month_is_spent_while_an_agent_retires() -> Iterator[Look]:
    """A job waits for its pool, and does not get it back."""
    record, node = an_agent()
    seen = a_snapshot(a_view(cordoned(node), items=(an_item(1, label="cpu"),)), records=(record,))
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), seen, 2)
    yield from minutes(a_fleet(max_usd_per_month=0.01), seen, 6, first=2)


def the_month_is_spent_while_a_job_names_an_agent_without_labels() -> Iterator[Look]:
    record, node = an_agent()
    record = replace(record, cordon=a_mark().text, labels=("cpu", "autoscaler-fleet-f"))
    node = replace(node, labels=frozenset((node.name, "autoscaler-cordoned")))
    item = an_item(1, why=Wait(for_executor=False, nodes=(node.name,)))
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), a_snapshot(a_view(node), records=(record,)), 2)
    seen = a_snapshot(a_view(node, items=(item,)), records=(record,))
    yield from minutes(a_fleet(max_usd_per_month=0.01), seen, 4, first=2)


def a_machine_ends_while_it_retires() -> Iterator[Look]:
    record, node = an_agent()
    ends = an_instance(state=InstanceState.SHUTTING_DOWN)
    view = a_view(cordoned(node), items=(an_item(1, label="cpu"),))
    yield from minutes(a_fleet(), a_snapshot(view, records=(record,), instances=(ends,)), 4)


def an_instance_tells_no_pool() -> Iterator[Look]:
    """It has no record, and is left alone."""
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), a_snapshot(instances=(an_instance(pool=""),)), 3)


def others_end_an_agent() -> Iterator[Look]:
    record, node = an_agent()
    yield from minutes(a_fleet(), a_snapshot(a_view(node), records=(record,)), 2)
    gone = an_instance(state=InstanceState.TERMINATED)
    seen = a_snapshot(
        a_view(replace(node, offline=True, cause=OfflineCause.LOST)),
        records=(record,),
        instances=(gone,),
        fates={"i-1": InstanceState.TERMINATED},
        end_reasons={"i-1": "Client.UserInitiatedShutdown"},
    )
    yield from minutes(a_fleet(), seen, 3, first=2)


def ec2_ends_a_launch_for_a_quota_of_volumes() -> Iterator[Look]:
    """It is no failed boot: one agent is tried until one runs."""
    yield from _ended_while_pending("Client.VolumeLimitExceeded")


def ec2_ends_a_launch_for_want_of_a_machine() -> Iterator[Look]:
    """Another offering is launched meanwhile."""
    yield from _ended_while_pending("Server.InsufficientInstanceCapacity")


def _ended_while_pending(why: str) -> Iterator[Look]:
    offerings = (an_offering("c5.large"), an_offering("m5.large"))
    fleet, view = a_fleet(a_pool(offerings=offerings)), a_view(items=(an_item(1, label="cpu"),))
    first = a_record(instance_type="c5.large", launched_at=NOW)
    ended = {"fates": {"i-1": InstanceState.TERMINATED}, "end_reasons": {"i-1": why}}
    yield from long_known(fleet)
    pending = (an_instance(state=InstanceState.PENDING),)
    yield from minutes(fleet, a_snapshot(view, records=(first,), instances=pending), 1)
    yield from minutes(fleet, a_snapshot(view, records=(first,), **ended), 2, first=1)
    yield from minutes(fleet, a_snapshot(view), 4, first=3)
    at, had = NOW + 7 * MINUTE, Had(pool="cpu", asked=offerings, types=frozenset({"c5.large"}))
    yield look(Asks.UP, fleet, a_snapshot(view), at, outcomes=Outcomes(launched=[had]))
    second = replace(first, instance_id="i-2", launched_at=at)
    for minute, state in ((7, InstanceState.PENDING), (8, InstanceState.RUNNING)):
        instance = an_instance("i-2", instance_type="c5.large", state=state)
        seen = a_snapshot(view, records=(second,), instances=(instance,))
        yield from minutes(fleet, seen, 1, first=minute)


def a_person_asks_for_an_agent_of_which_another_has_devices() -> Iterator[Look]:
    record, node = an_agent()
    record = replace(record, devices_for=(a_reservation(),))
    seen = a_snapshot(a_view(node), records=(record,))
    yield from long_known(a_fleet())
    yield look(Asks.ORDER, a_fleet(), seen, NOW, order=_RESERVE)


def a_host_is_let_go_of_where_nobody_sees_it() -> Iterator[Look]:
    """A person confirms that nothing of it runs on a controller that left the fleet file."""
    host = a_host()
    fleet = a_fleet(a_pool_of_hosts(), hosts=(host,))
    records = tuple(
        a_record(
            f"{host.id}{SIDE}{name}",
            pool="rocm",
            controller=name,
            node="rocm-1",
            node_life=0,
            launch="",
            instance_type="",
            usd_per_hour=0.0,
        )
        for name in ("main", "left")
    )
    seen = a_snapshot(a_view(a_node("rocm-1", "rocm")), records=records, instances=())
    order = EndInstance(target="rocm-1", reason="r")
    yield look(Asks.ORDER, fleet, seen, NOW, order=order)


def a_pool_becomes_one_of_hosts() -> Iterator[Look]:
    """One of its agents is stopped."""
    record, _ = an_agent()
    record = replace(record, state=RecordState.STOPPED)
    stopped = an_instance(state=InstanceState.STOPPED)
    fleet = a_fleet(a_pool_of_hosts("cpu"), hosts=(a_host("h", "cpu"),))
    yield from minutes(fleet, a_snapshot(records=(record,), instances=(stopped,)), 3)


def a_person_keeps_surplus_agents() -> Iterator[Look]:
    agents = [an_agent(number) for number in (1, 2)]
    records = tuple(replace(record, keep_until=NOW + 9 * HOUR) for record, _ in agents)
    seen = a_snapshot(a_view(*(node for _, node in agents)), records=records)
    yield from minutes(a_fleet(a_pool(idle_seconds=300.0)), seen, 24, every=2)


def a_person_keeps_an_agent_whose_pool_left() -> Iterator[Look]:
    agents = [an_agent(1), an_agent(2), an_agent(3, pool="gpu")]
    records = tuple(replace(record, keep_until=NOW + 9 * HOUR) for record, _ in agents)
    seen = a_snapshot(a_view(*(node for _, node in agents)), records=records)
    fleet = a_fleet(a_pool(), a_pool("gpu"))
    yield from long_known(fleet)
    yield from minutes(fleet, seen, 2)
    yield from minutes(a_fleet(), seen, 4, first=2)


def a_host_is_lost_whose_pool_has_other_labels() -> Iterator[Look]:
    host = a_host()
    record = a_record(
        host.id,
        pool="rocm",
        node="rocm-1",
        node_life=0,
        launch="",
        instance_type="",
        usd_per_hour=0.0,
        labels=("old", "autoscaler-fleet-f"),
    )
    node = a_node("rocm-1", "old", "autoscaler-fleet-f", offline=True)
    node = replace(node, cause=OfflineCause.LOST)
    fleet = a_fleet(a_pool_of_hosts(), hosts=(host,))
    seen = a_snapshot(a_view(node), records=(record,), instances=())
    yield from long_known(fleet)
    yield from minutes(fleet, seen, 14)


def a_launch_is_late_on_a_controller_that_left() -> Iterator[Look]:
    """What would end it, or give back its node, is left to a person."""
    asked = a_record(controller="left", launched_at=NOW - 3 * HOUR)
    starts = a_record("i-2", controller="left", state=RecordState.STARTING, launched_at=NOW - HOUR)
    stops = a_record("i-3", controller="left", state=RecordState.STOPPING)
    records = (asked, starts, stops)
    instances = tuple(an_instance(one.instance_id, controller="left") for one in records)
    yield from minutes(a_fleet(), a_snapshot(records=records, instances=instances), 5)


def a_machine_ends_after_a_restart_that_it_missed() -> Iterator[Look]:
    """What it ran is followed from the restart on, and then it is known how it went."""
    fleet = a_fleet(a_pool(rerun=RerunPolicy()))
    record, node = an_agent(builds=(a_build(),))
    lost = replace(node, offline=True, cause=OfflineCause.LOST, builds=(), idle=True)
    gone = an_instance(state=InstanceState.TERMINATED)
    yield from long_known(fleet)
    yield from minutes(fleet, a_snapshot(a_view(node), records=(record,)), 2)
    again = a_view(lost, session="s2")
    yield from minutes(fleet, a_snapshot(again, records=(record,)), 2, first=2)
    seen = a_snapshot(again, records=(record,), instances=(gone,))
    yield from minutes(fleet, seen, 3, first=4)


def many_agents_hand_over_at_once() -> Iterator[Look]:
    """More than twenty jobs go before those that run, and the limit has room for no more."""
    fleet = a_fleet(a_pool("low"), a_pool("high", priority=5, max_agents=30), max_agents=30)
    agents = [an_agent(number, pool="low", builds=(a_build(),)) for number in range(30)]
    jobs = [an_item(number, label="high", waiting_seconds=7200.0) for number in range(30)]
    view = a_view(*(node for _, node in agents), items=tuple(jobs))
    yield from long_known(fleet)
    seen = a_snapshot(view, records=tuple(record for record, _ in agents))
    yield from minutes(fleet, seen, 3)


def a_side_is_given_up_and_online() -> Iterator[Look]:
    """The machine ends on its other controller meanwhile."""
    fleet = a_fleet(a_pool(share=Share.COOPERATIVE, controllers=_TWO))
    record, node = an_agent()
    side = a_record(
        f"i-1{SIDE}other", controller="other", node="cpu-1", state=RecordState.CONDEMNED
    )
    views = a_view(cordoned(node)), a_view(node, name="other")
    yield from long_known(fleet)
    seen = a_snapshot(*views, records=(record, side), instances=(an_instance(),))
    yield from minutes(fleet, seen, 4)


def ec2_still_stops_what_has_stopped() -> Iterator[Look]:
    record, _ = an_agent()
    record = replace(record, state=RecordState.STOPPED)
    stops = an_instance(state=InstanceState.STOPPING)
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), a_snapshot(records=(record,), instances=(stops,)), 2)


def a_job_waits_for_two_nodes_of_no_pool() -> Iterator[Look]:
    item = an_item(1, why=Wait(for_executor=True, nodes=("a", "b")))
    yield look(Asks.UP, a_fleet(), a_snapshot(a_view(items=(item,))), NOW)


def a_job_waits_for_what_only_the_first_beacon_satisfies() -> Iterator[Look]:
    """It has no label of a pool: nobody knows what the job asks for."""
    fleet = a_fleet()
    view = a_view(
        a_node(fleet.beacon, offline=True),
        items=(an_item(1, why=Wait(for_executor=True, nodes=(fleet.beacon,))),),
    )
    yield look(Asks.UP, fleet, a_snapshot(view), NOW)


def a_static_node_comes_online_while_jenkins_shuts_down() -> Iterator[Look]:
    """Its agent was given up, and runs still."""
    record = a_record(node="slot-1", state=RecordState.CONDEMNED)
    view = a_view(a_node("slot-1", "cpu", "autoscaler-fleet-f"), quieting_down=True)
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), a_snapshot(view, records=(record,)), 2)


def two_schedules_hold_at_once() -> Iterator[Look]:
    """The one that is written later has the last word."""
    schedules = tuple(
        PoolSchedule(
            days=frozenset(range(7)),
            from_minute=0,
            to_minute=1440,
            time_zone=ZoneInfo("UTC"),
            min_agents=number,
        )
        for number in (1, 2)
    )
    yield look(Asks.UP, a_fleet(a_pool(schedules=schedules)), a_snapshot(), NOW)


def a_schedule_holds_over_midnight() -> Iterator[Look]:
    """It began on the day before."""
    thursday = PoolSchedule(
        days=frozenset({3}),
        from_minute=22 * 60,
        to_minute=(24 + 12) * 60,
        time_zone=ZoneInfo("UTC"),
        min_agents=1,
    )
    yield look(Asks.UP, a_fleet(a_pool(schedules=(thursday,))), a_snapshot(), NOW)


def a_capacity_block_is_about_to_end() -> Iterator[Look]:
    """EC2 will end its machines: they take no builds any more."""
    block = CapacityReservation(
        id="cr-1", count=1, usd_per_hour=9.0, block=True, ends_at=NOW + 45 * MINUTE
    )
    fleet = a_fleet(a_pool(capacity=block))
    record, node = an_agent(builds=(a_build(),))
    yield from long_known(fleet)
    yield from minutes(fleet, a_snapshot(a_view(node), records=(record,)), 2)


def a_loan_is_over_while_its_labels_are_on_hold() -> Iterator[Look]:
    """The node has its own labels back, which nobody holds."""
    rare = a_pool("gpu", lend=Lending.IDLE, lent_labels=frozenset({"cpu"}))
    record, node = an_agent(pool="gpu")
    record = replace(
        record,
        labels=("gpu", "autoscaler-fleet-f"),
        lent_until=NOW - MINUTE,
        lent_labels=("cpu",),
    )
    fleet = a_fleet(a_pool(), rare)
    yield from long_known(fleet)
    hold = Hold(
        scope=Scope.LABEL, name="cpu", since_at=NOW - HOUR, until_at=None, by="ada", reason="r"
    )
    seen = a_snapshot(a_view(node), records=(record,), overrides=Overrides(holds=(hold,)))
    yield from minutes(fleet, seen, 2)


def the_clock_was_ahead_while_an_agent_boots() -> Iterator[Look]:
    """By the clock that was wrong it is late."""
    boots = a_record("i-1", launched_at=NOW - 10 * MINUTE)
    view = a_view(items=(an_item(1, label="cpu"),))
    seen = a_snapshot(view, records=(boots,))
    for at in (NOW, NOW + 10 * MINUTE, NOW + MINUTE):
        yield look(Asks.UP, a_fleet(), seen, at)


def a_clock_that_was_ahead_launched_an_agent() -> Iterator[Look]:
    """EC2 knows when; of another one it shows nothing yet."""
    ahead = [a_record(f"i-{number}", launched_at=NOW + HOUR) for number in (1, 2)]
    known = an_instance("i-1", launched_at=NOW - 5 * MINUTE)
    seen = a_snapshot(a_view(), records=tuple(ahead), instances=(known,))
    for asks in (Asks.UP, Asks.DOWN):
        yield from (look(asks, a_fleet(), seen, NOW + number * 6 * MINUTE) for number in range(4))


def a_job_comes_between_two_looks_of_one_instant() -> Iterator[Look]:
    for items in ((), (an_item(1, label="cpu"),)):
        yield look(Asks.UP, a_fleet(), a_snapshot(a_view(items=items)), NOW)


def a_person_stops_a_machine_that_they_have() -> Iterator[Look]:
    """It is theirs until their time is over."""
    record, node = an_agent()
    record = replace(record, reservation=a_reservation(until_at=NOW + 2 * HOUR))
    node = cordoned(node, a_mark(MarkClass.RESERVED))
    stopped = an_instance(state=InstanceState.STOPPED)
    yield from long_known(a_fleet())
    seen = a_snapshot(a_view(node), records=(record,), instances=(stopped,))
    yield from minutes(a_fleet(), seen, 3)


def a_person_takes_a_node_offline_whose_labels_were_taken() -> Iterator[Look]:
    """It is theirs to give the labels back."""
    record, node = an_agent()
    record = replace(record, labels=("cpu", "autoscaler-fleet-f"))
    node = replace(
        cordoned(node),
        labels=frozenset((node.name, "autoscaler-fleet-f", "autoscaler-cordoned")),
        reason="look at it",
    )
    yield from long_known(a_fleet())
    yield from minutes(a_fleet(), a_snapshot(a_view(node), records=(record,)), 3)


def ec2_refuses_to_stop_a_machine() -> Iterator[Look]:
    """It is ended in place of that."""
    fleet = a_fleet(a_pool(warm_pool=_WARM))
    record, node = an_agent()
    seen = a_snapshot(a_view(cordoned(node)), records=(record,))
    yield from long_known(fleet)
    yield from minutes(fleet, seen, 1)
    refused = Outcomes(unstoppable={"i-1": ("cpu", "UnsupportedOperation")})
    yield look(Asks.DOWN, fleet, seen, NOW + MINUTE, outcomes=refused)
    yield from minutes(fleet, seen, 2, first=2)


def a_block_leaves_and_jenkins_tells_no_graph_of_its_run() -> Iterator[Look]:
    """The run goes on: nothing says how the block ended."""
    run = "job/ci/7"
    record, node = an_agent(builds=(a_build("ci", run=run, is_block=True, signature="Test"),))
    left = replace(node, builds=(), idle=True)
    graphs = Graphs(read={run: RunGraph(size=200, shows_steps=False)})
    for at, shown, answers in (
        (NOW, node, Answers()),
        (NOW + MINUTE, left, Answers(graphs=graphs)),
    ):
        seen = a_snapshot(a_view(shown), records=(record,))
        yield look(Asks.LEARN, a_fleet(), seen, at, answers={"main": answers})


CORNERS = (
    *(a_person_reserves_while_a_controller_is_away, ec2_refuses_a_minimum),
    ec2_refuses_a_minimum_of_a_pool_that_stops_agents,
    *(the_month_is_spent_while_an_agent_retires, a_machine_ends_while_it_retires),
    *(the_month_is_spent_while_a_job_names_an_agent_without_labels, others_end_an_agent),
    *(an_instance_tells_no_pool, a_host_is_let_go_of_where_nobody_sees_it),
    *(a_person_asks_for_an_agent_of_which_another_has_devices, a_pool_becomes_one_of_hosts),
    *(a_person_keeps_surplus_agents, a_person_keeps_an_agent_whose_pool_left),
    *(a_host_is_lost_whose_pool_has_other_labels, a_launch_is_late_on_a_controller_that_left),
    *(a_machine_ends_after_a_restart_that_it_missed, many_agents_hand_over_at_once),
    *(a_side_is_given_up_and_online, ec2_still_stops_what_has_stopped),
    a_job_waits_for_what_only_the_first_beacon_satisfies,
    *(a_schedule_holds_over_midnight, a_capacity_block_is_about_to_end),
    *(a_loan_is_over_while_its_labels_are_on_hold, the_clock_was_ahead_while_an_agent_boots),
    *(a_job_comes_between_two_looks_of_one_instant, a_person_stops_a_machine_that_they_have),
    *(a_person_takes_a_node_offline_whose_labels_were_taken, ec2_refuses_to_stop_a_machine),
    *(two_schedules_hold_at_once, a_block_leaves_and_jenkins_tells_no_graph_of_its_run),
    *(a_job_waits_for_two_nodes_of_no_pool, a_static_node_comes_online_while_jenkins_shuts_down),
    a_clock_that_was_ahead_launched_an_agent,
    *(ec2_ends_a_launch_for_a_quota_of_volumes, ec2_ends_a_launch_for_want_of_a_machine),
)
