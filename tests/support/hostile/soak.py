"""Hostile worlds for as long as you like, or one of them again, made smaller.

``python -m support.hostile.soak MINUTES JOBS [SEED]`` prints how often each switch and each property had something to check, and what
broke. ``python -m support.hostile.soak --seed N [--with a,b] [--without a,b] [--as-it-is]`` lives one world, and drops switches one by
one as long as it breaks in the same way.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import count, islice
from random import SystemRandom

from support.hostile.judge import PROPERTIES, judge
from support.hostile.known import is_known
from support.hostile.life import SWITCHES, Life, switches_of
from support.hostile.verdict import Verdict, Violation

_SHOWN, _WIDEST = 3, 1500


@dataclass(slots=True)
class Lived:
    """One world, as it is handed from one process to another."""

    seed: int
    switches: tuple[str, ...]
    bit: frozenset[str]  # those that did anything
    verdict: Verdict
    cpu_seconds: float
    hours: float


@dataclass(slots=True)
class Tally:
    """All worlds of a soak."""

    worlds: list[Lived] = field(default_factory=list)

    def obligations(self) -> Counter[str]:
        return sum((one.verdict.obligations for one in self.worlds), Counter[str]())

    def broken(self) -> dict[tuple[str, str], list[Lived]]:
        """The worlds in which a property broke, by switch and property."""
        found: dict[tuple[str, str], list[Lived]] = defaultdict(list)
        for lived in self.worlds:
            for name in lived.verdict.properties:
                for switch in lived.switches:
                    found[switch, name].append(lived)
        return found


def live(seed: int, switches: Collection[str] | None = None) -> Lived:
    began = time.process_time()
    life = Life(seed, switches).live()
    hours = (life.world.timeline.now - life.drawn.begin_at) / 3600.0
    return Lived(seed, life.switches, life.bit, judge(life), time.process_time() - began, hours)


def shrunk(lived: Lived, name: str) -> Lived:
    """Drop switches one by one as long as the same property breaks."""
    for switch in lived.switches:
        fewer = live(lived.seed, [one for one in lived.switches if one != switch])
        if name in fewer.verdict.properties:
            return shrunk(fewer, name)
    return lived


def table(tally: Tally) -> Iterable[str]:
    """How often each switch was drawn, did anything, and had something to check; how many worlds with it broke, by property."""
    drawn = Counter(switch for one in tally.worlds for switch in one.switches)
    by_switch = sum((one.verdict.by_switch for one in tally.worlds), Counter[tuple[str, str]]())
    broken = tally.broken()
    bit = Counter(switch for one in tally.worlds for switch in one.bit)
    yield f"{'switch':<26}{'worlds':>7}{'bit':>5}" + "".join(f"{name:>13}" for name in PROPERTIES)
    for switch in sorted(SWITCHES):
        cells = (
            f"{by_switch[switch, name]}" + (f" ({len(worlds)})" if (worlds := broken.get((switch, name))) else "") for name in PROPERTIES
        )
        yield f"{switch:<26}{drawn[switch]:>7}{bit[switch]:>5}" + "".join(f"{cell:>13}" for cell in cells)
    totals = tally.obligations()
    yield f"{'all':<26}{len(tally.worlds):>7}{'':>5}" + "".join(f"{totals[name]:>13}" for name in PROPERTIES)
    yield "bit: worlds in which the switch did anything. Then obligations, and in brackets the worlds in which the property broke."


def report(tally: Tally, *, shrinks: bool) -> Iterable[str]:
    """What broke, the rarest property first: each with the command that plays it again."""
    seconds = sum(one.cpu_seconds for one in tally.worlds)
    hours = sum(one.hours for one in tally.worlds)
    yield f"{len(tally.worlds)} worlds, {hours:,.0f} world-hours, {seconds / max(1, len(tally.worlds)):.1f} CPU seconds each"
    for name, says in PROPERTIES.items():
        worlds = [one for one in tally.worlds if name in one.verdict.properties]
        yield f"\n{name}: {says}: {len(worlds)} worlds broke it"
        for lived in worlds[: _SHOWN if shrinks else len(worlds)]:
            least = shrunk(lived, name) if shrinks else lived
            yield from told(least, name)


def told(lived: Lived, *names: str) -> Iterable[str]:
    for violation in lived.verdict.broken:
        if not names or violation.property in names:
            known = " (known)" if is_known(violation, lived.switches) else ""
            yield f"  {violation.property}{known}: {violation.text[:_WIDEST]}"
    yield f"    python -m support.hostile.soak --seed {lived.seed} --with {','.join(lived.switches) or 'none'}"


def new_in(lived: Lived) -> list[Violation]:
    """What broke, and is not known."""
    return [violation for violation in lived.verdict.broken if not is_known(violation, lived.switches)]


def soak(minutes: float, jobs: int, first: int) -> int:
    """Live until time is up. The exit code is 1 if anything broke that is not known."""
    until, numbers, tally = time.monotonic() + minutes * 60.0, count(first), Tally()
    with ProcessPoolExecutor(jobs) as pool:
        while time.monotonic() < until:
            for done in as_completed(pool.submit(live, number) for number in islice(numbers, 4 * jobs)):
                tally.worlds.append(lived := done.result())
                if new_in(lived):
                    print("\n".join(told(lived)), flush=True)  # noqa: T201 - at once: an hour is long
    tally.worlds.sort(key=lambda lived: lived.seed)
    for line in (*table(tally), *report(tally, shrinks=True)):
        print(line)  # noqa: T201
    return 1 if any(new_in(lived) for lived in tally.worlds) else 0


def again(seed: int, switches: Collection[str], *, shrinks: bool) -> int:
    """Live one world again, and with fewer switches."""
    lived = live(seed, switches)
    print(f"world {seed}: {', '.join(lived.switches) or 'no switch'}; {lived.hours:.1f} h, {lived.cpu_seconds:.1f} CPU seconds")  # noqa: T201
    for name in lived.verdict.properties:
        for line in told(shrunk(lived, name) if shrinks else lived, name):
            print(line)  # noqa: T201
    return 1 if lived.verdict.broken else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=float, help="minutes, processes, and the first seed")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--with", dest="alone", default="", help="these switches instead of the drawn ones; none: no switch")
    parser.add_argument("--without", default="")
    parser.add_argument("--as-it-is", action="store_true", help="drop no switch")
    given = parser.parse_args()
    if given.seed is not None:
        switches = [name for name in given.alone.split(",") if name and name != "none"] if given.alone else switches_of(given.seed)
        return again(given.seed, [name for name in switches if name not in given.without.split(",")], shrinks=not given.as_it_is)
    minutes, jobs, first = [*given.numbers, *[10, 2, SystemRandom().randrange(10**6)][len(given.numbers) :]]
    return soak(minutes, int(jobs), int(first))


if __name__ == "__main__":
    sys.exit(main())
