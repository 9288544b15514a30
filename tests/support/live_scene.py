"""The passes of a fleet on a live controller, and what happens to its machines there: EC2 is one of their own, which exists only here."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from autoscaler.adapters.account import SsmImages
from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.control import passes
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import merged_json
from autoscaler.control.run_steps import carry_orders_on
from autoscaler.domain.facts.fleet import Fleet, agent_spec
from autoscaler.domain.lifecycle import Announced, InstanceEvent
from autoscaler.ports import Ports
from autoscaler_workbench.fakes.costs import InMemoryCosts
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSsmClient
from autoscaler_workbench.fakes.run_orders import InMemoryRunOrders
from autoscaler_workbench.fakes.state import InMemoryHistory, InMemoryJobs, InMemoryMetrics, InMemoryState
from autoscaler_workbench.fakes.world.ec2.tags import FLEET_ID_TAG
from autoscaler_workbench.fakes.world.world import World, build_world
from support import live_jobs
from support.builders import a_memory, a_record, a_session
from support.live import LiveJenkins


@dataclass(slots=True)
class Scene:
    """The passes of a fleet that has known this controller for long, with an EC2 of its own. ``ahead_seconds``: of Jenkins' clock."""

    live: LiveJenkins
    fleet: Fleet
    ahead_seconds: float = 0.0
    world: World = field(init=False)
    state: InMemoryState = field(init=False)
    run_orders: InMemoryRunOrders = field(default_factory=InMemoryRunOrders)
    ports: Ports = field(init=False)

    def __post_init__(self):
        self.world = build_world(self.fleet, start_at=self.live.now(), seed=1)
        since = a_session(session=self.live.look().session, since_at=self._an_hour_ago())
        self.state = InMemoryState(memory=a_memory(sessions={"main": since}))
        client: Any = LocalEc2Client(Ec2Api(self.world.ec2))
        self.ports = Ports(
            controllers=(self.live.controller,),
            compute=Ec2Compute(lambda: client, self.fleet, lambda: client),
            images=SsmImages(lambda: LocalSsmClient(Ec2Api(self.world.ec2))),
            state=self.state,
            rate_limiter=self.state,
            lease=self.state,
            metrics=InMemoryMetrics(),
            history=InMemoryHistory(),
            jobs=InMemoryJobs(),
            costs=InMemoryCosts(),
            notifier=None,
            clock=lambda: self.live.now() + self.ahead_seconds,
            sleep=self.live.pass_time,
            new_id=lambda: f"launch-{time.monotonic_ns()}",
            shuffled=list,
            log=lambda *_args, **_facts: None,
            builds={"main": JenkinsBuilds(self.live.controller.connection)},
            reruns=self.state,
            run_orders=self.run_orders,
        )

    def run(self, function, *order) -> dict[str, Any]:
        """Take one turn of a function; its plan, as a person sees it."""
        return merged_json(function(self.ports, self.fleet, self.invocation(), *order))

    def invocation(self) -> Invocation:
        return Invocation(request_id=f"request-{time.monotonic_ns()}", ends_at=self.ports.clock() + 55.0)

    def look(self) -> dict[str, Any]:
        """Take the turn of `scale_down` that comes once a minute: lost builds are answered for, and orders carried on."""
        invocation = self.invocation()
        reports = passes.scale_down(self.ports, self.fleet, invocation)
        carry_orders_on(self.ports, self.fleet, invocation, reports)
        return merged_json(reports)

    def minutes_later(self, minutes: float = 1.0) -> dict[str, Any]:
        """Look again: some minutes later for our clock and for EC2, not for whoever runs this."""
        self.ahead_seconds += 60.0 * minutes
        self.world.timeline.move_to(self.ports.clock())
        return self.look()

    def until(self, check: Callable[[], bool], what: str) -> None:
        """Wait for something that a look may bring about, once a second or so."""

        def looked() -> bool:
            self.look()
            return check()

        self.live.until(looked, what)

    def launch_by_hand(self, pool: str, market: str = "on-demand") -> str:
        """An instance that runs and has registered; its node is the live controller's. Returns its id."""
        instance = self.world.ec2._launch({"InstanceType": "c5.18xlarge"}, market, pool, self._tags(pool))
        instance.state = "running"
        spec = agent_spec(self.fleet, self.fleet.pools[pool], instance.id)
        self.live.own_node(spec.name)
        self.live.controller.create_node(spec)
        self.live.start_agent(spec.name)
        then = self._an_hour_ago()
        facts = {"launched_at": then, "registered_at": then, "changed_at": then}
        self.state.add_record(a_record(instance.id, pool=pool, node=spec.name, **facts))
        return instance.id

    def node_of(self, instance_id: str) -> str:
        return self.state.records[instance_id].node

    def _tags(self, pool: str) -> dict[str, str]:
        words = {"fleet": self.fleet.name, "pool": pool, "controller": "main", "launch": "by-hand"}
        return {f"autoscaler:{word}": text for word, text in words.items()} | {FLEET_ID_TAG: "fleet-by-hand"}

    def _an_hour_ago(self) -> float:
        return self.live.now() - 3600.0

    # What happens to machines. The agent's process ends as the machine does; whether EC2 knows of it is what differs.

    def interrupt(self, instance_id: str) -> None:
        """EC2 announces that it takes a spot instance back, and does."""
        passes.handle(self.ports, self.fleet, self.invocation(), InstanceEvent(kind=Announced.INTERRUPTION, instance_id=instance_id))
        self.cut_off(instance_id)
        self.world.ec2.end(self.world.ec2.instances[instance_id])

    def stop(self, instance_id: str) -> None:
        """Somebody stops the machine in EC2's console."""
        self.cut_off(instance_id)
        self.world.ec2.stop(instance_id)

    def cut_off(self, instance_id: str) -> None:
        """The agent's process is killed, or its machine has no network any more: EC2 shows it running."""
        self.live.kill_agent(self.node_of(instance_id))


ON_LIVE_JENKINS = "on a live Jenkins, "


def not_tried(live: LiveJenkins, why: str) -> NoReturn:
    """Leave a test out, and say why; on the stand-in, which can do everything, that is a failure."""
    assert not live.is_stand_in, f"the stand-in leaves nothing out: {why}"
    pytest.skip(f"{ON_LIVE_JENKINS}{live.url}: {why}")


def needs_matrices(live: LiveJenkins) -> None:
    if live_jobs.MATRIX not in live.kinds_of_jobs():
        not_tried(live, "the plugin matrix-project is not installed, or this account may not make matrices")


def needs_label_parameters(live: LiveJenkins, job: str, name: str) -> None:
    """Look at a freestyle job that was made with a label parameter: Jenkins leaves out what it does not know."""
    known = JenkinsBuilds(live.controller.connection).job(job, 0.0)
    if known is None or name not in known.declares:
        not_tried(live, "the plugin NodeLabel Parameter is not installed, so that no freestyle job can be told where to run")


def needs_a_restart(live: LiveJenkins) -> None:
    if live.restart is None:
        not_tried(live, "RESTART_COMMAND is not set: a test restarts nobody's Jenkins, for the builds of others would end with it")


def restart(live: LiveJenkins) -> None:
    """Restart Jenkins, and wait until it is back: in another session, since it may answer for a while before it goes."""
    assert live.restart is not None
    before = live.look().session
    live.restart()

    def is_back() -> bool:
        view = live.controller.look()
        return view.problem is None and view.session != before

    live.until(is_back, "Jenkins is back", seconds=300.0)
