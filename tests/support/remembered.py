"""What is remembered, as tables: tests name one kind of fact of many things, `windows={"main/cpu": window}`."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from autoscaler.domain.facts.memory import (
    AgentPast,
    ControllerPast,
    FleetPast,
    Memory,
    PoolNeeds,
    PoolPast,
    without_empty,
)

_OF_AGENTS = {
    "observations": "look",
    "states": "state",
    "marks": "mark",
    "terminated": "ended_why",
    "kept": "is_kept",
    "unstoppable": "is_unstoppable",
    "ending": "is_ending",
    "left_since": "pool_left_at",
    "hosts_off": "away_since",
}
_OF_AGENTS |= {name: name for name in AgentPast.__dataclass_fields__ if name not in _OF_AGENTS.values()}
_BY_LIFE = {"booted", "connected"}
_OF_POOLS = {"capacity_delays": "capacity", "never_lent": "never_lent_at", "definitions": "definition"}
_OF_POOLS |= {name: name for name in ("proven", "boots", "starts", "started", "volumes")}
_OF_NEEDS = {"windows": "window", "idle_returns": "returns", "growths": "growths"}
_OF_CONTROLLERS = ("looks", "beside", "hand_outs")
_STEP = "step/"
_INSIDE = ("free_nodes", "rations", "asked")
_Table = Mapping[str, Any]


def with_tables(memory: Memory, **tables: Any) -> Memory:
    """Replace whole tables of a memory, or fields of its own."""
    for name, table in tables.items():
        memory = _with_table(memory, name, table)
    return memory


def _with_table(memory: Memory, name: str, table: Any) -> Memory:
    if name in _OF_AGENTS:
        held = table if isinstance(table, Mapping) else {key.partition("#")[0]: key if name in _BY_LIFE else True for key in table}
        return replace(memory, agents=_set(memory.agents, AgentPast(), _OF_AGENTS[name], held))
    if name in _OF_POOLS:
        return replace(memory, pools=_set(memory.pools, PoolPast(), _OF_POOLS[name], table))
    if name == "taken":
        pools = _nested({"/".join(reversed(key.split("/"))): at for key, at in table.items()})
        return replace(memory, pools=_set(memory.pools, PoolPast(), name, pools))
    if name in FleetPast.__dataclass_fields__:
        return replace(memory, fleet=replace(memory.fleet, **{name: table}))
    return _of_controllers(memory, name, table)


def _of_controllers(memory: Memory, name: str, table: Any) -> Memory:
    if name in _OF_CONTROLLERS:
        return replace(memory, controllers=_set(memory.controllers, ControllerPast(), name, table))
    if name in _OF_NEEDS:
        needs = {key: past.needs for key, past in memory.controllers.items()}
        inner = {key: _set(needs.get(key, {}), PoolNeeds(), _OF_NEEDS[name], part) for key, part in _nested(table, needs).items()}
        return replace(memory, controllers=_set(memory.controllers, ControllerPast(), "needs", inner))
    if name in _INSIDE:
        return replace(memory, controllers=_set(memory.controllers, ControllerPast(), name, _nested(table)))
    if name == "failing":
        return replace(memory, trials={**memory.trials, **{_STEP + key: step for key, step in table.items()}})
    return replace(memory, **{name: table})


def _set(pasts: _Table, nothing: Any, name: str, table: _Table) -> dict[str, Any]:
    without = {key: replace(past, **{name: getattr(nothing, name)}) for key, past in pasts.items()}
    with_it = without | {key: replace(without.get(key, nothing), **{name: one}) for key, one in table.items()}
    return with_it if isinstance(nothing, PoolNeeds) else without_empty(with_it)


def _nested(table: _Table, keys: _Table | None = None) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {key: {} for key in keys or ()}
    for key, one in table.items():
        first, _, second = key.partition("/")
        nested.setdefault(first, {})[second] = one
    return nested


def tables(memory: Memory) -> SimpleNamespace:
    """Read a memory as tables of one kind of fact each; what holds nothing is left out."""
    held: dict[str, Any] = {name: _table(memory.agents, part) for name, part in _OF_AGENTS.items()}
    held |= {name: _table(memory.pools, part) for name, part in _OF_POOLS.items()}
    held |= {name: _table(memory.controllers, name) for name in _OF_CONTROLLERS}
    needs = {f"{key}/{pool}": of for key, past in memory.controllers.items() for pool, of in past.needs.items()}
    held |= {name: _table(needs, part) for name, part in _OF_NEEDS.items()}
    for name in _INSIDE:
        held[name] = {f"{key}/{one}": of for key, past in memory.controllers.items() for one, of in getattr(past, name).items()}
    held["failing"] = {scope.removeprefix(_STEP): trial for scope, trial in memory.trials.items() if scope.startswith(_STEP)}
    held["taken"] = {f"{kind}/{pool}": at for pool, past in memory.pools.items() for kind, at in past.taken.items()}
    return SimpleNamespace(**held)


def _table(pasts: _Table, name: str) -> Any:
    table = {
        key: of for key, past in pasts.items() if (of := getattr(past, name)) not in (None, False, (), {}) and (of or name == "ended_why")
    }
    return frozenset(table.values()) if name in _BY_LIFE else frozenset(table) if name.startswith("is_") else table
