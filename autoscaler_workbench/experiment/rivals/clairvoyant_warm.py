"""A bound, not a rival: it knows every arrival and every duration, and keeps each agent hot, stopped or not at all, as is cheapest.

An agent's gap, the time until it is needed again, is known: hot it costs its price, stopped its volume and one start, gone one boot.
Starts and boots are ahead by the slowest that the world has, and paid for from their beginning. Stopped ones fill no limit.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler_workbench.experiment.policy.perfect_forecast import spells
from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.result import StepCurve

_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What it costs to get over a gap, in dollars; `_NEVER` where a way is too slow or the gap has no end."""

    usd_per_second: float
    volume_usd_per_second: float
    boot_seconds: float  # the slowest, and one look
    start_seconds: float
    stop_seconds: float

    @classmethod
    def of(cls, pool: Pool, physics: Physics, look_seconds: float) -> "Ways":
        """The ways of one pool."""
        boot = pool.boot_seconds * physics.boot_to
        connect = physics.connect_to_seconds + look_seconds
        return cls(
            usd_per_second=pool.offerings[0].usd_per_hour / 3600.0,
            volume_usd_per_second=pool.offerings[0].volume_usd_per_hour / 3600.0,
            boot_seconds=physics.pending_to_seconds + boot + connect,
            start_seconds=physics.start_pending_to_seconds + physics.start_to * boot + connect,
            stop_seconds=physics.stop_to_seconds + look_seconds,
        )

    @property
    def gone_usd(self) -> float:
        """A boot."""
        return self.usd_per_second * self.boot_seconds

    def stopped_usd(self, gap: float) -> float:
        """The disk all the while, and a start at its end."""
        if gap == _NEVER:
            return _NEVER
        return self.usd_per_second * max(MINIMUM_BILLED_SECONDS, self.start_seconds) + self.volume_usd_per_second * gap

    def is_time_to_stop(self, gap: float) -> bool:
        """It would have stopped before it has to start again."""
        return gap > self.stop_seconds + self.start_seconds


class Needs:
    """When so many agents of a pool are needed."""

    def __init__(self, curve: StepCurve, pool: RivalPool) -> None:
        """Find the spells of every number of agents."""
        self.curve = curve
        agents = [pool.agents_for(count) for count in curve.counts]
        self._spells = [spells(curve.times, agents, number) for number in range(1, max(agents, default=0) + 1)]
        self._ends = [[end for _, end in of_number] for of_number in self._spells]

    def gap(self, number: int, now: float) -> float:
        """Seconds until so many agents are needed; 0: they are now."""
        if number > len(self._spells):
            return _NEVER
        place = bisect_right(self._ends[number - 1], now)
        later = self._spells[number - 1][place:][:1]
        return max(0.0, later[0][0] - now) if later else _NEVER


@dataclass(kw_only=True)
class ClairvoyantWarm(Rival):
    """``keep_times``: how many times a start and a boot are taken to cost what they do; above 1, agents are kept hot for longer."""

    keep_times: float = 1.0
    _needs: dict[str, Needs] = field(default_factory=dict)
    _ways: dict[str, Ways] = field(default_factory=dict)

    NAME = "clairvoyant-warm"
    KNOB = ("keep_times", (0.5, 1.0, 2.0, 5.0, 10.0))

    def begin(self, fleet: RivalFleet) -> None:
        """Work out once what is needed when."""
        for name, pool in fleet.pools.items():
            if fleet.forecast and name in fleet.forecast.curves:
                self._needs[name] = Needs(fleet.forecast.curves[name], pool)
                self._ways[name] = Ways.of(pool.pool, fleet.world.physics, self.tick_seconds)

    def tick(self, fleet: RivalFleet) -> None:
        """Have what will be needed when it is needed, and let the rest go, or stop."""
        for name, needs in self._needs.items():
            pool, ways = fleet.pools[name], self._ways[name]
            late = len(pool.waiting) + pool.running  # what is late is made good
            self._get(fleet, pool, needs, ways, late)
            self._let_go(fleet, pool, needs, ways, pool.agents_for(late))
            self._forget(fleet, pool, needs, ways)

    def _get(self, fleet: RivalFleet, pool: RivalPool, needs: Needs, ways: Ways, late: int) -> None:
        now, most = fleet.now, needs.curve.most
        soon = pool.agents_for(max(late, most(now, now + ways.start_seconds)))
        later = pool.agents_for(max(late, most(now, now + ways.boot_seconds)))
        fleet.start(pool, pool.startable[: max(0, soon - len(pool.agents))])
        fleet.launch(pool, later - len(pool.agents) - len(pool.stopped))
        # Those that should start by now, and do not: still stopping, or EC2 has no machine for them.
        fleet.launch(pool, pool.agents_for(late) - len(pool.agents))

    def _let_go(self, fleet: RivalFleet, pool: RivalPool, needs: Needs, ways: Ways, busy: int) -> None:
        """Let idle agents go, or stop, from the one that is needed last; what still boots is for a later need than theirs."""
        number = len(pool.agents) - len(pool.booting)
        for agent in pool.idle[: max(0, number - busy)]:
            gap = needs.gap(number, fleet.now)
            stopped = ways.stopped_usd(gap) if ways.is_time_to_stop(gap) and agent.instance.market != "spot" else _NEVER
            if ways.usd_per_second * gap <= self.keep_times * min(stopped, ways.gone_usd):
                return
            fleet.end(fleet.stop([agent]) if stopped < ways.gone_usd else [agent])
            number -= 1

    @staticmethod
    def _forget(fleet: RivalFleet, pool: RivalPool, needs: Needs, ways: Ways) -> None:
        """Let stopped agents go whose disk costs more by now than a boot will."""
        number = len(pool.agents) + len(pool.stopped)
        for agent in reversed(pool.startable):
            if ways.stopped_usd(needs.gap(number, fleet.now)) <= ways.gone_usd:
                return
            fleet.end([agent])
            number -= 1
