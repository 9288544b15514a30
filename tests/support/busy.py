"""A busy hour: one time-line in which every function does all that it can do. Short, repeatable, and ends at rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Market, WarmPool, agent_spec
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import DrainSome, LaunchSome, Release, Reserve
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.drive import InMemory
from autoscaler_workbench.simulate.result import beyond_floor, leaked_instances, leaked_nodes
from support.builders import a_mark, a_pool, an_offering
from support.worlds import a_world_node, in_memory

MINUTE = 60.0
SPOT, FIRM = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering(usd_per_hour=3.0)
# A pass that is cut off holds its lease on; what it left is repaired by two looks, a boot deadline, a disconnect grace.
PATIENCE_MINUTES = 150
IMAGE_PARAMETER = "/ci/gpu-image"

Invocation = Callable[[], object]


def a_fleet_in_memory(faults: Faults | None = None) -> InMemory:
    quick = {"idle_seconds": 120.0, "boot_seconds": 60.0, "boot_timeout_seconds": 240.0, "queue_maturity_seconds": 0.0}
    cpu = a_pool("cpu", executors=2, offerings=(SPOT, FIRM), max_agents=7, **quick)
    # So briefly that the hour ends with nothing left.
    warm = WarmPool(min_agents=0, max_agents=3, max_age_seconds=900.0)
    gpu = a_pool("gpu", offerings=(FIRM,), max_agents=4, warm_pool=warm, image_parameter=IMAGE_PARAMETER, **quick)
    once = a_pool("once", offerings=(FIRM,), max_agents=2, max_builds=1, **quick)
    fleet = in_memory(cpu, gpu, once, seed=5, faults=faults)
    name_image(fleet.world, "ami-1")
    return fleet


def name_image(world: World, image: str) -> None:
    world.ec2.account.images[image] = image_of("linux", ImageId=image)
    world.ec2.account.parameters[IMAGE_PARAMETER] = image


@dataclass(slots=True)
class Hour:
    """The hour as it goes. ``around`` runs each invocation of a function, by its name: where a test cuts one off."""

    fleet: InMemory = field(default_factory=a_fleet_in_memory)
    around: Callable[[str, Invocation], None] = lambda _function, invocation: ran(invocation)
    script: dict = field(default_factory=lambda: SCRIPT)
    schedule: tuple[str, ...] = ("publish_metrics", "scale_up", "scale_down")
    minute: int = 0
    builds: list[Build] = field(default_factory=list)
    dead: list[Build] = field(default_factory=list)  # builds that the script itself ends: a machine taken away under them

    def __post_init__(self) -> None:
        world = self.fleet.world
        asks, hears = world.ec2.on_running, self.fleet.instance_events
        world.ec2.on_running = lambda instance: self.around(self._asking(instance), partial(asks, instance))
        world.ec2.announce = lambda instance, what: self.around("instance_events", partial(hears, instance, what))

    def _asking(self, instance: Instance) -> str:
        record = self.fleet.state.records.get(instance.id)
        if record and record.reservation:
            return "register_agent for a person"
        return "register_agent again" if instance.life else "register_agent"

    @property
    def world(self):
        return self.fleet.world

    @property
    def jenkins(self):
        return self.fleet.world.controllers["main"]

    def run(self, until: int) -> None:
        """Let the hour go on."""
        while self.minute < until:
            self.tick()

    def tick(self) -> None:
        """One minute: what happens in the world, then the functions of the schedule."""
        self.minute += 1
        self.world.move_to(self.world.timeline.now + MINUTE)
        for happen in self.script.get(self.minute, ()):
            happen(self)
        for function in self.schedule:
            self.around(function, getattr(self.fleet, function))
        self._check_limits()

    def settle(self) -> None:
        """Let it go on until it is at rest."""
        for _ in range(PATIENCE_MINUTES):
            if self.minute > max(self.script, default=0) and self.at_rest():
                return
            self.tick()

    def at_rest(self) -> bool:
        return self.left_over() == ([], [], [], {}, {}) and all(build.ended for build in self.builds)

    def left_over(self) -> tuple:
        state = self.fleet.state
        return leaked_instances(self.world), leaked_nodes(self.world), beyond_floor(self.world), state.records, _open(state.intents)

    def assert_whole(self) -> None:
        """The promises, in the end."""
        assert self.left_over() == ([], [], [], {}, {})
        # What begins on a machine that EC2 takes back, and whose announcement was not heard, is not our doing.
        ours = [build for build in self.builds if build not in self.dead and "was interrupted" not in build.killed_by]
        assert [build for build in ours if build.killed_by or build.ended is not Ended.FINISHED] == []
        launched = (instance for instance in self.world.ec2.instances.values() if "autoscaler:launch" in instance.tags)
        for request, instances in launched_by(launched).items():
            assert len(instances) <= self.world.ec2.asked[request], f"{request} was launched twice"

    def now(self) -> float:
        return self.world.timeline.now

    def queue(self, count: int, label: str, seconds: float, kind: Kind = Kind.FREESTYLE) -> None:
        self.builds += [self.jenkins.submit(f"{label}-{self.minute}-{n}", label, seconds, kind=kind) for n in range(count)]

    def by_hand(self, function: str, order: passes.Order) -> None:
        """A person invokes a function; what is refused, they see."""

        def carry_out() -> None:
            self.fleet.reports += passes.carry_out(self.fleet.ports, self.fleet.fleet, self.fleet.invocation(), order)

        self.around(function, carry_out)

    def busy(self, pool: str, index: int = 0) -> Instance | None:
        """One of the pool's connected agents that has a build, if there is one."""
        return _at(index, [i for i in self.connected(pool) if self.world.node_of(i).builds])

    def idle(self, pool: str, index: int = 0) -> Instance | None:
        return _at(index, [i for i in self.connected(pool) if not self.world.node_of(i).builds])

    def connected(self, pool: str) -> list[Instance]:
        mine = [i for i in self.world.alive() if i.tags["autoscaler:pool"] == pool]
        return [i for i in mine if (node := self.world.node_of(i)) and node.connected and not node.temporarily_offline]

    def stopped(self, pool: str) -> Instance | None:
        """The one of the pool's stopped machines that is started first."""
        return _at(-1, [i for i in self.world.alive() if i.tags["autoscaler:pool"] == pool and i.state == "stopped"])

    def _check_limits(self) -> None:
        for pool in self.fleet.fleet.pools.values():
            assert sum(i.tags["autoscaler:pool"] == pool.name for i in self.world.alive() if i.is_on()) <= pool.max_agents


def launched_by(instances) -> dict[str, list[str]]:
    """Instances by the launch that asked for them."""
    by_launch: dict[str, list[str]] = {}
    for instance in instances:
        by_launch.setdefault(instance.tags["autoscaler:launch"], []).append(instance.id)
    return by_launch


def ran(invocation: Invocation) -> None:
    """Lambda's own boundary: an error stands in the log, and the next tick comes."""
    try:
        invocation()
    except AutoscalerError:
        return


def _at(index: int, instances: list[Instance]) -> Instance | None:
    return instances[index] if instances and index < len(instances) else None


def _open(intents: dict) -> dict:
    return {key: intent for key, intent in intents.items() if intent.open}


# What happens, by the minute. Each copes with a world in which something failed before.


def someone_deletes_the_beacon(hour: Hour) -> None:
    hour.jenkins.nodes.pop(hour.fleet.fleet.beacon, None)


def the_record_of_a_busy_agent_is_lost(hour: Hour) -> None:
    instance = hour.busy("cpu")
    if instance and not hour.fleet.state.holder:
        hour.fleet.state.records.pop(instance.id, None)


def spot_takes_a_busy_agent_back(hour: Hour) -> None:
    instance = hour.busy("cpu")
    if instance:
        hour.dead += [
            build for build in hour.world.node_of(instance).builds.values() if build.started_at + build.seconds > hour.now() + 115
        ]
        hour.world.ec2.interrupt(instance)


def someone_terminates_an_idle_agent(hour: Hour) -> None:
    if instance := hour.idle("cpu"):
        hour.world.ec2.end(instance)


def the_next_boot_hangs(hour: Hour) -> None:
    running = hour.world.ec2.on_running
    hung: list[str] = []

    def hangs_once(instance: Instance) -> None:
        if not hung or instance.id in hung:
            hung.append(instance.id)
        else:
            running(instance)

    hour.world.ec2.on_running = hangs_once


def an_idle_agent_loses_its_connection(hour: Hour) -> None:
    if instance := hour.idle("gpu"):
        hour.jenkins.disconnect(instance.tags["autoscaler:node"])


def someone_stops_an_idle_agent(hour: Hour) -> None:
    if instance := hour.idle("gpu"):  # spot instances of ours cannot be stopped
        hour.world.ec2.stop(instance.id)


def someone_starts_a_stopped_machine(hour: Hour) -> None:
    if instance := hour.stopped("gpu"):
        hour.world.ec2.start(instance.id)


def ec2_has_no_machine_for_those_that_are_stopped(hour: Hour) -> None:
    hour.world.ec2.capacity[FIRM.key] = 0


def ec2_has_machines_again(hour: Hour) -> None:
    hour.world.ec2.capacity.clear()


def the_next_start_fails(hour: Hour) -> None:
    if instance := hour.stopped("gpu"):
        instance.fails_to_start = "Client.InternalError"


def a_stop_is_not_allowed_any_more(hour: Hour) -> None:
    if instance := hour.idle("gpu"):
        instance.stop_protected = True


def a_node_without_record_whose_instance_has_ended_is_there(hour: Hour) -> None:
    ended = Instance(
        id="i-00000000000000001",
        instance_type=FIRM.instance_type,
        subnet="",
        market="on-demand",
        template="cpu",
        tags={},
        launched_at=0.0,
        visible_at=0.0,
        state="terminated",
        ended_at=hour.now(),
    )
    hour.world.ec2.instances[ended.id] = hour.world.ec2.remembered[ended.id] = ended
    spec = agent_spec(hour.fleet.fleet, hour.fleet.fleet.pools["cpu"], ended.id)
    hour.jenkins.add_node(a_world_node(spec.name, *spec.labels, description=spec.description, connected=False))


def the_launch_template_gets_a_new_version(hour: Hour) -> None:
    hour.world.ec2.template_versions |= {"cpu": 2}


def the_parameter_names_a_new_image(hour: Hour) -> None:
    name_image(hour.world, "ami-2")


def a_busy_agent_carries_our_retire_mark(hour: Hour) -> None:
    half_busy = [i for i in hour.connected("cpu") if len(hour.world.node_of(i).builds) == 1]
    if instance := _at(0, half_busy):
        hour.jenkins.set_offline(instance.tags["autoscaler:node"], a_mark(MarkClass.RETIRE, "an-earlier-pass").text, "bot")


def queue(count: int, label: str, seconds: float, kind: Kind = Kind.FREESTYLE):
    return lambda hour: hour.queue(count, label, seconds, kind)


def launch(pool: str, count: int, request_id: str, *, keep_seconds: float = 0.0):
    order = LaunchSome(pool=pool, count=count, controller="main", keep_seconds=keep_seconds, reason="by hand", request_id=request_id)
    return lambda hour: hour.by_hand("scale_up by hand", order)


def drain(pool: str, count: int, request_id: str):
    order = DrainSome(pool=pool, count=count, controller=None, reason="by hand", request_id=request_id)
    return lambda hour: hour.by_hand("scale_down by hand", order)


def reserve(target: str, minutes: float, request_id: str):
    order = Reserve(
        target=target, controller=None, seconds=minutes * MINUTE, person="alice", by="ada", reason="by hand", request_id=request_id
    )
    return lambda hour: hour.by_hand("operate by hand", order)


def someone_releases_what_alice_has(hour: Hour) -> None:
    reserved = [record for record in hour.fleet.state.records.values() if record.reservation]
    if reserved:
        last = max(reserved, key=lambda record: record.reservation.until_at)
        hour.by_hand("operate by hand", Release(target=last.instance_id, reason="by hand"))


SCRIPT = {
    3: (queue(5, "cpu", 500.0), queue(1, "gpu", 900.0, Kind.PIPELINE)),
    6: (launch("gpu", 2, "r-1"), someone_deletes_the_beacon),
    7: (launch("gpu", 2, "r-1"),),
    9: (the_record_of_a_busy_agent_is_lost,),
    10: (a_busy_agent_carries_our_retire_mark, queue(4, "cpu", 300.0)),
    12: (the_launch_template_gets_a_new_version, the_parameter_names_a_new_image),
    13: (queue(2, "cpu", 400.0), a_node_without_record_whose_instance_has_ended_is_there),
    15: (queue(2, "cpu", 600.0), queue(2, "gpu", 200.0)),
    17: (spot_takes_a_busy_agent_back, the_next_boot_hangs, queue(3, "cpu", 200.0)),
    18: (someone_terminates_an_idle_agent,),
    19: (launch("gpu", 1, "r-5", keep_seconds=1200.0),),
    22: (queue(4, "cpu", 100.0),),
    24: (an_idle_agent_loses_its_connection,),
    25: (someone_stops_an_idle_agent,),
    28: (queue(3, "cpu", 700.0), queue(1, "once", 200.0)),
    33: (queue(1, "gpu", 300.0), launch("cpu", 1, "r-2")),
    35: (queue(3, "cpu", 300.0),),
    38: (drain("cpu", 1, "r-3"), drain("gpu", 1, "r-4")),
    40: (queue(3, "gpu", 60.0),),
    45: (reserve("cpu", 8, "r-7"), queue(1, "cpu", 200.0)),
    46: (queue(2, "gpu", 60.0), reserve("cpu", 8, "r-7")),
    47: (reserve("gpu", 4, "r-9"),),
    51: (reserve("cpu", 60, "r-8"),),
    53: (someone_releases_what_alice_has,),
    54: (ec2_has_no_machine_for_those_that_are_stopped, queue(1, "gpu", 60.0)),
    56: (ec2_has_machines_again,),
    60: (launch("gpu", 1, "r-6"),),
    61: (launch("gpu", 1, "r-6"),),
    63: (someone_starts_a_stopped_machine,),
    66: (the_next_start_fails, queue(1, "gpu", 60.0)),
    71: (a_stop_is_not_allowed_any_more,),
}
