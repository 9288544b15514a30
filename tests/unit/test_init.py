"""autoscaler init: a first fleet file from a Jenkins or from questions; what it writes is valid, and says what it could not know."""

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.config import check, load_fleet, load_settings
from autoscaler.config.settings import POINTER, fleet_schema
from autoscaler.config.yaml_file import parse
from autoscaler.domain.facts.fleet import Market, stoppable
from autoscaler_workbench.advice import warnings_in
from autoscaler_workbench.cli.init_draft import draft_pools
from autoscaler_workbench.cli.init_read import Machine, Seen
from autoscaler_workbench.cli.init_text import FirstFile, text_of
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.jenkins.nodes import Monitors, Node
from autoscaler_workbench.fakes.world.world import build_world
from support.builders import NOW, a_fleet, a_pool
from support.cli import autoscaler

# As the plugins' own tests have it (UnixDataExport.yml, WindowsData.yml, MacDataExport.yml, max-configuration-as-code.yml).
EXPORT = """
jenkins:
  numExecutors: 0
  clouds:
  - amazonEC2:
      name: "production"
      region: "us-east-1"
      templates:
      - ami: "ami-12345"
        amiType:
          unixData:
            sshPort: "22"
        description: "Ubuntu builders"
        instanceCapStr: "12"
        labelString: "linux ubuntu"
        minimumNumberOfInstances: 1
        minimumNumberOfSpareInstances: 1
        mode: NORMAL
        numExecutors: 4
        remoteFS: "/home/ec2-user"
        spotConfig:
          fallbackToOndemand: true
        subnetId: "subnet-0a1b2c3d subnet-0a1b2c3e"
        type: "C518xlarge"
      - ami: "ami-abc"
        amiType:
          windowsData:
            useHTTPS: true
        labelString: "windows vs2019"
        mode: EXCLUSIVE
        type: "m5a.large"
      - amiType:
          macData:
            sshPort: "22"
        description: "Macs"
        labelString: "mac metal"
        type: "mac1.metal"
  - eC2Fleet:
      name: ec2-fleet
      executorScaler: weightedScaler
      fleet: my-fleet
      fsRoot: my-root
      labelString: gpu
      maxSize: 90
      minSize: 15
      numExecutors: 12
      region: us-east-2
      restrictUsage: true
  - eC2FleetLabel:
      name: ec2-fleet-label
  - kubernetes:
      name: k8s
"""


def a_jenkins(**agents):
    """A controller with these agents: labels, executors, and what its architecture monitor says."""
    controller = build_world(a_fleet(a_pool("cpu")), start_at=NOW, seed=1).controllers["main"]
    for name, (labels, executors, system) in agents.items():
        node = Node(name=name, labels=labels, executors=executors, exclusive=False, description="", remote_dir="/")
        controller.add_node(replace(node, monitors=Monitors(architecture=system)))
        controller.connect(name)
    controller.timeline.sleep(60)
    return JenkinsApi(controller, "http://main/")


def init(api, out, *more):
    with ApiServer() as server:
        server.jenkins["main"] = api
        return autoscaler("init", f"{server.url}/jenkins/main/", "--out", out, "--name", "my-ci", *more)


LINUX = (("linux", "ubuntu"), 4, "Linux (amd64)")


def test_agents_with_the_same_labels_become_a_pool(tmp_path):
    out = tmp_path / "fleet.yaml"
    jenkins = a_jenkins(one=LINUX, two=LINUX, three=(("linux", "ubuntu"), 2, "Linux (amd64)"), pi=(("arm",), 1, "Linux (aarch64)"))
    assert init(jenkins, out).returncode == 0
    fleet = load_fleet(out)
    assert (fleet.name, list(fleet.pools)) == ("my-ci", ["linux-ubuntu", "arm"])
    linux, arm = fleet.pools.values()
    assert (linux.labels, linux.executors, linux.max_agents, linux.exclusive) == ({"linux", "ubuntu"}, 4, 3, True)
    assert (linux.launch_template, linux.remote_dir) == ("autoscaler-linux-my-ci", "/home/jenkins")
    assert arm.offerings[0].instance_type.startswith("c7g.")
    assert (arm.launch_template, arm.launch_template_version) == ("autoscaler-arm64-my-ci", "$Latest")
    text = out.read_text(encoding="utf-8")
    assert "# 3 agents in Jenkins: one, three, two\n" in text
    assert "# TODO: agents have from 2 to 4\n" in text
    assert "arm64: deploy with Arm64Agents=yes, which makes its launch template" in " ".join(text.replace("#", "").split())


def test_the_platform_is_what_the_agents_say_and_macs_are_left_out(tmp_path):
    out = tmp_path / "fleet.yaml"
    done = init(a_jenkins(w=(("build",), 1, "Windows Server 2022 (amd64)"), m=(("mac",), 1, "Mac OS X (aarch64)"), one=LINUX), out)
    assert {name: str(pool.platform) for name, pool in load_settings(out).pools.items()} == {"build": "windows", "linux-ubuntu": "linux"}
    assert load_fleet(out).pools["build"].boot_seconds == 480
    assert "agents m: Mac OS X (aarch64); the autoscaler launches Linux and Windows" in done.stdout


def test_plain_linux_pools_stop_idle_agents_and_of_all_others_the_file_says_why_not(tmp_path):
    out = tmp_path / "fleet.yaml"
    win, gpu = (("build",), 1, "Windows Server 2022 (amd64)"), (("gpu",), 1, "Linux (amd64)")
    done = init(a_jenkins(w=win, g=gpu, one=LINUX), out)
    pools = load_fleet(out).pools
    assert {name for name, pool in pools.items() if pool.warm_pool} == {"linux-ubuntu"}
    text = out.read_text(encoding="utf-8")
    assert "    # Off: no Windows agent was ever stopped and started with this stack.\n    # warm_pool: {}\n" in text
    assert "    # Off: instance stores are empty after a stop (g6.4xlarge).\n    # warm_pool: {instance_stores: true}\n" in text
    for decided in (
        "idle agents of linux-ubuntu are stopped where that is cheaper than to end them (warm_pool)",
        "idle agents of build, gpu are ended; the file says why",
        "a job counts as demand as soon as it waits",
        "scale_up looks every 10 s",
    ):
        assert decided in " ".join(text.replace("#", "").split())
        assert f"decided: {decided}" in done.stdout


def test_what_was_switched_off_can_be_switched_on_as_it_stands_there(tmp_path):
    out = tmp_path / "fleet.yaml"
    init(a_jenkins(w=(("build",), 1, "Windows Server 2022 (amd64)"), g=(("gpu",), 1, "Linux (amd64)")), out)
    out.write_text(out.read_text(encoding="utf-8").replace("    # warm_pool", "    warm_pool"), encoding="utf-8")
    assert all(pool.warm_pool and stoppable(pool) for pool in load_fleet(out).pools.values())


def test_our_own_nodes_and_the_controller_itself_are_no_pools(tmp_path):
    out = tmp_path / "fleet.yaml"
    beacon = ("autoscaler-beacon-x", "autoscaler-fleet-x")
    init(a_jenkins(beacon=(beacon, 1, ""), ours=(("linux", "autoscaler-fleet-x"), 1, "Linux (amd64)"), one=LINUX), out)
    assert list(load_fleet(out).pools) == ["linux-ubuntu"]


def test_a_jenkins_without_agents_gives_an_example_to_edit(tmp_path):
    out = tmp_path / "fleet.yaml"
    assert init(a_jenkins(), out).returncode == 0
    assert list(load_fleet(out).pools) == ["linux"]
    assert "An example: Jenkins has no agents of its own" in out.read_text(encoding="utf-8")


def test_clouds_of_the_ec2_plugins_become_pools(tmp_path):
    out, jenkins = tmp_path / "fleet.yaml", a_jenkins(one=LINUX)
    jenkins.casc_export = EXPORT
    done = init(jenkins, out)
    pools = load_fleet(out).pools
    assert list(pools) == ["linux-ubuntu", "windows-vs2019", "gpu"]
    ubuntu, windows, gpu = pools.values()
    assert (ubuntu.executors, ubuntu.max_agents, ubuntu.min_agents, ubuntu.warm_executors) == (4, 12, 1, 4)
    assert {(o.instance_type, o.subnet, o.market) for o in ubuntu.offerings} == {
        ("c5.18xlarge", subnet, market) for subnet in ("subnet-0a1b2c3d", "subnet-0a1b2c3e") for market in Market
    }
    assert (ubuntu.remote_dir, ubuntu.exclusive, windows.exclusive) == ("/home/ec2-user", False, True)
    assert (windows.platform, windows.launch_template, windows.offerings[0].instance_type) == (
        "windows",
        "autoscaler-windows-my-ci",
        "m5a.large",
    )
    assert (gpu.executors, gpu.max_agents, gpu.min_agents, gpu.remote_dir, gpu.exclusive) == (12, 90, 15, "my-root", True)
    for said in (
        "cloud production, Macs: Mac;",
        "cloud ec2-fleet-label: an EC2 Fleet label cloud",
        "cloud k8s (kubernetes): not of the EC2",
    ):
        assert said in done.stdout
    text = " ".join(out.read_text(encoding="utf-8").split())
    for said in ("Ubuntu builders # 1 agent in Jenkins: one", "TODO: its image is ami-12345", "TODO: the template has no cap"):
        assert said in text
    assert warnings_in(out) == []


@pytest.mark.parametrize(
    ("export", "lacks", "said"),
    [
        (None, set(), "clouds of the EC2 and EC2 Fleet plugins: no part of Jenkins' REST API shows them"),
        (EXPORT, {"hudson.model.Hudson.SystemRead"}, "needs the plugin Configuration as Code, and Overall/SystemRead for the account"),
        ("a: [", set(), "(it is not understood)"),
        ("jenkins: {}", {"hudson.model.Computer.Connect"}, "operating systems and root directories of the agents"),
    ],
)
def test_what_could_not_be_read_is_said_in_the_file_and_on_the_screen(tmp_path, export, lacks, said):
    out, jenkins = tmp_path / "fleet.yaml", a_jenkins(one=LINUX)
    jenkins.casc_export, jenkins.lacks = export, lacks
    done = init(jenkins, out)
    assert done.returncode == 0
    assert said in done.stdout
    assert said in " ".join(out.read_text(encoding="utf-8").replace("#", "").split())
    assert list(load_fleet(out).pools) == ["linux-ubuntu"]


def test_nothing_is_changed_in_jenkins(tmp_path):
    jenkins = a_jenkins(one=LINUX)
    jenkins.casc_export = EXPORT
    init(jenkins, tmp_path / "fleet.yaml")
    assert jenkins.acted == 0


def test_a_label_that_jobs_ask_for_and_no_agent_has_is_named(tmp_path):
    jenkins = a_jenkins(one=LINUX)
    job = b"<project><assignedNode>linux &amp;&amp; gpu</assignedNode><builders/></project>"
    jenkins.jobs.create("", "train", job)
    assert "label gpu: freestyle jobs ask for it, and no agent has it" in init(jenkins, tmp_path / "fleet.yaml").stdout


def test_a_jenkins_that_refuses_is_one_line_and_nothing_is_written(tmp_path):
    jenkins = a_jenkins(one=LINUX)
    jenkins.accounts = {"reader": "secret"}
    done = init(jenkins, tmp_path / "fleet.yaml")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "/jenkins/main/: Jenkins answered 403" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert init(jenkins, tmp_path / "fleet.yaml", "--user", "reader", "--token", "secret").returncode == 0


def test_an_existing_file_is_overwritten_only_after_a_yes(tmp_path):
    out, jenkins = tmp_path / "fleet.yaml", a_jenkins(one=LINUX)
    out.write_text("mine", encoding="utf-8")
    for typed in ("n\n", "\n", ""):
        with ApiServer() as server:
            server.jenkins["main"] = jenkins
            done = autoscaler("init", f"{server.url}/jenkins/main/", "--out", out, typed=typed)
        assert done.returncode == 1
        assert (out.read_text(encoding="utf-8"), server.requests) == ("mine", [])
    assert init(jenkins, out, "--yes").returncode == 0
    assert load_fleet(out).name == "my-ci"


def test_editors_find_the_schema_beside_the_file(tmp_path):
    init(a_jenkins(one=LINUX), tmp_path / "fleet.yaml")
    assert (tmp_path / "fleet.yaml").read_text(encoding="utf-8").startswith(f"{POINTER}\n")
    assert json.loads((tmp_path / "fleet.schema.json").read_text(encoding="utf-8")) == fleet_schema()


@pytest.mark.parametrize("arguments", [[], ["https://jenkins.example.org/", "--interview"]], ids=len)
def test_either_a_jenkins_or_questions(arguments):
    assert autoscaler("init", *arguments).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://x/"], "url (ftp://x/) must be an http or https URL"),
        (["https://anna:hunter2@x/"], "must not hold credentials"),
        (["https://x/", "--name", "My CI"], "--name (My CI): must be lower-case letters, digits and hyphens"),
    ],
)
def test_what_init_refuses_is_one_line(tmp_path, arguments, said):
    done = autoscaler("init", *arguments, "--out", tmp_path / "f.yaml")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr
    assert "hunter2" not in done.stderr


def test_an_interview_in_which_every_answer_is_return(tmp_path):
    out = tmp_path / "fleet.yaml"
    assert autoscaler("init", "--interview", "--out", out, typed="\n" * 20).returncode == 0
    fleet = load_fleet(out)
    assert (fleet.name, list(fleet.pools), fleet.limits.max_usd_per_month) == ("my-ci", ["linux"], 500)
    assert warnings_in(out) == []
    assert "TODO" not in out.read_text(encoding="utf-8")


def test_an_interview_asks_again_for_what_cannot_be_and_for_as_many_pools_as_there_are(tmp_path):
    out = tmp_path / "fleet.yaml"
    answers = ["My CI", "ci", "x", "https://j.example.org/", "", 'a"b', "big linux", "mac", "linux", "m7i.lagre", "m7i.large m7g.large"]
    answers += ["m7g.large", "0", "8", "many", "20", "y", "windows", "", "", "", "", "n", "much", "30", "$1,500"]
    done = autoscaler("init", "--interview", "--out", out, typed="\n".join(answers) + "\n")
    assert done.returncode == 0
    fleet = load_fleet(out)
    big, windows = fleet.pools.values()
    assert (fleet.name, big.name, windows.name, str(windows.platform)) == ("ci", "big-linux", "windows", "windows")
    assert (big.executors, big.max_agents, big.offerings[0].instance_type) == (8, 20, "m7g.large")
    assert (big.wait_usd_per_hour, fleet.limits.max_usd_per_month) == (30, 1500)
    for rule in (
        "must be lower-case letters",
        "http or https",
        "no blanks",
        "linux or windows",
        "did you mean m7i.large?",
        "one processor",
    ):
        assert rule in done.stderr
    assert done.stderr.count("must be a whole number from 1 to 1,000") == 2


words = st.text(max_size=30)
machines = st.builds(
    Machine,
    name=words,
    labels=st.lists(words | st.sampled_from(["yes", "off", "7", "1e3", "null", "~", "a#b", "linux", "gpu"]), max_size=4).map(tuple),
    executors=st.integers(1, 5000),
    system=st.sampled_from(["", "Linux (amd64)", "Linux (aarch64)", "Windows 10 (amd64)", "Mac OS X (x86_64)"]) | words,
    remote_dir=st.none() | words,
)


@pytest.mark.long
@given(st.lists(machines, min_size=1, max_size=8))
def test_whatever_agents_are_called_the_file_is_valid_and_keeps_their_labels(agents):
    drafts = draft_pools(Seen(version="2", machines=tuple(agents), clouds=(), asked_for=frozenset(), unknown=()))
    if not drafts.pools:
        return
    head, unknown = [agent.name for agent in agents], [agent.system for agent in agents]
    text = text_of(FirstFile(fleet="f", url="https://x/", secret="jenkins/x", pools=drafts.pools, head=head, unknown=unknown))
    fleet = check(parse(text), "it").domain()
    assert [sorted(pool.labels) for pool in fleet.pools.values()] == [sorted(draft.labels) for draft in drafts.pools]
    assert yaml.safe_load(text) == parse(text)
