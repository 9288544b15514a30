"""A rival alone with one pool in a world: what it launches and ends, and when."""

from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet
from autoscaler_workbench.experiment.rivals import EVERY_RIVAL
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.world import build_world
from support.builders import a_fleet, a_pool

START = 1_700_000_000.0
ENDLESS = 1e7


class Alone:
    """Times are seconds since the beginning; ``online`` agents are connected then, before the rival first looks."""

    def __init__(self, name, *, online=0, settings=None, foreseen=None, **pool):
        self.fleet = a_fleet(a_pool("cpu", **({"boot_seconds": 120.0, "max_agents": 100} | pool)))
        self.world = build_world(self.fleet, start_at=START, seed=1)
        self.site = RivalFleet(self.world, foreseen)
        self.rival = EVERY_RIVAL[name].of(settings or {}, 1)
        self.pool = self.site.pools["cpu"]
        self.jenkins = self.world.controllers["main"]
        self.launched, self.ended, self.seen = [], [], set()
        self.site.launch(self.pool, online)
        self.world.move_to(START + 1000)
        self.began = self.next_tick = self.world.timeline.now
        self.seen = set(self.world.ec2.instances)
        self.rival.begin(self.site)

    def submit(self, count=1, seconds=ENDLESS):
        return [self.jenkins.submit("job", "cpu", seconds) for _ in range(count)]

    def lives(self, seconds):
        """Let it tick for so long."""
        until = self.world.timeline.now + seconds
        while self.next_tick <= until:
            self.world.move_to(self.next_tick)
            self.site.look()
            self.rival.tick(self.site)
            self._note()
            self.next_tick += self.rival.tick_seconds
        self.world.move_to(until)
        return self

    @property
    def agents(self):
        return len(self.pool.agents)

    def killed(self):
        return sum(build.ended is Ended.KILLED for build in self.jenkins.builds)

    def asked_at(self, number):
        """When the so many-th agent was asked for."""
        return self.launched[number - 1]

    def _note(self):
        now = self.world.timeline.now - self.began
        fresh = set(self.world.ec2.instances) - self.seen
        self.launched += [now] * len(fresh)
        self.seen |= fresh
