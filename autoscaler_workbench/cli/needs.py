"""Prints what jobs need of their machines."""

from collections.abc import Iterator
from csv import writer
from io import StringIO
from typing import Any

from autoscaler.domain.wording import counted, size
from autoscaler_workbench.cli.tables import print_rows, say_beside
from autoscaler_workbench.cli.terminal import plain, say

Answer = dict[str, Any]
_FIELDS = ("builds", "exact", "memory_p50", "memory_p95", "cores_p50", "cores_p95", "gpu_memory_p95", "gpu_used", "share", "executor")


def print_needs(answer: Answer) -> None:
    """Print a line for each job and pool, and for each stage or set of parameters; those first that take most of their machine."""
    entries = answer["needs"]
    if not entries:
        say("no agent has told of a build of such a job from its beginning to its end yet")
        return
    several = len({entry["controller"] for entry in entries}) > 1
    headers = ("job", "pool", "builds", "memory", "cores", "GPU", "of its machine", "note")
    print_rows(headers, [_row(entry, several) for entry in entries], prose=("note",), figures=("builds",))
    say_beside("memory, cores: half of the builds, and 95 in 100; of its machine: that memory's share, and the share of one executor")
    if answer["left_out"]:
        say_beside(f"{counted(answer['left_out'], 'line')} more: give a pattern, or --most")


def _row(entry: Answer, with_controller: bool) -> tuple[str, ...]:  # noqa: FBT001 - one of two ways to name a place
    memory, cores, gpu = entry["memory"], entry["cores"], entry["gpu_memory"]
    return (
        f"  {entry['signature']}" if entry["signature"] else entry["job"],
        f"{entry['controller']}/{entry['pool']}" if with_controller else entry["pool"],
        str(entry["builds"]),
        f"{size(memory['p50'])}, {size(memory['p95'])}",
        f"{cores['p50']:.1f}, {cores['p95']:.1f}",
        size(gpu["p95"]) if gpu else "",
        f"{_percent(entry['share'])} of {_percent(entry['executor'])}",
        _note(entry),
    )


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{share:.0%}"


def _note(entry: Answer) -> str:
    parts = (
        "heavy: more memory than its executor's share" if entry["heavy"] else "",
        "never uses the GPU" if entry["never_gpu"] else "",
        "" if entry["exact"] else "beside others: by its own processes",
    )
    return "; ".join(filter(None, parts))


def print_csv(answer: Answer) -> None:
    """Print lines of comma-separated values, with all digits."""
    for line in _csv(answer):
        print(line)


def _csv(answer: Answer) -> Iterator[str]:
    yield ",".join(("controller", "job", "signature", "pool", *_FIELDS, "heavy", "never_gpu"))
    for entry in answer["needs"]:
        cells = StringIO()
        figures = (
            *(entry["builds"], int(entry["exact"]), entry["memory"]["p50"], entry["memory"]["p95"], entry["cores"]["p50"]),
            *(entry["cores"]["p95"], entry["gpu_memory"]["p95"] if entry["gpu_memory"] else "", entry["gpu_used"], entry["share"]),
            *(entry["executor"], int(entry["heavy"]), int(entry["never_gpu"])),
        )
        names = (entry["controller"], _harmless(entry["job"]), _harmless(entry["signature"]), entry["pool"])
        writer(cells, lineterminator="").writerow((*names, *("" if figure is None else figure for figure in figures)))
        yield cells.getvalue()


def _harmless(name: str) -> str:
    """Keep a spreadsheet from taking a name for a formula, and a terminal for a command."""
    clean = plain(name)
    return f"'{clean}" if clean.startswith(("=", "+", "-", "@")) else clean
