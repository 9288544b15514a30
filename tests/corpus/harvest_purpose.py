"""``python -m corpus.harvest_purpose``: make candidates on purpose, from worlds made for that and
from the series among the candidates; where none has a row, from single ones."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from corpus.candidates import FOLDER
from corpus.case import Case, Recorded, read, written
from corpus.made import made
from corpus.purpose import cases_at, moments

_OF_A_ROW = 3
_IS_SERIES = ", wide"  # in its name


def candidates() -> Iterator[Case]:
    for is_series in (True, False):
        for file in sorted(FOLDER.glob("[sw]*.jsonl")):
            with file.open(encoding="utf-8") as lines:
                yield from (read(line).case for line in lines if (_IS_SERIES in line) is is_series)


def main() -> None:
    rows, worlds = Counter[str](), made()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "purpose.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{written(Recorded(case=one))}\n" for one in worlds)
        for case in chain(worlds, candidates()):
            for moment in moments(case):
                if rows[moment.row] < _OF_A_ROW:
                    rows[moment.row] += 1
                    file.writelines(f"{written(Recorded(case=one))}\n" for one in cases_at(moment))
                    file.flush()
    print(dict(rows))  # noqa: T201


if __name__ == "__main__":
    main()
