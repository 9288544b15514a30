"""The keys for what the whole fleet may have and cost."""

from typing import Annotated

from pydantic import Field

from autoscaler.config.basics import Section, Usd
from autoscaler.domain.facts.fleet import AtMonthLimit


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
