"""``python -m corpus.otherwise MINUTES SEED``: recorded worlds go another way in their last looks.

Each trial changes some of what these looks have seen, one to three ways at once. Of each that takes
a branch without a case, a candidate is made for ``corpus.fill``.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from time import monotonic
from typing import Any

from autoscaler.domain.facts.nodes import Mark, MarkClass
from autoscaler.domain.facts.orders import (
    CloseBreaker,
    DrainAll,
    DrainNodes,
    DrainSome,
    EndInstance,
    Hold,
    LaunchSome,
    Overrides,
    Release,
    Reserve,
    Scope,
)
from autoscaler.domain.facts.plan import Refusal
from autoscaler.domain.facts.snapshot import (
    InstanceState,
    Intent,
    IntentState,
    Node,
    OfflineCause,
    Record,
    RecordState,
    Reservation,
    Wait,
)
from autoscaler.domain.facts.started_builds import LostFacts, Rerun, RerunState
from corpus.branches import arcs_of
from corpus.candidates import FOLDER
from corpus.case import Answers, Asks, Case, Look, Recorded, archives, lines_of, read, written
from corpus.fill import missed_branches
from corpus.outcomes import Outcomes
from corpus.play import play
from corpus.power import index

_BEFORE, _AFTER = 12, 8  # looks as they were, and looks that go another way
_TRIALS = 12  # of each series: its first looks are played once for all
_OF_THREE = 3
_LONG_AGO, _SOON = 30 * 86400.0, 7200.0
_RESERVED = Reservation(
    person="alice", reason="a test hangs", by="ada", since_at=0.0, until_at=0.0, request="r-1"
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trial draws. The same thing is drawn again in each look of it."""

    seed: int

    def some(self, name: object) -> bool:
        """Two of three things."""
        return Random(f"{self.seed} {name}").randrange(_OF_THREE) > 0

    def one_of(self, what: object, choices: Sequence[Any]) -> Any:
        return Random(f"{self.seed} {what}").choice(choices or [""])


Way = Callable[[Look, Trial], Look]


def is_held(look: Look, trial: Trial) -> Look:
    """A person pauses the fleet, a pool or a controller."""
    scope = trial.one_of("scope", [*Scope])
    labels = sorted({label for pool in look.fleet.pools.values() for label in pool.labels})
    names = {
        Scope.POOL: [*look.fleet.pools],
        Scope.CONTROLLER: [*look.fleet.controllers],
        Scope.LABEL: labels,
    }
    name = trial.one_of("name", names[scope]) if names.get(scope) else ""
    hold = Hold(scope=scope, name=name, since_at=0.0, until_at=None, by="ada", reason="r")
    freeze = trial.one_of("freeze", [False, True])
    holds = (*look.facts.overrides.holds, replace(hold, freeze=freeze))
    return _facts(look, overrides=replace(look.facts.overrides, holds=holds))


def is_not_held(look: Look, _: Trial) -> Look:
    return _facts(look, overrides=Overrides())


def sees_controllers_otherwise(look: Look, trial: Trial) -> Look:
    changes = trial.one_of(
        "view",
        [
            {"quieting_down": True},
            {"nodes": ()},
            {"items": ()},
            {"session": "another"},
            {"in_parts": "in parts"},
            {"problem": "it did not answer"},
            {"shows_jobs": False},
        ],
    )
    views = {
        name: replace(view, **changes) if trial.some(name) else view
        for name, view in look.facts.controllers.items()
    }
    return _facts(look, controllers=views)


def cannot_read_records(look: Look, trial: Trial) -> Look:
    """Some records or launches cannot be read."""
    lost = [one for one in look.facts.records if trial.some(one.instance_id)]
    launches = [f"intent#{one.launch}" for one in look.facts.instances if trial.some(one.launch)]
    unread = trial.one_of(
        "unread", [[*(f"record#{one.instance_id}" for one in lost)], launches, []]
    )
    records = tuple(one for one in look.facts.records if one not in lost)
    return _facts(look, unread=tuple(unread), records=records)


def has_other_limits(look: Look, trial: Trial) -> Look:
    changes = trial.one_of(
        "limits",
        [
            {"max_usd_per_month": 0.01},
            {"max_agents": 1},
            {"max_agents": 3},
            {"max_launches_per_hour": 1},
            {"max_usd_per_hour": 1.0},
        ],
    )
    return replace(look, fleet=replace(look.fleet, limits=replace(look.fleet.limits, **changes)))


def has_other_pools(look: Look, trial: Trial) -> Look:
    pools = {
        name: replace(pool, **_of_a_pool(pool, trial)) if trial.some(name) else pool
        for name, pool in look.fleet.pools.items()
    }
    return replace(look, fleet=replace(look.fleet, pools=pools))


def _of_a_pool(pool: Any, trial: Trial) -> dict[str, Any]:
    changes: list[dict[str, Any]] = [
        {"volume_usd_per_gib_month": None},
        {"max_job_seconds": 600.0},
        {"max_job_seconds": None},
        {"min_agents": 2, "max_agents": 4},
        {"warm_executors": 3},
        {"warm_pool": None},
        {"executors": pool.executors + 1},
        {"quarantine": trial.one_of("quarantine", list(type(pool.quarantine)))},
        {"share": trial.one_of("share", list(type(pool.share)))},
        {"lend": trial.one_of("lend", list(type(pool.lend)))},
        {"offerings": pool.offerings[:1]},
        {"offerings": pool.offerings[1:] or pool.offerings},
        {"max_builds": 1},
        {"max_agent_hours": 0.5},
        {"max_wait_seconds": 0.0},
        {"launch_template_version": "99"},
        {"controllers": pool.controllers[:1]},
        {"boot_seconds": 3000.0},
        {"priority": 3},
    ]
    return dict(trial.one_of(f"pool {pool.name}", changes))


def loses_pools(look: Look, trial: Trial) -> Look:
    """Pools leave the fleet file, as a pass sees it."""
    gone = {name for name in look.fleet.pools if trial.some(name)}
    left = {
        name: replace(pool, has_left=True)
        for name, pool in look.fleet.pools.items()
        if name in gone
    }
    pools = {name: pool for name, pool in look.fleet.pools.items() if name not in gone}
    return replace(
        look,
        fleet=replace(look.fleet, pools=pools, left_pools={**look.fleet.left_pools, **left}),
    )


def loses_hosts(look: Look, _: Trial) -> Look:
    return replace(look, fleet=replace(look.fleet, hosts={}))


def has_other_nodes(look: Look, trial: Trial) -> Look:
    marked = {"offline": True, "temporarily_offline": True}
    changes = trial.one_of(
        "nodes",
        [
            {**marked, "cause": OfflineCause.OTHER, "reason": ""},
            {**marked, "cause": OfflineCause.PERSON, "reason": "r"},
            {"offline": True, "temporarily_offline": False, "cause": OfflineCause.LOST},
            {
                "offline": False,
                "temporarily_offline": False,
                "cause": OfflineCause.NONE,
                "reason": "",
            },
            {"builds": (), "idle": True},
            {"idle": False},
            {"is_deleted": True},
            {"is_deleted": True, "offline": True, "cause": OfflineCause.LOST, "idle": False},
            {"labels": frozenset()},
            {"description": ""},
            {"description": "Kept by the autoscaler of fleet f in 1/eu with the labels a"},
            {"agent": False},
            {"executors": 4},
        ],
    )

    def node(one: Node) -> Node:
        return replace(one, **changes) if trial.some(one.name) else one

    views = {
        name: replace(view, nodes=tuple(map(node, view.nodes)))
        for name, view in look.facts.controllers.items()
    }
    return _facts(look, controllers=views)


def is_marked(look: Look, trial: Trial) -> Look:
    """Some nodes carry a mark of ours."""
    kind = trial.one_of("mark", [*MarkClass])
    text = Mark(fleet=look.fleet.name, kind=kind, pass_id="p").text

    def node(one: Node) -> Node:
        if not trial.some(one.name):
            return one
        return replace(
            one,
            offline=True,
            temporarily_offline=True,
            cause=OfflineCause.PERSON,
            reason=text,
        )

    views = {
        name: replace(view, nodes=tuple(map(node, view.nodes)))
        for name, view in look.facts.controllers.items()
    }
    return _facts(look, controllers=views)


def has_launched(look: Look, trial: Trial) -> Look:
    """A launch of each pool was asked for, for people or for jobs, and not answered yet."""
    at = look.facts.taken_at - 30.0
    mine = trial.one_of("for", [None, replace(_RESERVED, until_at=at + _SOON)])
    intents = tuple(
        Intent(
            id=f"l-{name}",
            state=IntentState.SENT,
            pool=name,
            controller=pool.controllers[0],
            count=1,
            usd_per_hour=1.0,
            request="{}",
            created_at=at,
            keep_until=0.0,
            instances=(),
            empty_look_at=None,
            reservation=mine,
        )
        for name, pool in look.fleet.pools.items()
    )
    return _facts(look, intents=(*look.facts.intents, *intents))


def loses_nodes(look: Look, trial: Trial) -> Look:
    views = {
        name: replace(view, nodes=tuple(one for one in view.nodes if not trial.some(one.name)))
        for name, view in look.facts.controllers.items()
    }
    return _facts(look, controllers=views)


def has_other_machines(look: Look, trial: Trial) -> Look:
    state = trial.one_of("state", list(InstanceState))
    reason = trial.one_of(
        "reason",
        [
            "",
            "Client.UserInitiatedShutdown",
            "Client.InternalError",
            "Server.InsufficientInstanceCapacity",
        ],
    )
    later = trial.one_of("launched", [0.0, 3600.0])
    pool = trial.one_of("pool", ["", "", "gone"])
    return _facts(
        look,
        instances=tuple(
            replace(
                one,
                state=state,
                state_reason=reason,
                launched_at=one.launched_at + later,
                pool=pool or one.pool,
            )
            if trial.some(one.id)
            else one
            for one in look.facts.instances
        ),
    )


def loses_machines(look: Look, trial: Trial) -> Look:
    left = tuple(one for one in look.facts.instances if not trial.some(one.id))
    return _facts(look, instances=left)


def has_other_records(look: Look, trial: Trial) -> Look:
    now = look.facts.taken_at
    changes = trial.one_of(
        "records",
        [
            *({"state": state} for state in RecordState),
            {"keep_until": now + _SOON},
            {"cordon": "autoscaler mark"},
            {"interrupted_at": now - _SOON},
            {"interrupted_at": now - 60.0},
            {"lent_until": now + _SOON},
            {"trouble": "its node could not be made"},
            {"problem": "connection refused"},
            {"pool": "gone"},
            {"launched_at": now - _LONG_AGO},
            {"registered_at": None},
            {"labels": ()},
            {"changed_at": now - _LONG_AGO},
            {"registered_at": now - 30.0, "launched_at": now - 90.0},
            {"devices_for": (replace(_RESERVED, until_at=now + _SOON),)},
            {"reservation": replace(_RESERVED, until_at=now + _SOON)},
            {"reservation": replace(_RESERVED, until_at=now - 60.0)},
            {"rotated_at": now - 60.0},
            {"started_for": "request"},
        ],
    )

    def record(one: Record) -> Record:
        return replace(one, **changes) if trial.some(one.instance_id) else one

    return _facts(look, records=tuple(map(record, look.facts.records)))


def loses_records(look: Look, trial: Trial) -> Look:
    left = tuple(one for one in look.facts.records if not trial.some(one.instance_id))
    return _facts(look, records=left)


def waits_otherwise(look: Look, trial: Trial) -> Look:
    """What waits names nodes, one or two, or no label, or one that nobody can read."""
    nodes = [node.name for view in look.facts.controllers.values() for node in view.nodes]
    chosen = (trial.one_of("first", nodes), trial.one_of("second", nodes)) if nodes else ()
    changes = trial.one_of(
        "items",
        [
            {"label": None, "wait": Wait(for_executor=False, nodes=chosen[:1])},
            {"label": None, "wait": Wait(for_executor=False, nodes=chosen)},
            {"label": None, "wait": Wait(for_executor=False, nodes=("a", "b"))},
            {"label": None, "wait": Wait(for_executor=True)},
            {"label": None, "wait": Wait(for_executor=False, named=(chosen or ("a",))[0])},
            {"label": "cpu &&", "wait": Wait(for_executor=True)},
            {"label": (chosen or ("a",))[0], "wait": Wait(for_executor=True)},
            {"waiting_seconds": 7200.0},
            {"waiting_seconds": 0.0},
        ],
    )
    views = {
        name: replace(
            view,
            items=tuple(
                replace(item, **changes) if trial.some(item.id) else item for item in view.items
            ),
        )
        for name, view in look.facts.controllers.items()
    }
    return _facts(look, controllers=views)


def is_later(look: Look, trial: Trial) -> Look:
    """Nobody has looked for minutes, hours, or weeks."""
    seconds = trial.one_of("seconds", [600.0, 7200.0, 86400.0, 7 * 86400.0, 33 * 86400.0])
    facts = replace(look.facts, taken_at=look.facts.taken_at + seconds)
    return replace(look, facts=facts, over_at=look.over_at + seconds)


def answers_otherwise(look: Look, _: Trial) -> Look:
    return replace(look, answers={name: Answers() for name in look.answers})


def knows_no_versions(look: Look, trial: Trial) -> Look:
    versions = {name: "99" for name in look.fleet.pools if trial.some(name)}
    return _facts(look, template_versions=versions)


def is_refused(look: Look, trial: Trial) -> Look:
    """EC2 refuses every launch, in one of its ways."""
    code = trial.one_of(
        "code",
        [
            "InsufficientInstanceCapacity",
            "InsufficientFreeAddressesInSubnet",
            "MaxSpotInstanceCountExceeded",
            "SpotMaxPriceTooLow",
            "VcpuLimitExceeded",
            "Unsupported",
            "RequestLimitExceeded",
            "UnheardOf",
        ],
    )
    refused = []
    for pool in look.fleet.pools.values():
        asked = pool.offerings
        named = trial.one_of("named", [one.key for one in asked]) if asked else ""
        refusal = Refusal(
            code=code,
            offering_key=trial.one_of("key", [named, ""]),
            asked=asked,
            had=trial.one_of("had", [frozenset(), frozenset({"m5.large"})]),
        )
        refused.append((pool.name, (refusal,)))
    return replace(look, outcomes=Outcomes(refused=refused))


def is_lost_otherwise(look: Look, trial: Trial) -> Look:
    """What Jenkins says of lost builds and of what answers them."""
    now = look.facts.taken_at

    def facts(one: LostFacts) -> LostFacts:
        rerun = one.rerun or Rerun(
            controller="main",
            run="job/a/1",
            began_at=0.0,
            state=RerunState.WRITTEN,
            times=1,
            on_demand=False,
            created_at=now,
        )
        state = trial.one_of("state", [*RerunState])
        at = trial.one_of("at", [now - 10.0, now - 1000.0])
        job = one.job and replace(
            one.job,
            is_whole=trial.one_of("whole", [True, False]),
            entries=trial.one_of("entries", [one.job.entries, ()]),
        )
        return replace(
            one,
            job=trial.one_of("job", [job, job, None]),
            rerun=replace(rerun, state=state, created_at=at),
        )

    return _facts(look, lost={key: facts(one) for key, one in look.facts.lost.items()})


def is_ordered(look: Look, trial: Trial) -> Look:
    """A person orders something instead."""
    facts = look.facts
    nodes = [record.node or record.instance_id for record in facts.records] or ["nobody"]
    machines = [one.id for one in facts.instances] or ["i-of-nobody"]
    pool, node = trial.one_of("pool", [*look.fleet.pools]), trial.one_of("node", nodes)
    asked: Any = {"reason": "r", "request_id": "q"}
    order = trial.one_of(
        "order",
        [
            LaunchSome(count=2, keep_seconds=3600.0, pool=pool, controller=None, **asked),
            DrainSome(count=2, pool=pool, controller=None, **asked),
            DrainAll(pool=pool, controller=None, **asked),
            DrainNodes(nodes=(node,), **asked),
            Reserve(
                target=trial.one_of("of", [pool, node]),
                controller=None,
                seconds=3600.0,
                person="alice",
                by="ada",
                **asked,
            ),
            Release(target=node, reason="r"),
            EndInstance(target=trial.one_of("machine", [node, *machines]), reason="r"),
            CloseBreaker(pool=pool),
        ],
    )
    return replace(look, asks=Asks.ORDER, order=order) if facts.records else look


def orders_otherwise(look: Look, trial: Trial) -> Look:
    """An order asks for another instance or node."""
    named = [one.instance_id for one in look.facts.records] + [
        one.id for one in look.facts.instances
    ]
    target = trial.one_of("target", [*named, "i-of-nobody"])
    if hasattr(look.order, "target"):
        return replace(look, order=replace(look.order, target=target))  # type: ignore[type-var, arg-type]
    return look


_WAYS: tuple[Way, ...] = (
    *(is_held, is_not_held, sees_controllers_otherwise, cannot_read_records, has_other_limits),
    *(has_other_pools, loses_pools, loses_hosts, has_other_nodes, loses_nodes),
    *(has_other_machines, loses_machines, has_other_records, loses_records, waits_otherwise),
    *(is_refused, is_lost_otherwise, is_ordered, is_marked, has_launched),
    *(is_later, answers_otherwise, knows_no_versions, orders_otherwise),
)


def _facts(look: Look, **facts: Any) -> Look:
    return replace(look, facts=replace(look.facts, **facts))


def trials(case: Case, random: Random) -> Iterator[Case]:
    """Other ways in which some looks of a case may go, after some that went as they did."""
    end = random.randrange(1, len(case.looks) + 1)
    middle = max(0, end - random.randrange(1, _AFTER + 1))
    first = max(0, middle - _BEFORE)
    begun = case if first == 0 else Case(name=case.name, looks=())
    for _ in range(_TRIALS):
        chosen = random.sample(_WAYS, random.randrange(1, 4))
        trial, looks = Trial(random.randrange(10**9)), case.looks[middle:end]
        for way in chosen:
            looks = tuple(way(look, trial) for look in looks)
        ways = ", ".join(way.__name__.replace("_", " ") for way in chosen)
        name = f"{ways}: {case.name} from look {first} to {end}"
        yield replace(begun, name=name, looks=(*case.looks[first:middle], *looks))


def main(minutes: str, seed: str) -> None:
    random, until = Random(int(seed)), monotonic() + float(minutes) * 60.0
    missed, lines = (
        missed_branches(),
        [line for archive in archives() for line in lines_of(archive)],
    )
    at = index(lines)
    entering = {arc: cases for arc in missed if (cases := at.get(arc[0], {}).get(arc[1]))}
    with (FOLDER / f"branches-otherwise-{seed}.jsonl").open("w", encoding="utf-8") as file:
        while monotonic() < until and missed & entering.keys():
            arc = random.choice(sorted(missed & entering.keys()))
            drawn = trials(read(lines[random.choice(entering[arc])]).case, random)
            for case in drawn:
                try:
                    taken = missed & arcs_of(lambda: list(play(case)))  # noqa: B023 - at once
                except Exception:  # noqa: BLE001, S112 - the way made facts that no look can have
                    continue
                if taken:
                    missed -= taken
                    file.write(f"{written(Recorded(case=case))}\n")
                    print(len(missed), case.name, *sorted(taken))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
