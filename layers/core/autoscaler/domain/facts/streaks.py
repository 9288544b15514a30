"""Builds that failed one after another on one node, and how often builds of a pool fail at all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Builds that failed in a row on one node.

    ``jobs``: theirs, without repeats and without those that fail on other nodes, too; the last ones. ``passed``: the projects of these jobs
    of which something succeeded on another node of the pool since.
    """

    failures: int
    since_at: float
    jobs: tuple[str, ...]
    pool: str = ""
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResults:
    """How many builds of a pool succeeded and failed lately."""

    succeeded: float = 0.0
    failed: float = 0.0
