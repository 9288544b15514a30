"""Plans of random worlds in which items wait beside nodes: data, which can be made smaller.

Fleets of several pools, nodes that are ours, somebody's or beacons, with labels that people added
or took away, and items that ask for labels, names and expressions of all operators.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from autoscaler.domain.facts.fleet import (
    CORDONED_LABEL,
    FULL_LABEL,
    HELD_LABEL,
    Fleet,
    Lending,
    Pool,
    Share,
)
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.snapshot import Record
from support.builders import NOW, a_fleet, a_host, a_pool, a_pool_of_hosts, a_record, beacons

CONTROLLERS = ("main", "other")
# Signs that Jenkins quotes, that no expression may have, letters beyond ASCII: all of it is in use.
LABELS = ("linux", "cpu", "gpu", "arm64", "c++", "amd64+gfx1030", "v1/2", "x&y", "größe")
# Nobody may write these into the fleet file, and Jenkins takes them from a person all the same.
_ODD_LABELS = ("!linux", "a b", "gpu||cpu")
_OTHERS_NAMES = ("mac-1", "win 10", "big.box", "gpu", "linux", "größe-1", "c++")


@dataclass(frozen=True, kw_only=True)
class PlannedNode:
    """A node of a controller. ``kind``: what it is to us; ``record``: of an agent of ours."""

    controller: str
    name: str
    kind: str
    labels: tuple[str, ...]
    exclusive: bool = True
    connected: bool = True
    is_busy: bool = False
    record: Record | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedItem:
    """A build that asks for this label, as a job, a pipeline or a parameter says it.

    ``resumes_on``: the node that it ran on before a restart; ``is_vetoed``: by a plugin.
    """

    controller: str
    asks: str | None
    said_by: str
    resumes_on: str = ""
    is_vetoed: bool = False


@dataclass(frozen=True, kw_only=True)
class PlannedWorld:
    """A fleet and what there is of it. ``was_seen``: an earlier look saw the nodes."""

    fleet: Fleet
    nodes: tuple[PlannedNode, ...]
    items: tuple[PlannedItem, ...]
    held: frozenset[str] = frozenset()
    was_seen: bool = True

    @property
    def size(self) -> int:
        labels = sum(len(node.labels) for node in self.nodes)
        return len(self.nodes) + len(self.items) + len(self.held) + labels

    def smaller(self) -> Iterator["PlannedWorld"]:
        """Yield worlds with one thing less; beacons stay, since the product puts them back."""
        for number in range(len(self.items)):
            yield replace(self, items=(*self.items[:number], *self.items[number + 1 :]))
        for number, node in enumerate(self.nodes):
            if node.kind != "beacon":
                yield replace(self, nodes=(*self.nodes[:number], *self.nodes[number + 1 :]))
        for number, node in enumerate(self.nodes):
            if len(node.labels) > 1 and not node.record and node.kind != "beacon":
                with_less = replace(node, labels=node.labels[:1])
                nodes = (*self.nodes[:number], with_less, *self.nodes[number + 1 :])
                yield replace(self, nodes=nodes)

    def __str__(self) -> str:
        pools = (f"  pool {pool.name}: {said_of(pool)}" for pool in self.fleet.pools.values())
        nodes = (
            f"  {node.controller}: {node.kind} {node.name!r} has {' '.join(node.labels) or '-'}"
            + (f" (pool {node.record.pool})" if node.record else "")
            + ("" if node.exclusive else ", takes any job")
            + (", busy" if node.is_busy else "")
            + ("" if node.connected else ", offline")
            for node in self.nodes
            if node.kind != "beacon"
        )
        items = (
            f"  {item.controller}: a {item.said_by} asks for {item.asks!r}"
            + (f", resumes on {item.resumes_on}" if item.resumes_on else "")
            + (", a plugin keeps it" if item.is_vetoed else "")
            for item in self.items
        )
        held = [f"  on hold: {' '.join(sorted(self.held))}"] if self.held else []
        slots = [f"  static nodes on {name}" for name in self.fleet.slot_controllers]
        missing = [f"  {name}: no beacon {beacon}" for name, beacon in self.missing_beacons()]
        return "\n".join((*pools, *slots, *nodes, *missing, *items, *held))

    def missing_beacons(self) -> Iterator[tuple[str, str]]:
        there = {(node.controller, node.name) for node in self.nodes}
        for controller in self.fleet.controllers:
            for beacon in beacons(replace(self.fleet, held_labels=self.held), controller):
                if (controller, beacon.name) not in there:
                    yield controller, beacon.name


def said_of(pool: Pool) -> str:
    lent = f", lends {' '.join(sorted(pool.lent_labels))}" if pool.lent_labels else ""
    mode = "" if pool.exclusive else ", takes any job"
    return f"{' '.join(sorted(pool.labels))} for {' '.join(pool.controllers)}{lent}{mode}"


# Plans.


def planned(seed: str) -> PlannedWorld:
    """Draw a world: some 200 pairs of an item and a node."""
    chance = Random(seed)
    fleet = _fleet(chance)
    held = frozenset()
    if chance.random() < 0.25:
        held = frozenset({chance.choice([*_labels_of(fleet, *CONTROLLERS)])})
    nodes: list[PlannedNode] = []
    for controller in CONTROLLERS:
        ours = [*_agents(chance, fleet, controller, held)]
        static = [*_others(chance, fleet, controller, [node.name for node in ours])]
        nodes += [*_beacons(chance, fleet, controller, held), *ours, *static]
    if chance.random() < 0.05:  # a plugin labels whatever there is
        by_plugin = chance.choice(LABELS)
        nodes = [replace(n, labels=tuple(dict.fromkeys((*n.labels, by_plugin)))) for n in nodes]
    items = [
        _item(chance, fleet, controller, [node for node in nodes if node.controller == controller])
        for controller in CONTROLLERS
        for _ in range(chance.randint(5, 9))
    ]
    return PlannedWorld(
        fleet=fleet,
        nodes=tuple(nodes),
        items=tuple(_without_twins(items)),
        held=held,
        was_seen=chance.random() < 0.7,
    )


def _fleet(chance: Random) -> Fleet:
    pools = []
    for name in chance.sample(("cpu", "gpu", "arm", "odd", "big"), chance.randint(2, 4)):
        own = {*chance.sample(LABELS, chance.randint(1, 3)), *((name,) * (chance.random() < 0.6))}
        share = chance.choice((Share.NONE, Share.NONE, Share.ROTATE, Share.COOPERATIVE))
        served = chance.choice((("main",), ("other",), CONTROLLERS))
        is_shared = share is not Share.NONE
        pools.append(
            a_pool(
                name,
                labels=frozenset(own),
                controllers=CONTROLLERS if is_shared else served,
                share=share,
                exclusive=chance.random() < 0.75,
            )
        )
    pools = [_lending(chance, pool, pools) for pool in pools]
    hosts = ()
    if chance.random() < 0.4:
        labels = frozenset(chance.sample(LABELS, 2))
        pools.append(a_pool_of_hosts("rocm", labels=labels, controllers=CONTROLLERS[:1]))
        hosts = (a_host("rocm-1"), a_host("box"))
    fleet = a_fleet(*pools, hosts=hosts)
    if chance.random() < 0.3:
        fleet = replace(fleet, weights=JobWeights(by_pattern=(("job-1*", 2),)))
    slots = frozenset({"other"}) if chance.random() < 0.2 else frozenset[str]()
    return replace(fleet, controllers=CONTROLLERS, slot_controllers=slots)


def _lending(chance: Random, pool: Pool, pools: Sequence[Pool]) -> Pool:
    general = chance.choice(pools).labels - pool.labels
    if pool.share is Share.COOPERATIVE or not general or chance.random() < 0.3:
        return pool
    return replace(pool, lent_labels=general, lend=Lending.IDLE)


def _labels_of(fleet: Fleet, *controllers: str) -> list[str]:
    pools = {pool.name: pool for name in controllers for pool in fleet.pools_of(name)}
    return sorted({label for pool in pools.values() for label in pool.labels})


def _beacons(
    chance: Random,
    fleet: Fleet,
    controller: str,
    held: frozenset[str],
) -> Iterator[PlannedNode]:
    for node in beacons(replace(fleet, held_labels=held), controller):
        if chance.random() >= 0.03:  # it is not made yet, or somebody deleted it
            labels = tuple(sorted(node.labels - {node.name}))
            yield PlannedNode(
                controller=controller,
                name=node.name,
                kind="beacon",
                labels=labels,
                connected=False,
            )


_KINDS = ("plain",) * 4 + ("labelled",) * 2 + ("unlabelled",) * 2 + ("lent",) * 3
_KINDS += ("cordoned", "full", "away", "of before", "left")
_BY_US = ("lent", "cordoned", "full", "of before")  # we take and give no label of a static node


def _agents(
    chance: Random,
    fleet: Fleet,
    controller: str,
    held: frozenset[str],
) -> Iterator[PlannedNode]:
    """Yield agents of each pool; of a pool that left the fleet file or this controller, too."""
    for pool in fleet.pools_of(controller):
        hosts = [host.name for host in fleet.hosts.values()] if pool.of_hosts else []
        for number in range(chance.randint(0, 2)):
            is_static = controller in fleet.slot_controllers
            is_of_both = pool.share is Share.COOPERATIVE  # one machine has a node on each
            own = f"i-{number}{'s' if is_of_both else controller[0]}"
            machine = f"host-{hosts[number]}" if hosts else own
            name = hosts[number] if hosts else f"{pool.name}-{machine.removeprefix('i-')}"
            if is_static:
                name = f"slot-{pool.name}-{number}"
            kind = chance.choice(_KINDS)
            if (kind == "lent" and not pool.lent_labels) or (is_static and kind in _BY_US):
                kind = "plain"
            yield _agent(chance, fleet, pool, held, (controller, machine, name, kind, is_static))


def _agent(
    chance: Random,
    fleet: Fleet,
    pool: Pool,
    held: frozenset[str],
    named: tuple[str, str, str, str, bool],
) -> PlannedNode:
    controller, machine, name, kind, is_static = named
    given = (*sorted(pool.labels), fleet.ownership_label)
    if kind == "of before":
        given = (*sorted(chance.sample(LABELS, 2)), fleet.ownership_label)
    labels, exclusive = [*given], pool.exclusive
    elsewhere = [name for name, one in fleet.pools.items() if controller not in one.controllers]
    facts = {"pool": chance.choice(("gone", *elsewhere)) if kind == "left" else pool.name}
    emptied = {"cordoned": CORDONED_LABEL, "full": FULL_LABEL}
    if kind == "labelled":
        labels.append(_by_a_person(chance, fleet, controller))
    elif kind == "unlabelled":
        labels.remove(chance.choice(given))
    elif kind == "lent":
        labels += sorted(pool.lent_labels)
        facts |= {"lent_until": NOW + 600.0, "lent_labels": tuple(sorted(pool.lent_labels))}
    elif kind in emptied:
        labels, exclusive = [fleet.ownership_label, emptied[kind]], True
        facts |= {"cordon": "earlier"} if kind == "cordoned" else {}
    if held.intersection(labels) and not is_static and chance.random() < 0.8:
        labels = [*(label for label in labels if label not in held), HELD_LABEL]
    record = a_record(
        f"{machine}-{pool.name}" if not machine.startswith("host-") else machine,
        controller=controller,
        node=name,
        labels=() if is_static else given,
        exclusive=pool.exclusive,
        node_life=None if is_static else 0,
        **facts,
    )
    if pool.share is Share.COOPERATIVE and controller != pool.controllers[0]:
        record = replace(record, instance_id=f"{record.instance_id}@{controller}")
    return PlannedNode(
        controller=controller,
        name=name,
        kind=f"{kind} agent",
        labels=tuple(dict.fromkeys(labels)),
        exclusive=exclusive,
        connected=kind != "away",
        is_busy=chance.random() < 0.4 and kind != "away",
        record=record,
    )


def _by_a_person(chance: Random, fleet: Fleet, controller: str) -> str:
    if chance.random() < 0.05:
        return chance.choice(_ODD_LABELS)
    return chance.choice((*LABELS, *_labels_of(fleet, controller), "special"))


def _others(
    chance: Random,
    fleet: Fleet,
    controller: str,
    ours: Sequence[str],
) -> Iterator[PlannedNode]:
    """Yield nodes that are not ours; a name may be a label, and a label the name of a node."""
    names = [name for name in _OTHERS_NAMES if name not in ours]
    for name in chance.sample(names, chance.choice((0, 1, 1, 2, 3))):
        labels = [_by_a_person(chance, fleet, controller) for _ in range(chance.randint(0, 3))]
        if chance.random() < 0.1:
            labels.append(chance.choice((*_OTHERS_NAMES, *ours)))
        connected = chance.random() < 0.7
        yield PlannedNode(
            controller=controller,
            name=name,
            kind="static node",
            labels=tuple(dict.fromkeys(label for label in labels if label != name)),
            exclusive=chance.random() < 0.7,
            connected=connected,
            is_busy=connected and chance.random() < 0.4,
        )


def _item(
    chance: Random,
    fleet: Fleet,
    controller: str,
    nodes: Sequence[PlannedNode],
) -> PlannedItem:
    names = [node.name for node in nodes if node.kind != "beacon"] or ["nobody"]
    carried = [label for node in nodes for label in node.labels] or ["linux"]
    labels = [*_labels_of(fleet, controller), *_labels_of(fleet, controller), *carried]
    # Of each label in use one more than of each that only others might have.
    atoms = [*labels, *LABELS, *names, "nowhere", fleet.ownership_label]
    label = spelled(chance, chance.choice(labels))
    offline = [node.name for node in nodes if not node.connected and node.kind != "beacon"]
    resumes_on = ""
    draw = chance.random()
    if draw < 0.2:
        asks = label
    elif draw < 0.3:
        asks = chance.choice((*LABELS, *carried))  # unquoted: an expression, or what is none
    elif draw < 0.68:
        asks = _expression(chance, atoms, 3)
    elif draw < 0.8:
        asks = f"{label}{chance.choice(('&&', ' && '))}!{spelled(chance, chance.choice(names))}"
    elif draw < 0.88:
        asks = spelled(chance, chance.choice(names))
    elif draw < 0.92:
        asks = chance.choice([n.name for n in nodes if n.kind == "beacon"] or [fleet.beacon])
    elif draw < 0.95:
        asks = None
    else:
        asks, resumes_on = label, chance.choice(offline) if offline else ""
    said_by = chance.choice(("job", "job", "job", "pipeline", "pipeline", "pipeline", "parameter"))
    return PlannedItem(
        controller=controller,
        asks=asks,
        said_by="pipeline" if resumes_on else said_by,
        resumes_on=resumes_on,
        is_vetoed=chance.random() < 0.03,
    )


def _without_twins(items: Sequence[PlannedItem]) -> Iterator[PlannedItem]:
    """Leave out an expression beside a lone label of the same words: Jenkins keeps one of them."""
    kept: dict[tuple[str, str], bool] = {}
    for item in items:
        words = re.sub(r'[ ()"]', "", item.asks or "")
        is_label = item.asks == f'"{words}"'
        first = kept.setdefault((item.controller, words), is_label)
        if words not in _ODD_LABELS or first is is_label:
            yield item


def _expression(chance: Random, atoms: Sequence[str], depth: int) -> str:
    draw = chance.random()
    if draw < 0.35 or not depth:
        return spelled(chance, chance.choice(atoms))
    if draw < 0.55:
        inner = _expression(chance, atoms, depth - 1)
        is_one = re.fullmatch(r'[^\s&|<>()!"]+|"[^"]*"', inner)
        return f"!{inner}" if is_one else f"!({inner})"
    sign = chance.choice(("&&", "&&", "&&", "||", "||", "->", "<->"))
    space = chance.choice(("", " "))
    left, right = (_expression(chance, atoms, depth - 1) for _ in range(2))
    joined = f"{left}{space}{sign}{space}{right}"
    return f"({joined})" if chance.random() < 0.4 else joined


def spelled(chance: Random, label: str) -> str:
    """Spell a label in an expression, in quotation marks where it must be, and now and then."""
    is_plain = re.fullmatch(r"(?:-(?!>)|[^&|!<>() \t\"'\-])+", label)
    if is_plain and chance.random() < 0.93:
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
