"""The scenes in which keys of the fleet file make a difference: a fleet file, and what happens in the world minute by minute."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.fakes.world.world import break_boots
from support.busy import image_of
from support.deployed import InMemory, event

ROLE_OF_MAIN = "AROAMACHINEOFMAIN0000"
_BASE: dict[str, Any] = {
    "fleet": "f",
    "limits": {"max_agents": 20, "max_launches_per_hour": 50, "max_usd_per_hour": 100, "max_usd_per_month": 10_000},
    "controllers": {"main": {"url": "http://main/", "secret": "jenkins/main"}},
    "pools": {
        "cpu": {"executors": 2, "launch_template": "cpu", "instance_types": ["c5.xlarge", "c6i.xlarge"], "max_agents": 4},
        "gpu": {"executors": 1, "launch_template": "gpu", "instance_types": ["g4dn.xlarge"], "max_agents": 3},
    },
}

Happens = Callable[[InMemory], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """``file``: what the fleet file has beside the base, by dotted path; ``happens``: in the world, by minute; it lasts ``minutes``."""

    happens: dict[int, tuple[Happens, ...]]
    file: dict[str, Any] = field(default_factory=dict)
    minutes: int = 25

    def fleet_file(self) -> dict[str, Any]:
        return changed(_BASE, self.file)


def changed(file: dict[str, Any], changes: dict[str, Any], gone: object = None) -> dict[str, Any]:
    """A fleet file with other values at these dotted paths; one that is ``gone`` is taken out."""
    after = _copied(file)
    for path, value in changes.items():
        *places, last = path.split(".")
        section: Any = after
        for place in places:
            section = section[int(place)] if isinstance(section, list) else section.setdefault(place, {})
        if value is gone and gone is not None:
            section.pop(last, None)
        else:
            section[last] = value
    return after


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(element) for key, element in value.items()}
    return [_copied(element) for element in value] if isinstance(value, list) else value


def queue(count: int, label: str, minutes: float, job: str = "job", controller: str = "main", **facts: Any) -> Happens:
    def submit(here: InMemory) -> None:
        for number in range(count):
            here.world.controllers[controller].submit(f"{job}-{number}", label, minutes * 60.0, **facts)

    return submit


def ask(name: str, **changes: Any) -> Happens:
    """An operator sends one of the sample events, or one like it."""

    def send(here: InMemory) -> Any:
        try:
            return here.call("operate", event(name) | changes)
        except Exception as error:  # noqa: BLE001 - what is refused is an answer, too
            return f"{type(error).__name__}: {error}"

    return send


def boots_hang(here: InMemory) -> None:
    break_boots(here.world, {"cpu"})


def a_machine_is_lost(here: InMemory) -> None:
    busy = [i for i in here.world.alive() if (node := here.world.node_of(i)) and node.builds]
    for instance in busy[:1]:
        here.world.ec2.end(instance)


def no_spot(here: InMemory) -> None:
    here.world.ec2.capacity |= {f"{kind}//spot": 0 for kind in ("c5.xlarge", "c6i.xlarge")}


def builds_fail_on_one_machine(here: InMemory) -> None:
    names = [name for name in here.world.controllers["main"].nodes if name.startswith("cpu-")]
    for name in names[:1]:
        here.world.controllers["main"].nodes[name].fails_builds = True


def the_controller_restarts(here: InMemory) -> None:
    here.world.controllers["main"].restart()


def the_controllers_machine_reports(here: InMemory) -> Any:
    sample = event("register_agent_controller")
    return here.call("register_agent", function_url_event("i-0123456789abcdef0", role_id=ROLE_OF_MAIN) | {"body": sample["body"]})


def an_image_is_named(here: InMemory) -> None:
    here.world.ec2.account.images["ami-7"] = image_of("linux", ImageId="ami-7")
    here.world.ec2.account.parameters["/ci/image"] = "ami-7"


def resumes_take_long(here: InMemory) -> None:
    here.world.controllers["main"]._physics = Physics(resume_from_seconds=3000.0, resume_to_seconds=3000.0)


def a_busy_agent_is_drained(here: InMemory) -> Any:
    busy = [node.name for node in here.world.controllers["main"].nodes.values() if node.builds]
    return ask("drain", nodes=busy[:1])(here)


def a_job(here: InMemory, label: str | None, **facts: Any) -> None:
    declared = dict.fromkeys(("AGENT_LABEL", "AUTOSCALER_RUN_ID", "WHERE", "RUN_NAME", "SUITE"), "")
    here.server.jenkins["main"].jobs.jobs["nightly"] = Job(Kind.FREESTYLE, label, 900.0, declared, **facts)


def a_job_that_can_be_ordered(here: InMemory) -> None:
    a_job(here, None, label_parameter="AGENT_LABEL")


def a_build_of_it(suite: str = "") -> Happens:
    def build(here: InMemory) -> None:
        if "nightly" not in here.server.jenkins["main"].jobs.jobs:
            a_job(here, "cpu")
        here.server.jenkins["main"].jobs.build("nightly", {"SUITE": suite}, "somebody")

    return build


_ORDER = {"job": "nightly", "parameters": {}, "on": "cpu", "where": [], "runs": 1, "vary": None, "strict": False}
_WORK = {2: (queue(5, "cpu", 12.0), queue(1, "gpu", 8.0)), 14: (queue(2, "cpu", 3.0),)}
_IDLE = {2: (queue(3, "cpu", 4.0), queue(1, "gpu", 4.0))}
# The first start proves the template's version: before that no second agent is stopped.
_AGAIN = {2: (queue(1, "cpu", 4.0),), 20: (queue(1, "cpu", 4.0),), 34: (queue(4, "cpu", 4.0),)}
_LOST = {2: (a_build_of_it(),)} | dict.fromkeys((9, 20, 32), (a_machine_is_lost,))
_WHERE = ("arch=x86_64", "vcpu>=8", "memory_gib>=16", "gpus>=1", "gpu=AMD gfx1030")
_BOX = {"arch": "x86_64", "vcpu": 8, "memory_gib": 32, "gpus": 1, "gpu": "AMD gfx1030"}
_ON_SPOT = {"pools.cpu.market": "spot-then-on-demand"}
_HOURS = {"from": "08:03", "to": "18:00", "time_zone": "UTC", "min_agents": 1}
_ALL_DAY = {"from": "00:00", "to": "24:00", "time_zone": "UTC"}
_TWO_TEAMS = {"teams": {"red": {"pools": ["cpu"]}, "blue": {"pools": ["gpu"]}}}
_KINDS = {
    "kinds": {"gpu": {}, "gpu-p3": {"of": ["gpu"]}},
    "pools.gpu.kind": "gpu",
    "pools.gpu.max_agents": 1,
    "pools.cpu.kind": "gpu-p3",
    "pools.cpu.usd_per_hour": 9,
    "pools.cpu.executors": 1,
}
_HOSTS = {"pools.box": {"executors": 1}, "hosts.box-1": {"pool": "box", "role_id": "AROAHOSTBOX1"}}
_BLOCK = {"id": "cr-0123456789abcdef0", "starts_at": "2027-01-15T07:00:00Z", "ends_at": "2027-01-15T20:00:00Z"}
_A_DOLLAR = {"limits.max_usd_per_hour": 1}
_ONE_AGENT = {"limits.max_agents": 1, "pools.cpu.max_agents": 1, "pools.gpu.max_agents": 1}

SCENES: dict[str, Scene] = {
    "work": Scene(_WORK),
    "long work": Scene({2: (queue(8, "cpu", 200.0),)}, minutes=40),
    "a crowd": Scene({2: (queue(8, "cpu", 12.0), queue(3, "gpu", 12.0))}),
    "a dollar an hour": Scene(_WORK, _A_DOLLAR),
    "cheap waiting": Scene({2: (queue(2, "cpu", 200.0),), 10: (queue(1, "cpu", 5.0),)}, {"defaults.wait_usd_per_hour": 0.001}, minutes=45),
    "the dearer type first": Scene(_WORK, {"pools.cpu.instance_types": ["c5.4xlarge", "c5.xlarge"]}),
    "jobs with parameters": Scene({2: (a_build_of_it("small"),), 4: (a_build_of_it("large"),)}),
    "a second burst": Scene({2: (queue(4, "cpu", 20.0),), 16: (queue(4, "cpu", 20.0),)}, minutes=40),
    "boots hang": Scene({1: (boots_hang,), 2: (queue(2, "cpu", 5.0),)}),
    "idle": Scene(_IDLE, minutes=160),
    "idle briefly": Scene(_IDLE, {"defaults.idle_seconds": 60}),
    "spot": Scene(_WORK, {"pools.cpu.market": "spot"}),
    "no spot": Scene({1: (no_spot,), 2: (queue(2, "cpu", 5.0),)}, _ON_SPOT),
    "a drain": Scene({2: (queue(2, "cpu", 20.0),), 8: (a_busy_agent_is_drained,)}),
    "builds fail": Scene(
        {2: (queue(2, "cpu", 2.0),), 7: (builds_fail_on_one_machine,)} | {n: (queue(3, "cpu", 1.0, f"other-{n}"),) for n in range(8, 40)},
        minutes=40,
    ),
    "lost": Scene(_LOST),
    "two controllers": Scene(
        {2: (queue(2, "cpu", 3.0),), 10: (queue(2, "cpu", 3.0, controller="other"),)},
        {"controllers.other": {"url": "http://other/", "secret": "jenkins/other"}},
    ),
    "kinds": Scene({2: (queue(1, "gpu-p3", 4.0),), 8: (queue(3, "gpu", 10.0),)}, _KINDS, minutes=30),
    "kinds, lent": Scene({2: (queue(1, "gpu-p3", 4.0),), 8: (queue(3, "gpu", 10.0),)}, _KINDS | {"pools.cpu.lend": "idle"}, minutes=30),
    "reserved from noon on": Scene(
        _WORK,
        {
            "pools.cpu.capacity_reservation": _BLOCK | {"starts_at": "2027-01-15T12:00:00Z"},
            "pools.cpu.instance_types": ["c5.xlarge"],
            "pools.cpu.usd_per_hour": 1,
        },
    ),
    "an image": Scene({1: (an_image_is_named,), 2: (queue(1, "cpu", 5.0),)}),
    "a limit": Scene({2: (queue(1, "gpu", 5.0), queue(2, "cpu", 5.0))}, _ONE_AGENT),
    "the month's money": Scene({2: (queue(4, "cpu", 200.0),)}, {"limits.max_usd_per_month": 0.4}, minutes=100),
    "a schedule": Scene({7: (queue(3, "cpu", 5.0),)}, {"pools.cpu.schedules": [_HOURS], "pools.cpu.idle_seconds": 120}, minutes=40),
    "a schedule of a warm pool": Scene(
        _IDLE, {"pools.cpu.schedules": [_ALL_DAY | {"warm_pool": {}}], "pools.cpu.idle_seconds": 120}, minutes=60
    ),
    "a schedule of a warm pool, again": Scene(
        _AGAIN, {"pools.cpu.schedules": [_ALL_DAY | {"warm_pool": {}}], "pools.cpu.idle_seconds": 120}, minutes=65
    ),
    "a schedule of a warm pool, on disks of the machine": Scene(
        _IDLE,
        {
            "pools.cpu.schedules": [_ALL_DAY | {"warm_pool": {}}],
            "pools.cpu.idle_seconds": 120,
            "pools.cpu.instance_types": ["c5d.xlarge"],
        },
        minutes=60,
    ),
    "reserved": Scene(
        _WORK,
        {"pools.cpu.capacity_reservation": _BLOCK, "pools.cpu.instance_types": ["c5.xlarge"], "pools.cpu.usd_per_hour": 1},
    ),
    "a restart": Scene(
        {1: (resumes_take_long,), 2: (queue(1, "cpu", 15.0, kind=Kind.PIPELINE),), 8: (the_controller_restarts,)},
        {"defaults.idle_seconds": 120},
        minutes=30,
    ),
    "a controller reports": Scene({2: (the_controllers_machine_reports,)}),
    "hosts": Scene({2: (queue(1, "box", 5.0),), 6: (ask("reserve", target="box-1"),)}, _HOSTS),
    "runs on hosts": Scene(
        {1: (a_job_that_can_be_ordered,)}
        | {n: (ask("run", **_ORDER | {"on": None, "where": [where], "request_id": f"r-{n}"}),) for n, where in enumerate(_WHERE, start=4)},
        _HOSTS | {f"hosts.box-1.{key}": value for key, value in _BOX.items()} | {"runs": {}},
    ),
    "runs": Scene(
        {1: (a_job_that_can_be_ordered,), 2: (ask("run", **_ORDER),), 3: (ask("run", **_ORDER | {"request_id": "r-2"}),)}, {"runs": {}}
    ),
    "two teams at work": Scene(_WORK, _TWO_TEAMS),
    "teams": Scene(
        {2: (queue(1, "cpu", 30.0),), 42: (queue(1, "gpu", 3.0),), 57: (queue(1, "cpu", 3.0), queue(1, "gpu", 3.0))},
        _TWO_TEAMS | _ONE_AGENT | {"pools.cpu.executors": 1, "defaults.idle_seconds": 60},
        minutes=65,
    ),
}
# Sections in each place in which they may stand.
for _place, _section in (("defaults", "defaults"), ("pools.*", "pools.cpu")):
    SCENES |= {
        f"a dollar an hour, prices in {_place}": Scene(_WORK, _A_DOLLAR | {f"{_section}.prices": {"multiplier": 1}}),
        f"warm in {_place}": Scene(_IDLE, {f"{_section}.warm_pool": {}, "defaults.idle_seconds": 120}, minutes=60),
        f"warm again in {_place}": Scene(_AGAIN, {f"{_section}.warm_pool": {}, "defaults.idle_seconds": 120}, minutes=65),
        f"warm in {_place}, on disks of the machine": Scene(
            _IDLE,
            {f"{_section}.warm_pool": {}, "defaults.idle_seconds": 120, "pools.cpu.instance_types": ["c5d.xlarge"]},
            minutes=60,
        ),
        f"lost, run again by {_place}": Scene(_LOST, {f"{_section}.rerun": {}}, minutes=45),
    }
