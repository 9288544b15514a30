"""A cloud of the EC2 plugin that would launch a fleet's agents, as the plugin Configuration as Code exports it: what `init` reads."""

from typing import Any

import yaml

from autoscaler.domain.facts.fleet import Fleet, Market, Platform, Pool


def exported_cloud(fleet: Fleet, controller: str) -> str:
    """Return the export of a controller that had these pools as templates, and the fleet's limit as the cloud's cap."""
    pools = [pool for pool in fleet.pools.values() if controller in pool.controllers and not pool.of_hosts]
    cloud = {
        "name": fleet.name,
        "region": "us-west-2",
        "instanceCapStr": str(fleet.limits.max_agents),
        "templates": [_template(pool) for pool in pools],
    }
    return yaml.safe_dump({"jenkins": {"numExecutors": 0, "clouds": [{"amazonEC2": cloud}]}}, sort_keys=False)


def _template(pool: Pool) -> dict[str, Any]:
    windows = pool.platform is Platform.WINDOWS
    markets = {offering.market for offering in pool.offerings}
    template = {
        "ami": f"ami-{pool.name}",
        "amiType": {"windowsData": {"useHTTPS": True}} if windows else {"unixData": {"sshPort": "22"}},
        "description": pool.name,
        "instanceCapStr": str(pool.max_agents),
        "labelString": " ".join(sorted(pool.labels)),
        "minimumNumberOfInstances": pool.min_agents,
        "mode": "EXCLUSIVE" if pool.exclusive else "NORMAL",
        "numExecutors": pool.executors,
        "remoteFS": pool.remote_dir,
        "type": pool.offerings[0].instance_type,
    }
    spot = {"spotConfig": {"fallbackToOndemand": Market.ON_DEMAND in markets, "useBidPrice": False}} if Market.SPOT in markets else {}
    return template | spot
