"""``python -m oracle``: play the runs, and compare every pass with what was recorded; the exit code is 1 where anything differs."""

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from pathlib import Path
from time import perf_counter

from autoscaler.domain.facts.reasons import Reason
from corpus.neutral import KINDS
from oracle.hours import Hour, counts, first_difference, read, write
from oracle.runs import HERE, Run, runs


def main() -> int:
    """Play and compare, or record."""
    parser = argparse.ArgumentParser(prog="make same", description=__doc__)
    parser.add_argument("--record", action="store_true", help="record anew: say in the commit which figure moved, and why")
    parser.add_argument("--traces", type=Path, help="a folder with vllm_buildkite.csv.gz: one day of it is played, too")
    parser.add_argument("only", nargs="*", help="names of runs; all where none is given")
    asked = parser.parse_args()
    chosen = [run for run in runs(asked.traces) if not asked.only or run.name in asked.only]
    began = perf_counter()
    with ProcessPoolExecutor(cpu_count()) as processes:
        going = [(run, processes.submit(_played, run.name, asked.traces)) for run in chosen]
        verdicts = [(_record if asked.record else _compare)(run, got.result()) for run, got in going]
    seen: dict[tuple[str, str], int] = {}
    for run in chosen:
        if run.kept:
            seen |= counts(read(_path(run)))
    _say(f"{perf_counter() - began:.0f} s; never seen in any of them: {_unseen(seen)}")
    return 0 if all(verdicts) else 1


def _played(name: str, traces: Path | None) -> list[Hour]:
    run = next(run for run in runs(traces) if run.name == name)
    return list(run.play(run.hours))


def _compare(run: Run, got: list[Hour]) -> bool:
    if not _path(run).exists():
        _say(f"{run.name}: was never recorded (make same RECORD=1)")
        return False
    different = first_difference(read(_path(run)), got)
    _say(f"{run.name}: {len(got)} hours {'DIFFER' if different else 'are the same'}; {got[-1].totals}")
    for line in different:
        _say(f"  {line}")
    return not different


def _record(run: Run, got: list[Hour]) -> bool:
    before = read(_path(run)) if _path(run).exists() else []
    moved = first_difference(before, got)
    write(_path(run), got, with_lines=run.kept)
    _say(f"{run.name}: {len(got)} hours recorded{', and they moved' if moved else ''}; {got[-1].totals}")
    for line in moved:
        _say(f"  {line}")
    return True


def _unseen(seen: Mapping[tuple[str, str], int]) -> str:
    kinds = sorted(set(KINDS.values()) - {kind for kind, _ in seen})
    reasons = sorted({str(reason) for reason in Reason} - {reason for _, reason in seen})
    return f"kinds {', '.join(kinds) or 'none'}; reasons {', '.join(reasons) or 'none'}"


def _path(run: Run) -> Path:
    return HERE / "recorded" / f"{run.name}.gz"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
