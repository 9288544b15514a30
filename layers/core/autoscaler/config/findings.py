"""Finds everything that is wrong with a fleet file at once, so that nobody has to mend it one error at a time."""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from itertools import islice
from reprlib import Repr
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from autoscaler.config.hosts import ControllerSettings, HostSettings
from autoscaler.config.load import contradictions
from autoscaler.config.prices import INSTANCE_TYPE
from autoscaler.config.problems import LONG, MOST_PROBLEMS, FleetFileError, Place, Problem, in_one_line, meant
from autoscaler.config.sections import PARAMETER_NAME, ROLE_ID, TIME_OF_DAY, LimitSettings, LongNumber, RunSettings, TeamSettings
from autoscaler.config.settings import FLEET, KIND, LABEL, NAME, PARAMETER, VERSION, FleetSettings, KindSettings, PoolSettings, Tuning

# Says what pydantic found in words that a person can act on: the key, the value, the rule, and what was probably meant.


PATTERNS = {
    FLEET: "must be lower-case letters, digits and hyphens, at most 40, and begin with a letter or a digit",
    NAME: "must be letters, digits, dots, hyphens and underscores, at most 63, and begin with a letter or a digit",
    KIND: "must be parts of letters, digits, dots, hyphens and underscores with a + between them, such as amd64+gfx1030",
    LABEL: "must be one label: no blanks, no quotation marks",
    INSTANCE_TYPE: "must be an EC2 instance type, such as m7i.xlarge",
    ROLE_ID: "must be the unique id of an IAM role, such as AROAEXAMPLEID12345678 (aws iam get-role), not its name or ARN",
    PARAMETER_NAME: "must be letters, digits and underscores, and begin with no digit",
    PARAMETER: "must be the full name of an SSM parameter, such as /ci/linux-image",
    TIME_OF_DAY: "must be a time of day from 00:00 to 24:00, such as 08:00",
    VERSION: "must be $Default, $Latest or a version's number in quotes, such as '3'",
    r"^cr-[0-9a-f]{8,17}$": "must be the id of a Capacity Reservation or Block, such as cr-0a1b2c3d4e5f60718",
}
_WAYS = ("{keys}", "{off}")  # of a key that may be off, or keys and values
_BETWEEN = ("[key]", *_WAYS)
_MOST_PROBLEMS = 5  # in one line
_SHOWN = 60  # letters of a value
_BRIEFLY = Repr()  # a value may be as large as the file
_BRIEFLY.maxdict = _BRIEFLY.maxlist = _BRIEFLY.maxstring = _BRIEFLY.maxother = _BRIEFLY.maxlong = _SHOWN
_OF_KEYS = {"extra_forbidden": "unknown key", "missing": "missing"}  # whatever their value
_RULES: Mapping[str, Callable[[dict[str, Any]], str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), lambda _: "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), lambda _: "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), lambda _: "must be true or false"),
    **dict.fromkeys(("model_type", "dict_type", "model_attributes_type"), lambda _: "must be keys and values, such as {key: value}"),
    **dict.fromkeys(("enum", "literal_error"), lambda ctx: f"must be {ctx['expected'].replace(chr(39), '')}"),
    "list_type": lambda _: "must be a list, such as [a, b]",
    "string_type": lambda _: "must be text",
    "invalid_key": lambda _: "a key must be text, write it in quotes",
    "finite_number": lambda _: "must be a finite number",
    "greater_than_equal": lambda ctx: f"must be {_number(ctx['ge'])} or more",
    "greater_than": lambda ctx: f"must be more than {_number(ctx['gt'])}",
    "less_than_equal": lambda ctx: f"must be {_number(ctx['le'])} or less",
    "less_than": lambda ctx: f"must be less than {_number(ctx['lt'])}",
    "too_short": lambda ctx: f"must have {_number(ctx['min_length'])} or more entries",
    "too_long": lambda ctx: f"must have {_number(ctx['max_length'])} or fewer entries",
    "string_too_short": lambda ctx: "must not be empty" if ctx["min_length"] == 1 else f"must have {ctx['min_length']} or more characters",
    "string_too_long": lambda ctx: f"must have {ctx['max_length']} or fewer characters",
    "string_pattern_mismatch": lambda ctx: PATTERNS.get(ctx["pattern"], f"must match {ctx['pattern']}"),
}


def one_line(error: ValidationError, tags: int = 0) -> str:
    """Say what pydantic found in one line: key (value): rule; ... ``tags``: how many a discriminated union puts before a key."""
    problems = error.errors(include_url=False)
    sentences = [sentence(dict(problem) | {"loc": problem["loc"][tags:]}) for problem in problems[:_MOST_PROBLEMS]]
    more = len(problems) - _MOST_PROBLEMS
    return "; ".join(sentences + ([f"and {more:,} more"] if more > 0 else []))


def sentence(problem: dict[str, Any]) -> str:
    """Say one problem: key (value): rule."""
    if str(problem["type"]).startswith("union_tag"):
        return _tag_problem(**problem.get("ctx", {}))
    key = ".".join(in_one_line(str(part), LONG) for part in place_of(problem))
    said = f"{key}: " if key else ""
    if problem["type"] == "value_error":
        return said + str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] in _OF_KEYS:
        return said + _OF_KEYS[problem["type"]]
    return f"{key} ({_shown(problem['input'])}): {_rule(problem)}"


def place_of(problem: dict[str, Any]) -> tuple[str | int, ...]:
    """Return the keys that lead to a problem, without what pydantic puts between them."""
    return tuple(part for part in problem["loc"] if part not in _BETWEEN)


def _rule(problem: dict[str, Any]) -> str:
    given, context = problem["input"], problem.get("ctx", {})
    say = _RULES.get(problem["type"])
    if problem["loc"] and problem["loc"][-1] in _WAYS:
        return "must be off, or keys and values, such as {key: value}"
    rule = say(context) if say else f"{problem['msg'][:1].lower()}{problem['msg'][1:]}"
    if problem["type"] == "string_type" and isinstance(given, str | int | float) and not isinstance(given, LongNumber):
        rule += f", write it in quotes: '{given}'" if len(_shown(given)) < _SHOWN // 2 else ""
    if problem["type"] in {"enum", "literal_error"} and isinstance(given, str):
        rule += meant(given, re.findall(r"'([^']*)'", context["expected"]))
    return rule


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        value = re.sub(r"^([a-z]+://).*@", r"\1***@", value, flags=re.IGNORECASE | re.DOTALL)  # a password may stand there
        if len(value) > _SHOWN:
            return repr(in_one_line(value, _SHOWN))
    try:
        shown = _BRIEFLY.repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists within lists
        return type(value).__name__
    return shown if len(shown) <= _SHOWN else type(value).__name__


def _tag_problem(discriminator: str, tag: str | None = None, expected_tags: str = "") -> str:
    key = discriminator.strip("'")
    if tag is None:
        return f"{key}: missing"
    tags = expected_tags.replace("'", "")
    return f"{key} ({_shown(tag)}): must be {' or '.join(tags.rsplit(', ', 1))}{meant(str(tag), tags.split(', '))}"


_SECTIONS: dict[str, type[BaseModel]] = {
    "limits": LimitSettings,
    "an entry of controllers": ControllerSettings,
    "an entry of kinds": KindSettings,
    "defaults or a pool": Tuning,
    "a pool": PoolSettings,
    "an entry of hosts": HostSettings,
    "an entry of teams": TeamSettings,
    "runs": RunSettings,
}
# What an earlier version knew, and what is to be done instead.
_GONE = {"estimates": ", delete it: AWS Cost Explorer says what addresses and NAT gateways cost"}
_FEW = 14
_BY_THEMSELVES = {"runs", "weights", "job_parameters", "rerun_parameter", "ignore_labels"}  # no other key follows from these
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
        problems = list(_once([_told(dict(one)) for one in error.errors(include_url=False)]))
        if error.error_count() > MOST_PROBLEMS:
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
    place, unknown = place_of(problem), problem["type"] == "extra_forbidden"
    text = sentence(problem) + (_suggestion(place) if unknown else "")
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
        return f" here, it belongs in {belongs}"
    return f", known here: {', '.join(known)}" if len(known) <= _FEW else ""


def _known_at(place: Place) -> list[str]:
    """Return the keys that may stand there, as they are written."""
    kinds: list[Any] = [FleetSettings]
    for part in place:
        kinds = [inner for kind in kinds for inner in _within(kind, part)]
    models = filter(_is_model, kinds)
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
            # A whole key of the file that can be left out without harm to the others.
            case (key, *further) if key in _BY_THEMSELVES or (problem.on_key and not further):
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
