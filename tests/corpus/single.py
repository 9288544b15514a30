"""Makes series by hand, for branches that no recorded world takes: ``python -m corpus.single``
writes candidates for ``corpus.fill``."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from autoscaler.domain.facts.fleet import PoolSchedule, Share
from autoscaler.domain.facts.orders import EndInstance, LaunchSome
from autoscaler.domain.facts.snapshot import Node, OfflineCause, QueueItem, Snapshot
from corpus.candidates import FOLDER
from corpus.case import Answers, Asks, Case, Look, Recorded, written
from corpus.corners import CORNERS
from corpus.hand import HOUR, MINUTE, look, minutes
from corpus.limits import LIMITS
from corpus.lost import LOST
from corpus.taught import TAUGHT
from support.builders import (
    NOW,
    a_fleet,
    a_host,
    a_node,
    a_pool,
    a_pool_of_hosts,
    a_record,
    a_snapshot,
    a_view,
    an_agent,
    an_instance,
    an_item,
)


def clocks_are_put_forward() -> Iterator[Look]:
    """Of two schedules one lies in the hour that is left out, and one ends in it."""
    berlin, sunday = ZoneInfo("Europe/Berlin"), frozenset({6})
    spans = ((135, 165), (90, 150), (120, 240))
    for first, last in spans:
        schedule = PoolSchedule(
            days=sunday, from_minute=first, to_minute=last, time_zone=berlin, min_agents=1
        )
        fleet = a_fleet(a_pool(min_agents=1, schedules=(schedule,)))
        for hour in (-132, -1, 0, 1):
            at = datetime(2027, 3, 28, tzinfo=UTC).timestamp() + hour * HOUR
            yield look(Asks.UP, fleet, a_snapshot(), at)


def nodes_of_others_refuse_all() -> Iterator[Look]:
    """Ten nodes of other people stand free beside jobs of two folders, more than are kept."""
    fleet = a_fleet(a_pool(max_agents=0))
    nodes = [a_node(f"theirs-{number}", "cpu") for number in range(10)]
    jobs = [
        an_item(number, label="cpu", job=f"{'ab'[number % 2]}/{number}", waiting_seconds=1200.0)
        for number in range(52)
    ]
    yield from minutes(fleet, a_snapshot(a_view(*nodes, items=tuple(jobs))), 25, every=2)


def nobody_looks_again_and_again() -> Iterator[Look]:
    """More gaps than are kept, while a job waits."""
    seen = a_snapshot(a_view(items=(an_item(1, label="cpu"),)))
    for number in range(44):
        yield look(Asks.DOWN, a_fleet(), seen, NOW + number * 400.0)


def one_stray_of_two_is_ended() -> Iterator[Look]:
    """A person names the second one of a controller that left the fleet file."""
    strays = tuple(an_instance(name, controller="left") for name in ("i-1", "i-2"))
    order = EndInstance(target="i-2", reason="r")
    seen = a_snapshot(instances=strays)
    yield look(Asks.ORDER, a_fleet(), seen, NOW, order=order)


def a_job_comes_by_the_clock() -> Iterator[Look]:
    """Each hour, but for one, and then no more."""
    for hour in range(14):
        items = (an_item(hour, label="cpu", job="nightly"),) if hour < 9 and hour != 6 else ()
        for seconds, waits in ((0.0, items), (300.0, ())):
            at = NOW + hour * HOUR + seconds
            seen = a_snapshot(a_view(items=waits))
            yield look(Asks.LEARN, a_fleet(), seen, at, answers={"main": Answers()})
            yield look(Asks.UP, a_fleet(), seen, at)


def a_job_comes_twice_a_day() -> Iterator[Look]:
    """In the end one of the two is late, and the other one is not."""
    for day in range(5):
        for hour in (0.0, 6.0):
            at = NOW + (24 * day + hour) * HOUR
            item = an_item(10 * day + int(hour), label="cpu", job="twice")
            for seconds, items in ((0.0, (item,) if day < 4 else ()), (600.0, ())):
                seen = a_snapshot(a_view(items=items))
                yield look(Asks.LEARN, a_fleet(), seen, at + seconds, answers={"main": Answers()})


def hosts_leave_the_file() -> Iterator[Look]:
    """One that is not connected, and one that has not come back since it was asked to."""
    pool, host = a_pool_of_hosts(), a_host()
    fleet = a_fleet(pool, a_pool(), hosts=(host,))
    for record in (
        a_record(
            host.id,
            pool="rocm",
            node="rocm-1",
            node_life=0,
            launch="",
            instance_type="",
            usd_per_hour=0.0,
        ),
        a_record(host.id, pool="rocm", launched_at=NOW - 3 * HOUR, launch="", instance_type=""),
    ):
        node = a_node("rocm-1", "rocm", "autoscaler-fleet-f", offline=True)
        node = replace(node, cause=OfflineCause.LOST)
        seen = a_snapshot(a_view(node), records=(record,), instances=())
        yield from minutes(fleet, seen, 4)
        yield from minutes(replace(fleet, hosts={}), seen, 12, first=4)


def monitors_mark_most_agents() -> Iterator[Look]:
    """On one of two controllers; jobs wait, a person launches, and then no agent is left."""
    fleet = a_fleet(a_pool(controllers=("main", "other"), share=Share.ROTATE))
    agents = [an_agent(number) for number in range(1, 7)]
    idle = [
        (replace(record, bindings=(replace(record.bindings[0], controller="other"),)), node)
        for record, node in (an_agent(number) for number in range(7, 9))
    ]
    records = tuple(record for record, _ in (*agents, *idle))
    marked = [_marked(node) for _, node in agents]
    other = a_view(*(node for _, node in idle), name="other")
    item = an_item(1, label="cpu")

    def seen(nodes: Iterable[Node], items: tuple[QueueItem, ...] = ()) -> Snapshot:
        return a_snapshot(a_view(*nodes, items=items), other, records=records)

    yield from minutes(fleet, seen(node for _, node in agents), 4)
    yield from minutes(fleet, seen(marked), 3, first=4)
    yield from minutes(fleet, seen(marked, (item,)), 3, first=7)
    order = LaunchSome(
        pool="cpu",
        count=1,
        controller="main",
        keep_seconds=HOUR,
        reason="r",
        request_id="q",
    )
    at = NOW + 10 * MINUTE
    yield look(Asks.ORDER, fleet, seen(marked, (item,)), at, order=order)
    yield from minutes(fleet, seen(()), 2, first=11 + 25 * 60)


def _marked(node: Node) -> Node:
    return replace(
        node,
        offline=True,
        temporarily_offline=True,
        cause=OfflineCause.OTHER,
        reason="disk space is too low",
    )


_ALL = (
    *(clocks_are_put_forward, nodes_of_others_refuse_all, nobody_looks_again_and_again),
    *(one_stray_of_two_is_ended, a_job_comes_by_the_clock, monitors_mark_most_agents),
    *(a_job_comes_twice_a_day, hosts_leave_the_file),
    *CORNERS,
    *LIMITS,
    *LOST,
    *TAUGHT,
)


def made_by_hand() -> list[Case]:
    return [Case(name=one.__name__.replace("_", " "), looks=tuple(one())) for one in _ALL]


def main() -> None:
    cases = made_by_hand()
    with (FOLDER / "branches-single.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{written(Recorded(case=case))}\n" for case in cases)


if __name__ == "__main__":
    main()
