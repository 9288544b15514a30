"""Problems of a fleet file and of the environment, alarm thresholds among it: where each is, and what is wrong."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from autoscaler.domain.report.problems import Thresholds
from autoscaler.domain.wording import shortened
from autoscaler.errors import ConfigError

# Problems of a fleet file: where each is, and what is wrong, in words.


Place = tuple[str | int, ...]
MOST_PROBLEMS = 100  # that are told at once: whoever mends these looks again
_MOST_NAMES = 20
_LINE = 1000
_BEGUN = 4  # letters from which on the beginning of a word tells it
_MANY = 2000  # words: to compare with each of more takes too long
LONG = 80  # letters of a word that are written at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. ``place``: the keys that lead to it; ``at``: its line and column, once they were looked up."""

    place: Place
    text: str
    on_key: bool = False  # the key itself is wrong, not its value
    at: tuple[int, int] | None = None


def problem(place: Place, rule: str) -> Problem:
    """Make the problem of a key, which its text spells as the keys that lead to it. ``rule``: what follows, such as ``: missing``."""
    return Problem(place=place, text=f"{'.'.join(map(str, place))}{rule}")


def broken(*rules: tuple[object, str, str]) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each rule that is broken. A rule: whether it is, its key, and its text."""
    return ((key, text) for is_broken, key, text in rules if is_broken)


class FleetFileError(ConfigError):
    """The fleet file is wrong; nothing was done. ``lines``: one a problem; the text is all of them in one line."""

    def __init__(self, where: str, problems: Iterable[Problem]) -> None:
        """Keep the problems: their lines may be looked up later."""
        self.problems = tuple(problems)
        told = self.problems[:MOST_PROBLEMS]
        more = [f"and more than these {MOST_PROBLEMS}: mend them first"] if len(self.problems) > MOST_PROBLEMS else []
        self.lines = (*(self._line(where, problem) for problem in told), *more)
        super().__init__("; ".join([*self.lines[:1], *(self._line("", problem) for problem in told[1:]), *more]))

    @staticmethod
    def _line(where: str, problem: Problem) -> str:
        place = ":".join([*filter(None, [where]), *map(str, problem.at or ())])
        return in_one_line(f"{place}: {problem.text}" if place else problem.text)


def in_one_line(text: str, most: int = _LINE) -> str:
    """Write a text that somebody else wrote in one line of bounded length: its middle is left out, and what does not print is spelled."""
    if len(text) > most:
        text = f"{text[: most // 2]}...{text[-most // 2 :]}"
    return text if text.isprintable() else "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def listed(names: Iterable[str], nothing: str = "") -> str:
    """List the names that there are, at most so many that a person reads them."""
    all_of_them = list(names)
    more = len(all_of_them) - _MOST_NAMES
    return ", ".join(all_of_them[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "") or nothing


def meant(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that this one resembles: a clause to add, or nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - for an error only

    words = list(known)
    if len(word := str(word)) > LONG or len(words) > _MANY:
        return ""
    by_spelling = {_spelling(name): name for name in words}
    spelled = _spelling(word)
    begun = [name for name in by_spelling if len(spelled) >= _BEGUN and name.startswith(spelled)]
    close = begun if len(begun) == 1 else get_close_matches(spelled, list(by_spelling), n=1, cutoff=0.7)
    return f", did you mean {by_spelling[close[0]]}?" if close else ""


@lru_cache(maxsize=_MANY)
def _spelling(word: str) -> str:
    """Spell camelCase, hyphens and capitals as the file's own keys are spelled."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[- ]+", "_", word).lower()


# How a refused environment variable is named: in one line, however long its value is.


def refused(name: str, value: str, rule: str) -> ConfigError:
    """Make the error of a variable whose value breaks a rule."""
    return ConfigError(f"environment variable {name} ({shortened(value) or 'missing'}): {rule}")


# The numbers of the stack's alarms, as the function that judges them is given them.


_VARIABLES = {
    "job_wait_seconds": "JOB_WAIT_ALARM_SECONDS",
    "idle_usd_per_hour": "IDLE_USD_ALARM",
    "failure_streak": "FAILURE_STREAK_ALARM",
    "agent_disk_bytes": "AGENT_DISK_ALARM_BYTES",
    "agent_memory_bytes": "AGENT_MEMORY_ALARM_BYTES",
    "agent_gpu_memory_bytes": "AGENT_GPU_MEMORY_ALARM_BYTES",
    "controller_disk_bytes": "CONTROLLER_DISK_ALARM_BYTES",
    "controller_memory_bytes": "CONTROLLER_MEMORY_ALARM_BYTES",
    "controller_response_seconds": "CONTROLLER_RESPONSE_ALARM_SECONDS",
    "controller_cpu_percent": "CONTROLLER_CPU_ALARM_PERCENT",
}


def read_thresholds(environment: Mapping[str, str]) -> Thresholds:
    """Read them; `ConfigError` names the first that is missing or no number."""
    return Thresholds(**{field.name: _number(environment, _VARIABLES[field.name]) for field in fields(Thresholds)})


def _number(environment: Mapping[str, str], name: str) -> float:
    text = environment.get(name, "")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise refused(name, text, "must be a number, 0 or more")
    return value
