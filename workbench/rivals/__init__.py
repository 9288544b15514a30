"""How others decide, as policies over the same world, quirks kept: one small file each, with its source in the docstring."""

from workbench.rivals.buildkite import Buildkite, BuildkiteStack
from workbench.rivals.clairvoyant import Clairvoyant
from workbench.rivals.cluster_autoscaler import ClusterAutoscaler
from workbench.rivals.ec2_fleet_plugin import Ec2FleetPlugin
from workbench.rivals.ec2_plugin import Ec2Plugin
from workbench.rivals.github_runners import GithubRunners
from workbench.rivals.gitlab import Gitlab
from workbench.rivals.karpenter import Karpenter
from workbench.rivals.mxnet_ci import MxnetCi
from workbench.rivals.node_provisioner import NodeProvisioner
from workbench.rivals.policy import Rival
from workbench.rivals.reactive import Reactive
from workbench.rivals.static import Static
from workbench.rivals.target_tracking import TargetTracking

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
