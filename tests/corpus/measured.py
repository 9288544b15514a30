"""Measures which branches of the decision the recorded cases take."""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from pathlib import Path

from corpus.branches import Arc, Branches, arcs_of, branches
from corpus.case import lines_of, read
from corpus.play import play

_PARTS = 8


def branches_of_all(archives: Iterable[Path]) -> Branches:
    """The branches of the functions that any case enters."""
    with ProcessPoolExecutor(cpu_count()) as processes:
        going = [
            processes.submit(_arcs, archive, part) for archive in archives for part in range(_PARTS)
        ]
        return branches(frozenset().union(*(job.result() for job in going)))


def _arcs(archive: Path, part: int) -> frozenset[Arc]:
    cases = [read(line).case for line in lines_of(archive)[part::_PARTS]]
    return arcs_of(lambda: [list(play(case)) for case in cases])
