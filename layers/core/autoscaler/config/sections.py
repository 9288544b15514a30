"""Sections of the fleet file, each as an operator writes it; the settings are put together from them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import wraps
from math import inf
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator

from autoscaler.config.problems import broken, meant
from autoscaler.domain.facts.fleet import AtMonthLimit, Ceilings, PoolSchedule, WarmPool
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.pools import DAY_MINUTES, NUMBERS
from autoscaler.domain.facts.started_builds import RerunPolicy

# What all sections of the fleet file share: how strict they are, and what counts and dollars are.


# The unique id of an IAM role.
ROLE_ID = r"^AROA[A-Z0-9]{8,60}$"
DIGITS = 18  # of a whole number: no key takes more, and Python refuses to write very long ones


Given = TypeVar("Given")
Worked = TypeVar("Worked")


def of_the_last(work: Callable[[Given], Worked]) -> Callable[[Given], Worked]:
    """Keep what was worked out of the object that was given last: a file's rules ask the same for each pool."""
    kept: list[tuple[Given, Worked]] = []

    @wraps(work)
    def answer(given: Given) -> Worked:
        if not kept or kept[0][0] is not given:
            kept[:] = [(given, work(given))]
        return kept[0][1]

    return answer


class Section(BaseModel):
    """Unknown keys and other types than written here are errors. A section is written out as a file has it (from, not begins)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)


Count = Annotated[int, Field(ge=0, le=100_000)]
Usd = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]


class LongNumber(int):
    """A whole number of so many digits that nobody reads them: cut off, and shown as what it is."""

    digits: int

    def __new__(cls, text: str) -> Self:
        """Keep the sign and the size: such a number exceeds whatever a key takes."""
        number = super().__new__(cls, (-1 if text.startswith("-") else 1) * 10**DIGITS)
        number.digits = len(text.lstrip("+-"))
        return number

    def __repr__(self) -> str:
        """Say how long it is."""
        return f"a number of {self.digits:,} digits"

    def __deepcopy__(self, _memo: object) -> "LongNumber":
        """It never changes."""
        return self

    __str__ = __repr__


# The keys for what the whole fleet may have and cost.


class LimitSettings(Section):
    """Hard ceilings of the whole fleet; nothing is launched beyond them, no matter who asks."""

    max_agents: Annotated[int, Field(ge=1, le=100_000, description="Most agents at once, of all pools together.")]
    max_launches_per_hour: Annotated[int, Field(ge=1, le=100_000, description="Most agents launched within any 60 minutes.")]
    max_usd_per_hour: Usd = Field(
        description="Most that all agents together may cost an hour, in US dollars. Spot agents count at the highest price that they may "
        "reach, volumes count, too."
    )
    max_usd_per_month: Usd = Field(
        description="Most that agents may cost in a calendar month (UTC), in US dollars. Running builds are not killed when it is spent, "
        "so what they still cost comes on top."
    )
    at_month_limit: AtMonthLimit = Field(
        AtMonthLimit.STOP,
        strict=False,
        description="What happens once max_usd_per_month is spent. stop: all agents are drained, and none is launched. launch-nothing: "
        "agents stay in use, and none is launched; the month then costs more.",
    )


# The keys that say which lost builds are run again.


PARAMETER_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"

JobPattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class LostSettings(Section):
    """How often a lost build is run again."""

    times: Annotated[int, Field(ge=1, le=10)] = Field(1, description="How often a build is run again that was lost with its agent.")
    second: Literal["on-demand", "off"] = Field(
        "off",
        description="What follows when a build is lost once more after that. on-demand: it is run again one last time, and an on-demand "
        "agent is launched for it. off: it is left to a person. Whatever is lost after that is left to a person.",
    )


class RerunSettings(Section):
    """Builds that are lost with their agent, and are started again with the same parameters."""

    jobs: Annotated[list[JobPattern], Field(min_length=1, max_length=100)] = Field(
        ["*"],
        description="Full names of the jobs whose lost builds are run again; * stands for any letters, slashes, too: [nightly/*].",
    )
    lost: LostSettings = Field(LostSettings(), description="How often.")


def _way(given: object) -> str:
    return "{off}" if given in ("off", False) else "{keys}"


# Words of this form stand in pydantic's places, and in no fleet file: a message leaves them out.
RerunKey = Annotated[
    Annotated[RerunSettings, Tag("{keys}")] | Annotated[Literal["off", False], Tag("{off}")],
    Discriminator(_way),
    AfterValidator(lambda given: False if given == "off" else given),
]


def rerun_policy(settings: RerunSettings | Literal[False] | None, *, only_spot: bool) -> RerunPolicy | None:
    """Translate to the domain's value; None: nothing is run again. ``only_spot``: the pool buys no on-demand agent."""
    if not settings:
        return None
    return RerunPolicy(
        times=settings.lost.times,
        then_on_demand=settings.lost.second == "on-demand" and not only_spot,
        jobs=tuple(settings.jobs),
    )


# The parameters that tell the builds of a job apart.


def job_parameters(settings: Mapping[str, Sequence[str]]) -> JobParameters:
    """Translate to the domain's value."""
    return JobParameters(by_pattern=tuple((pattern, tuple(names)) for pattern, names in settings.items()))


# The keys for builds that people order on machines of their choice.


class RunSettings(Section):
    """Builds that people order: one job on several machines, or until one succeeds."""

    label_parameter: Annotated[str, StringConstraints(pattern=PARAMETER_NAME)] = Field(
        "AGENT_LABEL",
        description="Parameter by which a job is told where to run, as in agent { label params.AGENT_LABEL }. Jobs that are to be ordered "
        "declare it, and rerun_parameter beside it.",
    )
    max_open: Annotated[int, Field(ge=1, le=200)] = Field(20, description="How many orders may be open at the same time.")


# The keys of a warm pool.


class WarmPoolSettings(Section):
    """Agents that are stopped instead of terminated, and started again when they are needed."""

    min_agents: Count = Field(
        0,
        description="Stopped agents that are there while nothing is built. Where there are fewer, agents are launched in quiet times to be "
        "stopped; those that run, beyond the pool's min_agents, count: they will be stopped.",
    )
    max_agents: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Most stopped agents at once; they do not count in the pool's max_agents. Default: as many as those."
    )
    max_age_hours: Annotated[float, Field(gt=0, le=87_600)] = Field(
        168.0,
        description="An agent that has been stopped for longer than this is terminated. More than max_disk_age_hours has no effect.",
    )
    max_disk_age_hours: Annotated[float, Field(gt=0, le=87_600)] = Field(
        168.0,
        description="An agent that was launched longer ago than this is terminated instead of stopped, or while it is stopped: its disk "
        "keeps what builds left.",
    )
    max_disk_builds: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        200, description="An agent that has had so many builds in all its lives is terminated instead of stopped."
    )
    instance_stores: bool = Field(
        default=False,
        description="Stop agents of types with instance stores (m5d, g5, i4i), too. These disks are empty after each start: your image, or "
        "a service that runs at each boot, must format and mount them again. By default, agents of such types are terminated.",
    )


WarmPoolKey = Annotated[
    Annotated[WarmPoolSettings, Tag("{keys}")] | Annotated[Literal["off", False], Tag("{off}")],
    Discriminator(_way),
    AfterValidator(lambda given: False if given == "off" else given),
]


def warm_pool_of(settings: WarmPoolSettings, max_agents: int) -> WarmPool:
    """Translate to the domain's value, in a pool of so many agents at most."""
    return WarmPool(
        min_agents=settings.min_agents,
        max_agents=max_agents if settings.max_agents is None else settings.max_agents,
        max_age_seconds=settings.max_age_hours * 3600.0,
        max_disk_seconds=settings.max_disk_age_hours * 3600.0,
        max_disk_builds=settings.max_disk_builds,
        instance_stores=settings.instance_stores,
    )


# Teams: pools that share limits and a share of the fleet's, and the limits that a pool or a team may have of its own.


Most = Annotated[int, Field(ge=1, le=100_000)]
# Limits that a pool and a team may have, beside those of the whole fleet.
LaunchesPerHour = Annotated[
    Most | None, Field(description="Most of its agents launched within any 60 minutes. Default: the wider limits alone.")
]
UsdPerHour = Annotated[
    Usd | None,
    Field(
        description="Most that all of its agents together may cost an hour, in US dollars, counted as limits.max_usd_per_hour is. Default: "
        "the wider limits alone."
    ),
]
UsdPerMonth = Annotated[
    Usd | None,
    Field(
        description="Most that its agents may cost in a calendar month (UTC), in US dollars; limits.at_month_limit says what happens to "
        "them once it is spent. Default: the wider limits alone."
    ),
]


class TeamSettings(Section):
    """Pools of one team: they share its limits, and a share of what the fleet may have. A pool is in one team at most."""

    pools: Annotated[list[str], Field(min_length=1)] = Field(description="Names of the team's pools.")
    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = Field(
        1.0,
        description="If a limit keeps several teams waiting, the team goes first that spent the fewest dollars for its weight in the "
        "last four hours. 2: twice the share of a team of weight 1.",
    )
    max_agents: Most | None = Field(
        None, description="Most agents at once, of all pools of the team together. Default: the wider limits alone."
    )
    max_launches_per_hour: LaunchesPerHour = None
    max_usd_per_hour: UsdPerHour = None
    max_usd_per_month: UsdPerMonth = None


def ceilings(
    agents: int | None, launches: int | None, usd_per_hour: float | None, usd_per_month: float | None, hours: float | None = None
) -> Ceilings:
    """Translate limits; infinite where none is written."""
    return Ceilings(
        max_agents=inf if agents is None else agents,
        max_launches_per_hour=inf if launches is None else launches,
        max_usd_per_hour=inf if usd_per_hour is None else usd_per_hour,
        max_usd_per_month=inf if usd_per_month is None else usd_per_month,
        max_hours_per_day=inf if hours is None else hours,
    )


# The keys of a pool's schedules: days, hours, a time zone, and the numbers that the pool has then.


TIME_OF_DAY = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_OF_THE_MACHINE = "localtime"  # a zone that each machine has, and none has the same

TimeOfDay = Annotated[str, StringConstraints(pattern=TIME_OF_DAY)]


def zone_named(name: str) -> tzinfo:
    """Return the time zone of this name; ValueError where there is none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - only fleets with schedules pay for it

    try:
        if name != _OF_THE_MACHINE:
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    from zoneinfo import available_timezones  # noqa: PLC0415 - for an error only

    rule = "is no time zone of the IANA database, such as Europe/Berlin"
    raise ValueError(f"({name}) {rule}{meant(name, sorted(available_timezones()))}")


class ScheduleSettings(Section):
    """Hours of the week in which a pool has other numbers. Where two of a pool hold at once, the later in the list wins, key by key."""

    days: Annotated[list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]], Field(min_length=1)] | None = Field(
        None, description="Days of the week on which it begins, such as [mon, tue]. Default: every day."
    )
    begins: TimeOfDay = Field(
        alias="from",
        description="When it begins, by the clocks of time_zone. If a change of the clocks repeats the time, the first one counts. If it "
        "skips the time, the schedule starts at the change.",
    )
    ends: TimeOfDay = Field(
        alias="to", description="When it ends, likewise: on the same day, 24:00 at its end; on the day after where it is not after from."
    )
    time_zone: Annotated[str, AfterValidator(lambda name: zone_named(name) and name)] = Field(
        description="Name of a time zone in the IANA database, such as Europe/Berlin or UTC."
    )
    min_agents: Count | None = Field(
        None, description="The pool's min_agents in these hours. Agents are launched so early that they are there when it begins."
    )
    max_agents: Count | None = Field(
        None, description="The pool's max_agents in these hours. Agents beyond it are not ended, and none is launched."
    )
    warm_executors: Count | None = Field(None, description="The pool's warm_executors in these hours, there when it begins, likewise.")
    warm_pool: WarmPoolKey | None = Field(None, description="The pool's warm_pool in these hours, all of its keys; off: no stopped agents.")

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        days = self.days or []
        is_empty = all(getattr(self, key) is None for key in NUMBERS)
        wrong = broken(
            (self.begins == "24:00", "from", "from (24:00): must be before 24:00, write 00:00 of the day after"),
            (self.begins == self.ends, "to", f"from and to ({self.ends}) are the same: a whole day is from 00:00 to 24:00"),
            (len(set(days)) != len(days), "days", f"days ({', '.join(days)}) names a day twice"),
            (is_empty, "", f"changes nothing, give one or more of {', '.join(NUMBERS)}"),
        )
        for _, text in wrong:
            raise ValueError(text)
        return self


def pool_schedule(settings: ScheduleSettings, max_agents: int) -> PoolSchedule:
    """Translate to the domain's value. ``max_agents``: the pool's own."""
    begin, end = _minutes(settings.begins), _minutes(settings.ends)
    return PoolSchedule(
        days=frozenset(map(DAYS.index, settings.days or DAYS)),
        from_minute=begin,
        to_minute=end if end > begin else end + DAY_MINUTES,
        time_zone=zone_named(settings.time_zone),
        min_agents=settings.min_agents,
        max_agents=settings.max_agents,
        warm_executors=settings.warm_executors,
        warm_pool=_warm_pool(settings.warm_pool, max_agents if settings.max_agents is None else settings.max_agents),
    )


def _warm_pool(given: WarmPoolSettings | Literal["off", False] | None, max_agents: int) -> WarmPool | Literal[False] | None:
    if isinstance(given, WarmPoolSettings):
        return warm_pool_of(given, max_agents)
    return None if given is None else False


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return 60 * int(hours) + int(minutes)
