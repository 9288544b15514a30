"""The keys of a pool's schedules: days, hours, a time zone, and the numbers that the pool has then."""

from collections.abc import Iterable
from datetime import tzinfo
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from autoscaler.config.basics import Count, Section
from autoscaler.config.warm_pools import WarmPoolKey, WarmPoolSettings, warm_pool_of
from autoscaler.domain.facts.fleet import PoolSchedule, WarmPool
from autoscaler.domain.facts.pools import DAY_MINUTES

TIME_OF_DAY = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERS = ("min_agents", "max_agents", "warm_executors", "warm_pool")
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

    from autoscaler.config.words import meant  # noqa: PLC0415 - for an error only

    rule = "is no time zone of the IANA database, such as Europe/Berlin"
    raise ValueError(f"({name}) {rule}{meant(name, sorted(available_timezones()))}")


def _is_zone(name: str) -> str:
    zone_named(name)
    return name


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
    time_zone: Annotated[str, AfterValidator(_is_zone)] = Field(
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
        if self.begins == "24:00":
            raise ValueError("from (24:00): must be before 24:00, write 00:00 of the day after")
        if self.begins == self.ends:
            raise ValueError(f"from and to ({self.ends}) are the same: a whole day is from 00:00 to 24:00")
        if self.days and len(set(self.days)) != len(self.days):
            raise ValueError(f"days ({', '.join(self.days)}) names a day twice")
        if all(getattr(self, key) is None for key in _NUMBERS):
            raise ValueError(f"changes nothing, give one or more of {', '.join(_NUMBERS)}")
        return self


def pool_schedules(settings: Iterable[ScheduleSettings], max_agents: int) -> tuple[PoolSchedule, ...]:
    """Translate to the domain's values. ``max_agents``: the pool's own."""
    return tuple(_pool_schedule(schedule, max_agents) for schedule in settings)


def _pool_schedule(settings: ScheduleSettings, max_agents: int) -> PoolSchedule:
    begin, end = _minutes(settings.begins), _minutes(settings.ends)
    most = max_agents if settings.max_agents is None else settings.max_agents
    return PoolSchedule(
        days=frozenset(map(DAYS.index, settings.days or DAYS)),
        from_minute=begin,
        to_minute=end if end > begin else end + DAY_MINUTES,
        time_zone=zone_named(settings.time_zone),
        min_agents=settings.min_agents,
        max_agents=settings.max_agents,
        warm_executors=settings.warm_executors,
        warm_pool=_warm_pool(settings.warm_pool, most),
    )


def _warm_pool(given: WarmPoolSettings | Literal["off", False] | None, max_agents: int) -> WarmPool | Literal[False] | None:
    if isinstance(given, WarmPoolSettings):
        return warm_pool_of(given, max_agents)
    return None if given is None else False


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return 60 * int(hours) + int(minutes)
