"""Finds everything that is wrong with a fleet file at once, so that nobody has to mend it one error at a time."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from autoscaler.config.controllers import ControllerSettings
from autoscaler.config.hosts import HostSettings
from autoscaler.config.limits import LimitSettings
from autoscaler.config.problems import MOST_PROBLEMS, FleetFileError, Place, Problem
from autoscaler.config.rules import contradictions
from autoscaler.config.run_orders import RunSettings
from autoscaler.config.settings import FleetSettings, KindSettings, PoolSettings, Tuning
from autoscaler.config.teams import TeamSettings
from autoscaler.config.words import meant, place_of, sentence

_SECTIONS: dict[str, type[BaseModel]] = {
    "limits": LimitSettings,
    "controllers": ControllerSettings,
    "kinds": KindSettings,
    "defaults": Tuning,
    "pools": PoolSettings,
    "hosts": HostSettings,
    "teams": TeamSettings,
    "runs": RunSettings,
}
_PLACES = {
    "limits": "limits",
    "controllers": "an entry of controllers",
    "kinds": "an entry of kinds",
    "defaults": "defaults or a pool",
    "pools": "a pool",
    "hosts": "an entry of hosts",
    "teams": "an entry of teams",
    "runs": "runs",
}
# What an earlier version knew, and what is to be done instead.
_GONE = {"estimates": ", delete it: AWS Cost Explorer says what addresses and NAT gateways cost"}
_FEW = 14
_BY_THEMSELVES = {"runs", "weights", "job_parameters", "rerun_parameter", "ignore_labels"}  # no other key follows from these
_READ = 1000  # errors of which those are told that stand first in the file
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
        if error.error_count() > MOST_PROBLEMS:
            return list(_once([_told(dict(one)) for one in error.errors()]))
        problems = list(_once([_told(dict(one)) for one in error.errors(include_url=False)[:_READ]]))
        if len(problems) > MOST_PROBLEMS:
            return problems
        try:
            settings = FleetSettings.model_validate(_without(raw, problems))
        except ValidationError:
            return problems
    problems += islice(contradictions(settings), MOST_PROBLEMS)
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
    if len(place) == 1 and key in _GONE:
        return _GONE[key]
    known = _known_at(place[:-1])
    if suggested := meant(key, [*known, *(word for word, ours in _SYNONYMS.items() if ours in known)]):
        word = suggested.removeprefix(", did you mean ").removesuffix("?")
        return f", did you mean {_SYNONYMS.get(word, word)}?"
    belongs = next((name for name, model in _SECTIONS.items() if key in model.model_fields), None)
    if belongs:
        return f" here, it belongs in {_PLACES[belongs]}"
    return f", known here: {', '.join(known)}" if len(known) <= _FEW else ""


def _known_at(place: Place) -> list[str]:
    """Return the keys that may stand there, as they are written."""
    kinds: list[Any] = [FleetSettings]
    for part in place:
        kinds = [inner for kind in kinds for inner in _within(kind, part)]
    models = [kind for kind in kinds if _is_model(kind)]
    return [field.alias or name for model in models for name, field in model.model_fields.items()]


def _within(kind: Any, part: str | int) -> list[Any]:
    """Return the types that a value within one of this type may have."""
    if _is_model(kind):
        fields = [field for name, field in kind.model_fields.items() if part in {name, field.alias}]
        return [plain for field in fields for plain in _plain(field.annotation)]
    return [plain for inner in get_args(kind)[-1:] if get_origin(kind) in {list, dict} for plain in _plain(inner)]


def _plain(kind: Any) -> list[Any]:
    """Return the types that a type allows, one by one."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return [plain for inner in get_args(kind) for plain in _plain(inner)]
    return [kind]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _without(raw: Any, problems: list[Problem]) -> Any:
    """Leave out what is wrong: a key that is unknown, and each pool in which anything is."""
    rest = deepcopy(raw)
    for problem in problems:
        match problem.place:
            case ("pools", name, *_):
                rest["pools"].pop(name, None)
                _leave_team(rest, str(name))
            case ("teams" | "defaults" as section, name, *_):
                rest[section].pop(name, None)
            case ("hosts", *_):
                rest["hosts"] = _stand_ins(rest["hosts"])
            case ("controllers", name, *_):
                rest["controllers"][name] = {"url": "http://jenkins.invalid/"}
            case ("limits", *key):
                _lift(rest, str(key[0]) if key else "")
            case ("fleet",):
                rest["fleet"] = "unnamed"
            case (key, *_) if _stands_alone(problem):
                rest.pop(key, None)
            case _:
                pass
    return rest


def _stands_alone(problem: Problem) -> bool:
    """Tell whether a whole key of the file can be left out, and nothing else is wrong then."""
    return problem.place[0] in _BY_THEMSELVES or (problem.on_key and len(problem.place) == 1)


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
