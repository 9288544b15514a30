"""A second busy hour, of what is shared: a loan, a rotation, a machine of two controllers, a host. Short, repeatable, and ends at rest.

In it builds are lost with their machines, too: one that its pool runs again, and one of two runs that a person ordered.
"""

from collections import Counter
from dataclasses import replace

from autoscaler.domain.facts.fleet import Lending, Share
from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy
from autoscaler.domain.report.ordered import outcome_of
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.agents import IdentityAnswer
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.busy import FIRM, Hour
from support.ordering import LABEL, RUN_ID, asked, define, instance_of, order
from support.worlds import in_memory

TWO = ("main", "other")
ASKS, ORDERS = "register_agent shared", "operate shared"
# Jobs whose builds are lost: one that runs again by the fleet file, one that is ordered.
LOST, ORDERED = "lost", "ordered"


def a_shared_fleet(faults: Faults | None = None) -> InMemory:
    quick = {
        "boot_seconds": 60.0,
        "boot_timeout_seconds": 240.0,
        "queue_maturity_seconds": 0.0,
        "offerings": (FIRM,),
        "idle_seconds": 300.0,
    }
    both = a_pool("both", controllers=TWO, share=Share.COOPERATIVE, executors=2, max_agents=2, **quick)
    turns = a_pool("turns", controllers=TWO, share=Share.ROTATE, max_agents=1, **(quick | {"idle_seconds": 900.0}))
    rare = a_pool("rare", lent_labels=frozenset({"plain"}), lend=Lending.IDLE, max_agents=1, **quick)
    plain = a_pool("plain", max_agents=1, **(quick | {"boot_seconds": 1200.0, "boot_timeout_seconds": 1800.0}))
    box = a_pool_of_hosts("box")
    again = a_pool("again", rerun=RerunPolicy(), max_agents=3, **quick)
    fleet = in_memory(both, turns, rare, plain, box, again, seed=7, faults=faults, hosts=(a_host("box-1", "box"),))
    fleet.fleet = replace(fleet.fleet, runs=RunPolicy(label_parameter=LABEL, max_open=2))
    return fleet


class SharedHour(Hour):
    """The hour as it goes. Each question of an agent is an invocation of its own; one that is cut off is no answer."""

    __slots__ = ()

    def __post_init__(self) -> None:
        self.script, agents = SCRIPT, self.fleet.agents
        asks, hears = agents._ask, self.fleet.instance_events

        def asking(machine, connected):
            told = [IdentityAnswer(status=0)]
            self.around(ASKS, lambda: told.__setitem__(0, asks(machine, connected)))
            return told[0]

        agents._ask = asking
        jobs = define(self, job=ORDERED, seconds=250.0)
        jobs.jobs[LOST] = Job(Kind.FREESTYLE, "again", 250.0, declares={RUN_ID: ""})
        self.world.ec2.announce = lambda instance, what: self.around("instance_events", lambda: hears(instance, what))

    def elsewhere(self, count: int, label: str, seconds: float) -> None:
        other = self.world.controllers["other"]
        self.builds += [other.submit(f"{label}-{self.minute}-{n}", label, seconds) for n in range(count)]

    def builds_of(self, job: str) -> list[Build]:
        return self.jenkins.builds_of.get(job, [])

    def at_rest(self) -> bool:
        over = all(build.ended for job in (LOST, ORDERED) for build in self.builds_of(job))
        return over and not any(one.is_open for one in self.fleet.run_orders.orders.values()) and Hour.at_rest(self)

    def assert_whole(self) -> None:
        """The promises, in the end: what was lost was started once more, each time."""
        Hour.assert_whole(self)
        [ordered] = self.fleet.run_orders.orders.values()
        assert outcome_of(ordered) == "passed"
        for job, wanted in ((LOST, 1), (ORDERED, 2)):
            ended = Counter(build.ended for build in self.builds_of(job))
            assert ended[Ended.FINISHED] == wanted, (job, ended)
            assert ended == Counter({Ended.FINISHED: wanted, Ended.KILLED: ended[Ended.KILLED]}), (job, ended)
        ids = [dict(build.started_with.parameters)[RUN_ID] for build in self.builds_of(ORDERED)]
        assert len(ids) == len(set(ids)), ids


def queue(count: int, label: str, seconds: float, kind: Kind = Kind.FREESTYLE):
    return lambda hour: hour.queue(count, label, seconds, kind)


def elsewhere(count: int, label: str, seconds: float):
    return lambda hour: hour.elsewhere(count, label, seconds)


def the_fleet_file_has_no_host_any_more(hour: Hour) -> None:
    hour.fleet.fleet = replace(hour.fleet.fleet, hosts={})


def a_build_begins_that_will_be_lost(hour: Hour) -> None:
    hour.fleet.apis["main"].jobs.build(LOST, {RUN_ID: ""}, "somebody")


def someone_orders_two_runs(hour: Hour) -> None:
    hour.around(ORDERS, lambda: order(hour, asked(2, on="again", job=ORDERED)))


def machines_are_lost_with_what_they_build(hour: Hour) -> None:
    for job in (LOST, ORDERED):
        if running := [build for build in hour.builds_of(job) if build.node and build.ended is None]:
            hour.world.ec2.end(instance_of(hour, running[0]))


SCRIPT = {
    2: (a_build_begins_that_will_be_lost, someone_orders_two_runs),
    3: (queue(1, "both", 200.0), elsewhere(1, "both", 400.0), queue(1, "rare", 60.0), someone_orders_two_runs),
    6: (queue(1, "plain", 120.0), queue(1, "turns", 60.0), queue(1, "box", 200.0), machines_are_lost_with_what_they_build),
    10: (queue(1, "rare", 100.0),),
    12: (elsewhere(1, "turns", 120.0),),
    14: (elsewhere(2, "both", 100.0), queue(1, "box", 600.0)),
    18: (queue(1, "turns", 60.0),),
    20: (the_fleet_file_has_no_host_any_more,),
    24: (queue(3, "both", 60.0),),
}
