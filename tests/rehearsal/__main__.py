"""Rehearse the deployed stack on an emulated AWS: ``python -m rehearsal``, by way of `make rehearse`."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial

from rehearsal import upgrade
from rehearsal.plan import Plan, new_plan
from rehearsal.report import DifferenceError, Report
from rehearsal.story import STEPS, play
from support.rig import ended_by_signals

_UPGRADE = "upgrade"


def main(words: list[str]) -> int:
    """Play the story; the exit code is 1 if anything differs from what is expected.

    The upgrade has an account of its own, in a process beside the rest of the story, since most of both is waiting.
    """
    unknown = set(words) - STEPS.keys() - {_UPGRADE}
    if unknown:
        print(f"{', '.join(sorted(unknown))}: no such step; there are {', '.join([*STEPS, _UPGRADE])}", file=sys.stderr)
        return 2
    plan, steps = new_plan(), words or [*STEPS, _UPGRADE]
    if steps == [_UPGRADE]:
        return _played(Report(), partial(upgrade.play, plan.beside(_UPGRADE)))
    report = Report()
    with _beside(plan, is_wanted=_UPGRADE in steps) as wait:
        failed = _played(report, partial(play, plan, steps=steps))
        failed = max(failed, wait())
    # CI shows only the end of a long output.
    print("\n".join(report.of_differences()), flush=True)
    return failed


def _played(report: Report, story: Callable[[Report], None]) -> int:
    try:
        story(report)
    except DifferenceError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        print(report.table(), flush=True)
    return int(bool(report.differences))


@contextmanager
def _beside(plan: Plan, *, is_wanted: bool):
    """Play the upgrade in another process; it is waited for, and its output printed, by the function that this yields."""
    if not is_wanted:
        yield lambda: 0
        return
    log = plan.logs / f"{_UPGRADE}.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen([sys.executable, "-m", "rehearsal", _UPGRADE], stdout=output, stderr=subprocess.STDOUT)
        try:

            def wait() -> int:
                status = process.wait()
                print(log.read_text(encoding="utf-8"), flush=True)
                return int(bool(status))

            yield wait
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    with ended_by_signals():
        sys.exit(main(sys.argv[1:]))
