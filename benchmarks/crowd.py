"""A large fleet at work: agents with four executors each, nine of ten busy, and a long queue."""

from random import Random

from autoscaler.config import FleetSettings, check
from autoscaler.domain.facts.fleet import Fleet, NodeSpec, agent_spec
from autoscaler.domain.facts.snapshot import Binding, Record, RecordState
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.tags import FLEET_ID_TAG
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import NODE_TAG, World, build_world
from autoscaler_workbench.simulate.drive import InMemory

EXECUTORS = 4
ITEMS_AN_AGENT = 2.5
_START = 1_800_000_000.0
_POOLS, _JOBS = 10, 500
_BUSY = 0.9


def settings_for(agents: int) -> FleetSettings:
    """Ten pools, with room for one agent in ten more."""
    room = agents + agents // 10
    pool = {"executors": EXECUTORS, "instance_types": ["c5.4xlarge", "c6i.4xlarge"], "platform": "linux", "max_agents": room // _POOLS}
    raw = {
        "fleet": "crowd",
        "limits": {"max_agents": room, "max_launches_per_hour": 100_000, "max_usd_per_hour": 1e6, "max_usd_per_month": 1e7},
        "controllers": {"main": {"url": "http://jenkins.invalid/"}},
        "defaults": {"queue_maturity_seconds": 30},
        "pools": {
            f"pool-{n}": pool | {"labels": [f"pool-{n}", "linux", f"size-{n % 3}"], "launch_template": f"t-{n}"} for n in range(_POOLS)
        },
    }
    return check(raw, "crowd")


def gather(agents: int, *, seed: int = 1) -> InMemory:
    """Make the fleet, at work since half an hour; its state knows every agent."""
    fleet = settings_for(agents).domain()
    chance = Random(seed)  # noqa: S311 - a fleet that is the same each time
    world = build_world(fleet, start_at=_START, seed=seed)
    memory = InMemory(world, fleet)
    for number in range(agents):
        memory.state.add_record(_add_agent(world, number, chance))
    jenkins = world.controllers["main"]
    for number in range(int(agents * ITEMS_AN_AGENT)):
        jenkins.queue.append(_build(number, None, chance))
    world.timeline.now += 60.0
    memory.publish_metrics()
    memory.scale_down()
    world.timeline.now += 60.0
    return memory


def _add_agent(world: World, number: int, chance: Random) -> Record:
    instance, pool = _instance(world.fleet, number), world.fleet.pools[f"pool-{number % _POOLS}"]
    world.ec2.instances[instance.id] = world.ec2.remembered[instance.id] = instance
    spec = agent_spec(world.fleet, pool, instance.id)
    instance.tags[NODE_TAG] = spec.name
    node = _node(spec)
    for executor in range(EXECUTORS):
        if chance.random() < _BUSY:
            node.builds[executor] = _build(number * EXECUTORS + executor, node, chance)
    world.controllers["main"].nodes[node.name] = node
    registered_at = instance.launched_at + 150.0
    return Record(
        instance_id=instance.id,
        state=RecordState.REGISTERED,
        pool=pool.name,
        bindings=(Binding(controller="main", node=node.name),),
        launch=instance.tags["autoscaler:launch"],
        instance_type=instance.instance_type,
        usd_per_hour=pool.offerings[0].usd_per_hour,
        launched_at=instance.launched_at,
        registered_at=registered_at,
        keep_until=0.0,
        changed_at=registered_at,
    )


def _node(spec: NodeSpec) -> Node:
    return Node(
        name=spec.name,
        labels=spec.labels,
        executors=spec.executors,
        exclusive=True,
        description=spec.description,
        remote_dir=spec.remote_dir,
        connected=True,
    )


def _instance(fleet: Fleet, number: int) -> Instance:
    pool = fleet.pools[f"pool-{number % _POOLS}"]
    tags = {"fleet": fleet.name, "pool": pool.name, "controller": "main", "launch": f"l-{number}"}
    own = {FLEET_ID_TAG: "fleet-1"}
    return Instance(
        id=f"i-{number:017x}",
        instance_type=pool.offerings[0].instance_type,
        subnet="",
        market="on-demand",
        template=pool.launch_template,
        tags=own | {f"autoscaler:{name}": value for name, value in tags.items()},
        launched_at=_START - 1800.0,
        visible_at=_START - 1800.0,
        state="running",
    )


_ASKED = ("pool-{n}", "pool-{n} && linux", "linux && size-{m}", "(pool-{n} || pool-{o}) && !windows")


def _build(number: int, node: Node | None, chance: Random) -> Build:
    n = chance.randrange(_POOLS)
    label = chance.choice(_ASKED).format(n=n, m=n % 3, o=(n + 1) % _POOLS)
    began = _START - chance.uniform(60.0, 1500.0)
    build = Build(
        id=number + 1,
        controller="main",
        kind=Kind.PIPELINE if chance.random() < 0.5 else Kind.FREESTYLE,
        job=f"folder/job-{number % _JOBS}",
        number=number + 1,
        label=label,
        seconds=3600.0,
        queued_at=began,
        buildable_at=began,
    )
    if node is not None:
        build.started_at, build.node = began, node.name
    return build
