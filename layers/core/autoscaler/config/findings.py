"""Finds everything that is wrong with a fleet file at once, so that nobody has to mend it one error at a time."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from autoscaler.config.capacity_reservations import CapacityReservationSettings
from autoscaler.config.controllers import ControllerSettings
from autoscaler.config.estimates import EstimateSettings
from autoscaler.config.hosts import HostSettings
from autoscaler.config.limits import LimitSettings
from autoscaler.config.price_list import PriceSettings
from autoscaler.config.problems import FleetFileError, Place, Problem
from autoscaler.config.reruns import LostSettings, RerunSettings
from autoscaler.config.rules import contradictions
from autoscaler.config.schedules import ScheduleSettings
from autoscaler.config.settings import FleetSettings, KindSettings, PoolSettings, Tuning
from autoscaler.config.teams import TeamSettings
from autoscaler.config.warm_pools import WarmPoolSettings
from autoscaler.config.words import meant, place_of, sentence

_MODELS: dict[str, type[LimitSettings | ControllerSettings | KindSettings | HostSettings | TeamSettings | EstimateSettings | Tuning]] = {
    "limits": LimitSettings,
    "controllers": ControllerSettings,
    "kinds": KindSettings,
    "defaults": Tuning,
    "pools": PoolSettings,
    "hosts": HostSettings,
    "teams": TeamSettings,
    "estimates": EstimateSettings,
}
# Keys that hold keys.
_WITHIN: dict[
    str, type[ScheduleSettings | WarmPoolSettings | RerunSettings | LostSettings | PriceSettings | CapacityReservationSettings]
] = {
    "schedules": ScheduleSettings,
    "warm_pool": WarmPoolSettings,
    "rerun": RerunSettings,
    "lost": LostSettings,
    "prices": PriceSettings,
    "capacity_reservation": CapacityReservationSettings,
}
_PLACES = {
    "limits": "limits",
    "controllers": "an entry of controllers",
    "kinds": "an entry of kinds",
    "defaults": "defaults or a pool",
    "pools": "a pool",
    "hosts": "an entry of hosts",
    "teams": "an entry of teams",
    "estimates": "estimates",
}
_FEW = 14
_MISSING = ": missing"
_ENOUGH = 100_000  # stands in for a limit that is wrong: no other key exceeds it
_LIMITS = ("max_agents", "max_launches_per_hour", "max_usd_per_hour", "max_usd_per_month")
# What others call it: the EC2 and EC2 Fleet plugins, Auto Scaling groups, Karpenter.
_SYNONYMS = {
    "ami": "launch_template",
    "credentials": "secret",
    "end": "to",
    "fs_root": "remote_dir",
    "idle_minutes": "idle_seconds",
    "idle_termination_minutes": "idle_seconds",
    "idle_timeout": "idle_seconds",
    "instance_cap": "max_agents",
    "label_string": "labels",
    "max_instances": "max_agents",
    "max_price": "spot_max_usd_per_hour",
    "max_size": "max_agents",
    "min_instances": "min_agents",
    "min_size": "min_agents",
    "min_spare_size": "warm_executors",
    "num_executors": "executors",
    "os": "platform",
    "remote_fs": "remote_dir",
    "spot": "market",
    "start": "from",
    "subnet_id": "subnets",
    "type": "instance_types",
    "tz": "time_zone",
    "until": "to",
    "weekdays": "days",
}


def problems_of(raw: Any) -> list[Problem]:
    """Return all that is wrong; rules between keys are tried on whatever is right by itself."""
    if raw is None:
        return [Problem(place=(), text="is empty, autoscaler init writes a first fleet file")]
    problems: list[Problem] = []
    try:
        settings = FleetSettings.model_validate(raw)
    except ValidationError as error:
        problems = list(_once([_told(dict(one)) for one in error.errors()]))
        try:
            settings = FleetSettings.model_validate(_without(raw, problems))
        except ValidationError:
            return problems
    problems += contradictions(settings)
    try:
        settings.domain()
    except FleetFileError as error:
        problems += error.problems
    return problems


def _told(problem: dict[str, Any]) -> Problem:
    place: Place = place_of(problem)
    text = sentence(problem)
    unknown = problem["type"] == "extra_forbidden"
    if unknown:
        text += _suggestion(place)
    return Problem(place=place, text=text, on_key=unknown or "[key]" in problem["loc"])


def _once(problems: list[Problem]) -> Iterator[Problem]:
    """Leave out that a key is missing where a misspelled one stands beside it."""
    suggested = {
        (*problem.place[:-1], problem.text.rpartition("did you mean ")[2].removesuffix("?")) for problem in problems if problem.on_key
    }
    for problem in problems:
        if not (problem.text.endswith(_MISSING) and problem.place in suggested):
            yield problem


def _suggestion(place: Place) -> str:
    """Say which key was probably meant, or where the key belongs."""
    key = str(place[-1])
    known = _known_at(place[:-1])
    if suggested := meant(key, [*known, *(word for word, ours in _SYNONYMS.items() if ours in known)]):
        word = suggested.removeprefix(", did you mean ").removesuffix("?")
        return f", did you mean {_SYNONYMS.get(word, word)}?"
    belongs = next((name for name, model in _MODELS.items() if key in model.model_fields), None)
    if belongs:
        return f" here, it belongs in {_PLACES[belongs]}"
    return f", known here: {', '.join(known)}" if len(known) <= _FEW else ""


def _known_at(place: Place) -> list[str]:
    """Return the keys that may stand there, as they are written."""
    inner = place[2:] if place[:1] == ("pools",) else place[1:]
    within = next((_WITHIN[part] for part in reversed(inner) if isinstance(part, str) and part in _WITHIN), None)
    model = within or (_MODELS[str(place[0])] if place else FleetSettings)
    return [field.alias or name for name, field in model.model_fields.items()]


def _without(raw: Any, problems: list[Problem]) -> Any:
    """Leave out what is wrong: a key that is unknown, and each pool in which anything is."""
    rest = deepcopy(raw)
    for problem in problems:
        match problem.place:
            case ("pools", name, *_):
                rest["pools"].pop(name, None)
                _leave_team(rest, str(name))
            case ("teams" | "defaults" | "estimates" as section, name, *_):
                rest[section].pop(name, None)
            case ("hosts", *_):
                rest["hosts"] = _stand_ins(rest["hosts"])
            case ("controllers", name, *_):
                rest["controllers"][name] = {"url": "http://jenkins.invalid/"}
            case ("limits", *key):
                _lift(rest, str(key[0]) if key else "")
            case ("fleet",):
                rest["fleet"] = "unnamed"
            case (key,) if problem.on_key:
                rest.pop(key, None)
            case _:
                pass
    return rest


def _stand_ins(hosts: Any) -> dict[str, Any]:
    """Put right hosts in the place of wrong ones: without any, their pools would lack what pools without hosts need."""
    pools = {name: host.get("pool") for name, host in hosts.items() if isinstance(host, dict)} if isinstance(hosts, dict) else {}
    named = enumerate((name, pool) for name, pool in pools.items() if isinstance(pool, str))
    return {str(name): {"pool": pool, "role_id": f"AROA{number:012}"} for number, (name, pool) in named}


def _leave_team(rest: dict[str, Any], pool: str) -> None:
    """Leave out a wrong pool where a team names it, and a team that has no other one."""
    teams = rest["teams"] if isinstance(rest.get("teams"), dict) else {}
    for name, team in list(teams.items()):
        if isinstance(team, dict) and isinstance(team.get("pools"), list) and pool in team["pools"]:
            team["pools"] = [other for other in team["pools"] if other != pool]
            if not team["pools"]:
                teams.pop(name)


def _lift(rest: dict[str, Any], key: str) -> None:
    """Put limits that nothing exceeds in the place of a wrong one, or of all."""
    if not key:
        rest["limits"] = dict.fromkeys(_LIMITS, _ENOUGH)
    elif key in _LIMITS:
        rest["limits"][key] = _ENOUGH
    else:
        rest["limits"].pop(key, None)
