"""In any world, what is seen straight is what the adapters read from its apis: a run that sees straight decides the same."""

from dataclasses import replace

from hypothesis import settings
from hypothesis.stateful import invariant

from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.in_process import InProcessCompute, InProcessController
from autoscaler_workbench.simulate.drive import InMemory, InProcess
from autoscaler_workbench.simulate.run import prepare
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace
from support.machine import AnythingHappens


class AnythingHappensAndIsSeenStraight(AnythingHappens):
    """Looks both ways after each step; what the straight way keeps from look to look must never be out of date."""

    @invariant()
    def both_ways_see_the_same(self):
        if not hasattr(self, "world"):
            return
        if not hasattr(self, "straight"):
            api = self.fleet.apis["main"]
            self.straight = InProcessController(api, self.fleet.fleet.job_parameters, self.fleet.connecting(api))
            self.compute = InProcessCompute(Ec2Api(self.world.ec2), self.fleet.fleet)
        self.fleet.faults.dice = None
        read = self.fleet.ports.controllers[0]
        assert self.straight.look() == replace(read.look(), response_seconds=0.0)
        if self.fleet.apis["main"].controller.up == "up":
            assert self.straight.health() == read.health()
        for name in (*self.fleet.apis["main"].controller.nodes, "nobody"):
            if self.fleet.apis["main"].controller.up == "up":
                assert self.straight.node(name) == read.node(name)
        for run in {build.run_path.rstrip("/") for build in self.jenkins.builds[-5:]}:
            if self.fleet.apis["main"].controller.up == "up":
                assert self.straight.result(run) == read.result(run)
        assert self.compute.instances() == self.fleet.ports.compute.instances()


AnythingHappensAndIsSeenStraight.TestCase.settings = settings(max_examples=settings().max_examples // 7, stateful_step_count=20)
TestBothWays = AnythingHappensAndIsSeenStraight.TestCase


def test_a_morning_of_the_mxnet_ci_ends_the_same_both_ways(example_fleet):
    def lived(way):
        run = prepare(load_trace(MXNET, hours=2.0, start_at=MXNET_DAY + 8 * 3600), example_fleet, hours=2.0, seed=3)
        last = list(run.drive(way(run.world, example_fleet)))[-1]
        return {name: value for name, value in run.result(last).items() if name != "took_s"}

    assert lived(InProcess) == lived(InMemory)
