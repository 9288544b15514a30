"""Reads what 0.3.0 stored: by this version's names, and without what must not be carried on."""

from typing import Any

# These fields are dropped:
# - `controller`, `node` and `life` of a record told 0.2.0 which controller an agent serves. Nobody
#   keeps them up to date any more.
# - `to_stop` of a record: if 0.3.0 is deployed again, it would stop such an agent after its one
#   build, and then start it for another build.
# - `queued` of the memory holds queue items with their parameters, and nobody removes them any more.
#   If 0.3.0 is deployed again within a day, it could start a build that a person has started since.
# - `hosts_off` of the memory: how long a host has been away is counted from now on.
_GONE = {
    "record": frozenset({"controller", "node", "life", "to_stop"}),
    "memory": frozenset({"queued", "hosts_off"}),
}
# Where each table of the memory is kept now. {0} is the first part of its key, {1} the second.
_PLACES = {
    "rows": "agents {0} state",
    "observations": "agents {0} look",
    "idle_since": "agents {0} idle_since",
    "draining_since": "agents {0} draining_since",
    "booted": "agents {0} booted",
    "connected": "agents {0} connected",
    "marks": "agents {0} mark",
    "stuck": "agents {0} stuck",
    "missing": "agents {0} missing",
    "terminated": "agents {0} ended_why",
    "owed": "agents {0} owed",
    "kept": "agents {0} is_kept",
    "unstoppable": "agents {0} is_unstoppable",
    "proven": "pools {0} proven",
    "capacity_delays": "pools {0} capacity",
    "boots": "pools {0} boots",
    "starts": "pools {0} starts",
    "never_lent": "pools {0} never_lent_at",
    "volumes": "pools {0} volumes",
    "taken": "pools {1} taken {0}",
    "looks": "controllers {0} looks",
    "most_marked": "trials marked/{0}",
    "windows": "controllers {0} needs {1} window",
    "idle_returns": "controllers {0} needs {1} returns",
    "growths": "controllers {0} needs {1} growths",
    "free_nodes": "controllers {0} free_nodes {1}",
    "rations": "controllers {0} rations {1}",
    "asked": "controllers {0} asked {1}",
    "months": "fleet months",
    "day": "fleet day",
    "days": "fleet days",
    "lately": "fleet lately",
    "spot_prices": "fleet spot_prices",
    "gone_from": "fleet gone_from",
    "left": "fleet left",
    "may_have_orders": "fleet may_have_orders",
}
_BY_LIFE, _OTHERS = {"booted", "connected"}, {"failing", "left_pools"}


def from_0_3_0(raw: dict[str, Any]) -> None:
    """Turn an entry that 0.3.0 wrote into one of this version."""
    memory = raw.get("memory") or {}
    if tables := {name: memory.pop(name) for name in (_PLACES.keys() | _OTHERS) & memory.keys()}:
        # What this version kept there before is older.
        memory |= {"agents": {}, "pools": {}, "controllers": {}, "fleet": {}}
        for name, table in tables.items():
            if name in _PLACES:
                _put(memory, name, table)
        _put_others(memory, tables)
    _close(memory)
    for kind, names in _GONE.items():
        for name in names & (raw.get(kind) or {}).keys():
            del raw[kind][name]


def _close(memory: dict[str, Any]) -> None:
    """Say of what was lost whether few are tried at once, and keep apart which version was seen to start again."""
    for scope, trial in (memory.get("trials") or {}).items():
        trial.pop("launched_at", None)
        # Starts were given up, and steps, after three. Memory of this version may be read here, too.
        few = (None, 0, 1, 2) if scope.startswith(("start/", "step/")) else (None, 0)
        if trial.get("failures") not in few and not trial.get("outcomes"):
            trial["is_closed"] = True
        if scope.startswith("start/") and trial.get("version"):
            _set(memory, ["pools", scope.removeprefix("start/"), "started"], trial.pop("version"))


def _put(memory: dict[str, Any], name: str, table: Any) -> None:
    place, is_of_two = _PLACES[name].split(), "{1}" in _PLACES[name]
    if place[0] == "fleet":
        memory["fleet"][name] = table
        return
    for key in table:
        value = table[key] if isinstance(table, dict) else key if name in _BY_LIFE else True
        first, _, second = key.partition("/" if is_of_two else "#")
        _set(memory, [part.format(first, second) for part in place], value)


def _put_others(memory: dict[str, Any], tables: dict[str, Any]) -> None:
    """Put what has other keys: states, steps that fail, and pools that left."""
    for past in memory["agents"].values():
        if state := past.get("state"):
            state["state"] = state.pop("row", "")
    for key, step in tables.get("failing", {}).items():
        trial = {"failures": step.pop("times"), "failed_at": step["tried_at"], "until_at": step.pop("tried_at") + 300.0}
        _set(memory, ["trials", f"step/{key}"], step | trial)
    for marked in tables.get("most_marked", {}).values():
        words, agents, at = marked.pop("words"), marked.pop("agents"), marked.pop("tried_at")
        marked |= {"failures": 1, "failed_at": at, "until_at": at + 3600.0, "why": words, "said": " of ".join(map(str, agents))}
    for ration in tables.get("rations", {}).values():
        times = ration.pop("refused_at")
        ration |= {"failures": len(times), "since_at": times[0], "failed_at": times[-1], "why": "", "is_closed": True}
        ration |= {"pauses": len(times) - 1, "outcomes": {"": False}}
    left = tables.get("left_pools", {})
    for name, definition in left.get("definitions", {}).items():
        _set(memory, ["pools", name, "definition"], definition)
    for name, at in left.get("since", {}).items():
        _set(memory, ["agents", name, "pool_left_at"], at)
    memory["fleet"]["hold_until"] = left.get("hold_until", 0.0)


def _set(memory: dict[str, Any], place: list[str], value: Any) -> None:
    """Set a value in objects within objects, which are made where they are not yet."""
    for part in place[:-1]:
        memory = memory.setdefault(part, {})
    memory[place[-1]] = value
