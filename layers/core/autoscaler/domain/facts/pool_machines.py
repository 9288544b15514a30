"""What the machines of a pool are, as the table of instance types or the fleet file says it."""

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.machines import Machine


def machines_of(pool: Pool, fleet: Fleet) -> list[Machine]:
    """Return each machine that the pool may have; of a type that is in no table nothing is known."""
    if pool.of_hosts:
        return [host.machine for host in fleet.hosts.values() if host.pool == pool.name]
    return [fleet.machines.get(offering.instance_type, Machine()) for offering in pool.offerings]
