"""Step 3: an operator works with the command line while agents are there."""

import subprocess
import urllib.request
from typing import Any

from packaging_root import ROOT
from rehearsal.plan import POOL, SPOT_LABEL, SPOT_POOL
from rehearsal.scene import Scene

# Of everything else the doctor must find that it is fine.
_NOT_FINE = {
    "role AWSServiceRoleForEC2Spot",  # nobody has made it in a fresh account, as docs/deploy.md says
    # The emulator answers neither:
    "ec2:DescribeSubnets, ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes, servicequotas:ListServiceQuotas",
    "ec2:DescribeSpotPriceHistory",
    "executions that callers may take",  # nothing is reserved by default, and the doctor proposes a value
}
_SPOT_JOB = "on-spot"


def operate(scene: Scene) -> None:
    """Give every order that the page of operations begins with, and look at what each of them does."""
    report, operator = scene.report, scene.operator
    report.step("3 operator: the command line, against the deployed stack")
    operator.run("set", POOL, "--min-agents", "3", "--max-stopped", "0", "--minutes", "600")  # no agent comes or goes by itself
    report.check(
        "status: agents of the pools", {name: pool["agents"] for name, pool in _pools(scene).items()}, {POOL: {"idle": 3}, SPOT_POOL: {}}
    )
    report.check("why POOL names what is there", "3 idle; at most 6" in operator.run("why", POOL))
    report.check("why NODE names its deadline", "UTC" in operator.run("why", next(iter(scene.jenkins.nodes()))))
    report.check("ask refuses an order", "is an order" in scene.account.invoke("Ask", {"action": "drain", "fleet": True})["refused"])
    report.check("ask answers", scene.account.invoke("Ask", {"action": "names"})["names"]["pools"], [POOL, SPOT_POOL])
    _hold(scene)
    _ask_for_costs(scene)
    not_fine = {finding["what"] for finding in operator.ask("doctor", status=1) if finding["fine"] is False}
    report.check("doctor: what is not fine", not_fine, _NOT_FINE)
    report.check("ui: the page's heading", _page(scene), "4 agents")
    until_drains_begin(scene)
    leaving = {_launch_and_drain(scene), _reserve_and_release(scene)}
    scene.until("drain, release: nodes that are still there", lambda: leaving & scene.jenkins.nodes().keys(), set())
    scene.until("drain, release: instances of the pool", lambda: len(instances_of(scene, POOL)), 3)
    operator.run("set", POOL)


def _pools(scene: Scene) -> dict[str, dict[str, Any]]:
    return {pool["pool"]: pool for pool in scene.operator.ask("status")["status"]["pools"]}


def instances_of(scene: Scene, pool: str) -> list[str]:
    """The instances of a pool that run."""
    return [
        instance_id
        for instance_id, instance in scene.account.instances("running").items()
        if {"Key": "autoscaler:pool", "Value": pool} in instance["Tags"]
    ]


def until_drains_begin(scene: Scene) -> None:
    """Wait until the fleet has known its Jenkins for two minutes, in which it drains nothing."""
    scene.until("plan: what is held back at the controller", lambda: _held(scene), [])


def _held(scene: Scene) -> list[str]:
    return [held["reason"] for held in scene.operator.ask("plan")["plan"]["held"] if not held["pool"]]


def _hold(scene: Scene) -> None:
    report, operator = scene.report, scene.operator
    operator.run("hold", "--pool", SPOT_POOL, "--reason", "rehearsal")
    scene.queue(_SPOT_JOB, label=SPOT_LABEL)
    scene.passes()
    report.check("hold: instances that were launched", instances_of(scene, SPOT_POOL), [])
    report.check("why JOB: it waits for the hold", "hold" in operator.run("why", _SPOT_JOB))
    plan = operator.ask("plan")["plan"]
    report.check("plan: steps", [step["step"] for step in plan["steps"]], [])
    operator.run("resume", "--pool", SPOT_POOL)
    # A look that was asked for before the clock was stopped may come first.
    report.until("plan, after resume: an agent is to be launched, or is there", lambda: _is_launched(scene))
    scene.until_ended(_SPOT_JOB)


def _is_launched(scene: Scene) -> bool:
    steps = [step["step"] for step in scene.operator.ask("plan")["plan"]["steps"]]
    return steps == ["launch"] or (not steps and len(instances_of(scene, SPOT_POOL)) == 1)


def _launch_and_drain(scene: Scene) -> str:
    """Return the node of an agent that was launched by hand, and drains."""
    report, before = scene.report, set(scene.jenkins.nodes())
    scene.operator.run("launch", POOL, "1")
    # Without passes: one that comes late enough would drain an idle agent, since the pool needs three.
    report.until("launch: agents that are online", lambda: scene.online(POOL), 4)
    node = next(name for name in scene.jenkins.nodes() if name not in before)
    scene.operator.run("drain", node, "--reason", "rehearsal")
    report.check("drain: the node takes no builds", scene.jenkins.live.node(node).offline)
    return node


def _reserve_and_release(scene: Scene) -> str:
    """Return the node of an agent that was reserved for a person, who has given it back."""
    scene.operator.run("reserve", POOL, "--for", "alice", "--hours", "8")
    scene.until("reservations", lambda: [(entry["person"], bool(entry["node"])) for entry in _reservations(scene)], [("alice", True)])
    [reservation] = _reservations(scene)
    node: str = reservation["node"]
    scene.report.check("reserve: the node takes no builds", scene.jenkins.live.node(node).offline)
    scene.operator.run("release", node, "--for", "alice")
    return node


def _reservations(scene: Scene) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = scene.operator.ask("reservations")["reservations"]
    return entries


def _ask_for_costs(scene: Scene) -> None:
    scene.account.invoke("PublishMetrics")
    costs = scene.operator.ask("costs")
    scene.report.check("costs: what machines have cost so far, in dollars", 0.0 <= costs["metered_usd"] < 1.0)


def _page(scene: Scene) -> str:
    """The heading of the live page, which is served once, without the time."""
    port = str(scene.plan.port + 3)
    command = [ROOT / ".venv" / "bin" / "autoscaler", "ui", "--port", port]
    page = subprocess.Popen(command, env=scene.plan.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = page.stdout.readline().strip()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=600) as answer:
            return answer.read().decode().split("<h1>")[1].split("</h1>")[0].split("<small>")[0].strip()
    finally:
        page.terminate()
        page.wait(60)
