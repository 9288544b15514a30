"""The keys for what AWS bills beside the agents, which nobody here can see."""

from typing import Annotated

from pydantic import Field

from autoscaler.config.basics import Section
from autoscaler.domain.facts.costs import Estimates

_Price = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class EstimateSettings(Section):
    """What AWS bills beside the agents. autoscaler costs estimates it by this; no limit or decision goes by it, and it is in no sum."""

    public_addresses: bool = Field(default=False, description="Whether each agent has a public IPv4 address while it runs.")
    public_address_usd_per_hour: _Price = Field(0.005, description="Price of such an address an hour, in US dollars.")
    nat_gateways: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="How many NAT gateways are there for the agents.")
    nat_gateway_usd_per_hour: _Price = Field(0.045, description="Price of one an hour, in US dollars; that of us-east-1 and us-west-2.")
    nat_gib_per_agent_hour: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] = Field(
        0.0, description="GiB that an agent fetches and sends through them in an hour, as your bill or their metrics say."
    )
    nat_usd_per_gib: _Price = Field(0.045, description="Price of a GiB through a NAT gateway, in US dollars.")


EstimatesKey = Annotated[
    EstimateSettings | None,
    Field(
        description="What AWS bills beside the agents, and nobody here can see: public addresses and NAT gateways, for autoscaler costs."
    ),
]


def estimates_of(settings: EstimateSettings | None) -> Estimates:
    """Translate to the domain's value: nothing is there of which nobody says so."""
    return Estimates(**settings.model_dump()) if settings else Estimates()
