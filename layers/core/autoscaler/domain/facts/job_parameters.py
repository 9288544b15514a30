"""Which parameters tell the builds of a job apart, as the fleet file says it; for people's statistics alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

# A signature is kept with each build that is followed, and in each row of the statistics.
SIGNATURE_CHARACTERS = 100
_VALUE_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParameters:
    """Names of parameters by patterns of full names of jobs. If several match a job, the names of all of them count."""

    by_pattern: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.by_pattern)

    def signature(self, job: str, given: Mapping[str, str]) -> str:
        """Say what tells a build apart that was started with these values: ``ARCH=arm64, SUITE=full``; "" where nothing does."""
        names = dict.fromkeys(name for pattern, names in self.by_pattern if fnmatchcase(job, pattern) for name in names)
        told = ", ".join(f"{name}={_cut(given[name], _VALUE_CHARACTERS)}" for name in names if name in given)
        return _cut(told, SIGNATURE_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
