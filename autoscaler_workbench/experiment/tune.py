"""Propose settings for a workload: what each pool would cost with other ones, played over a trace, pool by pool.

Pools hardly touch each other, so one run tries a value in all pools at once, and each pool takes the value that was cheapest for it
(the bill, and its jobs' waiting). All proposals are then played together, and dropped if together they do not pay. The next variant is
``wait_usd_per_hour``: how eagerly the fleet launches and keeps. Totals count waiting at its first value. The last runs play boots of ready
images, which are no setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import FleetFileError, FleetSettings, check
from autoscaler.config.prices import carried_prices
from autoscaler.domain.wording import counted, dollars, duration
from autoscaler_workbench.experiment.by_needs import Sized, size_by_needs, told_gpus, told_sized
from autoscaler_workbench.experiment.compare import Row, append_row
from autoscaler_workbench.experiment.experiment import OURS, Experiment, play
from autoscaler_workbench.experiment.sizing import JobNeed
from autoscaler_workbench.simulate.traces import Trace

Raw = dict[str, Any]
_WARM_POOL = "warm_pool"
# A start takes this part of a boot: 13 s against 70 s (Karpenter, issue 3798), 10 to 30 s against 2 to 5 min (github-aws-runners, pull
# request 5204). Assumed of boots from a ready image.
_SHORT_SHARE = 1 / 3
# No image boots faster: 23 to 29 s until SSH answers (measured by brevdev/ec2-coldboot-research, 2026), then the agent connects.
_LEAST_BOOT_SECONDS = 40.0
# Variants beside the present value: a warm pool off and on, executors kept free, agents kept, machines of half and of twice the size.
_TRIED: Mapping[str, tuple[float, ...]] = {_WARM_POOL: (0, 1), "warm_executors": (0, 1, 2, 4), "min_agents": (0, 1, 2), "size": (0.5, 2.0)}
# Of settings that do the same thing in two ways, one is proposed. Less is kept running where agents are stopped: that comes first.
_ALTERNATIVES = ((_WARM_POOL,), ("warm_executors", "min_agents"), ("size",))
_WAITING_WORTH = (0.1, 0.35, 3.0, 10.0)
# Less than this share of a pool's total is within the chance of the world.
_WORTH_CHANGING = 0.02
# A warm pool, or an image, changes each boot of a trace: chance counts for less there.
_WORTH_SHORTER_BOOTS = 0.01
_WAIT = "wait_usd_per_hour"
_PRICE_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningTask:
    """The workload to tune for. ``p95_seconds``: the longest p95 wait, at any cost; None: the lowest cost."""

    trace: Trace
    fleet: FleetSettings
    hours: float
    seeds: int
    settings: Mapping[str, Any]
    p95_seconds: float | None = None
    needs: Sequence[JobNeed] = ()  # of jobs, as far as they are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting of one pool, and what it saves: dollars of bill and waiting over the trace."""

    pool: str
    key: str
    value: float
    now: str
    proposed: str
    saves_usd: float


@dataclass(slots=True)
class Proposal:
    """The fleet as proposed, why, and what it costs: ``before`` and ``after`` are means over the seeds, as are all that were ``tried``."""

    fleet: Raw
    before: Row
    after: Row
    changes: list[Change] = field(default_factory=list)
    frontier: list[Row] = field(default_factory=list)
    tried: list[Row] = field(default_factory=list)
    images: list[Change] = field(default_factory=list)  # no settings: what a ready image would save beside them
    sized: list[Sized] = field(default_factory=list)  # by what jobs need


@dataclass(frozen=True, slots=True, kw_only=True)
class _Player:
    """Plays fleets over the workload of a task, each once with each seed, and writes every run to ``out``."""

    place: TuningTask
    out: Path
    jobs: int
    played: dict[tuple[str, int], Row] = field(default_factory=dict)  # by the fleet's settings and the seed

    def play_all(self, fleets: Mapping[str, Raw]) -> dict[str, Row]:
        """Play every fleet with every seed, and take the means. A fleet that was played under another name is not played again."""
        checked = {name: check(raw, name or "the fleet") for name, raw in fleets.items()}
        seeds = range(1, self.place.seeds + 1)
        new = {(fleet.model_dump_json(), seed): (fleet, seed) for fleet in checked.values() for seed in seeds}
        left = {key: run for key, run in new.items() if key not in self.played}
        rows = Parallel(n_jobs=self.jobs, return_as="generator")(delayed(_play)(self.place, *run) for run in left.values())
        self.played.update(zip(left, rows, strict=True))
        return {name: self._mean_of(name, fleet) for name, fleet in checked.items()}

    def _mean_of(self, name: str, fleet: FleetSettings) -> Row:
        settings = fleet.model_dump_json()
        rows = [self.played[settings, seed] | {"setting": name} for seed in range(1, self.place.seeds + 1)]
        for row in rows:
            append_row(self.out, row)
        return _mean(rows)


def tune(place: TuningTask, out: Path, *, jobs: int) -> Proposal:
    """Propose settings; every run is written to ``out``, as in a comparison."""
    present: Raw = place.fleet.model_dump(mode="json", exclude_unset=True)
    player = _Player(place=place, out=out, jobs=jobs)
    before = player.play_all({"": present})[""]
    proposal = Proposal(fleet=present, before=before, after=before, tried=[before])
    for alternatives in _ALTERNATIVES:
        _improve(player, proposal, alternatives)
    _weigh_waiting(player, proposal)
    _play_images(player, proposal)
    if place.needs:
        proposal.sized = size_by_needs(place.fleet, place.trace, place.needs, partial(_play_sized, player))
        proposal.tried += [one.row for one in proposal.sized]
    return proposal


def _play_sized(player: _Player, name: str, fleet: FleetSettings, trace: Trace) -> Row:
    """Play a fleet whose pools, and so their jobs' labels, are others."""
    raw: Raw = fleet.model_dump(mode="json", exclude_unset=True)
    of_labels = replace(player, place=replace(player.place, fleet=fleet, trace=trace), played={})
    return of_labels.play_all({f"sized by needs, {name}": raw})[f"sized by needs, {name}"]


def in_words(proposal: Proposal, task: TuningTask) -> list[str]:
    """Say what is proposed and what it saves: first the whole, then a line a change, the most saving first."""
    before, after = proposal.before, proposal.after
    hours = counted(round(task.hours), "hour")
    images = [_image_in_words(image) for image in sorted(proposal.images, key=lambda image: -image.saves_usd)]
    beside = [*images, *told_sized(proposal.sized, before), *told_gpus(task.fleet, task.needs)]
    if not proposal.changes:
        nothing = f"Nothing that was tried costs less over these {hours}: the fleet file can stay as it is."
        return [nothing, *_late(proposal, task), *beside]
    saved = before["total_usd"] - after["total_usd"]
    share = f", {100 * abs(saved) / before['total_usd']:.1f} % {'less' if saved >= 0 else 'more'}" if before["total_usd"] else ""
    whole = (
        f"With {counted(len(proposal.changes), 'change')} these {hours} cost {dollars(after['total_usd'])} instead of "
        f"{dollars(before['total_usd'])}, waiting included{share}: the bill {dollars(after['usd'])} instead of {dollars(before['usd'])}, "
        f"95 of 100 jobs wait at most {duration(after['wait_p95_s'])} instead of {duration(before['wait_p95_s'])}."
    )
    changes = sorted(proposal.changes, key=lambda change: -change.saves_usd)
    return [whole, *_late(proposal, task), *(_change_in_words(change) for change in changes), *beside]


def _late(proposal: Proposal, task: TuningTask) -> list[str]:
    if task.p95_seconds is None or proposal.after["wait_p95_s"] <= task.p95_seconds:
        return []
    return [f"No setting that was tried lets 95 of 100 jobs begin within {duration(task.p95_seconds)}; this one comes nearest."]


def _change_in_words(change: Change) -> str:
    saves = f"{'saves' if change.saves_usd >= 0 else 'costs'} {dollars(abs(change.saves_usd))} there"
    if change.key == "size":
        executors, _, machine = change.proposed.partition(" on ")
        return f"{change.pool}: {counted(int(executors), 'executor')} on {machine} instead of {change.now}; {saves}."
    words = {
        "warm_executors": f"keep {counted(int(change.value), 'executor')} free",
        "min_agents": f"keep at least {counted(int(change.value), 'agent')}",
        _WARM_POOL: "stop agents and start them again" if change.value else "stop no agents, terminate them",
        _WAIT: f"count an hour of waiting as {dollars(change.value)}",
    }
    return f"{change.pool}: {words[change.key]} ({change.key}: {change.proposed}, now {change.now}); {saves}."


def _image_in_words(image: Change) -> str:
    saves = f"would save another {dollars(image.saves_usd)} there"
    return f"{image.pool}: a ready image that boots in {image.proposed} instead of {image.now} (docs/images.md) {saves}."


def _weigh_waiting(player: _Player, proposal: Proposal) -> None:
    """Play the proposal with other prices of waiting, and take the best."""
    place = player.place
    pools = place.fleet.domain().pools
    fleets = {f"proposed, wait_usd_per_hour x{factor:g}": _worth_waiting(proposal.fleet, factor, pools) for factor in _WAITING_WORTH}
    played = player.play_all(fleets)
    proposal.tried += played.values()
    proposal.frontier = sorted([proposal.after, *played.values()], key=lambda row: float(row["usd"]))
    best = _best(proposal.frontier, place.p95_seconds)
    gain = proposal.after["total_usd"] - best["total_usd"]
    late = place.p95_seconds is not None and proposal.after["wait_p95_s"] > place.p95_seconds
    if best is proposal.after or not (late or gain > _WORTH_CHANGING * proposal.after["total_usd"]):
        return
    fleet = fleets[best["setting"]]
    for name, pool in fleet["pools"].items():
        now, value = pools[name].wait_usd_per_hour, pool[_WAIT]
        saves = round(proposal.after["pools"].get(name, 0.0) - best["pools"].get(name, 0.0), 2)
        proposal.changes.append(Change(pool=name, key=_WAIT, value=value, now=f"{now:g}", proposed=f"{value:g}", saves_usd=saves))
    proposal.fleet, proposal.after = fleet, best


def _best(frontier: Sequence[Row], p95_seconds: float | None) -> Row:
    """The cheapest row whose p95 wait is short enough; if none is, the shortest."""
    if p95_seconds is None:
        return min(frontier, key=lambda row: float(row["total_usd"]))
    soon = [row for row in frontier if row["wait_p95_s"] <= p95_seconds]
    return min(soon, key=lambda row: float(row["usd"])) if soon else min(frontier, key=lambda row: float(row["wait_p95_s"]))


def _improve(player: _Player, proposal: Proposal, alternatives: Sequence[str]) -> None:
    """Try these settings on top of the proposal; take all that pay, or the best alone, or none."""
    tried = {(key, value): _everywhere(proposal.fleet, key, value) for key in alternatives for value in _TRIED[key]}
    names = {of: f"{_so_far(proposal)}{of[0]}={_written(*of)}" for of in tried}
    played = player.play_all({names[of]: fleet for of, fleet in tried.items()})
    proposal.tried += played.values()
    options = {of: (fleet, played[names[of]]) for of, fleet in tried.items()}
    chosen = sorted(_choose(proposal, options), key=lambda change: -change.saves_usd)
    for changes in (chosen, chosen[:1]) if len(chosen) > 1 else (chosen,) if chosen else ():
        fleet = deepcopy(proposal.fleet)
        for change in changes:
            fleet["pools"][change.pool] = tried[change.key, change.value]["pools"][change.pool]
        if not _is_right(fleet):
            continue  # each change is right by itself, and all of them together exceed a limit
        name = f"{_so_far(proposal)}{' or '.join(alternatives)} in {len(changes)} pools"
        after = player.play_all({name: fleet})[name]
        proposal.tried.append(after)
        if after["total_usd"] < proposal.after["total_usd"]:
            proposal.fleet, proposal.after = fleet, after
            proposal.changes += changes
            return


def _play_images(player: _Player, proposal: Proposal) -> None:
    """Play the proposal with boots as short as those of ready images, in all pools at once, and note where they save."""
    fleet, name = deepcopy(proposal.fleet), f"{_so_far(proposal)}ready images"
    boots = {pool.name: pool.boot_seconds for pool in player.place.fleet.domain().launched.pools.values()}
    for pool, seconds in boots.items():
        fleet["pools"][pool]["boot_seconds"] = _ready_image_seconds(seconds)
    row = player.play_all({name: fleet})[name]
    proposal.tried.append(row)
    for pool, now in boots.items():
        before, seconds = proposal.after["pools"].get(pool, 0.0), _ready_image_seconds(now)
        saves = before - row["pools"].get(pool, before)
        if seconds < now and saves > _WORTH_SHORTER_BOOTS * before:
            times = {"now": duration(now), "proposed": duration(seconds)}
            proposal.images.append(Change(pool=pool, key="boot_seconds", value=seconds, saves_usd=round(saves, 2), **times))


def _ready_image_seconds(boot_seconds: float) -> float:
    """How long a boot from a ready image is taken to last, where a boot lasts so long now: no longer than that."""
    return min(boot_seconds, max(_SHORT_SHARE * boot_seconds, _LEAST_BOOT_SECONDS))


def _so_far(proposal: Proposal) -> str:
    return f"{proposal.after['setting']}, " if proposal.after["setting"] else ""


def _play(place: TuningTask, fleet: FleetSettings, seed: int) -> Row:
    experiment = Experiment(trace=place.trace, fleet=fleet, hours=place.hours, policy=OURS, settings=place.settings, seed=seed)
    return _revalued(play(experiment), place.fleet)


def _revalued(row: Row, fleet: FleetSettings) -> Row:
    """Price the waiting of a run as this fleet does, not as the fleet that was played."""
    worth = fleet.domain().pools
    pools = {name: of | {"total_usd": of["usd"] + of["wait_hours"] * worth[name].wait_usd_per_hour} for name, of in row["pools"].items()}
    return row | {"pools": pools, "total_usd": round(sum(of["total_usd"] for of in pools.values()), 2)}


def _mean(rows: Sequence[Row]) -> Row:
    numbers = ("usd", "wait_hours", "total_usd", "wait_p95_s", "wait_mean_s", "killed")
    pools = {name: mean(row["pools"][name]["total_usd"] for row in rows if name in row["pools"]) for name in rows[0]["pools"]}
    return {"setting": rows[0]["setting"], "pools": pools} | {name: mean(row[name] for row in rows) for name in numbers}


def _choose(proposal: Proposal, options: Mapping[tuple[str, float], tuple[Raw, Row]]) -> Iterator[Change]:
    """For each pool the setting and value that were cheapest there, if that is worth a change. ``options``: as they were played."""
    for pool, before in proposal.after["pools"].items():
        cost, key, value = min((row["pools"].get(pool, before), key, value) for (key, value), (_, row) in options.items())
        now, proposed = _told(proposal.fleet, pool, key), _told(options[key, value][0], pool, key)
        worth = _WORTH_SHORTER_BOOTS if key == _WARM_POOL else _WORTH_CHANGING
        if proposed != now and before - cost > worth * before:
            yield Change(pool=pool, key=key, value=value, now=now, proposed=proposed, saves_usd=round(before - cost, 2))


def _everywhere(raw: Raw, key: str, value: float) -> Raw:
    """Change a setting of all pools, but of those that cannot have it."""
    changed = deepcopy(raw)
    for name, pool in raw["pools"].items():
        changed["pools"][name] = _changed(raw, name, key, value)
        if changed["pools"][name] != pool and not _is_right(changed):
            changed["pools"][name] = pool
    return changed


def _is_right(raw: Raw) -> bool:
    """Tell whether this can be a fleet file: a schedule, a reservation or a limit may be against a change."""
    try:
        check(raw, "").domain()
    except FleetFileError:
        return False
    return True


def _changed(raw: Raw, name: str, key: str, value: float) -> Raw:
    """A pool with one setting changed; as it is where it cannot have that one."""
    pool: Raw = raw["pools"][name]
    if key == "size":
        return _resized(pool, value) or pool
    if key == _WARM_POOL:
        return pool if _stops(raw, name) == bool(value) else {**pool, key: {} if value else False}
    most = pool.get("max_agents", 0) * (pool["executors"] if key == "warm_executors" else 1)
    return {**pool, key: int(value)} if value <= most else pool


def _stops(raw: Raw, name: str) -> bool:
    """Tell whether a pool is to stop agents, by its own key or that of ``defaults``."""
    given = (raw["pools"][name].get(_WARM_POOL), raw.get("defaults", {}).get(_WARM_POOL))
    return next((keys is not False for keys in given if keys is not None), False)


def _resized(pool: Raw, factor: float) -> Raw | None:
    """The machine of the same family at that multiple of the price, with as many times the executors.

    None where there is none, or where a build has a machine to itself: that it may share one is not for us to say.
    """
    executors = pool["executors"] * factor
    present, platform = _first_type(pool), pool.get("platform", "linux")
    prices = {kind: usd[platform] for kind, usd in carried_prices().items() if platform in usd}
    if pool["executors"] == 1 or executors != int(executors) or pool.get("usd_per_hour") is not None or present not in prices:
        return None
    family = {kind: usd for kind, usd in prices.items() if kind.split(".")[0] == present.split(".")[0]}
    wished = prices[present] * factor
    kind = min(family, key=lambda name: (abs(family[name] - wished), name))
    if kind == present or abs(family[kind] - wished) > _PRICE_TOLERANCE * wished:
        return None
    return {**pool, "executors": int(executors), "instance_types": [kind]}


def _first_type(pool: Raw) -> str:
    """Return the type that a pool names first; "" if it has conditions instead, or hosts."""
    return str((pool.get("instance_types") or [""])[0])


def _told(raw: Raw, name: str, key: str) -> str:
    pool = raw["pools"][name]
    if key == "size":
        return f"{pool['executors']} on {_first_type(pool)}"
    return _written(key, _stops(raw, name) if key == _WARM_POOL else pool.get(key, 0))


def _written(key: str, value: float) -> str:
    return ("on" if value else "off") if key == _WARM_POOL else f"{value:g}"


def _worth_waiting(raw: Raw, factor: float, pools: Mapping[str, Any]) -> Raw:
    changed = deepcopy(raw)
    for name, pool in changed["pools"].items():
        pool[_WAIT] = round(pools[name].wait_usd_per_hour * factor, 4)
    return changed
