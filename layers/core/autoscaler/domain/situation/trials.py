"""Trials: what failed is tried again with one agent at a time, at growing intervals, and one success ends that.

A trial has a scope: an offering of a pool, everything that a pool launches, the account. What EC2 refuses takes no room from anything
else: a pool all of whose offerings have open trials launches nothing but the one agent that tries, and that one comes last.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import Offering, Pool
from autoscaler.domain.facts.memory import Memory, Trial
from autoscaler.domain.wording import moment

# Seconds until it is tried again, after the first failure, the second, and so on; the last one goes on. What lacks capacity has some again
# within minutes, and a call is cheap. What needs a person is not mended by asking. An offering that a zone does not have gets none soon.
CAPACITY_PAUSES = (60.0, 120.0, 300.0)
PERSON_PAUSES = (300.0,)
UNSUPPORTED_PAUSES = (86_400.0,)
THROTTLE_PAUSES = (60.0,)
# Machines that EC2 takes back are likely to be taken back again for a while.
TAKEN_BACK_PAUSES = (180.0, 360.0, 600.0)
# One boot may fail by itself; three in a row are the image's, the network's or the template's doing.
BOOT_PAUSES = (0.0, 0.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0)
# What Jenkins refuses one agent, it refuses all of them until a person mends it.
CONNECT_PAUSES = (300.0, 600.0, 1200.0, 2400.0, 3600.0)
# Three starts in a row that fail are the template's doing, or a right's that is missing. Launches go on meanwhile.
START_PAUSES = (0.0, 0.0, 600.0, 1200.0, 2400.0, 3600.0)
# Nothing waits for a new image: agents are launched from the one that booted before.
IMAGE_PAUSES = (300.0, 600.0, 1200.0, 2400.0, 3600.0)
# While jobs wait for nothing else, no pause is longer than so many boot timeouts.
MOST_BOOT_TIMEOUTS = 2.0
# A trial that limits have left no room for so long goes before other launches, as one agent.
NO_ROOM_SECONDS = 900.0
# A trial that nothing has wanted for so long, after its pause, is forgotten: the next failure is the first again.
_REMEMBERED_SECONDS = 3600.0
ACCOUNT = "account"


def of_offering(pool: str, offering: Offering) -> str:
    """Name the scope of one offering of a pool."""
    return f"offering/{pool}/{offering.key}"


def of_pool(pool: str) -> str:
    """Name the scope of everything that a pool launches."""
    return f"pool/{pool}"


def of_stops(pool: str) -> str:
    """Name the scope of stopping a pool's agents."""
    return f"stops/{pool}"


def of_disks(pool: str) -> str:
    """Name the scope of keeping the disks of a pool's agents."""
    return f"disks/{pool}"


def of_taken_back(pool: str, key: str) -> str:
    """Name the scope of machines that EC2 takes back, of one offering of a pool. Nothing failed: it is only asked for last."""
    return f"taken-back/{pool}/{key}"


def of_boot(pool: str) -> str:
    """Name the scope of booting a pool's agents."""
    return f"boot/{pool}"


def of_starts(pool: str) -> str:
    """Name the scope of starting a pool's stopped agents."""
    return f"start/{pool}"


def of_image(pool: str) -> str:
    """Name the scope of booting a pool's new image."""
    return f"image/{pool}"


def of_connections(controller: str) -> str:
    """Name the scope of connecting agents to a controller."""
    return f"connect/{controller}"


def by_pool(memory: Memory, kind: Callable[[str], str]) -> dict[str, Trial]:
    """Return the trials of one kind of scope, by pool or controller."""
    prefix = kind("")
    return {scope.removeprefix(prefix): trial for scope, trial in memory.trials.items() if scope.startswith(prefix)}


def boots_counted(memory: Memory) -> set[str]:
    """Name the instances whose failed boots, or starts, have counted."""
    return {
        instance_id for kind in (of_boot, of_image, of_starts) for trial in by_pool(memory, kind).values() for instance_id in trial.failed
    }


def failed_once_more(known: Trial | None, pauses: tuple[float, ...], why: str, now: float) -> Trial:
    """Count one more failure, and say until when nothing is tried."""
    before = known.failures if known else 0
    since_at = known.since_at if known and known.is_open else now
    trial = known or Trial(failures=0, since_at=now, failed_at=now, until_at=now, why=why)
    pause = pauses[min(before, len(pauses) - 1)]
    return replace(trial, failures=before + 1, since_at=since_at, failed_at=now, until_at=now + pause, why=why, said="")


def close(known: Mapping[str, Trial], scopes: Iterable[str], now: float) -> dict[str, Trial]:
    """Note that these scopes work again."""
    worked = {scope: replace(known[scope], failures=0, until_at=now) for scope in scopes if scope in known and known[scope].is_open}
    return {**known, **worked}


def still_remembered(known: Mapping[str, Trial], now: float) -> dict[str, Trial]:
    """Leave out what EC2 refused long ago. Boots, starts and connections have ends of their own."""
    others = tuple(kind("") for kind in (of_boot, of_starts, of_image, of_connections))
    kept = {scope: trial for scope, trial in known.items() if not scope.startswith(others)}
    return {scope: trial for scope, trial in kept.items() if now - trial.until_at < _REMEMBERED_SECONDS}


def open_trial(memory: Memory, scope: str) -> Trial | None:
    """Return the trial of a scope that failed and has not worked since; None where it works, as far as anybody knows."""
    trial = memory.trials.get(scope)
    return trial if trial and trial.is_open else None


def offered(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List what as many agents as are needed may be asked for: on each market where not everything has failed, what may work."""
    if pool.of_hosts or _wide(pool, memory):
        return ()
    if not memory.trials:
        return pool.offerings
    free = _free(pool, memory, now)
    return tuple(offering for offering in free if not is_taken_back(memory, pool.name, offering, now)) or free


def _free(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List the offerings whose pause has ended, or that work, on each market where any works."""
    failed = _failed(pool, memory)
    works = {offering.market for offering in pool.offerings if offering not in failed}
    pausing = {offering for offering, trial in failed.items() if now < trial.until_at}
    return tuple(offering for offering in pool.offerings if offering.market in works and offering not in pausing)


def is_taken_back(memory: Memory, pool: str, offering: Offering, now: float) -> bool:
    """Tell whether EC2 took machines of an offering back lately, so that it is asked for last."""
    trial = open_trial(memory, of_taken_back(pool, offering.key))
    return trial is not None and now < trial.until_at


def _failed(pool: Pool, memory: Memory) -> dict[Offering, Trial]:
    """Return the open trials of a pool's offerings."""
    return {offering: trial for offering in pool.offerings if (trial := open_trial(memory, of_offering(pool.name, offering)))}


def to_try(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List what one agent may try now: on each market where everything has failed, what its pause has ended for."""
    if pool.of_hosts or not memory.trials:
        return ()
    if any(is_pausing(memory, scope, pool, now) for scope in (of_pool(pool.name), ACCOUNT)):
        return ()
    failed = set(pool.offerings) if _wide(pool, memory) else set(_failed(pool, memory))
    works = {offering.market for offering in pool.offerings if offering not in failed}
    tried = (offering for offering in pool.offerings if offering.market not in works)
    return tuple(offering for offering in tried if not is_pausing(memory, of_offering(pool.name, offering), pool, now))


def is_pausing(memory: Memory, scope: str, pool: Pool, now: float) -> bool:
    """Tell whether nothing is tried in a scope now."""
    trial = open_trial(memory, scope)
    return trial is not None and now < due_at(trial, pool)


def due_at(trial: Trial, pool: Pool) -> float:
    """Say from when on one agent of a pool may try it again."""
    return min(trial.until_at, trial.failed_at + MOST_BOOT_TIMEOUTS * pool.boot_timeout_seconds)


def in_the_way(pool: Pool, memory: Memory) -> dict[str, Trial]:
    """Return the open trials because of which a pool launches no more than one agent, by scope; none where some market works."""
    if wide := _wide(pool, memory):
        return wide
    failed = _failed(pool, memory)
    return {of_offering(pool.name, offering): trial for offering, trial in failed.items()} if len(failed) == len(pool.offerings) else {}


def _wide(pool: Pool, memory: Memory) -> dict[str, Trial]:
    """Return the open trials that are about all offerings of a pool, by scope."""
    return {scope: trial for scope in (of_pool(pool.name), ACCOUNT) if (trial := open_trial(memory, scope))}


def told_refused(trials: Mapping[str, Trial], again_at: float | None, now: float) -> str:
    """Say what EC2 answers, since when, and when one agent tries again."""
    whys, since_at = ", ".join(sorted({trial.why for trial in trials.values()})), min(trial.since_at for trial in trials.values())
    times = max(trial.failures for trial in trials.values())
    often = f", {times} times in a row since {moment(since_at)}" if times > 1 else f" at {moment(since_at)}"
    if again_at is None:
        return f"{whys}{often}"
    again = f"at {moment(again_at)}" if again_at > now else "now if a job waits and the limits leave it room"
    return f"{whys}{often}; one agent is tried {again}"


def next_try_at(pool: Pool, memory: Memory) -> float | None:
    """Say from when on one agent may try what is in the way of a pool's launches; None where nothing is."""
    # A pool's pause and the account's both hold. Of several offerings the first may be tried alone.
    if wide := _wide(pool, memory):
        return max(due_at(trial, pool) for trial in wide.values())
    return min((due_at(trial, pool) for trial in in_the_way(pool, memory).values()), default=None)
