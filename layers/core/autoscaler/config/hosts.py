"""Controllers, hosts and kinds of agents, as an operator writes them."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AnyHttpUrl, Field, StringConstraints, ValidationError

from autoscaler.config.problems import Problem, broken, listed, meant, problem
from autoscaler.config.sections import ROLE_ID, Section, of_the_last
from autoscaler.domain.facts.fleet import RESUME_TIMEOUT_SECONDS, Lending, Market, Offering, Pool, Quarantine, Share
from autoscaler.domain.grouping import grouped
from autoscaler.domain.wording import shortened

if TYPE_CHECKING:
    from autoscaler.config.settings import FleetSettings, KindSettings, PoolSettings

    Kinds = Mapping[str, KindSettings]

# Hosts: machines of your own, as an operator writes them; and the pools that they make up.


# What says how machines are bought, started and ended. Nobody buys, starts or ends a host.
_OF_EC2 = (
    "launch_template",
    "launch_template_version",
    "image_parameter",
    "instance_types",
    "instance_requirements",
    "allocation",
    "subnets",
    "market",
    "max_agents",
    "max_launches_per_hour",
    "max_usd_per_hour",
    "max_usd_per_month",
    "max_hours_per_day",
    "min_agents",
    "warm_executors",
    "warm_pool",
    "schedules",
    "max_agent_hours",
    "max_builds",
    "reuse",
    "usd_per_hour",
    "prices",
    "capacity_reservation",
)
_NEEDED = ("launch_template", "instance_types", "max_agents")
# What a host costs that is there anyway.
FREE = (Offering(instance_type="host", subnet="", market=Market.ON_DEMAND, usd_per_hour=0.0),)


class HostSettings(Section):
    """A machine of your own. It connects as the agents of its pool do, and is never launched, stopped or ended."""

    pool: str = Field(description="Its pool: labels, kind, executors, controllers, share. A pool of hosts has no EC2 instances.")
    role_id: Annotated[str, StringConstraints(pattern=ROLE_ID)] = Field(
        description="Unique id of the IAM role that this machine alone has (AROA..., aws iam get-role): who asks with it is this host. The "
        "machine gets it from IAM Roles Anywhere, or in any other way that gives temporary credentials."
    )
    owner: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="Whose it is, for people who look for somebody to ask."
    )
    address: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="How a person gets in, such as gpu-1.example.org; told to whoever reserves it."
    )
    arch: Literal["x86_64", "arm64"] | None = Field(
        None, description="Processor architecture. This and what follows: for autoscaler run --where."
    )
    vcpu: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, description="Processors that it shows.")
    memory_gib: Annotated[float, Field(gt=0, le=100_000)] | None = Field(None, description="Memory, in GiB.")
    gpus: Annotated[int, Field(ge=0, le=1000)] | None = Field(None, description="GPUs.")
    gpu: Annotated[str, StringConstraints(max_length=100)] | None = Field(None, description="Their model, such as AMD gfx1030.")


def hosts_of(settings: "FleetSettings", pool: str) -> list[str]:
    """Return the names of a pool's hosts; none: its agents are EC2 instances."""
    return _by_pool(settings.hosts).get(pool, [])


@of_the_last
def _by_pool(hosts: dict[str, HostSettings]) -> dict[str, list[str]]:
    return grouped((one.pool, name) for name, one in hosts.items())


def is_of_hosts(settings: "FleetSettings", name: str) -> bool:
    """Tell whether a pool is one of hosts: a host names it, or it has no key of EC2 instances, as when its last host has left the file."""
    return bool(hosts_of(settings, name)) or next(_given(settings.pools[name]), None) is None


def of_hosts(tuned: dict[str, Any]) -> dict[str, Any]:
    """Translate what makes a pool one of hosts. ``tuned``: its settings, and those for all pools.

    Nothing replaces a host: where builds fail on it, it is cordoned and stays for a person to look at.
    """
    return {
        "of_hosts": True,
        "offerings": FREE,
        "launch_template": "",
        "launch_template_version": "",
        "quarantine": Quarantine.KEEP if tuned["quarantine"] is Quarantine.REPLACE else tuned["quarantine"],
        "max_builds": None,
        "max_agent_hours": None,
        "warm_pool": None,
    }


def between_hosts(settings: "FleetSettings") -> Iterator[Problem]:
    """Yield what is wrong with the hosts themselves."""
    for name, one in settings.hosts.items():
        if one.pool not in settings.pools:
            pools = f"({listed(settings.pools)}){meant(one.pool, settings.pools)}"
            yield problem(("hosts", name, "pool"), f" ({one.pool}) is not one of the pools {pools}")
    roles = [("hosts", name, "role_id", one.role_id) for name, one in settings.hosts.items()]
    roles += [("controllers", name, "host_role_id", one.host_role_id) for name, one in settings.controllers.items() if one.host_role_id]
    asks: dict[str, str] = {}  # who, by role
    for section, name, key, role in roles:
        if other := asks.get(role):
            yield problem((section, name, key), f" ({role}): {other} has the same role, so nobody could tell which of them asks")
        asks[role] = f"{section.removesuffix('s')} {name}"


def of_pool(settings: "FleetSettings", name: str, pool: "PoolSettings") -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is missing in a pool of EC2 instances, or is too much in one of hosts."""
    if not is_of_hosts(settings, name):
        instead = {"instance_types": pool.instance_requirements}
        yield from ((key, f"{key}: missing") for key in _NEEDED if not (getattr(pool, key) or instead.get(key)))
        return
    for key in _given(pool):
        yield key, f"{key}: the pool is of hosts ({listed(hosts_of(settings, name))}), which are not launched, stopped or ended"
    if has_static_nodes(settings, pool):
        yield "controllers", "controllers: hosts do not take static nodes (nodes: slots), each gets a node of its own"


def has_static_nodes(settings: "FleetSettings", pool: "PoolSettings") -> bool:
    """Tell whether a controller of a pool has static nodes, which agents take (nodes: slots)."""
    served = [settings.controllers[name] for name in pool.controllers or settings.controllers if name in settings.controllers]
    return any(controller.nodes == "slots" for controller in served)


def _given(pool: "PoolSettings") -> Iterator[str]:
    """Name the keys of a pool that say how EC2 instances are bought, started and ended."""
    return (key for key in _OF_EC2 if getattr(pool, key) not in (type(pool).model_fields[key].default, []))


# One Jenkins controller, as an operator writes it; how its URL is judged, and how environment variables spell its name.


_LONGEST_URL = 200


def url_problem(url: str) -> str | None:
    """Say what is wrong with a controller's URL, never a password in it; None: nothing is."""
    shown = shortened(re.sub(r"^([a-z]+://)?.*@", r"\1***@", url, flags=re.IGNORECASE | re.DOTALL), _LONGEST_URL)
    try:
        parsed = AnyHttpUrl(url)
    except ValidationError:
        return f"({shown}) must be an http or https URL"
    credentials = "must not hold credentials: agents and logs are told it; keep them in a secret (key secret)"
    wrong = broken(
        (parsed.username is not None or parsed.password is not None, "url", f"({shown}) {credentials}"),
        (parsed.query is not None or parsed.fragment is not None, "url", f"({shown}) must not have a query or a fragment"),
    )
    return next((text for _, text in wrong), None)


class ControllerSettings(Section):
    """One Jenkins controller."""

    url: str = Field(
        description="Address of the Jenkins controller, http or https, as agents reach it. No user, password, query or fragment in it."
    )
    secret: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        None,
        description='Name or ARN of a secret in AWS Secrets Manager: {"username": "...", "token": "..."}. The functions may read secrets '
        "whose names begin with the stack's parameter ControllerSecretPrefix (jenkins/). Without a secret, Jenkins is asked anonymously.",
    )
    nodes: Literal["dynamic", "slots"] = Field(
        "dynamic",
        description="Where the Jenkins nodes of agents come from. dynamic: each agent gets a node of its own, which is deleted with it. "
        "slots: agents take static nodes that you made beforehand.",
    )
    resume_timeout_seconds: float = Field(
        RESUME_TIMEOUT_SECONDS,
        ge=600,
        le=604_800,
        allow_inf_nan=False,
        description="After a restart of Jenkins, an agent is kept this long for a pipeline that ran on it and has not resumed yet.",
    )
    host_role_id: Annotated[str, StringConstraints(pattern=ROLE_ID)] | None = Field(
        None,
        description="Unique id of the IAM role that the machine of this controller alone has (AROA..., aws iam get-role). If set, the "
        "agents' service there may report memory, disk and processors. If not, only Jenkins' own figures are known.",
    )


def environment_name(controller: str) -> str:
    """Spell a controller as in environment variables: upper case, ``-`` as ``_``."""
    return re.sub(r"[^A-Z0-9]", "_", controller.upper())


# Kinds of agents: which kind is a speciality of which, and the labels that follow.
#
# ``amd64+gfx1030`` is ``amd64`` with the modifier ``gfx1030``; modifiers compose, so that ``a+b+c`` is a speciality of ``a``, ``a+b`` and
# ``a+c``. Any other kind names what it is a speciality of (``of``).


def labels_of(name: str, kinds: "Kinds") -> frozenset[str]:
    """Return the labels that jobs ask for which need this kind."""
    written = kinds[name].labels
    _, *modifiers = name.split("+")
    return frozenset(written) if written is not None else frozenset((name, *modifiers))


def general_kinds(name: str, kinds: "Kinds") -> set[str]:
    """Return all kinds that this one is a speciality of, directly or by way of others."""
    known = _known(kinds)
    if name not in known:
        general: set[str] = set()
        waiting = list(_direct(name, kinds))
        while waiting:
            if (kind := waiting.pop()) not in general and kind != name:
                general.add(kind)
                waiting += _direct(kind, kinds)
        known[name] = general
    return known[name]


@of_the_last
def _known(_kinds: "Kinds") -> dict[str, set[str]]:
    """Return a place for the general kinds of each kind."""
    return {}


def lent_labels(name: str | None, own: Collection[str], kinds: "Kinds") -> frozenset[str]:
    """Return the labels of more general kinds that an agent with these labels of its own carries only while it is lent."""
    if name is None or name not in kinds:
        return frozenset()
    return frozenset().union(*(labels_of(kind, kinds) for kind in general_kinds(name, kinds))).difference(own)


def with_lending(pools: Mapping[str, Pool], wanted: Mapping[str, Lending | None], general: Mapping[str, set[str]]) -> dict[str, Pool]:
    """Set when each pool lends its agents; where nothing ``wanted`` is written, those that are no dearer than the general kind's do.

    ``general``: the kinds that each pool's own is a speciality of.
    """
    lending: dict[str, Pool] = {}
    by_kind: dict[str, float] = {}  # the lowest price of an executor
    for pool in pools.values():
        by_kind[pool.kind] = min(_usd_per_executor(pool), by_kind.get(pool.kind, inf))
    for name, pool in pools.items():
        plain = [by_kind[kind] for kind in general.get(name, ()) if kind in by_kind]
        by_price = Lending.IDLE if plain and _usd_per_executor(pool) <= min(plain) else Lending.NEVER
        may_lend = pool.lent_labels and pool.share is not Share.COOPERATIVE
        lending[name] = replace(pool, lend=(wanted[name] or by_price) if may_lend else Lending.NEVER)
    return lending


def _usd_per_executor(pool: Pool) -> float:
    return pool.offerings[0].billed_usd_per_hour / pool.executors


def _direct(name: str, kinds: "Kinds") -> Iterator[str]:
    yield from (kind for kind in kinds[name].of if kind in kinds)
    base, *modifiers = name.split("+")
    yield from (other for other, others in _by_base(kinds).get(base, ()) if others < set(modifiers))


@of_the_last
def _by_base(kinds: "Kinds") -> dict[str, list[tuple[str, set[str]]]]:
    """Return the kinds and their modifiers by what stands before the first +."""
    parts = {name: name.split("+") for name in kinds}
    return grouped((base, (name, {*modifiers})) for name, (base, *modifiers) in parts.items())
