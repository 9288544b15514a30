"""Hosts as people see them: whose each is, and which are not connected."""

from collections.abc import Iterator, Mapping

from autoscaler.domain.facts.fleet import Host
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.report.datum import COUNT, Datum, one
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration

# One that is switched off and on again is back by then.
TOLD_AFTER_SECONDS = 900.0


def measure_hosts(situation: Situation) -> Iterator[Datum]:
    """Count the hosts that are not connected, where the fleet has any."""
    if situation.fleet.hosts:
        yield one("HostsOffline", len(situation.memory.hosts_off), COUNT, (("Fleet", situation.fleet.name),))


def hosts_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the hosts that have not been connected for a while."""
    for name, since in situation.memory.hosts_off.items():
        host = situation.fleet.hosts.get(name)
        if host is not None and situation.now - since >= TOLD_AFTER_SECONDS:
            yield f"host/{name}", _seen(situation, host, since)


def _seen(situation: Situation, host: Host, since: float) -> Seen:
    asks = f"Ask {host.owner}. " if host.owner else ""
    trouble = next((record.trouble for record in situation.snapshot.records if record.machine == host.id and record.trouble), "")
    why = f"When it last asked: {trouble}.\n" if trouble else ""
    text = f"It has not been connected for {duration(situation.now - since)}; jobs that only it can run wait.\n{why}{asks}"
    return Seen(f"host {host.name} is not connected", text, "operations.md#hosts-offline", f"autoscaler why {host.name}")


def told_host(hosts: Mapping[str, Host], record: Record) -> str:
    """Say whose a host is; "" for any other machine, and where nobody wrote it down."""
    host = next((one for one in hosts.values() if one.id == record.machine), None)
    return f"of {host.owner}" if host and host.owner else ""
