"""Reads a fleet file, and holds the rules between its keys. Lines, suggestions and words are looked for only once there is a problem."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from math import inf
from pathlib import Path

from pydantic import ValidationError

from autoscaler.config import hosts
from autoscaler.config.hosts import environment_name, general_kinds, has_static_nodes, labels_of, url_problem
from autoscaler.config.prices import of_capacity, types_of
from autoscaler.config.problems import FleetFileError, Problem, broken, listed, meant, problem
from autoscaler.config.sections import ScheduleSettings, WarmPoolSettings
from autoscaler.config.settings import FleetSettings, PoolSettings
from autoscaler.domain.facts.fleet import Fleet, Lending, Platform, Share
from autoscaler.domain.wording import shortened
from autoscaler.errors import ConfigError

# Rules between the kinds of a fleet file, and between a pool and its kind.


def between_kinds(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what is wrong with the kinds themselves."""
    for name, kind in settings.kinds.items():
        for other in kind.of:
            if other not in settings.kinds or other == name:
                rule = "is the kind itself" if other == name else f"is not one of kinds ({listed(settings.kinds)})"
                yield problem(("kinds", name, "of"), f" ({other}) {rule}")
        both = sorted(other for other in general_kinds(name, settings.kinds) if name in general_kinds(other, settings.kinds))
        if both:
            yield problem(("kinds", name, "of"), f" ({both[0]}): each would be a speciality of the other")


def kind_of_pool(settings: FleetSettings, pool: PoolSettings) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong with a pool's kind, and with lending its agents."""
    if pool.kind is None:
        if pool.lend is not None:
            yield "lend", f"lend ({pool.lend}): the pool has no kind that is a speciality of another one"
    elif pool.kind not in settings.kinds:
        yield "kind", f"kind ({pool.kind}) is not one of kinds ({listed(settings.kinds, 'there are none')})"
    else:
        kinds, own = settings.kinds, labels_of(pool.kind, settings.kinds)
        general = {label: one for one in sorted(general_kinds(pool.kind, kinds)) for label in labels_of(one, kinds)}
        rule = f"which agents of {pool.kind} carry only while they are lent"
        borrowed = (label for label in pool.labels or () if label in general and label not in own)
        yield from (("labels", f"labels ({label}): it is a label of the kind {general[label]}, {rule}") for label in borrowed)
        if pool.lend not in {None, Lending.NEVER} and not general_kinds(pool.kind, kinds):
            yield "lend", f"lend ({pool.lend}): the kind {pool.kind} is no speciality of another one"
        elif pool.lend not in {None, Lending.NEVER} and has_static_nodes(settings, pool):
            yield "lend", f"lend ({pool.lend}): agents on static nodes (nodes: slots) are not lent, their labels are their operator's"


# Rules between teams and their pools.


def between_teams(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what is wrong with the pools of teams, and with their minima."""
    teams: dict[str, str] = {}  # by pool
    for name, team in settings.teams.items():
        for number, pool in enumerate(team.pools):
            if rule := _wrong(settings, teams, name, pool):
                yield Problem(place=("teams", name, "pools", number), text=f"teams.{name}.pools ({pool}) {rule}")
            teams.setdefault(pool, name)
        least = sum(settings.pools[pool].min_agents for pool in {*team.pools} & settings.pools.keys())
        if team.max_agents is not None and least > team.max_agents:
            yield problem(("teams", name, "max_agents"), f" ({team.max_agents}): the min_agents of its pools ({least}) exceed it")


def _wrong(settings: FleetSettings, teams: dict[str, str], name: str, pool: str) -> str:
    if pool not in settings.pools:
        return f"is not one of the pools ({listed(settings.pools)}){meant(pool, settings.pools)}"
    if pool in teams:
        return "is named twice" if teams[pool] == name else f"is in team {teams[pool]}, too: a pool is in one team at most"
    return ""


# Rules between the keys of a fleet file that is right key by key; each names the place where it is broken.


# Families of AWS' own processors have a g after their generation (c7g, m6gd, im4gn, hpc7g); a1 was the first, p6e-gb200 has Nvidia's.
_ARM64 = re.compile(r"^(a1\.|[a-z]+[0-9]+[a-z]*g[a-z]*[.-]|p6e-gb)")
_SUBNET = re.compile(r"^subnet-[0-9a-z]+$")


def contradictions(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what cannot be, in the order of the file."""
    for name, controller in settings.controllers.items():
        if wrong := url_problem(controller.url):
            yield problem(("controllers", name, "url"), f" {wrong}")
    if len({environment_name(name) for name in settings.controllers}) != len(settings.controllers):
        yield problem(("controllers",), f" ({listed(settings.controllers)}) must differ when written as environment variables")
    yield from chain(between_kinds(settings), between_teams(settings), hosts.between_hosts(settings))
    for name, pool in settings.pools.items():
        for key, text in (*hosts.of_pool(settings, name, pool), *_of_pool(pool), *_with_fleet(settings, name, pool)):
            yield Problem(place=("pools", name, key), text=f"pools.{name}.{text}")
        for number, schedule in enumerate(pool.schedules):
            for key, text in _of_schedule(settings, name, schedule):
                yield Problem(place=("pools", name, "schedules", number, key), text=f"pools.{name}.schedules.{number}.{text}")
    least, most = sum(pool.min_agents for pool in settings.pools.values()), settings.limits.max_agents
    if least > most:
        yield Problem(place=("limits", "max_agents"), text=f"the pools' min_agents ({least}) together exceed limits.max_agents ({most})")


def architecture(instance_type: str) -> str:
    """Return the processor architecture of an instance type, by its name."""
    return "arm64" if _ARM64.match(instance_type) else "x86_64"


def _of_pool(pool: PoolSettings) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong within a pool."""
    agents = inf if pool.max_agents is None else pool.max_agents
    most = agents * pool.executors
    yield from broken(
        (pool.min_agents > agents, "min_agents", f"min_agents ({pool.min_agents}) exceeds max_agents ({agents})"),
        (
            pool.warm_executors > most,
            "warm_executors",
            f"warm_executors ({pool.warm_executors}) exceeds max_agents x executors ({most})",
        ),
    )
    for key in ("labels", "controllers", "instance_types", "subnets"):
        values = getattr(pool, key) or []
        if len(set(values)) != len(values):
            yield key, f"{key} ({', '.join(values)}) names something twice"
    yield from _machines(pool)
    wrong = (subnet for subnet in pool.subnets if not _SUBNET.match(subnet))
    yield from (("subnets", f"subnets ({subnet}) is not a subnet's id, such as subnet-0a1b2c3d4e5f60718") for subnet in wrong)


def _machines(pool: PoolSettings) -> Iterator[tuple[str, str]]:
    key, given = ("instance_types", "") if pool.instance_types else ("instance_requirements", ", ".join(pool.instance_requirements or ()))
    if pool.instance_types and pool.instance_requirements:
        yield "instance_requirements", "instance_requirements: only one of it and instance_types can be given"
    elif given and not types_of(pool):
        yield key, f"{key} ({given}): no instance type of the carried table satisfies all of it"
    by_architecture = {architecture(kind): kind for kind in types_of(pool)}
    if len(by_architecture) > 1:
        both = f"{by_architecture['arm64']} is arm64, {by_architecture['x86_64']} is x86_64"
        yield key, f"{key} ({both}): one image starts on one architecture only, make two pools"
    elif "arm64" in by_architecture and pool.platform is Platform.WINDOWS:
        yield key, f"{key} ({by_architecture['arm64']}): Windows on EC2 does not run on arm64"


def _with_fleet(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong between a pool and the rest of the file."""
    for controller in (one for one in pool.controllers or () if one not in settings.controllers):
        rule = f"is not one of the controllers ({listed(settings.controllers)}){meant(controller, settings.controllers)}"
        yield "controllers", f"controllers ({controller}) {rule}"
    if pool.max_agents is not None and pool.max_agents > settings.limits.max_agents:
        yield "max_agents", f"max_agents ({pool.max_agents}) exceeds limits.max_agents ({settings.limits.max_agents})"
    yield from _stopped(settings, name, pool)
    yield from kind_of_pool(settings, pool)
    yield from of_capacity(settings, name, pool)
    yield from _shared(settings, name, pool)
    # What ``defaults`` ask of a pool of spot agents only is not done there.
    rerun = settings.tuned("rerun", name)
    if pool.rerun and rerun.lost.second == "on-demand" and pool.market == "spot":
        yield "rerun", "rerun.lost.second (on-demand): the pool buys spot agents only (market), use spot-then-on-demand"
    timeout, boot = (settings.tuned(key, name) for key in ("boot_timeout_seconds", "boot_seconds"))
    if timeout <= boot:
        key = "boot_timeout_seconds" if pool.boot_timeout_seconds is not None else "boot_seconds"
        yield key, f"boot_timeout_seconds ({timeout:g}) must exceed boot_seconds ({boot:g})"


def _shared(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[str, str]]:
    served = [one for one in pool.controllers or settings.controllers if one in settings.controllers]
    if pool.share is Share.NONE:
        return
    if len(served) < 2:
        yield "share", f"share ({pool.share}): the pool serves one controller only"
    elif has_static_nodes(settings, pool):
        yield "share", f"share ({pool.share}): agents on static nodes (nodes: slots) stay where they are"
    if pool.share is not Share.COOPERATIVE:
        return
    is_limited = settings.tuned("max_builds", name) is not None or settings.tuned("reuse", name) == "never"
    at_once, limits = "an agent of several controllers at once (share: cooperative)", "so max_builds and reuse: never cannot hold"
    yield from broken(
        (pool.lend not in {None, Lending.NEVER}, "lend", f"lend ({pool.lend}): {at_once} is not lent"),
        (pool.warm_pool, "warm_pool", f"warm_pool: {at_once} is not stopped"),
        (is_limited, "share", f"share ({pool.share}): builds of several controllers share the machine, {limits}"),
        (pool.platform is Platform.WINDOWS, "share", f"share ({pool.share}): on Windows an agent connects to one controller"),
    )


def _of_schedule(settings: FleetSettings, name: str, schedule: ScheduleSettings) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong with a schedule of a pool, whatever else holds at its hours."""
    most = schedule.max_agents
    if most is not None and most > settings.limits.max_agents:
        yield "max_agents", f"max_agents ({most}) exceeds limits.max_agents ({settings.limits.max_agents})"
    if isinstance(schedule.warm_pool, WarmPoolSettings):
        yield from _of_warm_pool(settings, name, schedule.warm_pool, settings.pools[name].max_agents or 0 if most is None else most)


def _stopped(settings: FleetSettings, name: str, pool: PoolSettings) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the stopped agents of a pool. Where ``defaults`` ask for them and they cannot be, there are none."""
    warm = settings.tuned("warm_pool", name)
    if hosts.is_of_hosts(settings, name) or pool.share is Share.COOPERATIVE:
        return  # which has rules of its own
    if warm and (pool.warm_pool or (settings.may_stop(pool) and settings.tuned("reuse", name) != "never")):
        yield from _of_warm_pool(settings, name, warm, pool.max_agents or 0)


def _of_warm_pool(settings: FleetSettings, name: str, warm: WarmPoolSettings, max_agents: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a warm pool that a pool of at most so many agents asks for."""
    pool, most = settings.pools[name], max_agents if warm.max_agents is None else warm.max_agents
    given = ", ".join(f"{key}: {value}" for key, value in warm.model_dump(mode="json", exclude_unset=True).items())
    one_build = "agents that have one build each (reuse: never) are not stopped; leave it out, and give the pool min_agents"
    static = "agents on static nodes (nodes: slots) are not stopped, each would keep its slot from others"
    wrong = broken(
        (settings.tuned("reuse", name) == "never", "warm_pool", f"warm_pool ({{{given}}}): {one_build}"),
        (pool.market == "spot", "warm_pool", "warm_pool: agents of market spot cannot be stopped, EC2 stops no one-time spot instance"),
        (not settings.may_stop(pool), "warm_pool", f"warm_pool: {static}"),
        (warm.min_agents > most, "warm_pool", f"warm_pool.min_agents ({warm.min_agents}) exceeds the most stopped agents ({most})"),
    )
    return islice(wrong, 1)


# Reads a fleet file. Lines, suggestions and words for a problem are looked for only once there is one.


_LONGEST_PATH = 200


def load_settings(path: Path) -> FleetSettings:
    """Read and check a fleet file; a JSON beside it that was checked from the same bytes spares parsing YAML."""
    with _located(path) as raw:
        return check(_content(raw, path), str(path))


def load_fleet(path: Path) -> Fleet:
    """Read, check and translate a fleet file."""
    with _located(path) as raw:
        return check(_content(raw, path), str(path)).domain()


def check(raw: object, where: str) -> FleetSettings:
    """Check what a fleet file holds; `FleetFileError` with key, value and rule of all that is wrong."""
    try:
        settings = FleetSettings.model_validate(raw)
    except ValidationError:
        settings = None
    if settings is None or any(contradictions(settings)):
        from autoscaler.config.findings import problems_of  # noqa: PLC0415 - for an error only

        raise FleetFileError(where, problems_of(raw))
    return settings


@contextmanager
def _located(path: Path) -> Iterator[bytes]:
    """Read a file, and give each problem in it its line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{shortened(str(path), _LONGEST_PATH)}: cannot be read ({error.strerror or error})") from error
    try:
        yield raw
    except FleetFileError as error:
        from autoscaler.config.yaml_file import located  # noqa: PLC0415 - for an error only

        raise FleetFileError(str(path), located(error.problems, raw)) from None


def _content(raw: bytes, path: Path) -> object:
    known: object = None
    checked = path.with_suffix(".json")
    with suppress(OSError, ValueError, RecursionError):  # it is no such JSON, but somebody's own
        known = json.loads(checked.read_text(encoding="utf-8")) if checked.exists() else None
    if isinstance(known, dict) and "fleet" in known and known.get("sha256") == hashlib.sha256(raw).hexdigest():
        return known["fleet"]
    from autoscaler.config.yaml_file import parse  # noqa: PLC0415 - not in the warm path: a checked JSON stands beside the deployed file

    return parse(raw)
