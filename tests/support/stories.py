"""Agents as they are found in practice, drawn at random: each is one of a few stories, with what earlier passes saw of it."""

from dataclasses import dataclass, replace
from random import Random

from autoscaler.domain.facts.fleet import CORDONED_LABEL, agent_spec
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.snapshot import Instance, InstanceState, Node, OfflineCause, Record, RecordState
from support.builders import LONG_AGO, NOW, a_build, a_fleet, a_look, a_mark, a_node, a_pool, a_record, a_reservation, an_instance

OURS, OTHER_FLEETS, A_PERSONS = a_mark().text, "autoscaler:other:retire:p", "disk swap, ask Anna"
RESERVED = a_mark(MarkClass.RESERVED).text
FOR_GOOD = tuple(a_mark(kind).text for kind in MarkClass if kind not in {MarkClass.RETIRE, MarkClass.DAY_LIMIT})
OF_THE_MONTH, OF_THE_DAY = a_mark(MarkClass.MONTH_LIMIT).text, a_mark(MarkClass.DAY_LIMIT).text
LIVING = (InstanceState.RUNNING,)
EXECUTORS = {"cpu": 3, "gpu": 1, "utility": 4}
POOL_LABELS = {"cpu": {"cpu", "linux"}, "gpu": {"gpu", "linux"}, "utility": {"utility"}}
USD_PER_HOUR = {"cpu": 3.0, "gpu": 12.0, "utility": 0.1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What became of an agent, and how often such a one is drawn."""

    often: int = 1
    record: RecordState | None = RecordState.REGISTERED
    node: bool = True
    offline: bool = False
    marks: tuple[str, ...] = ("",)  # offline reasons
    labels_taken: bool = False
    builds: tuple[int, ...] = (0,)
    instance: tuple[InstanceState, ...] = LIVING
    seen: str | None = None
    launched_ago: tuple[float, ...] = (100_000.0,)  # or started, where it was to start again
    connected: bool = True
    reserved: tuple[float, ...] = ()  # until when a person has it, in seconds from now


_ENDED = (InstanceState.TERMINATED, InstanceState.TERMINATED, InstanceState.SHUTTING_DOWN)
_REQUESTED = {"record": RecordState.REQUESTED, "node": False, "connected": False}
_STOPPED = {"record": RecordState.STOPPED, "node": False, "connected": False}
_STOPPING = {"record": RecordState.STOPPING, "node": False, "connected": False}
_STARTING = {"record": RecordState.STARTING, "node": False, "connected": False}
_OFF = (InstanceState.STOPPED, InstanceState.STOPPED, InstanceState.STOPPING)
STORIES = {
    "idle": Story(often=8, seen="idle"),
    "busy": Story(often=4, builds=(1, 3, 3)),
    "requested": Story(**_REQUESTED, often=2, launched_ago=(10.0, 200.0, 800.0)),
    "overdue": Story(**_REQUESTED, often=2, launched_ago=(1000.0, 5000.0), seen="overdue"),
    "connecting": Story(offline=True, launched_ago=(100.0, 800.0), connected=False),
    "retiring and idle": Story(often=10, marks=(OURS,), seen="drained"),
    "retiring and busy": Story(often=2, marks=(OURS,), builds=(1, 2), seen="drained"),
    "drained for good": Story(often=3, marks=FOR_GOOD, builds=(0, 0, 1), seen="drained"),
    "labels taken": Story(often=3, marks=("", "", OURS, A_PERSONS), labels_taken=True, builds=(0, 0, 1), seen="unlabelled"),
    "taken by a person": Story(often=2, marks=(A_PERSONS, OTHER_FLEETS), builds=(0, 1), seen="drained"),
    "lost": Story(often=2, offline=True, builds=(0, 1), seen="lost"),
    "ended": Story(often=3, offline=True, builds=(0, 0, 1), instance=_ENDED, seen="ended"),
    "not shown by EC2": Story(offline=True, builds=(0, 1), instance=(InstanceState.NOT_FOUND,), seen="ended"),
    "stopped by a person": Story(offline=True, builds=(0, 0, 1), instance=(InstanceState.STOPPED,), seen="stopped"),
    "to be stopped": Story(often=2, record=RecordState.STOPPING, marks=(OURS,), builds=(0, 0, 1), seen="drained"),
    "to be stopped and online": Story(record=RecordState.STOPPING, builds=(0, 1)),
    "about to be stopped": Story(often=3, record=RecordState.STOPPING, offline=True, instance=_OFF),
    "stopped": Story(**_STOPPED, often=5, instance=(InstanceState.STOPPED,)),
    "stopped, and it runs": Story(**_STOPPED, often=2, instance=(*LIVING, InstanceState.PENDING), seen="started"),
    "stopped and ended": Story(**_STOPPED, instance=_ENDED),
    "to be started": Story(
        **_STARTING, often=2, instance=(InstanceState.PENDING, *LIVING, InstanceState.STOPPED), launched_ago=(10.0, 800.0)
    ),
    "to be started for too long": Story(**_STARTING, launched_ago=(5000.0,), seen="overdue"),
    "reserved": Story(often=3, marks=(*(RESERVED,) * 3, "", A_PERSONS), builds=(0, 0, 1), seen="drained", reserved=(60.0, 3600.0)),
    "reserved, and its labels are taken": Story(
        marks=("", RESERVED), labels_taken=True, builds=(0, 0, 1), seen="unlabelled", reserved=(3600.0,)
    ),
    "reserved, and out of reach": Story(offline=True, instance=(*LIVING, *_OFF), reserved=(3600.0,), seen="stopped"),
    "reserved, and its node is gone": Story(node=False, reserved=(-60.0, 3600.0, 3600.0), seen="nodeless"),
    "reserved before": Story(often=3, marks=(*(RESERVED,) * 3, OURS, ""), builds=(0, 0, 1), seen="drained", reserved=(-60.0,)),
    "reserved before, and its labels are taken": Story(
        marks=("",), labels_taken=True, builds=(0, 0, 1), seen="unlabelled", reserved=(-60.0,)
    ),
    "to be a person's": Story(**_REQUESTED, launched_ago=(10.0, 200.0, 5000.0), reserved=(-60.0, 3600.0), seen="overdue"),
    "nodeless": Story(often=2, node=False, seen="nodeless"),
    "condemned": Story(often=3, record=RecordState.CONDEMNED, marks=(OURS,), builds=(0, 0, 1), seen="drained"),
    "condemned and online": Story(record=RecordState.CONDEMNED, builds=(0, 1)),
    "condemned without a node": Story(record=RecordState.CONDEMNED, node=False, instance=(*LIVING, *_ENDED)),
    "condemned and ended": Story(record=RecordState.CONDEMNED, offline=True, instance=_ENDED, seen="ended"),
    "without a record": Story(often=4, record=None, node=False, seen="stray"),
    "a node without a record": Story(often=2, record=None, offline=True, instance=(InstanceState.TERMINATED,), seen="orphan"),
}
# Where Jenkins is no witness, a look belongs to no session of a controller.
_WITHOUT_SESSION = {"overdue", "started", "ended", "stray", "orphan"}
LOOKS = (
    *({"seconds_ago": 400.0},) * 5,  # seen for minutes
    *({"seconds_ago": 0.0, "idle_before_at": NOW - 6.0, "request_id": "now"},) * 2,  # cordoned while idle, earlier in this invocation
    {"seconds_ago": 61.0},
    {"seconds_ago": 59.0},
    {"seconds_ago": 400.0, "request_id": "now"},
    {"seconds_ago": 400.0, "last_at": NOW - 200.0},  # then nobody looked for minutes, which ends nothing
    {"seconds_ago": 400.0, "session": "s0"},  # in another session of the controller
    {"seconds_ago": 0.0, "idle_before_at": NOW - 4.0, "request_id": "now"},
)


@dataclass(slots=True, kw_only=True)
class Drawn:
    """One agent as it was drawn: its halves, and what is remembered of it."""

    controller: str
    record: Record | None
    node: Node | None
    instance: Instance
    subject: str  # under which it was seen
    look: Observation | None
    connected: bool


def agent(chance: Random, number: int, controllers: tuple[str, ...], stories: list[Story]) -> Drawn:
    story = chance.choice(stories)
    pool, controller = chance.choice(["cpu", "cpu", "gpu", "utility"]), chance.choice(controllers)
    instance_id, name = f"i-{number}", f"{pool}-{number}"
    mark = chance.choice(story.marks)
    if mark == OF_THE_MONTH and number % 2:  # a limit like the other, which needs no draw of its own
        mark = OF_THE_DAY
    runs = [f"job/r{chance.randint(0, 3)}/1" for _ in range(min(chance.choice(story.builds), EXECUTORS[pool]))]
    node = a_node(
        name,
        *({CORDONED_LABEL} if story.labels_taken else POOL_LABELS[pool]),
        "autoscaler-fleet-f",
        builds=tuple(a_build(f"{name}-{n}", run=run, elapsed_seconds=60.0) for n, run in enumerate(runs)),
        executors=EXECUTORS[pool],
        idle=(chance.randint(0, 9) > 0) is not bool(runs),  # else a one-off executor is at work, or two answers disagree
        offline=bool(mark) or story.offline,
        temporarily_offline=bool(mark),
        cause=OfflineCause.PERSON if mark else OfflineCause.OTHER if story.offline else OfflineCause.NONE,
        reason=mark,
        description=agent_spec(a_fleet(), a_pool(pool), instance_id).description,
    )
    began_at = NOW - chance.choice(story.launched_ago)
    starts = (began_at,) if story.record is RecordState.STARTING else ()
    launched_at = LONG_AGO if starts else began_at
    record = a_record(
        instance_id,
        pool=pool,
        node=None if story.record is RecordState.REQUESTED else name,
        controller=controller,
        state=story.record or RecordState.REGISTERED,
        launched_at=launched_at,
        starts=starts,
        life=len(starts),
        usd_per_hour=USD_PER_HOUR[pool],
        volume_usd_per_hour=USD_PER_HOUR[pool] / 30,
        changed_at=NOW - chance.choice([100.0, 400.0, 90_000.0]),
        cordon=chance.choice([RESERVED if story.reserved else OURS, ""]) if story.labels_taken else "",
        reservation=a_reservation(until_at=NOW + chance.choice(story.reserved)) if story.reserved else None,
        labels=tuple(sorted(POOL_LABELS[pool])) if story.labels_taken else (),
    )
    facts = chance.choice(LOOKS)
    subject = f"{controller}/{name}" if story.seen == "orphan" else instance_id
    look = a_look(story.seen, **({"session": ""} if story.seen in _WITHOUT_SESSION else {}) | facts) if story.seen else None
    return Drawn(
        controller=controller,
        record=record if story.record else None,
        node=replace(node, name=name) if story.node else None,
        instance=an_instance(
            instance_id,
            pool=pool,
            controller=controller,
            # Of one that was to start EC2 may show the last launch still.
            launched_at=chance.choice([launched_at, began_at]),
            state=chance.choice(story.instance),
            template_version=chance.choice(["2", "2", "2", "1"]),
            image="ami-1",
        ),
        subject=subject,
        look=look if chance.randint(0, 7) else None,
        connected=story.connected,
    )
