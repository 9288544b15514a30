"""What became of a plan's steps, in the form in which cases hold it: a list for each kind."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from autoscaler.domain.facts.plan import (
    ConsoleRead,
    Effect,
    FailedStart,
    Had,
    ImageRefused,
    LostAnswer,
    NotLaunched,
    NotStopped,
    Refusal,
    Stopped,
    Terminated,
    Tried,
)
from autoscaler.domain.facts.started_builds import Rerun

_REFUSED = "TerminateInstances: OperationNotPermitted"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """``refused_canaries``: pool, version, why. ``unstoppable``: pool and why, by instance id."""

    refused: Collection[tuple[str, tuple[Refusal, ...]]] = ()
    refused_starts: Collection[FailedStart] = ()
    refused_canaries: Collection[tuple[str, str, str]] = ()
    launched: Collection[Had] = ()
    tried: Mapping[str, str | None] = field(default_factory=dict)
    stuck: Collection[str] = ()
    unstoppable: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stopped: Collection[str] = ()
    terminated: Collection[str] = ()
    answers: Collection[tuple[str, Rerun]] = ()
    consoles: Mapping[str, str] = field(default_factory=dict)

    def effects(self) -> Iterator[Effect]:
        yield from (NotLaunched(pool=pool, refusals=all_) for pool, all_ in self.refused)
        yield from self.refused_starts
        for pool, version, why in self.refused_canaries:
            yield ImageRefused(pool=pool, version=version, why=why)
        yield from self.launched
        for key, why in self.tried.items():
            yield Tried(key=key, why=why)
        yield from (Terminated(instance_id=name, refused=_REFUSED) for name in self.stuck)
        for name, (pool, why) in self.unstoppable.items():
            yield NotStopped(instance_id=name, pool=pool, why=why)
        yield from (Stopped(pool=pool) for pool in self.stopped)
        yield from (Terminated(instance_id=name) for name in self.terminated)
        yield from (LostAnswer(lost=lost, rerun=rerun) for lost, rerun in self.answers)
        yield from (ConsoleRead(instance_id=i, text=text) for i, text in self.consoles.items())


def outcomes_of(effects: Iterable[Effect]) -> Outcomes:
    all_ = list(effects)
    ends = [end for end in all_ if isinstance(end, Terminated)]
    return Outcomes(
        refused=[(one.pool, one.refusals) for one in all_ if isinstance(one, NotLaunched)],
        refused_starts=[one for one in all_ if isinstance(one, FailedStart)],
        refused_canaries=[
            (one.pool, one.version, one.why) for one in all_ if isinstance(one, ImageRefused)
        ],
        launched=[one for one in all_ if isinstance(one, Had)],
        tried={one.key: one.why for one in all_ if isinstance(one, Tried)},
        stuck=frozenset(end.instance_id for end in ends if end.refused),
        unstoppable={
            one.instance_id: (one.pool, one.why) for one in all_ if isinstance(one, NotStopped)
        },
        stopped=frozenset(one.pool for one in all_ if isinstance(one, Stopped)),
        terminated=frozenset(end.instance_id for end in ends if not end.refused),
        answers=[(one.lost, one.rerun) for one in all_ if isinstance(one, LostAnswer)],
        consoles={one.instance_id: one.text for one in all_ if isinstance(one, ConsoleRead)},
    )
