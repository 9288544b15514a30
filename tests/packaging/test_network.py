"""What network.yaml makes, by where its subnets lead out: nothing that costs where nobody asked, and no way in."""

import pytest

from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by, read_template
from packaging_root import ROOT

TEMPLATE = read_template(ROOT / "network.yaml")
KNOWN = {"AWS::Region": "us-west-2", "AWS::StackName": "ci-network"}
COSTS = {"AWS::EC2::NatGateway", "AWS::EC2::EIP"}


def made(way_out):
    named = {name: name for name in TEMPLATE["Resources"]}
    return made_by(TEMPLATE, defaults_of(TEMPLATE) | KNOWN | named | {"WayOut": way_out})


def kinds(way_out):
    return [resource["Type"] for resource in made(way_out).values()]


def interface_endpoints(way_out):
    return [name for name, r in made(way_out).items() if r.get("Properties", {}).get("VpcEndpointType") == "Interface"]


def test_a_public_network_makes_nothing_that_costs_by_the_hour():
    assert not COSTS & set(kinds("public"))
    assert interface_endpoints("public") == []
    assert kinds("public").count("AWS::EC2::Subnet") == 2


def test_one_nat_gateway_serves_both_zones():
    assert kinds("nat").count("AWS::EC2::NatGateway") == 1
    assert kinds("nat").count("AWS::EC2::Subnet") == 4
    assert interface_endpoints("nat") == []


def test_endpoints_are_those_that_the_functions_call():
    there = made("endpoints")
    names = {there[name]["Properties"]["ServiceName"].rpartition(".")[2] for name in interface_endpoints("endpoints")}
    assert names == {"ec2", "monitoring", "secretsmanager", "sns", "servicequotas", "lambda"}
    assert not COSTS & set(kinds("endpoints"))


@pytest.mark.parametrize("way_out", ["public", "nat", "endpoints"])
def test_nothing_may_connect_to_an_agent(way_out):
    assert "SecurityGroupIngress" not in made(way_out)["AgentSecurity"]["Properties"]


def test_the_page_names_every_way_out_and_every_output():
    page = (ROOT / "docs" / "network.md").read_text(encoding="utf-8")
    named = [*TEMPLATE["Parameters"]["WayOut"]["AllowedValues"], *TEMPLATE["Outputs"]]
    assert [one for one in named if f"`{one}`" not in page] == []
