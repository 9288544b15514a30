"""Checks how agents get out of each subnet: by a public address of their own, or through a gateway."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.adapters.aws import filtered, pages
from autoscaler.domain.facts.fleet import Pool

_EVERYWHERE = "0.0.0.0/0"
_TARGETS = ("GatewayId", "NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "VpcPeeringConnectionId", "EgressOnlyInternetGatewayId")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way out of a subnet. ``target``: its default route, or ""; ``gives_addresses``: public ones, unless the template says no."""

    target: str
    gives_addresses: bool

    @property
    def needs_address(self) -> bool:
        """Tell whether only instances with a public address get out."""
        return self.target.startswith("igw-")


def read_ways(client: Any, subnets: Iterable[str]) -> dict[str, Way]:
    """Return the way out of each subnet: by its own route table, else by its VPC's main one."""
    found = [raw for page in filtered(client, "describe_subnets", "subnet-id", sorted(set(subnets))) for raw in page["Subnets"]]
    own: dict[str, Any] = {}
    for page in filtered(client, "describe_route_tables", "association.subnet-id", sorted(raw["SubnetId"] for raw in found)):
        own |= {link["SubnetId"]: table for table in page["RouteTables"] for link in table["Associations"] if "SubnetId" in link}
    main = _main_tables(client, {raw["VpcId"] for raw in found if raw["SubnetId"] not in own})
    return {
        raw["SubnetId"]: Way(
            target=_default_target(own.get(raw["SubnetId"]) or main.get(raw["VpcId"], {})),
            gives_addresses=raw.get("MapPublicIpOnLaunch", False),
        )
        for raw in found
    }


def route_findings(pool: Pool, data: Mapping[str, Any], ways: Mapping[str, Way]) -> Iterator[str]:
    """Say from which subnets an agent of this launch template would reach nobody, a line each."""
    interfaces = data.get("NetworkInterfaces", [])
    told = interfaces[0].get("AssociatePublicIpAddress") if interfaces else None
    for subnet in dict.fromkeys(offering.subnet for offering in pool.offerings):
        if (way := ways.get(subnet)) is None:
            continue  # the launch template's own, or none that there is, which is said elsewhere
        has_address = way.gives_addresses if told is None else told
        if not way.target:
            yield f"{subnet} has no default route: agents there cannot reach register_agent, for whose URL there is no VPC endpoint"
        elif way.needs_address and not has_address:
            gateway = "leads out through an internet gateway"
            yield f"{subnet} {gateway}: agents there reach nothing without a public address (AgentPublicIp=true, or a NAT)"


def _main_tables(client: Any, vpcs: set[str]) -> dict[str, Any]:
    if not vpcs:
        return {}
    filters = [{"Name": "vpc-id", "Values": sorted(vpcs)}, {"Name": "association.main", "Values": ["true"]}]
    return {table["VpcId"]: table for page in pages(client, "describe_route_tables", {"Filters": filters}) for table in page["RouteTables"]}


def _default_target(table: Mapping[str, Any]) -> str:
    for route in table.get("Routes", []):
        if route.get("DestinationCidrBlock") == _EVERYWHERE and route.get("State", "active") == "active":
            return next((str(route[target]) for target in _TARGETS if route.get(target)), "")
    return ""
