"""What the judge has found: what is broken, and how often each property and each switch had something to say."""

from collections import Counter
from dataclasses import dataclass, field

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from support.hostile.drawn import MINUTE
from support.hostile.life import Life
from support.worlds import START


@dataclass(frozen=True, slots=True)
class Violation:
    property: str
    text: str


@dataclass(slots=True)
class Verdict:
    """What is broken, and how often each property and each switch had something to say."""

    broken: list[Violation] = field(default_factory=list)
    obligations: Counter[str] = field(default_factory=Counter)  # by property
    by_switch: Counter[tuple[str, str]] = field(default_factory=Counter)  # by switch and property

    def oblige(self, life: Life, name: str, switches: "set[str] | None" = None, count: int = 1) -> None:
        self.obligations[name] += count
        for switch in life.switches if switches is None else switches:
            self.by_switch[switch, name] += count

    def breaks(self, name: str, text: str) -> None:
        self.broken.append(Violation(name, text))

    @property
    def properties(self) -> list[str]:
        return sorted({violation.property for violation in self.broken})


def at(life: Life, when: float) -> str:
    """Say when, in minutes of this world."""
    return f"minute {(when - START) / MINUTE:.0f}"


def named(build: Build) -> str:
    return f"{build.job} #{build.number} ({build.label} on {build.controller})"
