"""Where a rehearsal takes place: folders, ports, names, and the environment of each command."""

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from packaging_root import ROOT

FLEET, STACK, POOL, LABEL = "rehearsal", "jenkins-autoscaler", "linux", "linux"
SPOT_POOL = SPOT_LABEL = "spot"
REGION, ACCOUNT = "us-west-2", "123456789012"
WEBHOOK_SECRET, WEBHOOK_TOKEN = "jenkins/webhook", "a-token-of-twenty-four-characters"
# Of each rehearsal on this machine. The last one is held from its beginning to its end, so that no other takes these ports and folders.
_PORTS, _FIRST_PORT, _AFTER_LAST_PORT = 20, 14566, 30000
_POOL = """
  {name}:
    labels: [{name}]
    executors: 1
    launch_template: autoscaler-linux-{fleet}
    instance_types: [m7i.xlarge, m6i.xlarge]
    subnets: [subnet-00000001, subnet-00000002]
    max_agents: 6
    {more}"""


@dataclass(frozen=True, slots=True)
class Plan:
    """``folder``: all that a rehearsal writes; ``emulator_python``: of the environment that holds the emulator."""

    folder: Path
    emulator_python: Path
    port: int

    @property
    def aws_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def jenkins_port(self) -> int:
        return self.port + 1

    @property
    def metadata_port(self) -> int:
        return self.port + 2

    @property
    def port_beside(self) -> int:
        """The first port of another account at the same time, which has a folder of its own, too."""
        return self.port + _PORTS // 2

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def trouble_file(self) -> Path:
        return self.folder / "trouble.json"

    def environment(self, tree: Path = ROOT, **more: str) -> dict[str, str]:
        """What a command sees that speaks to the emulated AWS, with the code of a source tree."""
        tools = os.pathsep.join(str(ROOT / place / "bin") for place in (".venv-sam", ".venv"))
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUTOSCALER_"))},
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "layers" / "core"))),
            "AWS_ENDPOINT_URL": self.aws_url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,  # by which the emulator knows the account
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AUTOSCALER_STACK": STACK,
            "SAM_CLI_TELEMETRY": "0",
            "NO_PROXY": "127.0.0.1,localhost",
            "COLUMNS": "140",
            **more,
        }


def plan_at(port: int) -> Plan:
    """The plan of a rehearsal whose ports begin with this one."""
    plan = Plan(ROOT / "out" / "rehearsal" / str(port), ROOT / ".venv-ministack" / "bin" / "python", port)
    plan.logs.mkdir(parents=True, exist_ok=True)
    return plan


@contextmanager
def new_plan() -> Iterator[Plan]:
    """A plan with free ports and a folder of its own: others may rehearse on this machine, or in this tree."""
    for port in range(_FIRST_PORT, _AFTER_LAST_PORT, _PORTS):
        with ExitStack() as claim:
            if _are_taken(claim, [port + _PORTS - 1]) and _are_free(range(port, port + _PORTS - 1)):
                yield plan_at(port)
                return
    raise RuntimeError(f"no {_PORTS} ports in a row are free between {_FIRST_PORT} and {_AFTER_LAST_PORT}")


def _are_free(ports: range) -> bool:
    with ExitStack() as stack:
        return _are_taken(stack, ports)


def _are_taken(stack: ExitStack, ports: Iterable[int]) -> bool:
    """Take these ports until the stack ends; False if somebody else has one of them."""
    with suppress(OSError):
        for port in ports:
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        return True
    return False


def fleet_file(url: str, *, warm_pool: str) -> str:
    """A fleet file of one pool on demand and one of spot; ``warm_pool``: the key's value."""
    pools = [(POOL, f"warm_pool: {warm_pool}"), (SPOT_POOL, "market: spot")]
    return f"""fleet: {FLEET}
limits: {{max_agents: 10, max_launches_per_hour: 60, max_usd_per_hour: 5, max_usd_per_month: 500}}
controllers:
  main: {{url: "{url}", secret: jenkins/main}}
defaults: {{wait_usd_per_hour: 20, idle_seconds: 60, queue_maturity_seconds: 0, drain_settle_seconds: 1, rerun: {{}}}}
pools:{"".join(_POOL.format(name=name, fleet=FLEET, more=more) for name, more in pools)}
"""
