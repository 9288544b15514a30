"""Rules between the kinds of a fleet file, and between a pool and its kind."""

from collections.abc import Iterator

from autoscaler.config.kinds import general_kinds, labels_of
from autoscaler.config.problems import Problem, listed
from autoscaler.config.settings import FleetSettings, PoolSettings
from autoscaler.domain.facts.fleet import Lending


def between_kinds(settings: FleetSettings) -> Iterator[Problem]:
    """Yield what is wrong with the kinds themselves."""
    for name, kind in settings.kinds.items():
        for other in kind.of:
            if other not in settings.kinds or other == name:
                rule = "is the kind itself" if other == name else f"is not one of kinds ({listed(settings.kinds)})"
                yield Problem(place=("kinds", name, "of"), text=f"kinds.{name}.of ({other}) {rule}")
        both = sorted(other for other in general_kinds(name, settings.kinds) if name in general_kinds(other, settings.kinds))
        if both:
            yield Problem(place=("kinds", name, "of"), text=f"kinds.{name}.of ({both[0]}): each would be a speciality of the other")


def kind_of_pool(settings: FleetSettings, pool: PoolSettings) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong with a pool's kind, and with lending its agents."""
    if pool.kind is None:
        if pool.lend is not None:
            yield "lend", f"lend ({pool.lend}): the pool has no kind that is a speciality of another one"
    elif pool.kind not in settings.kinds:
        yield "kind", f"kind ({pool.kind}) is not one of kinds ({listed(settings.kinds, 'there are none')})"
    else:
        yield from _labels(settings, pool, pool.kind)
        if pool.lend not in {None, Lending.NEVER}:
            yield from _lend(settings, pool, pool.kind)


def _labels(settings: FleetSettings, pool: PoolSettings, kind: str) -> Iterator[tuple[str, str]]:
    kinds = settings.kinds
    general = {label: one for one in sorted(general_kinds(kind, kinds)) for label in labels_of(one, kinds)}
    for label in pool.labels or ():
        if label in general and label not in labels_of(kind, kinds):
            rule = f"it is a label of the kind {general[label]}, which agents of {kind} carry only while they are lent"
            yield "labels", f"labels ({label}): {rule}"


def _lend(settings: FleetSettings, pool: PoolSettings, kind: str) -> Iterator[tuple[str, str]]:
    served = [settings.controllers[name] for name in pool.controllers or settings.controllers if name in settings.controllers]
    if not general_kinds(kind, settings.kinds):
        yield "lend", f"lend ({pool.lend}): the kind {kind} is no speciality of another one"
    elif any(controller.nodes == "slots" for controller in served):
        yield "lend", f"lend ({pool.lend}): agents on static nodes (nodes: slots) are not lent, their labels are their operator's"
