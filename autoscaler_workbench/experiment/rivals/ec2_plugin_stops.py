"""Jenkins' EC2 plugin with "Stop/Disconnect on Idle Timeout": what was idle is stopped, and started first when something is asked for.

Source: jenkinsci/ec2-plugin at 05f9d511: EC2AbstractSlave.java:762-827 (stop, idleTimeout), SlaveTemplate.java:2122-2140 and 2363-2529
(provisionOndemand, findOrphansOrStopped), EC2Cloud.java:756-806 (countCurrentEC2Slaves), help-stopOnTerminate.html. Kept: stopped ones
are started before anything is launched, in one call with all of them, and a start that is refused loses the whole request until the next
look; what is still stopping is passed over. The cap counts what is pending, running or stopping, not what is stopped
(pull request 324). The node stays in Jenkins, offline, and is no supply (pull request 1155). Nothing ends what is stopped: its disks are
paid to the end. Spot agents are terminated as without the option, which their form does not have.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool
from autoscaler_workbench.experiment.rivals.ec2_plugin import Ec2Plugin


@dataclass(kw_only=True)
class Ec2PluginStops(Ec2Plugin):
    """``idle_minutes``: until an agent is stopped."""

    NAME = "ec2-plugin-stops"

    def begin(self, fleet: RivalFleet) -> None:
        """Count what the plugin's cap counts."""
        fleet.counted = frozenset({"stopping"})

    def _ask(self, fleet: RivalFleet, pool: RivalPool, number: int) -> int:
        number = min(number, fleet.room(pool))
        taken = pool.startable[: max(0, number)]
        started = len(fleet.start(pool, taken))
        return started + (fleet.launch(pool, number - started) if started == len(taken) else 0)

    def _retire(self, fleet: RivalFleet) -> None:
        for pool in fleet.pools.values():
            idle = [agent for agent in pool.idle if agent.idle_seconds(fleet.now) > self.idle_minutes * 60]
            refused = fleet.stop(idle, node_stays=True)
            fleet.end(agent for agent in refused if agent.instance.market == "spot")
