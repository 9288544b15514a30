"""Makes candidates of what was taken down: single decisions by their shape, and looks in a row
around what is rare."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpus.case import Case, Recorded, written
from corpus.harvest import RawLook, series, spaced, ticks
from corpus.neutral import lines_of, reasons_of

FOLDER = Path("out") / "corpus"
EACH = FOLDER / "each"  # all that one test decides, in a file of its own
_LONGEST, _SHORTEST = 60, 10  # ticks of a series
_APART = 150.0  # seconds: after 180 s a look is worth nothing
_BEFORE, _AFTER = 12, 18  # ticks around what is rare
_RARE = 6  # seen so often, by this process


@dataclass(slots=True)
class Candidates:
    """Writes candidates of one source into a file, and counts what it has."""

    file: Path
    of_a_shape: int = 4  # decisions, of all tests or worlds
    of_a_test: int = 3  # likewise, of each
    shapes: Counter[Hashable] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, name: str, taken: list[RawLook]) -> None:
        """Add what one test or one world has shown."""
        cases = [*self._alone(name, taken), *self._rows(name, taken)]
        if cases:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.writelines(f"{written(Recorded(case=case))}\n" for case in cases)

    def _alone(self, name: str, taken: list[RawLook]) -> Iterator[Case]:
        here: Counter[Hashable] = Counter()
        for number, one in enumerate(taken):
            if one.plan is not None:
                shape = (
                    one.look.asks,
                    type(one.look.order),
                    frozenset(reasons_of(lines_of(one.plan))),
                )
                here[shape] += 1
                self.shapes[shape] += 1
                if here[shape] <= self.of_a_test and self.shapes[shape] <= self.of_a_shape:
                    yield one.alone(f"{name} {number}")

    def _rows(self, name: str, taken: list[RawLook]) -> Iterator[Case]:
        minutes = ticks(taken)
        pairs = [_pairs_of(minute) for minute in minutes]
        rare = [
            number
            for number, seen in enumerate(pairs)
            if any(self.pairs[pair] < _RARE for pair in seen)
        ]
        for seen in pairs:
            self.pairs.update(seen)
        if len(minutes) < _SHORTEST or not rare:
            return
        wide = spaced(minutes, _APART)
        for first in range(0, len(wide), _LONGEST):
            yield series(f"{name} from minute {first}, wide", wide[first : first + _LONGEST])
        last = -1
        for number in rare:
            if number > last:
                first, last = max(0, number - _BEFORE), number + _AFTER
                yield series(f"{name} from minute {first}", minutes[first:last])


def _pairs_of(minute: list[RawLook]) -> set[tuple[str, str]]:
    return {pair for one in minute if one.plan for pair in reasons_of(lines_of(one.plan))}
