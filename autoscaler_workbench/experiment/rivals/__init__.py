"""Rivals: other autoscalers as policies over the same world, quirks kept; one file each, its source in the docstring.

May touch `policy` and what is below it, and no other rival, but for `node_provisioner` and the rival that one is a variant of.
"""

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.rivals.buildkite import Buildkite, BuildkiteStack
from autoscaler_workbench.experiment.rivals.buildkite_warm import BuildkiteStackWarm
from autoscaler_workbench.experiment.rivals.clairvoyant import Clairvoyant
from autoscaler_workbench.experiment.rivals.clairvoyant_warm import ClairvoyantWarm
from autoscaler_workbench.experiment.rivals.cluster_autoscaler import ClusterAutoscaler
from autoscaler_workbench.experiment.rivals.ec2_fleet_plugin import Ec2FleetPlugin
from autoscaler_workbench.experiment.rivals.ec2_plugin import Ec2Plugin
from autoscaler_workbench.experiment.rivals.ec2_plugin_stops import Ec2PluginStops
from autoscaler_workbench.experiment.rivals.github_runners import GithubRunners
from autoscaler_workbench.experiment.rivals.github_runners_warm import GithubRunnersWarm
from autoscaler_workbench.experiment.rivals.gitlab import Gitlab
from autoscaler_workbench.experiment.rivals.karpenter import Karpenter
from autoscaler_workbench.experiment.rivals.mxnet_ci import MxnetCi
from autoscaler_workbench.experiment.rivals.node_provisioner import NodeProvisioner
from autoscaler_workbench.experiment.rivals.reactive import Reactive
from autoscaler_workbench.experiment.rivals.static import Static
from autoscaler_workbench.experiment.rivals.target_tracking import TargetTracking

RIVALS: dict[str, type[Rival]] = {
    rival.NAME: rival
    for rival in (
        MxnetCi,
        Buildkite,
        BuildkiteStack,
        GithubRunners,
        Ec2Plugin,
        Ec2FleetPlugin,
        NodeProvisioner,
        TargetTracking,
        Gitlab,
        ClusterAutoscaler,
        Karpenter,
        Reactive,
        Static,
        Clairvoyant,
    )
}
# Those that stop instances and start them again, played where they are named, or where the fleet may do so, too.
WARM_RIVALS: dict[str, type[Rival]] = {
    rival.NAME: rival for rival in (Ec2PluginStops, GithubRunnersWarm, BuildkiteStackWarm, ClairvoyantWarm)
}
EVERY_RIVAL = RIVALS | WARM_RIVALS
