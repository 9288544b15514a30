"""The keys of the fleet file, as an operator writes them; the schema and the reference page are made from here."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from autoscaler.config.hosts import (
    ControllerSettings,
    HostSettings,
    general_kinds,
    has_static_nodes,
    hosts_of,
    is_of_hosts,
    labels_of,
    lent_labels,
    of_hosts,
    with_lending,
)
from autoscaler.config.prices import (
    FACTS,
    INSTANCE_TYPE,
    MOST_TYPES,
    CapacityReservationSettings,
    PriceSettings,
    Requirement,
    dear_minima,
    gib_of,
    impossible_hours,
    listed_days,
    machines_for,
    offerings,
    price_list_of,
    types_of,
    unaffordable_minima,
    with_capacity,
)
from autoscaler.config.problems import MOST_PROBLEMS, FleetFileError, Problem
from autoscaler.config.sections import (
    PARAMETER_NAME,
    Count,
    JobPattern,
    LaunchesPerHour,
    LimitSettings,
    RerunKey,
    RunSettings,
    ScheduleSettings,
    Section,
    TeamSettings,
    Usd,
    UsdPerHour,
    UsdPerMonth,
    WarmPoolKey,
    ceilings,
    job_parameters,
    pool_schedule,
    rerun_policy,
    warm_pool_of,
)
from autoscaler.domain.facts.fleet import Allocation, Fleet, Host, Lending, Limits, Machine, Platform, Pool, Quarantine, Share, Team
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.started_builds import RunPolicy

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
LABEL = r"^[^\s\"]+$"
FLEET = r"^[a-z0-9][a-z0-9-]{0,39}$"
VERSION = r"^(\$Default|\$Latest|[1-9][0-9]*)$"
KIND = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(\+[A-Za-z0-9][A-Za-z0-9._-]{0,62}){0,8}$"
PARAMETER = r"^(/[A-Za-z0-9_.-]+){1,15}$"

Name = Annotated[str, StringConstraints(pattern=NAME)]
KindName = Annotated[str, StringConstraints(pattern=KIND)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=LABEL)]
Seconds = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]

REMOTE_DIRS = {Platform.LINUX: "/home/jenkins/agent", Platform.WINDOWS: "C:\\jenkins"}


class KindSettings(Section):
    """One kind of machine. amd64+gfx1030 is a speciality of amd64, and a+b+c one of a, a+b and a+c, where these are kinds."""

    of: list[KindName] = Field([], description="Kinds that it is a speciality of, beside those that its name tells: gpu-p3 is one of gpu.")
    labels: Annotated[list[Label], Field(min_length=1)] | None = Field(
        None, description="Labels of its agents; jobs that need the kind ask for them. Default: its name, and each part of it after a +."
    )


class Tuning(Section):
    """Keys that may stand in defaults, for all pools, and in a pool, for that one."""

    queue_maturity_seconds: Seconds | None = Field(
        None, description="A queue item counts as demand once it has waited this long. Lower: agents come sooner; higher: fewer in vain."
    )
    max_wait_seconds: Seconds | None = Field(
        None, description="An item that would wait longer than this gets an agent, whether or not that pays. Limits still hold."
    )
    wait_usd_per_hour: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None = Field(
        None,
        description="What one hour of one job's waiting is worth to you, in US dollars. It decides when another agent pays, and how long "
        "an idle one is kept.",
    )
    boot_seconds: Annotated[float, Field(ge=1, le=86_400)] | None = Field(
        None, description="Expected time from the launch of an agent until it takes builds. Used until boots of the pool were measured."
    )
    boot_timeout_seconds: Annotated[float, Field(ge=60, le=86_400)] | None = Field(
        None,
        description="An agent that has not connected after this long is replaced. Time in which its controller answers nobody, or is in "
        "quiet mode, does not count. If boots are lost at it one after another, the next ones have twice the time. Must exceed "
        "boot_seconds. Default on Windows: 2400.",
    )
    max_idle_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = Field(
        None, description="Longest that an idle agent is kept, however soon demand is expected back."
    )
    idle_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = Field(
        None,
        description="A fixed time for which an idle agent is kept. By default the time is learned from how soon demand came back, "
        "and from what a boot costs.",
    )
    drain_settle_seconds: Annotated[float, Field(ge=1, le=30)] | None = Field(
        None, description="Between the mark on an idle agent and the second look that lets it be terminated, at least this long passes."
    )
    spot_patience_seconds: Seconds | None = Field(
        None,
        description="With market spot-then-on-demand, only spot is asked for until an item has waited this long after "
        "queue_maturity_seconds; then on-demand, too.",
    )
    spot_discount: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="Share by which spot is expected to be cheaper than on-demand: 0.65 is 65 % cheaper. Plans go by it, not limits."
    )
    spot_max_usd_per_hour: Usd | None = Field(
        None,
        description="Highest spot price to pay for a machine an hour, in US dollars; it is sent to EC2. Default: the on-demand price.",
    )
    volume_gib: Annotated[float, Field(ge=0, le=65_536)] | None = Field(
        None,
        description="Size of all volumes of an agent in GiB, to count their price. By default the functions read sizes and types from "
        "the launch template and its image. If neither names a size, 100 GiB count on Linux and 150 on Windows. validate counts as much.",
    )
    volume_usd_per_gib_month: Annotated[float, Field(ge=0, le=100)] | None = Field(
        None, description="US dollars for a GiB of gp3 and month."
    )
    prices: PriceSettings | None = Field(
        None, description="Which of the carried prices a pool goes by, and what is paid of them. Default: those of us-east-1, in full."
    )
    max_agent_hours: Annotated[float, Field(gt=0, le=87_600)] | None = Field(
        None, description="An agent older than this is drained and replaced, a few at a time. Default: age is no reason."
    )
    drain_timeout_seconds: Seconds | None = Field(
        None,
        description="An agent that has been draining for longer than this raises an alarm; it is never killed for it. Default: none.",
    )
    quarantine: Quarantine | None = Field(
        None,
        strict=False,
        description="What becomes of an agent on which builds of different jobs fail or hang. replace: it is drained and replaced. keep: "
        "it is cordoned and stays for you to inspect. off: it stays in use.",
    )
    max_builds: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="An agent that has had so many builds takes no more and is replaced. Default: any number."
    )
    reuse: Literal["always", "never"] | None = Field(
        None,
        description="never: each agent is replaced after one build, for builds that must not share a disk; it is not stopped after it. The "
        "look that first sees the build cordons the agent: what is shorter than a look may be followed by another one.",
    )
    warm_pool: WarmPoolKey | None = Field(
        None,
        description="Agents that nobody needs are stopped where that is cheaper than to keep or to launch them: a stopped agent costs its "
        "disk only, and is back sooner than a new one. {} keeps as many as pay; off: agents are always terminated. On-demand agents only, "
        "and none of pools with reuse: never.",
    )
    rerun: RerunKey | None = Field(
        None,
        description="Builds of the pool that are lost with their agent (a spot interruption, a crash, a machine that somebody stopped) are "
        "started again with the same parameters. {} does so once for all jobs; off: they are left to people. Needs Job/Build.",
    )


TUNING_DEFAULTS: dict[str, Any] = {
    "queue_maturity_seconds": 0.0,
    "max_wait_seconds": 1800.0,
    "wait_usd_per_hour": 20.0,
    "boot_seconds": 180.0,
    "boot_timeout_seconds": 900.0,
    "max_idle_seconds": 7200.0,
    "drain_settle_seconds": 5.0,
    "spot_patience_seconds": 180.0,
    "spot_discount": 0.65,
    "volume_usd_per_gib_month": 0.08,
    "quarantine": Quarantine.REPLACE,
    "reuse": "always",
    "warm_pool": False,
    "rerun": False,
}  # None for the others says something of its own
_WINDOWS_DEFAULTS: dict[str, Any] = {"boot_timeout_seconds": 2400.0}
_PRICES = ("spot_discount", "spot_max_usd_per_hour", "volume_gib", "volume_usd_per_gib_month")


class PoolSettings(Tuning):
    """One kind of agent."""

    labels: Annotated[list[Label], Field(min_length=1)] | None = Field(
        None,
        description="Labels of the pool's agents in Jenkins, beside those of its kind; jobs ask for them. Default, if it has no kind: the "
        "pool's name.",
    )
    kind: KindName | None = Field(
        None,
        description="Kind of the pool's machines, one of kinds. If it is a speciality of other kinds, its agents carry those "
        "kinds' labels only while they are lent.",
    )
    lend: Lending | None = Field(
        None,
        strict=False,
        description="When an idle agent is lent to jobs that ask for the general kind. idle: while nobody who needs "
        "the speciality waits or is foreseen. always: while nobody who needs it waits. Default: never where an executor costs more than "
        "one of the general kind's pools, else idle.",
    )
    controllers: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Names of the controllers that the pool serves. Default: all."
    )
    share: Share = Field(
        Share.NONE,
        strict=False,
        description="rotate: an agent that is idle on one of the pool's controllers goes to another whose jobs wait, without a new boot. "
        "cooperative: an agent serves all of them at once, and its builds take turns at its devices (gpu-lease). For controllers that "
        "trust one another. none: an agent serves one controller for life.",
    )
    executors: int = Field(ge=1, le=1000, description="Builds that one agent runs at a time.")
    launch_template: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        None,
        description="EC2 launch template, by name or id (lt-...): image, security groups, role, user data. The stack makes "
        "autoscaler-linux-FLEET, autoscaler-windows-FLEET with MakeWindowsAgents=yes, and autoscaler-arm64-FLEET with Arm64Agents=yes. It, "
        "instance_types (or instance_requirements) and max_agents are needed in each pool but one of hosts, which has none of them.",
    )
    launch_template_version: Annotated[str, StringConstraints(pattern=VERSION)] | None = Field(
        None,
        description="Version of the launch template. Default: $Latest of the stack's own templates, $Default of yours.",
    )
    image_parameter: Annotated[str, StringConstraints(pattern=PARAMETER, max_length=1011)] | None = Field(
        None,
        description="SSM parameter whose value is the id of the image to launch, such as /ci/linux-image. A new value reaches the next "
        "launch: one agent tries it before others follow. The stack's parameter ImageParameterArns must name it. Default: the launch "
        "template's image.",
    )
    instance_types: Annotated[list[Annotated[str, StringConstraints(pattern=INSTANCE_TYPE)]], Field(min_length=1)] | None = Field(
        None,
        description="EC2 instance types in order of preference, such as [m7i.xlarge, m6i.xlarge]. All of one processor architecture, that "
        "of the launch template's image.",
    )
    instance_requirements: Annotated[list[Requirement], Field(min_length=1, max_length=20)] | None = Field(
        None,
        description="Instead of instance_types: what a machine must have, such as [arch=x86_64, vcpu>=8, memory_gib>=32, usd_per_hour<1]. "
        f"Facts: {', '.join(FACTS)}. The {MOST_TYPES} cheapest types of the carried table that satisfy all are taken, the cheapest first; "
        "autoscaler validate lists them. Burstable, bare-metal and old types are left out, and those with GPUs where no condition is on "
        "gpus or gpu.",
    )
    allocation: Allocation | None = Field(
        None,
        strict=False,
        description="Which of several instance types and subnets EC2 takes. in-order: as they are written, for spot among those with "
        "capacity. by-price: the cheapest on demand; for spot what is cheap and seldom taken back (price-capacity-optimized). Default: "
        "in-order for instance_types, by-price for instance_requirements.",
    )
    subnets: list[Annotated[str, StringConstraints(min_length=1)]] = Field(
        [],
        description="Ids of subnets in order of preference, such as [subnet-0a1b2c3d]. A request names one of each zone. "
        "Default: the launch template's.",
    )
    platform: Platform = Field(
        Platform.LINUX, strict=False, description="Operating system: it sets prices, and the defaults of remote_dir and volume_gib."
    )
    market: Literal["on-demand", "spot", "spot-then-on-demand"] = Field(
        "on-demand",
        description="How machines are bought. spot-then-on-demand: spot first, on-demand for items that have waited too long "
        "(spot_patience_seconds).",
    )
    max_agents: Annotated[int, Field(ge=1, le=100_000)] | None = Field(None, description="Most agents of this pool at once.")
    max_launches_per_hour: LaunchesPerHour = None
    max_usd_per_hour: UsdPerHour = None
    max_usd_per_month: UsdPerMonth = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] = Field(
        0, description="If a limit keeps jobs of several pools waiting, those of a higher priority go first, whatever their team spent."
    )
    min_agents: Count = Field(0, description="Agents that are always there, idle or not. They cost money day and night.")
    warm_executors: Count = Field(0, description="Executors that are kept free beyond what runs and waits, so that jobs start at once.")
    schedules: list[ScheduleSettings] = Field(
        [], max_length=50, description="Hours of the week with other numbers, such as office hours. Several may be given."
    )
    max_hours_per_day: Annotated[float, Field(ge=1, le=2_400_000, allow_inf_nan=False)] | None = Field(
        None,
        description="Most hours that the pool's agents may run in a calendar day (UTC), all together. Once they are used, nothing is "
        "launched until midnight, and no agent takes another build; running builds are not killed, so what they take comes on top. "
        "Default: any number.",
    )
    usd_per_hour: Usd | None = Field(
        None,
        description="Price of one machine an hour, in US dollars, for all instance types of the pool. Default: the carried on-demand "
        "prices, those of us-east-1; spot_discount is taken off for spot.",
    )
    capacity_reservation: CapacityReservationSettings | None = Field(
        None,
        description="A Capacity Reservation or a Capacity Block that the pool's agents are launched into. It is paid for anyway: in "
        "decisions its agents cost nothing, so that they go before those of other pools with the same labels. The month counts "
        "max_agents machines at the pool's price, used or not.",
    )
    max_job_seconds: Annotated[float, Field(ge=1, le=31_536_000, allow_inf_nan=False)] | None = Field(
        None,
        description="A job whose builds are predicted to take longer is no demand for the pool, and no agent of the pool counts for it. "
        "Jenkins may still start it on a free executor of the pool: keep exclusive: true, and give the pool a label of its own. "
        "Default: jobs may take any time.",
    )
    remote_dir: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        None,
        description="Jenkins' root directory on the agent. Default: /home/jenkins/agent on Linux, C:\\jenkins on Windows.",
    )
    exclusive: bool = Field(
        default=True,
        description="true: agents take only jobs that ask for one of their labels. false: jobs without a label may run on them, too.",
    )


class FleetSettings(Section):
    """The whole fleet file."""

    fleet: Annotated[str, StringConstraints(pattern=FLEET)] = Field(
        description="Name of the fleet: EC2 tag, metric dimension, key of the state. The stack's parameter FleetName must be the same."
    )
    limits: LimitSettings
    controllers: Annotated[dict[Name, ControllerSettings], Field(min_length=1)] = Field(description="The Jenkins controllers, by a name.")
    kinds: dict[KindName, KindSettings] = Field({}, description="The kinds of machines, where one is a speciality of another.")
    defaults: Tuning = Field(Tuning(), description="Settings for all pools that do not set them themselves.")
    pools: Annotated[dict[Name, PoolSettings], Field(min_length=1)] = Field(
        description="The kinds of agents, by a name; names of nodes begin with it."
    )
    hosts: dict[Name, HostSettings] = Field({}, description="Machines of your own, by a name, which is that of their nodes.")
    rerun_parameter: Annotated[str, StringConstraints(pattern=PARAMETER_NAME)] = Field(
        "AUTOSCALER_RUN_ID",
        description="Parameter by which a build that was started again is found. Jobs that declare it are started with it, once even where "
        "an answer of Jenkins is lost; for others what is in doubt is left to a person.",
    )
    job_parameters: dict[
        JobPattern, Annotated[list[Annotated[str, StringConstraints(pattern=PARAMETER_NAME)]], Field(min_length=1, max_length=10)]
    ] = Field(
        {},
        max_length=100,
        description="Parameters that tell builds of a job apart in autoscaler jobs and eta, by the full name of the job; * stands for any "
        "letters, slashes, too: {nightly/*: [ARCH, SUITE]}. Name those with few values, on which durations depend. If set, "
        "each look also reads the parameters of waiting and running builds.",
    )
    weights: dict[JobPattern, Annotated[int, Field(ge=1, le=1000)] | Annotated[Source, Field(strict=False)]] = Field(
        {},
        max_length=200,
        description="How many executors' worth of an agent a build takes, by the full name of its job; * stands for any letters, slashes, "
        "too; the first pattern that matches counts: {nightly/smoke: 1, nightly/*: 4, '*': learned}. learned: by what its "
        "builds were seen to need (autoscaler needs), 1 until then. heavy-job: as the Heavy Job plugin has it, which Jenkins "
        "itself heeds. What none matches weighs 1. An agent whose builds weigh as much as it has executors takes no further "
        "ones: it loses its labels until there is room again.",
    )
    ignore_labels: list[Annotated[str, StringConstraints(min_length=1, max_length=500)]] = Field(
        [],
        max_length=100,
        description="Labels that another cloud serves, as jobs ask for them; * stands for any letters: [windows, mac-*]. Jobs with these "
        "labels are no demand here, and no message or metric reports them, even if a pool has the label. Use it while you migrate.",
    )
    runs: RunSettings | None = Field(None, description="Builds that people order with autoscaler run. Without this key nobody can.")
    teams: dict[Name, TeamSettings] = Field({}, description="The teams, by a name. Pools of no team are together one more, of weight 1.")

    def domain(self) -> Fleet:
        """Translate to the domain's values; `FleetFileError` where a price is not known, or the minima cost more than the limits allow."""
        problems: list[Problem] = []
        pools: dict[str, Pool] = {}
        for name, pool in self.pools.items():
            if len(problems) > MOST_PROBLEMS or not (types_of(pool) or is_of_hosts(self, name)):
                continue  # it is told enough, or the rules tell it
            try:
                pools[name] = self._pool(name, pool)
            except FleetFileError as error:
                problems += error.problems
        general = {name: general_kinds(pool.kind, self.kinds) for name, pool in self.pools.items() if pool.kind in self.kinds}
        pools = with_lending(pools, {name: pool.lend for name, pool in self.pools.items()}, general)
        fleet = self._fleet(pools)
        if problems := [*problems, *unaffordable_minima(fleet), *dear_minima(fleet), *impossible_hours(fleet)]:
            raise FleetFileError("", problems)
        return fleet

    def _fleet(self, pools: dict[str, Pool]) -> Fleet:
        return Fleet(
            name=self.fleet,
            limits=Limits(**self.limits.model_dump()),
            controllers=tuple(self.controllers),
            pools=pools,
            teams={
                name: Team(
                    name=name,
                    pools=frozenset({*one.pools} & pools.keys()),
                    weight=one.weight,
                    ceilings=ceilings(one.max_agents, one.max_launches_per_hour, one.max_usd_per_hour, one.max_usd_per_month),
                )
                for name, one in self.teams.items()
            },
            rerun_parameter=self.rerun_parameter,
            job_parameters=job_parameters(self.job_parameters),
            weights=JobWeights(by_pattern=tuple(self.weights.items())),
            ignored_labels=tuple(self.ignore_labels),
            runs=RunPolicy(label_parameter=self.runs.label_parameter, max_open=self.runs.max_open) if self.runs else None,
            resume_timeouts={name: controller.resume_timeout_seconds for name, controller in self.controllers.items()},
            controller_hosts={one.host_role_id: name for name, one in self.controllers.items() if one.host_role_id},
            slot_controllers=frozenset(name for name, controller in self.controllers.items() if controller.nodes == "slots"),
            hosts={
                name: Host(
                    name=name,
                    pool=one.pool,
                    role_id=one.role_id,
                    owner=one.owner,
                    address=one.address,
                    machine=Machine(arch=one.arch, vcpu=one.vcpu, memory_gib=one.memory_gib, gpus=one.gpus, gpu=one.gpu),
                )
                for name, one in self.hosts.items()
            },
            machines=machines_for(pools, self.runs, self.weights),
            prices_listed_on=listed_days(self, pools),
        )

    def tuned(self, key: str, pool: str) -> Any:
        """Return a tuning key's value in a pool: its own, that of ``defaults``, or the program's."""
        by_platform = _WINDOWS_DEFAULTS.get(key) if self.pools[pool].platform is Platform.WINDOWS else None
        values = (getattr(self.pools[pool], key), getattr(self.defaults, key), by_platform, TUNING_DEFAULTS.get(key))
        return next((value for value in values if value is not None), None)

    def _pool(self, name: str, pool: PoolSettings) -> Pool:
        tuned = {key: self.tuned(key, name) for key in Tuning.model_fields}
        prices = {key: tuned.pop(key) for key in _PRICES}
        tuned.pop("prices")
        is_never_reused, warm, hosts = tuned.pop("reuse") == "never", tuned.pop("warm_pool"), is_of_hosts(self, name)
        most = len(hosts_of(self, name)) or pool.max_agents or 0
        stopped = warm_pool_of(warm, pool.max_agents or 0) if warm and not is_never_reused and self.may_stop(pool) else None
        tuned["rerun"] = rerun_policy(tuned["rerun"], only_spot=pool.market == "spot")
        return Pool(
            name=name,
            labels=self.own_labels(name),
            kind=pool.kind or "",
            share=pool.share,
            lent_labels=lent_labels(pool.kind, self.own_labels(name), self.kinds),
            controllers=tuple(pool.controllers or self.controllers),
            executors=pool.executors,
            platform=pool.platform,
            max_agents=most,
            ceilings=ceilings(None, pool.max_launches_per_hour, pool.max_usd_per_hour, pool.max_usd_per_month, pool.max_hours_per_day),
            priority=pool.priority,
            min_agents=pool.min_agents,
            warm_executors=pool.warm_executors,
            exclusive=pool.exclusive,
            remote_dir=pool.remote_dir or REMOTE_DIRS[pool.platform],
            schedules=tuple(pool_schedule(hours, most) for hours in pool.schedules),
            **tuned
            | {"max_job_seconds": pool.max_job_seconds, **({"max_builds": 1} if is_never_reused else {})}
            | (of_hosts(tuned) if hosts else self._launched(name, pool, prices) | {"warm_pool": stopped}),
        )

    def _launched(self, name: str, pool: PoolSettings, prices: dict[str, float | None]) -> dict[str, Any]:
        """Translate what is launched for a pool."""
        template, own = pool.launch_template or "", {f"autoscaler-{kind}-{self.fleet}" for kind in (*Platform, "arm64")}
        # The latest of the stack's own templates, whose default a deployment never moves.
        by_default = "$Latest" if template in own else "$Default"
        return {
            "launch_template": template,
            "launch_template_version": pool.launch_template_version or by_default,
            "image_parameter": pool.image_parameter or "",
            **with_capacity(pool, offerings(name, pool, types_of(pool), prices, price_list_of(self, name))),
            "allocation": pool.allocation or (Allocation.BY_PRICE if pool.instance_requirements else Allocation.IN_ORDER),
            # How large volumes are, and what a GiB costs if EC2's sizes count: unless the fleet file says a size.
            "volume_gib": gib_of(pool, prices),
            "volume_usd_per_gib_month": prices["volume_usd_per_gib_month"] if prices["volume_gib"] is None else None,
        }

    def own_labels(self, pool: str) -> frozenset[str]:
        """Return the labels that a pool's agents always carry."""
        written, kind = self.pools[pool].labels, self.pools[pool].kind
        if kind is None or kind not in self.kinds:
            return frozenset(written or [pool])
        return frozenset(written or ()) | labels_of(kind, self.kinds)

    def may_stop(self, pool: PoolSettings) -> bool:
        """Tell whether agents of a pool can be stopped: not those that are spot, serve several at once, or have static nodes."""
        return pool.market != "spot" and pool.share is not Share.COOPERATIVE and not has_static_nodes(self, pool)


# Makes the JSON schema of the fleet file, for editors and for the reference page, from the keys' own definitions.


FILE = "fleet.schema.json"
# The first line of a fleet file: editors with a YAML language server then complete keys, explain them and underline mistakes.
POINTER = f"# yaml-language-server: $schema={FILE}"

_NAMED = {"properties", "$defs"}


def fleet_schema() -> dict[str, Any]:
    """Return the JSON schema of a fleet file (draft 2020-12)."""
    plain: dict[str, Any] = _plain(FleetSettings.model_json_schema())
    for section in ("Tuning", "PoolSettings"):
        for key, default in TUNING_DEFAULTS.items():
            plain["$defs"][section]["properties"][key]["default"] = default
    plain["properties"]["defaults"]["default"] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "The fleet file of the Jenkins autoscaler"}
    return head | plain


def _plain(node: Any) -> Any:
    """Leave out what pydantic adds for its own sake: titles of keys, and null for keys that may be left out."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    # What is named by data is gone through: a key called title is no title.
    named = {key: {name: _plain(schema) for name, schema in value.items()} for key, value in node.items() if key in _NAMED}
    kept: dict[str, Any] = {key: named.get(key) or _plain(value) for key, value in node.items() if key != "title"}
    if kept.get("default", "") is None:
        del kept["default"]
    if "patternProperties" in kept:
        kept["additionalProperties"] = False  # a pool's or controller's name of another form is refused, too
    return _without_null(kept)


def _without_null(kept: dict[str, Any]) -> dict[str, Any]:
    given = [one for one in kept.get("anyOf", []) if one != {"type": "null"}]
    return {key: value for key, value in kept.items() if key != "anyOf"} | given[0] if len(given) == 1 else kept
