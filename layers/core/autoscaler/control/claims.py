"""What a machine says that it is connected as.

It is no identity: it only tells what a lost record said, or what an answer must not leave out. An agent that lies about it lies about its
own machine alone.
"""

from dataclasses import dataclass, replace

from autoscaler.control.granting import Connection, url_of
from autoscaler.domain.facts.fleet import Fleet, Pool, agent_spec, user_for
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.domain.report.registration import Asked
from autoscaler.ports import Ports

# More digits than any life has.
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One connection that a machine says it has."""

    controller: str
    node: str
    life: int


def claims(asked: Asked) -> list[Claim]:
    """Read what a machine says that it is connected as; what cannot be read is left out."""
    found: list[Claim] = []
    for key in asked.connected:
        controller, _, rest = key.partition("/")
        node, _, life = rest.rpartition("/")
        if node and life.isascii() and life.isdecimal() and len(life) <= _DIGITS:
            found.append(Claim(controller=controller, node=node, life=int(life)))
    return found


def claim_on(asked: Asked, controller: str, node: str) -> Claim | None:
    """Find the connection that a machine says it has as a node of a controller."""
    return next((claim for claim in claims(asked) if (claim.controller, claim.node) == (controller, node)), None)


def as_claimed(ports: Ports, fleet: Fleet, pool: Pool, machine: str, claim: Claim) -> Connection | None:
    """Leave a machine connected as it says that it is, also to a controller that nobody knows here; None where the node is not its own."""
    spec = agent_spec(fleet, pool, machine, claim.controller)
    if spec.name != claim.node:
        return None
    user, url = user_for(pool, claim.controller), url_of(ports, claim.controller)
    return Connection(controller=claim.controller, url=url, spec=spec, secret=None, user=user, life=claim.life)


def in_the_life_it_says(ports: Ports, record: Record, asked: Asked) -> Record:
    """Note a later life than the record knows: the record was lost, and the one that replaced it begins at the first life."""
    claim = claim_on(asked, record.controller, record.node) if record.node else None
    if claim is None or claim.life <= record.life or record.state is not RecordState.REGISTERED:
        return record
    raised = replace(record.bound(node=record.node, life=claim.life), node_life=claim.life)
    return ports.state.change_record(raised, expected=record.state)
