"""Actors where people order runs and lost builds run again: each build is started once and ended once, whichever two act at once."""

from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256

from autoscaler.control import operate
from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy, Until
from autoscaler.domain.report.ordered import outcome_of
from autoscaler.domain.run_orders.choice import CancelRun
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended
from support.builders import a_pool
from support.busy import FIRM
from support.interleaving import Scene, scale_down
from support.lost import answers
from support.ordering import LABEL, RUN_ID, asked, builds, define, instance_of, order
from support.worlds import in_memory

# Of the orders that stand, and of the one that is made meanwhile.
CARRIED, GANG, MADE = "carried", "gang", "made"


@dataclass(slots=True)
class OrderedScene(Scene):
    """Agents are idle. An order has lost one of its two builds with its machine, a gang runs, and another lost build is to run again."""

    orders: dict[str, str] = field(default_factory=dict)  # ids, by what is ordered

    def set_up(self) -> "OrderedScene":
        for job, seconds in ((CARRIED, 200.0), (GANG, 36_000.0), (MADE, 100.0)):
            define(self, job=job, seconds=seconds)
        self.run(until=1)
        self.queue(8, "cpu", 60.0)
        self.run(until=6)
        self.orders[MADE] = f"run-{sha256(MADE.encode()).hexdigest()[:10]}"
        for job, until in ((CARRIED, Until.EACH), (GANG, Until.FIRST_SUCCESS)):
            self.orders[job] = order(self, asked(2, job=job), until=until, request_id=job).id
        lost = self.jenkins.submit("lost", "cpu", 200.0)
        self.world.timeline.after(300.0, self.a_worker_passes)
        self.tick()
        for build in (builds(self, CARRIED)[0], lost):
            self.world.ec2.end(instance_of(self, build))
        self.world.move_to(self.now() + 60.0)
        return self

    def before_a_call(self) -> None:
        """Idle agents begin what waits: of two builds that are alike and wait, Jenkins would make one."""
        self.world.move_to(self.now())

    def a_worker_passes(self) -> None:
        worker = builds(self, GANG)[0]
        if worker.ended is None:
            self.jenkins.end(worker, succeeded=True)

    def at_rest(self) -> bool:
        ordered = self.fleet.run_orders.orders.values()
        return Scene.at_rest(self) and not any(one.is_open for one in ordered) and all(build.ended for build in self.jenkins.builds)

    def assert_whole(self) -> None:
        """Whatever was ordered or lost was started once, and has ended."""
        Scene.assert_whole(self)
        assert [build.ended for build in builds(self, "lost")] == [Ended.KILLED, Ended.FINISHED]
        assert answers(self) == [("job/lost/1", "started", 1)]
        ids = Counter(dict(build.started_with.parameters)[RUN_ID] for build in self._ordered())
        assert [one for one, times in ids.items() if times > 1] == []
        ends = Counter(event.by for event in self.fleet.history.events if event.what.startswith("run-") and event.by.startswith("run "))
        for known in self.fleet.run_orders.orders.values():
            assert ends[f"run {known.id}"] == 1, f"{known.id} ended {ends[f'run {known.id}']} times"
            self._assert_of(known.job, outcome_of(known))

    def _assert_of(self, job: str, outcome: str | None) -> None:
        ended = [build.ended for build in builds(self, job)] if job in self.jenkins.builds_of else []
        if outcome == "cancelled":
            assert len(ended) <= 3
        elif job == GANG:
            assert (outcome, ended) == ("passed", [Ended.FINISHED, Ended.ABORTED])
        else:
            lost = [Ended.KILLED] if job == CARRIED else []
            assert (outcome, ended) == ("passed", [*lost, Ended.FINISHED, Ended.FINISHED])

    def _ordered(self) -> list[Build]:
        return [build for build in self.jenkins.builds if build.job in self.orders]


def an_ordered_scene() -> OrderedScene:
    quick = {"idle_seconds": 400.0, "boot_seconds": 60.0, "boot_timeout_seconds": 240.0, "queue_maturity_seconds": 0.0}
    cpu = a_pool("cpu", offerings=(FIRM,), max_agents=8, rerun=RerunPolicy(), **quick)
    fleet = in_memory(cpu, seed=5)
    fleet.fleet = replace(fleet.fleet, runs=RunPolicy(label_parameter=LABEL, max_open=5))
    return OrderedScene(fleet, script={}, schedule=("scale_up", "scale_down")).set_up()


def scale_down_again(scene: OrderedScene) -> None:
    """AWS delivers a tick twice."""
    scene.fleet.scale_down()


def scale_down_though_another_one_goes_on(scene: OrderedScene) -> None:
    """Its lease has expired: what it writes from now on is refused."""
    scene.fleet.state.holder = None
    scene.fleet.scale_down()


def order_runs(scene: OrderedScene) -> None:
    order(scene, asked(2, job=MADE), request_id=MADE)


def order_runs_again(scene: OrderedScene) -> None:
    """With the same request."""
    order(scene, asked(2, job=MADE), request_id=MADE)


def cancel_what_is_carried_on(scene: OrderedScene) -> None:
    _cancel(scene, CARRIED)


def cancel_the_gang(scene: OrderedScene) -> None:
    _cancel(scene, GANG)


def cancel_what_is_being_ordered(scene: OrderedScene) -> None:
    _cancel(scene, MADE)


def a_worker_of_the_gang_passes(scene: OrderedScene) -> None:
    scene.a_worker_passes()


def _cancel(scene: OrderedScene, job: str) -> None:
    request = CancelRun(id=scene.orders[job], by="bob", reason="")
    operate.cancel_runs(scene.fleet.ports, scene.fleet.fleet, scene.fleet.invocation(), request)


PAIRS = (
    (scale_down, scale_down_again),
    (scale_down, scale_down_though_another_one_goes_on),
    (scale_down, cancel_what_is_carried_on),
    (scale_down, order_runs),
    (scale_down, a_worker_of_the_gang_passes),
    (order_runs, order_runs_again),
    (order_runs, cancel_what_is_being_ordered),
    (cancel_the_gang, a_worker_of_the_gang_passes),
)
