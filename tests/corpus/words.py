"""What people are told after the last look of a case: the status, lists, messages, and the answers
of `why`."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.learn import assess
from autoscaler.domain.report.explain import explain
from autoscaler.domain.report.listing import list_agents, list_queue
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.status import status_of
from autoscaler.domain.report.told import Told

_ASKED = 1  # of each kind of name: each answer decides twice


def words_of(snapshot: Snapshot, fleet: Fleet) -> list[str]:
    """Lines, each with what it is of: whoever compares them sees where people read something
    else."""
    situation = assess(snapshot, fleet)
    _, messages = write_messages(Told(), situation, "")
    return [
        *_facts("status", asdict(status_of(situation))),
        *(
            line
            for agent in list_agents(situation)
            for line in _facts(f"agent {agent.instance_id}", asdict(agent))
        ),
        *(
            line
            for entry in list_queue(situation)
            for line in _facts(f"item {entry.job}", asdict(entry))
        ),
        *(
            f"message {message.subject}: {line}"
            for message in messages
            for line in message.text.splitlines()
        ),
        *(
            f"why {name}: {line}"
            for name in _names(snapshot, fleet)
            for line in explain(snapshot, fleet, name)
        ),
    ]


def _facts(name: str, facts: dict[str, Any]) -> Iterator[str]:
    """A line for each fact that says something."""
    for key, value in facts.items():
        if value not in (None, "", 0, False, (), [], {}):
            yield f"{name}: {key} {sorted(value) if isinstance(value, set | frozenset) else value}"


def _names(snapshot: Snapshot, fleet: Fleet) -> Iterator[str]:
    """A few jobs, agents and pools."""
    yield from islice(
        dict.fromkeys(item.job for view in snapshot.controllers.values() for item in view.items),
        _ASKED,
    )
    yield from islice((record.node or record.instance_id for record in snapshot.records), _ASKED)
    yield from islice(fleet.pools, _ASKED)
