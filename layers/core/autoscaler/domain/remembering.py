"""What a pass leaves for the next one to know, beyond what the next one sees by itself."""

from collections.abc import Iterable
from dataclasses import replace

from autoscaler.domain.bound import note_owed
from autoscaler.domain.breakers import note_failed
from autoscaler.domain.limits import HOUR_SECONDS
from autoscaler.domain.memory import Memory
from autoscaler.domain.numbers import REQUESTS_REMEMBERED_SECONDS
from autoscaler.domain.pace import note_taken
from autoscaler.domain.plan import BootFailure, Forget, Held, Step
from autoscaler.domain.quarantine import note_kept
from autoscaler.domain.situation import Situation


def remember(memory: Memory, situation: Situation, decided: list[Step | Held], failures: Iterable[BootFailure]) -> Memory:
    """Note everything that follows from what ``scale_down`` decided."""
    memory = note_failed(memory, failures, situation.snapshot.template_versions, situation.now)
    memory = note_taken(memory, decided, situation.now)
    memory = note_kept(memory, situation, decided)
    memory = note_owed(memory, situation, decided)
    return _note_gone(memory, situation, decided)


def remember_request(situation: Situation, request_id: str | None) -> Memory:
    """Note that a person's request was done."""
    known = situation.memory.requests
    kept = {key: at for key, at in known.items() if situation.now - at < REQUESTS_REMEMBERED_SECONDS}
    if request_id:
        kept[request_id] = situation.now
    return replace(situation.memory, requests=kept)


def _note_gone(memory: Memory, situation: Situation, decided: list[Step | Held]) -> Memory:
    """Note when agents were launched whose records are closed now, as long as they count in the hour's launch rate."""
    forgotten = {step.instance_id for step in decided if isinstance(step, Forget)}
    gone = {record.instance_id: record.launched_at for record in situation.snapshot.records if record.instance_id in forgotten}
    lately = {instance_id: at for instance_id, at in {**memory.gone, **gone}.items() if situation.now - at < HOUR_SECONDS}
    return replace(memory, gone=lately)
