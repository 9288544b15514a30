"""Facts as JSON by the names of their fields, and back. The one place that reads older forms of
them."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin
from zoneinfo import ZoneInfo

from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
from cattrs.preconf.json import make_converter

from autoscaler.domain.facts.fleet import Fleet, Pool, WarmPool
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.snapshot import (
    Build,
    ControllerView,
    Instance,
    Intent,
    Node,
    QueueItem,
    Record,
)

T = TypeVar("T")

# Looks of one series hold the same ones again and again: each is written, and read, once.
_PARTS = (Build, ControllerView, Fleet, Instance, Intent, Node, Pool, QueueItem, Record)


class Forms:
    """Writes and reads values of one case. ``parts``: what several of its looks have in common,
    each as JSON."""

    def __init__(self) -> None:
        """Prepare a converter; that takes a second, so one serves all cases."""
        self.parts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._read: dict[tuple[type, int], Any] = {}
        self._converter = make_converter(omit_if_default=True)
        self._without_json()
        for kind in _PARTS:
            self._share(kind)

    @contextmanager
    def of_case(self, parts: list[str] | None = None) -> Iterator[list[str]]:
        """Begin a case, with the parts that it was written with."""
        self.parts, self._numbers, self._read = parts if parts is not None else [], {}, {}
        yield self.parts

    def write(self, value: Any, kind: Any) -> Any:
        """Return a value as what JSON can hold."""
        return self._converter.unstructure(value, unstructure_as=kind)

    def read(self, raw: Any, kind: type[T]) -> T:
        """Read what `write` returned. A field that is there no more is left out, a new one has its
        default."""
        return self._converter.structure(raw, kind)

    def tag(self, union: Any) -> None:
        """Write which type a value of a union has; None stays None."""
        kinds = {kind.__name__: kind for kind in get_args(union)}

        def write(value: Any) -> Any:
            return (
                None
                if value is None
                else {"is": type(value).__name__} | self._converter.unstructure(value)
            )

        def read(raw: Any, _kind: Any) -> Any:
            return None if raw is None else self._converter.structure(raw, kinds[raw["is"]])

        self._converter.register_unstructure_hook_func(lambda kind: kind == union, write)
        self._converter.register_structure_hook_func(lambda kind: kind == union, read)

    def _share(self, kind: type) -> None:
        @cache  # made when all hooks are known, or the parts of a part would be written out
        def hooks() -> tuple[Any, Any]:
            write = make_dict_unstructure_fn(kind, self._converter, _cattrs_omit_if_default=True)
            return write, make_dict_structure_fn(kind, self._converter)

        def number(value: Any) -> int:
            text = json.dumps(hooks()[0](value), separators=(",", ":"))
            if text not in self._numbers:
                self._numbers[text] = len(self.parts)
                self.parts.append(text)
            return self._numbers[text]

        def part(number: int, _kind: Any) -> Any:
            key = kind, number
            if key not in self._read:
                self._read[key] = hooks()[1](json.loads(self.parts[number]), kind)
            return self._read[key]

        self._converter.register_unstructure_hook(kind, number)
        self._converter.register_structure_hook(kind, part)

    def _without_json(self) -> None:
        """Say how to write what JSON has no form for, and what has no form of its own."""
        converter = self._converter
        converter.register_unstructure_hook(ZoneInfo, str)
        converter.register_unstructure_hook(tzinfo, str)
        converter.register_structure_hook(tzinfo, lambda name, _: ZoneInfo(name))
        # else the order of a set would be another one each time
        converter.register_unstructure_hook_func(
            lambda kind: (get_origin(kind) or kind) in {set, frozenset},
            lambda values: sorted((converter.unstructure(value) for value in values), key=str),
        )
        converter.register_structure_hook(
            int | Source, lambda value, _: value if isinstance(value, int) else Source(value)
        )
        converter.register_structure_hook(
            WarmPool | Literal[False] | None,
            lambda value, _: converter.structure(value, WarmPool) if value else value,
        )
        converter.register_unstructure_hook_func(
            _is_collection,
            lambda values: converter.unstructure(
                values, frozenset if isinstance(values, set | frozenset) else tuple
            ),
        )
        converter.register_structure_hook_func(
            _is_collection,
            lambda values, kind: tuple(
                converter.structure(value, get_args(kind)[0]) for value in values
            ),
        )


def _is_collection(kind: Any) -> bool:
    return get_origin(kind) is Collection
