"""Taking good-enough agents out of use for what is wrong with them: a share of a pool an hour, so that a mistake of ours stays small."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.limits import HOUR_SECONDS
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.memory import Memory
from autoscaler.domain.numbers import TAKEN_AT_LEAST, TAKEN_SHARE
from autoscaler.domain.plan import Cordon, Held, Step
from autoscaler.domain.reasons import Reason
from autoscaler.domain.retire import cordon, least_missed
from autoscaler.domain.situation import Situation

_PACED = (MarkClass.OUTDATED, MarkClass.QUARANTINE)
PACE = f"at most {TAKEN_SHARE:.0%} of a pool, or one agent, are taken in an hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Why agents are taken: the class of their mark, what is wrong with one (None: nothing), and how many may go now."""

    kind: MarkClass
    adjective: str
    reason: Reason  # of what is held back
    wrong_with: Callable[[Agent], tuple[Reason, str] | None]
    allowed: Callable[[str, list[Agent]], int]  # of a pool, with all its agents
    pace: Callable[[str], str]

    def of(self, situation: Situation, controller: str, cordoned: Collection[Cordon]) -> Iterator[Cordon | Held]:
        """Cordon agents of one controller, as many as are allowed. ``cordoned``: what this pass takes already."""
        leaving = {step.node for step in cordoned if step.controller == controller}
        for name, pool in situation.pools_of(controller).items():
            staying = [agent for agent in pool.agents if agent.phase is Phase.READY and agent.record.node not in leaving]
            wrong = {a.record.instance_id: why for a in staying if (why := self.wrong_with(a)) and not situation.protected(a)}
            if not wrong:
                continue
            if pool.on_hold:
                detail = f"{len(wrong)} {self.adjective} agents; {pool.paused_detail}"
                yield Held(pool=name, controller=controller, reason=Reason.HELD, detail=detail)
                continue
            now = sum(step.pool == name and step.mark.kind is self.kind for step in cordoned)  # on other controllers
            mine = [agent for agent in situation.agents if agent.pool.name == name]
            allowed = max(0, self.allowed(name, mine) - now)
            chosen = least_missed(situation, [agent for agent in staying if agent.record.instance_id in wrong])
            for agent in chosen[:allowed]:
                yield cordon(situation, agent, self.kind, *wrong[agent.record.instance_id])
            if len(chosen) > allowed:
                detail = f"{len(chosen) - allowed} more agents are {self.adjective}; {self.pace(name)}"
                yield Held(pool=name, controller=controller, reason=self.reason, detail=detail)


def left_this_hour(situation: Situation, kind: MarkClass, pool: str, agents: int) -> int:
    """How many agents of a pool of so many may still be taken within the hour."""
    taken = situation.memory.taken.get(_key(kind, pool), ())
    return max(0, max(TAKEN_AT_LEAST, int(TAKEN_SHARE * agents)) - sum(situation.now - at < HOUR_SECONDS for at in taken))


def note_taken(memory: Memory, decided: list[Step | Held], now: float) -> Memory:
    """Remember when agents were taken, as long as they count in the hour's share."""
    taken = {key: tuple(at for at in instants if now - at < HOUR_SECONDS) for key, instants in memory.taken.items()}
    for step in decided:
        if isinstance(step, Cordon) and step.mark.kind in _PACED and step.reason is not Reason.LABELS_TAKEN:
            key = _key(step.mark.kind, step.pool)
            taken[key] = (*taken.get(key, ()), now)
    return replace(memory, taken={key: instants for key, instants in taken.items() if instants})


def _key(kind: MarkClass, pool: str) -> str:
    return f"{kind}/{pool}"
