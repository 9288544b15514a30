"""The keys of the fleet file, and for each a change of a fleet file by which it must make a difference: through the real handlers.

A scene is lived twice, by the scene's own fleet file and by the changed one, in the same world. The run with the change ends with the
first minute in which anything differs that can be seen outside.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from autoscaler.config.sections import Section
from autoscaler.config.settings import fleet_schema

GONE = object()  # stands for a key that the change takes out


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a scene's fleet file: ``value`` at ``key``, and what else must change for the file to be valid."""

    key: str  # as in the schema: pools.*.labels
    scene: str
    value: Any
    besides: dict[str, Any] = field(default_factory=dict)
    seen: str = "done"  # where it must make a difference: in what is done, only in what is told, or only in answers to people

    @property
    def path(self) -> str:
        """The place of the key in the scene's fleet file: names stand for the stars, the first of a list for each."""
        return self.key.replace("[]", ".0").replace("*", _NAMES.get(self.key.partition(".")[0], "cpu"))


_NAMES = {"controllers": "main", "hosts": "box-1", "teams": "red", "kinds": "gpu-p3"}


@cache
def keys() -> dict[str, str]:
    """Every key of the fleet file, as the schema has them, with its section; a star stands for a name, brackets for a list."""
    schema = fleet_schema()
    return dict(_keys(schema, schema["$defs"], "", "FleetSettings"))


def _keys(node: dict[str, Any], defs: dict[str, Any], path: str, section: str) -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        section = node["$ref"].rpartition("/")[2]
        node = defs[section]
    for way in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _keys(way, defs, path, section)
    if node.get("type") == "array":
        yield from _keys(node.get("items", {}), defs, f"{path}[]", section)
    for name, value in node.get("properties", {}).items():
        key = f"{path}.{name}".lstrip(".")
        yield key, section
        yield from _keys(value, defs, key, section)
    for named in (*node.get("patternProperties", {}).values(), node.get("additionalProperties")):
        if isinstance(named, dict):
            yield from _keys(named, defs, f"{path}.*", section)


def file_of(key: str) -> str:
    """The file that defines a key, from the project's root."""
    sections = {section.__name__: section for section in _subclasses(Section)}
    return str(Path("layers/core", *sections[keys()[key]].__module__.split(".")).with_suffix(".py"))


def _subclasses(section: type) -> Iterator[type]:
    for inner in section.__subclasses__():
        yield inner
        yield from _subclasses(inner)


# Keys that may stand in defaults and in a pool: the scene and the value, and where less than what is done differs. A scene with "{}" has
# the key's section in the same place.
_TUNING: dict[str, tuple[Any, ...]] = {
    "queue_maturity_seconds": ("work", 150),
    "max_wait_seconds": ("cheap waiting", 180),
    "wait_usd_per_hour": ("work", 0.01),
    "boot_seconds": ("a second burst", 800),
    "boot_timeout_seconds": ("boots hang", 300),
    "max_idle_seconds": ("idle", 120),
    "idle_seconds": ("idle", 60),
    "drain_settle_seconds": ("idle briefly", 25),
    "spot_patience_seconds": ("no spot", 0),
    "spot_discount": ("spot", 0.1),
    "spot_max_usd_per_hour": ("spot", 0.03),
    "volume_gib": ("a dollar an hour", 9000),
    "volume_usd_per_gib_month": ("a dollar an hour", 5),
    "prices": ("a dollar an hour", {"multiplier": 5}),
    "prices.multiplier": ("a dollar an hour, prices in {}", 5),
    "prices.region": ("a dollar an hour, prices in {}", "eu-west-1"),
    "prices.system": ("a dollar an hour, prices in {}", "rhel"),
    "max_agent_hours": ("idle", 0.2),
    "drain_timeout_seconds": ("a drain", 60, {}, "told"),
    "quarantine": ("builds fail", "off"),
    "max_builds": ("work", 1),
    "reuse": ("work", "never"),
    "warm_pool": ("idle", {}),
    "warm_pool.min_agents": ("warm in {}", 2),
    "warm_pool.max_agents": ("warm again in {}", 1),
    "warm_pool.max_age_hours": ("warm in {}", 0.2),
    "warm_pool.max_disk_age_hours": ("warm in {}", 0.2),
    "warm_pool.max_disk_builds": ("warm in {}", 1),
    "warm_pool.instance_stores": ("warm in {}, on disks of the machine", True),
    "rerun": ("lost", {}),
    "rerun.jobs": ("lost, run again by {}", ["other/*"]),
    "rerun.lost": ("lost, run again by {}", {"times": 2}),
    "rerun.lost.times": ("lost, run again by {}", 2),
    "rerun.lost.second": ("lost, run again by {}", "on-demand"),
}

_POOL: dict[str, tuple[Any, ...]] = {
    "labels": ("work", ["cpu", "special"]),
    "kind": ("kinds", GONE),
    "lend": ("kinds", "idle"),
    "controllers": ("two controllers", ["main"]),
    "share": ("two controllers", "rotate"),
    "executors": ("work", 1),
    "launch_template": ("work", "other"),
    "launch_template_version": ("work", "7"),
    "image_parameter": ("an image", "/ci/image"),
    "instance_types": ("work", ["m5.large"]),
    "instance_requirements": ("work", ["arch=x86_64", "vcpu>=8", "memory_gib>=16"], {"pools.cpu.instance_types": GONE}),
    "allocation": ("the dearer type first", "by-price"),
    "subnets": ("work", ["subnet-0a1b2c3d"]),
    "platform": ("work", "windows"),
    "market": ("work", "spot"),
    "max_agents": ("work", 1),
    "max_launches_per_hour": ("work", 1),
    "max_usd_per_hour": ("work", 0.2),
    "max_usd_per_month": ("work", 0.01),
    "priority": ("a limit", 5),
    "min_agents": ("work", 1),
    "warm_executors": ("work", 3),
    "schedules": ("work", [{"from": "08:05", "to": "18:00", "time_zone": "UTC", "min_agents": 2}]),
    "schedules[].days": ("a schedule", ["mon"]),
    "schedules[].from": ("a schedule", "09:30"),
    "schedules[].to": ("a schedule", "08:16"),
    "schedules[].time_zone": ("a schedule", "Asia/Tokyo"),
    "schedules[].min_agents": ("a schedule", 2),
    "schedules[].max_agents": ("a schedule", 1),
    "schedules[].warm_executors": ("a schedule", 4),
    "schedules[].warm_pool": ("a schedule", {"min_agents": 1}),
    "schedules[].warm_pool.min_agents": ("a schedule of a warm pool", 3),
    "schedules[].warm_pool.max_agents": ("a schedule of a warm pool, again", 1),
    "schedules[].warm_pool.max_age_hours": ("a schedule of a warm pool", 0.1),
    "schedules[].warm_pool.max_disk_age_hours": ("a schedule of a warm pool", 0.2),
    "schedules[].warm_pool.max_disk_builds": ("a schedule of a warm pool", 1),
    "schedules[].warm_pool.instance_stores": ("a schedule of a warm pool, on disks of the machine", True),
    "max_hours_per_day": ("long work", 1),
    "usd_per_hour": ("work", 40),
    "capacity_reservation": (
        "work",
        {"id": "cr-0123456789abcdef0"},
        {"pools.cpu.instance_types": ["c5.large"], "pools.cpu.usd_per_hour": 1},
    ),
    "capacity_reservation.id": ("reserved from noon on", "cr-0123456789abcdef1"),
    "capacity_reservation.kind": ("reserved", "block"),
    "capacity_reservation.starts_at": ("reserved", "2027-01-15T12:00:00Z"),
    "capacity_reservation.ends_at": ("reserved", "2027-01-15T08:20:00Z"),
    "max_job_seconds": ("a schedule of a warm pool, again", 60),
    "remote_dir": ("work", "/ci"),
    "exclusive": ("work", False),
}

_REST: dict[str, tuple[Any, ...]] = {
    "fleet": ("work", "another"),
    "limits.max_agents": ("a crowd", 4),
    "limits.max_launches_per_hour": ("work", 1),
    "limits.max_usd_per_hour": ("work", 0.2),
    "limits.max_usd_per_month": ("work", 0.01),
    "limits.at_month_limit": ("the month's money", "launch-nothing"),
    "controllers.*.url": ("work", "http://elsewhere/"),
    "controllers.*.secret": ("work", "jenkins/other"),
    "controllers.*.nodes": ("work", "slots"),
    "controllers.*.resume_timeout_seconds": ("a restart", 600),
    "controllers.*.host_role_id": ("a controller reports", "AROAMACHINEOFMAIN0000"),
    "kinds": ("kinds", GONE, {"pools.gpu.kind": GONE, "pools.cpu.kind": GONE}),
    "kinds.*.of": ("kinds, lent", [], {"pools.cpu.lend": GONE}),
    "kinds.*.labels": ("kinds", ["p3-only"]),
    "hosts": ("hosts", GONE, {"pools.box": GONE}),
    "hosts.*.pool": ("hosts", "box2", {"pools.box2": {"executors": 1}, "hosts.box-2": {"pool": "box", "role_id": "AROAHOSTBOX2"}}),
    "hosts.*.role_id": ("hosts", "AROAHOSTOTHER"),
    "hosts.*.owner": ("hosts", "ada"),
    "hosts.*.address": ("hosts", "box-1.example.org"),
    "hosts.*.arch": ("runs on hosts", "arm64"),
    "hosts.*.vcpu": ("runs on hosts", 2),
    "hosts.*.memory_gib": ("runs on hosts", 2.0),
    "hosts.*.gpus": ("runs on hosts", 0),
    "hosts.*.gpu": ("runs on hosts", "NVIDIA T4"),
    "rerun_parameter": ("lost, run again by defaults", "RUN_NAME"),
    "job_parameters": ("jobs with parameters", {"*": ["SUITE"]}, {}, "asked"),
    "weights": ("work", {"*": 2}),
    "ignore_labels": ("work", ["cpu"]),
    "runs": ("runs", GONE),
    "runs.label_parameter": ("runs", "WHERE"),
    "runs.max_open": ("runs", 1),
    "teams": ("work", {"red": {"pools": ["cpu"], "max_agents": 1}}),
    "teams.*.pools": ("teams", ["cpu", "gpu"], {"teams.blue": GONE}),
    "teams.*.weight": ("teams", 50),
    "teams.*.max_agents": ("two teams at work", 1),
    "teams.*.max_launches_per_hour": ("teams", 1),
    "teams.*.max_usd_per_hour": ("two teams at work", 0.2),
    "teams.*.max_usd_per_month": ("teams", 0.01),
}

# Sections that hold nothing but other keys, or are needed in every fleet file: what is in them makes the difference.
SECTIONS = ("limits", "controllers", "pools", "defaults")

CHANGES: dict[str, Change] = {
    change.key: change
    for change in (
        *(
            Change(f"{place}.{key}", scene.format(place), *rest)
            for place in ("defaults", "pools.*")
            for key, (scene, *rest) in _TUNING.items()
        ),
        *(Change(f"pools.*.{key}", *rest) for key, rest in _POOL.items()),
        *(Change(key, *rest) for key, rest in _REST.items()),
    )
}
