"""How large the machine is that a build of a job would run on. No single report decides it."""

from autoscaler.domain.facts.fleet import Fleet, Pool, machines_of
from autoscaler.domain.facts.job_stats import MachineSize, Needs, Spread
from autoscaler.domain.forecast.durations import quantile

_GIB = 2.0**30


def size_of_machine(needs: Needs, pool: Pool | None, fleet: Fleet) -> MachineSize:
    """Return the smallest machine of the pool; if nobody says how large its machines are, the one that most reports were of."""
    machines = machines_of(pool, fleet) if pool else []
    memories = [machine.memory_gib for machine in machines if machine.memory_gib]
    processors = [machine.vcpu for machine in machines if machine.vcpu]
    known = machines and len(memories) == len(processors) == len(machines)
    return MachineSize(
        memory=min(memories) * _GIB if known else _usual(needs.ran_on.memory),
        cores=float(min(processors)) if known else _usual(needs.ran_on.cores),
        has_gpu=needs.ran_on.gpu.true > needs.ran_on.gpu.false,
    )


def _usual(spread: Spread) -> float:
    return quantile(spread, 0.5) if spread.count else 0.0
