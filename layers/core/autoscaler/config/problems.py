"""Problems of a fleet file: where each is, and what is wrong, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.errors import ConfigError

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. ``place``: the keys that lead to it; ``at``: its line and column, once they were looked up."""

    place: Place
    text: str
    on_key: bool = False  # the key itself is wrong, not its value
    at: tuple[int, int] | None = None


class FleetFileError(ConfigError):
    """The fleet file is wrong; nothing was done. ``lines``: one a problem; the text is all of them in one line."""

    def __init__(self, where: str, problems: Iterable[Problem]) -> None:
        """Keep the problems: their lines may be looked up later."""
        self.problems = tuple(problems)
        super().__init__("; ".join([self._line(where, problem) for problem in self.problems[:1]] + self._others()))
        self.lines = tuple(self._line(where, problem) for problem in self.problems)

    def _others(self) -> list[str]:
        return [self._line("", problem) for problem in self.problems[1:]]

    @staticmethod
    def _line(where: str, problem: Problem) -> str:
        place = ":".join([*filter(None, [where]), *map(str, problem.at or ())])
        return f"{place}: {problem.text}" if place else problem.text
