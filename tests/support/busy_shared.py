"""A second busy hour, of what is shared: a loan, a rotation, a machine of two controllers, a host. Short, repeatable, and ends at rest."""

from dataclasses import replace

from autoscaler.domain.facts.fleet import Lending, Share
from autoscaler_workbench.fakes.world.agents import IdentityAnswer
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.busy import FIRM, Hour
from support.worlds import in_memory

TWO = ("main", "other")
ASKS = "register_agent shared"


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
    return in_memory(both, turns, rare, plain, box, seed=7, faults=faults, hosts=(a_host("box-1", "box"),))


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
        self.world.ec2.announce = lambda instance, what: self.around("instance_events", lambda: hears(instance, what))

    def elsewhere(self, count: int, label: str, seconds: float) -> None:
        other = self.world.controllers["other"]
        self.builds += [other.submit(f"{label}-{self.minute}-{n}", label, seconds) for n in range(count)]


def queue(count: int, label: str, seconds: float, kind: Kind = Kind.FREESTYLE):
    return lambda hour: hour.queue(count, label, seconds, kind)


def elsewhere(count: int, label: str, seconds: float):
    return lambda hour: hour.elsewhere(count, label, seconds)


def the_fleet_file_has_no_host_any_more(hour: Hour) -> None:
    hour.fleet.fleet = replace(hour.fleet.fleet, hosts={})


SCRIPT = {
    3: (queue(1, "both", 200.0), elsewhere(1, "both", 400.0), queue(1, "rare", 60.0)),
    6: (queue(1, "plain", 120.0), queue(1, "turns", 60.0), queue(1, "box", 200.0)),
    10: (queue(1, "rare", 100.0),),
    12: (elsewhere(1, "turns", 120.0),),
    14: (elsewhere(2, "both", 100.0), queue(1, "box", 600.0)),
    18: (queue(1, "turns", 60.0),),
    20: (the_fleet_file_has_no_host_any_more,),
    24: (queue(3, "both", 60.0),),
}
