"""What people order while other things go wrong: runs, reservations, money that is spent; and builds that are lost and run again."""

from dataclasses import replace
from functools import partial
from math import inf

from autoscaler.control import operate, passes
from autoscaler.domain.facts.fleet import AtMonthLimit, Fleet
from autoscaler.domain.facts.orders import BUDGET, Hold, Release, Reserve, Scope, hold, resume_budget
from autoscaler.domain.facts.started_builds import Until
from autoscaler.domain.labels import parse
from autoscaler.domain.run_orders.choice import Asked, CancelRun, OrderRuns
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.hostile.drawn import MINUTE
from support.hostile.of_the_file import with_keys
from support.hostile.prepared import ORDERED_LABEL
from support.hostile.unkind import Draw, Unkindness

_HOUR = 3600.0
_BENCH = "orders/bench"


def orders_leave(draw: Draw) -> Unkindness:
    """People order runs, some take their orders back, and at times the key `runs` leaves meanwhile."""
    span, life = draw.span(10, 150), draw.life
    pools = list(life.drawn.fleet.launched.pools.values())
    seconds = draw.chance.choice([120.0, 600.0, 1500.0])
    declares = dict.fromkeys((ORDERED_LABEL, life.drawn.fleet.rerun_parameter), "")
    for api in life.fleet.apis.values():
        kind = draw.chance.choice(list(Kind))
        api.jobs.jobs[_BENCH] = Job(kind, None, seconds, declares=declares, label_parameter=ORDERED_LABEL)
    for _ in range(draw.chance.randint(2, 5)):
        at = life.drawn.begin_at + draw.chance.random() * (life.drawn.calm_at - life.drawn.begin_at)
        pool, number = draw.chance.choice(pools), len(draw.life.wanted.orders)
        asked = Asked(job=_BENCH, runs=draw.chance.randint(1, 4), expression=parse(pool.name), conditions=(), vary=None)
        draw.at(at, partial(_order, draw, asked, f"request-{at:.0f}-{number}"))
    if draw.chance.random() < 0.5:
        draw.edit_file(span, lambda file: replace(file, runs=None))
    return draw.make("runs", span, touches=lambda build: build.job == _BENCH)


def _order(draw: Draw, asked: Asked, request: str) -> None:
    life, until = draw.life, draw.chance.choice([Until.EACH, Until.EACH, Until.ALL, Until.FIRST_SUCCESS])
    is_taken_back, after = draw.chance.random() < 0.3, draw.chance.uniform(1, 40) * MINUTE
    more = {"resubmit": draw.chance.choice([0, 1, 3]), "replace": 2 if until is Until.ALL else None}
    what = OrderRuns(asked=asked, parameters=(), until=until, by="alice", reason="", request_id=request, **more)
    try:
        entry = operate.order_runs(life.fleet.ports_of("operate"), life.fleet.fleet, life.fleet.invocation(), what)
    except AutoscalerError:
        return  # no key `runs`, or nobody can serve it now
    draw.bite()
    life.wanted.orders.append(entry.id)
    if is_taken_back:
        life.world.timeline.after(after, partial(_take_back, draw, entry.id))


def _take_back(draw: Draw, order: str) -> None:
    fleet = draw.life.fleet
    try:
        operate.cancel_runs(fleet.ports_of("operate"), fleet.fleet, fleet.invocation(), CancelRun(id=order, by="bob", reason=""))
    except AutoscalerError:
        return


def lost_builds(draw: Draw) -> Unkindness:
    """Machines die under any build, which is run again by `rerun`; answers to its start are lost at times; the key may leave."""
    pool, span, life = draw.pool(), draw.span(20, 90), draw.life
    unanswered = draw.chance.choice([0.0, 0.3, 1.0])

    def die() -> None:
        for instance in life.ec2.of(pool):
            node = life.world.node_of(instance)
            if instance.is_on() and node is not None and node.builds and draw.chance.random() < 0.3:
                draw.end(instance)

    def dice(call: str) -> Fault | None:
        starts = call in {"jenkins build", "jenkins buildWithParameters"}
        return Fault(call, after=draw.chance.random() < 0.5) if starts and draw.chance.random() < unanswered else None

    draw.every(span, draw.chance.uniform(4, 12) * MINUTE, die)
    for at in life.jenkins.values():
        draw.while_it_lasts((span[0], span[1] + 20 * MINUTE), at.calls.dice, dice)
    if draw.chance.random() < 0.4:
        draw.edit_file(draw.span(10, 90), with_keys(pool.name, rerun=None))
    return draw.make(pool.name, span, touches=life.served_by(pool), strikes=life.instances_of(pool))


def reserved(draw: Draw) -> Unkindness:
    """People reserve agents, for an hour or longer than the world lasts; some let go early."""
    pool, span, life = draw.pool(), draw.span(20, 150), draw.life
    mine, hours = set[str](), draw.chance.choice([0.5, 1.0, 3.0])
    gives_back = draw.chance.random() < 0.5

    def reserve() -> None:
        nodes = [node for at in life.jenkins.values() for node in at.ours(pool) if node.connected and not node.offline]
        if mine or not nodes:
            return
        order = Reserve(
            target=nodes[0].name, controller=None, seconds=hours * _HOUR, person="alice", by="ada", reason="a test hangs", request_id="r-1"
        )
        _carried_out(draw, order)
        # Jenkins may have been out of reach: then the reservation stands, and the node is marked a minute later.
        now, records = life.world.timeline.now, life.fleet.state.records.values()
        record = next((record for record in records if record.reservation), None)
        if record is None:
            return
        mine.add(record.machine)
        draw.bite_unforeseen()
        until = now + hours * _HOUR if not gives_back else min(now + hours * _HOUR, max(span[1], now))
        life.wanted.reserved.append((record.machine, now, until))
        if gives_back and span[1] > now:
            draw.at(span[1], partial(_carried_out, draw, Release(target=record.node or record.machine, reason="done", person="alice")))

    draw.every((span[0], span[1] - MINUTE), 3 * MINUTE, reserve)
    facts = {"touches": life.served_by(pool), "strikes": lambda instance: instance.id in mine}
    return draw.make(f"one of {pool.name}", span, keeps=lambda instance: instance.id in mine, **facts)


def _carried_out(draw: Draw, order: Reserve | Release) -> bool:
    fleet = draw.life.fleet
    try:
        reports = passes.carry_out(fleet.ports_of("operate"), fleet.fleet, replace(fleet.invocation(), by_a_person=True), order)
    except AutoscalerError:
        return False
    return any(result.outcome == "done" for report in reports for result in report.results)


def money_spent(draw: Draw) -> Unkindness:
    """The month's money is spent until somebody raises the limit; or the AWS budget says so until somebody resumes it."""
    span, life = draw.span(10, 90), draw.life

    def touches(_build):
        return True

    if draw.chance.random() < 0.5:
        at_limit = draw.chance.choice(list(AtMonthLimit))

        def spent(file: Fleet) -> Fleet:
            return replace(file, limits=replace(file.limits, max_usd_per_month=0.01, at_month_limit=at_limit))

        draw.edit_file(span, spent)
        draw.bite_where_jobs_wait(span, touches)
        return draw.make(f"limit: {at_limit}", span, touches=touches, words={"month's limit"})

    def hold_all() -> None:
        now = life.fleet.ports.clock()
        what = Hold(scope=Scope.FLEET, name="", since_at=now, until_at=None, by=BUDGET, reason="the budget is spent")
        _changed(draw, partial(hold, new=what))

    draw.at(span[0], hold_all)
    draw.every((span[1], inf), 10 * MINUTE, partial(_changed, draw, resume_budget))  # until the state takes it
    draw.bite_where_jobs_wait(span, touches)
    facts = {"touches": touches, "strikes": lambda _instance: True, "words": {BUDGET}}
    return draw.make("the AWS budget", span, pays_seconds=span[1] - span[0] + _HOUR, **facts)


def _changed(draw: Draw, what) -> None:
    fleet = draw.life.fleet
    try:
        operate.change(fleet.ports_of("operate"), fleet.invocation(), what)
    except AutoscalerError:
        return


def answers_lost(draw: Draw) -> Unkindness:
    """Answers to what was asked of EC2 and of Jenkins are lost, while it took effect."""
    span, share = draw.span(10, 60), draw.chance.choice([0.1, 0.5])

    def dice(call: str) -> Fault | None:
        return Fault(call, after=True) if not call.startswith("sns ") and draw.chance.random() < share else None

    draw.while_it_lasts(span, draw.life.calls.dice, dice)
    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.calls.dice, dice)
    return draw.make(f"{share:.0%}", span, touches=lambda _build: True, strikes=lambda _instance: True, is_noise=True)


SWITCHES = {
    "orders-leave": orders_leave,
    "lost-builds": lost_builds,
    "reserved": reserved,
    "money-spent": money_spent,
    "answers-lost": answers_lost,
}
