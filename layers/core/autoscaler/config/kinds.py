"""Kinds of agents: which kind is a speciality of which, and the labels that follow.

``amd64+gfx1030`` is ``amd64`` with the modifier ``gfx1030``; modifiers compose, so that ``a+b+c`` is a speciality of ``a``, ``a+b`` and
``a+c``. Any other kind names what it is a speciality of (``of``).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Protocol

from autoscaler.config.basics import of_the_last
from autoscaler.domain.facts.fleet import Lending, Pool, Share


class Kind(Protocol):
    """What an operator wrote of a kind."""

    @property
    def of(self) -> list[str]:
        """The kinds that it is a speciality of, beside those that its name tells."""

    @property
    def labels(self) -> list[str] | None:
        """Labels of its agents; None: those that its name tells."""


def labels_of(name: str, kinds: Mapping[str, Kind]) -> frozenset[str]:
    """Return the labels that jobs ask for which need this kind."""
    written = kinds[name].labels
    _, *modifiers = name.split("+")
    return frozenset(written) if written is not None else frozenset((name, *modifiers))


def general_kinds(name: str, kinds: Mapping[str, Kind]) -> set[str]:
    """Return all kinds that this one is a speciality of, directly or by way of others."""
    known = _known(kinds)
    if name not in known:
        general: set[str] = set()
        waiting = list(_direct(name, kinds))
        while waiting:
            if (kind := waiting.pop()) not in general and kind != name:
                general.add(kind)
                waiting += _direct(kind, kinds)
        known[name] = general
    return known[name]


@of_the_last
def _known(_kinds: Mapping[str, Kind]) -> dict[str, set[str]]:
    """Return a place for the general kinds of each kind."""
    return {}


def lent_labels(name: str | None, own: Collection[str], kinds: Mapping[str, Kind]) -> frozenset[str]:
    """Return the labels of more general kinds that an agent with these labels of its own carries only while it is lent."""
    if name is None or name not in kinds:
        return frozenset()
    general = {label for kind in general_kinds(name, kinds) for label in labels_of(kind, kinds)}
    return frozenset(general.difference(own))


def with_lending(pools: Mapping[str, Pool], wanted: Mapping[str, Lending | None], general: Mapping[str, set[str]]) -> dict[str, Pool]:
    """Set when each pool lends its agents; where nothing ``wanted`` is written, those that are no dearer than the general kind's do.

    ``general``: the kinds that each pool's own is a speciality of.
    """
    lending: dict[str, Pool] = {}
    by_kind: dict[str, float] = {}  # the lowest price of an executor
    for pool in pools.values():
        by_kind[pool.kind] = min(_usd_per_executor(pool), by_kind.get(pool.kind, inf))
    for name, pool in pools.items():
        plain = [by_kind[kind] for kind in general.get(name, ()) if kind in by_kind]
        by_price = Lending.IDLE if plain and _usd_per_executor(pool) <= min(plain) else Lending.NEVER
        may_lend = pool.lent_labels and pool.share is not Share.COOPERATIVE
        lending[name] = replace(pool, lend=(wanted[name] or by_price) if may_lend else Lending.NEVER)
    return lending


def _usd_per_executor(pool: Pool) -> float:
    return pool.offerings[0].billed_usd_per_hour / pool.executors


def _direct(name: str, kinds: Mapping[str, Kind]) -> Iterator[str]:
    yield from (kind for kind in kinds[name].of if kind in kinds)
    base, *modifiers = name.split("+")
    yield from (other for other, others in _by_base(kinds).get(base, ()) if others < set(modifiers))


@of_the_last
def _by_base(kinds: Mapping[str, Kind]) -> dict[str, list[tuple[str, set[str]]]]:
    """Return the kinds and their modifiers by what stands before the first +."""
    by_base: dict[str, list[tuple[str, set[str]]]] = {}
    for name in kinds:
        base, *modifiers = name.split("+")
        by_base.setdefault(base, []).append((name, set(modifiers)))
    return by_base
