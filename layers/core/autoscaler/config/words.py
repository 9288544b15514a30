"""Says what pydantic found in words that a person can act on: the key, the value, the rule, and what was probably meant."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

from autoscaler.config.basics import ROLE_ID, LongNumber
from autoscaler.config.problems import in_one_line
from autoscaler.config.requirements import INSTANCE_TYPE
from autoscaler.config.reruns import PARAMETER_NAME
from autoscaler.config.schedules import TIME_OF_DAY
from autoscaler.config.settings import FLEET, KIND, LABEL, NAME, PARAMETER, VERSION

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
_BEGUN = 4  # letters from which on the beginning of a word tells it
_MANY = 2000  # words: to compare with each of more takes too long
_LONG = 80  # letters of a word that are written at most
_SHOWN = 60  # letters of a value
_BRIEFLY = Repr()  # a value may be as large as the file
_BRIEFLY.maxdict = _BRIEFLY.maxlist = _BRIEFLY.maxstring = _BRIEFLY.maxother = _BRIEFLY.maxlong = _SHOWN
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
    key = ".".join(in_one_line(str(part), _LONG) for part in place_of(problem))
    said = f"{key}: " if key else ""
    if problem["type"] == "value_error":
        return said + str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"{said}unknown key"
    if problem["type"] == "missing":
        return f"{said}missing"
    return f"{key} ({_shown(problem['input'])}): {_rule(problem)}"


def place_of(problem: dict[str, Any]) -> tuple[str | int, ...]:
    """Return the keys that lead to a problem, without what pydantic puts between them."""
    return tuple(part for part in problem["loc"] if part not in _BETWEEN)


def meant(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that this one resembles: a clause to add, or nothing."""
    words = list(known)
    if len(word := str(word)) > _LONG or len(words) > _MANY:
        return ""
    by_spelling = {_spelling(name): name for name in words}
    spelled = _spelling(word)
    begun = [name for name in by_spelling if len(spelled) >= _BEGUN and name.startswith(spelled)]
    close = begun if len(begun) == 1 else get_close_matches(spelled, list(by_spelling), n=1, cutoff=0.7)
    return f", did you mean {by_spelling[close[0]]}?" if close else ""


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


@lru_cache(maxsize=_MANY)
def _spelling(word: str) -> str:
    """Spell camelCase, hyphens and capitals as the file's own keys are spelled."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[- ]+", "_", word).lower()


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
