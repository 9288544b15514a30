"""One unkindness of one world: from when until when, to whom, and how a message would name it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import TYPE_CHECKING

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from support.hostile.drawn import MINUTE

if TYPE_CHECKING:
    from support.hostile.life import Edit, Life

Touches = Callable[[Build], bool]


@dataclass(slots=True, kw_only=True)
class Unkindness:
    """What is known of it to the judge, who reads nothing of ours.

    ``touches``: builds whose waiting it may change; ``strikes``: instances that it may keep from ending; ``words``: any of them in a
    message names it; ``closes``: pools of which no fresh agent can be had; ``prevents``: builds that no fresh agent takes;
    ``keeps``: instances that a person wants as they are, whatever they cost; ``is_noise``: it disturbs calls or clocks, so that nothing
    exact can be promised meanwhile; ``names``: instances that a message names while it lasts;
    ``hides``: builds that nobody sees meanwhile, so that no message is due for them;
    ``pays_seconds``: for so long an instance that it strikes may be paid for in vain; ``delays_seconds``: so much later than anybody
    could know a build begins that it touches; ``hidden_seconds``: a job has to wait so long before anybody can know the cause;
    ``comes_and_goes``: its words explain why a job waits, and no message is due for it.
    """

    switch: str
    whom: str
    from_at: float
    until_at: float
    touches: Touches = lambda _build: False
    strikes: Callable[[Instance], bool] = lambda _instance: False
    prevents: Touches = lambda _build: False
    closes: frozenset[str] = frozenset()
    keeps: Callable[[Instance], bool] = lambda _instance: False
    names: Callable[[Instance], bool] = lambda _instance: False
    hides: Touches = lambda _build: False
    words: set[str] = field(default_factory=set)
    is_noise: bool = False
    pays_seconds: float = 3600.0
    delays_seconds: float = 0.0
    hidden_seconds: float = 0.0
    comes_and_goes: bool = False

    def overlaps(self, begin: float, end: float, linger: float = 0.0) -> bool:
        return self.from_at <= end and begin <= self.until_at + linger

    def __str__(self) -> str:
        end = "for ever" if self.until_at == inf else f"until {self.until_at:.0f}"
        return f"{self.switch} ({self.whom}) from {self.from_at:.0f} {end}"


@dataclass(slots=True)
class Draw:
    """What a switch draws by. Its chance is its own: without the other switches it draws the same."""

    life: "Life"
    chance: Random
    switch: str
    bites: int = 0  # how often it did anything: a switch that never bites proves nothing
    bit_at: float = inf  # when it first did

    def span(self, least: float = 10.0, most: float = 90.0, for_ever: float = 0.0) -> tuple[float, float]:
        """Draw a span of minutes within the chaos, or one without an end. It often begins early, so that it lasts."""
        drawn = self.life.drawn
        from_at = drawn.begin_at + (drawn.calm_at - drawn.begin_at) * self.chance.random() * 0.7
        until_at = min(drawn.calm_at, from_at + self.chance.uniform(least, most) * MINUTE)
        return from_at, inf if self.chance.random() < for_ever else until_at

    def pool(self) -> Pool:
        """Draw a pool that some jobs ask for, and whose agents are launched."""
        asked = [
            pool for pool in self.life.drawn.fleet.launched.pools.values() if any(self.life.may_serve(pool, job) for job in self.jobs())
        ]
        return self.chance.choice(asked)

    def jobs(self):
        return self.life.drawn.jobs

    def make(self, whom: str, span: tuple[float, float], **facts) -> Unkindness:
        """Make it, and let its ends happen."""
        return Unkindness(switch=self.switch, whom=whom, from_at=span[0], until_at=span[1], **facts)

    def at(self, when: float, happen: Callable[[], None]) -> None:
        if when < inf:
            self.life.world.timeline.at(when, happen)

    def bite(self) -> None:
        self.bites += 1
        self.bit_at = min(self.bit_at, self.life.world.timeline.now)

    def bite_unforeseen(self) -> None:
        """Count that it did something at a moment of its own, as taking an agent away: what was promised before is not held to."""
        self.bite()
        self.life.notes.events.append(self.life.world.timeline.now)

    def end(self, instance: Instance) -> None:
        """End a machine, which is no doing of ours."""
        instance.interrupted = True
        self.life.world.ec2.end(instance)
        self.bite_unforeseen()

    def keep_waiting(
        self,
        controller: Controller,
        jobs: Sequence[str],
        label: str,
        seconds: float,
        *,
        span: tuple[float, float],
        every: float,
        most: int = 1,
    ) -> None:
        """Queue builds of these jobs now and then, so that so many of them wait."""

        def fill() -> None:
            for _ in range(most - sum(build.job in jobs and build.label == label for build in controller.queue)):
                self.life.notes.events.append(self.life.world.timeline.now)
                job, kind = self.chance.choice(jobs), self.chance.choice(list(Kind))
                controller.submit(job, label, seconds * self.chance.uniform(0.8, 1.25), kind=kind)

        self.every((span[0], span[1] - MINUTE), every, fill)

    def bite_if(self, span: tuple[float, float], happens: Callable[[], bool]) -> None:
        """Look each minute whether it does anything."""
        self.every(span, MINUTE, lambda: self.bite() if happens() else None)

    def bite_where_jobs_wait(self, span: tuple[float, float], touches: Touches) -> None:
        controllers = self.life.world.controllers.values()
        self.bite_if(span, lambda: any(touches(build) for controller in controllers for build in controller.queue))

    def counted(self, hook: Callable) -> Callable:
        """Count a hook's answers. The first on each node or instance, and each on a call, is an event: nobody could know it before.

        A node that was deleted and made again under its name is another one.
        """
        struck = dict[str, object]()

        def answer(*given):
            answered = hook(*given)
            if answered:
                self.bite()
                name = getattr(given[-1], "name", None) or getattr(given[-1], "id", "")
                if not name or struck.get(name) is not given[-1]:
                    self.life.notes.events.append(self.life.world.timeline.now)
                    struck[name] = given[-1]
            return answered

        return answer

    def while_it_lasts(self, span: tuple[float, float], hooks: list, hook: Callable) -> None:
        """Put a hook in at the beginning, and take it out at the end."""
        counted = self.counted(hook)
        self.at(span[0], lambda: hooks.append(counted))
        self.at(span[1], lambda: hooks.remove(counted))

    def edit_file(self, span: tuple[float, float], edit: "Edit") -> None:
        """Deploy the fleet file with an edit, and without it once the span is over."""
        edits = self.life.edits
        self.at(span[0], lambda: (edits.append(edit), self.life.deploy()))
        self.at(span[1], lambda: (edits.remove(edit), self.life.deploy()))

    def every(self, span: tuple[float, float], seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen again and again; what has no end ends with the world."""

        def again() -> None:
            if self.life.world.timeline.now <= min(span[1], self.life.drawn.end_at):
                happen()
                self.life.world.timeline.after(seconds, again)

        self.at(span[0], again)
