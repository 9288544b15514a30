"""Rehearse the deployed stack on an emulated AWS: ``python -m rehearsal``, by way of `make rehearse`."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rehearsal import upgrade
from rehearsal.plan import Plan, new_plan, plan_at
from rehearsal.report import DifferenceError, Report
from rehearsal.story import FIRST_STEP, STEPS, play
from support.rig import ended_by_signals

_UPGRADE, _PORT = "upgrade", "REHEARSAL_PORT"
_PLAY_UPGRADE = (sys.executable, "-m", "rehearsal", _UPGRADE)
Story = Callable[[Report], None]


def main(words: list[str]) -> int:
    """Play the story. The last line says whether all went well; the exit code is 1 if anything did not."""
    unknown = set(words) - STEPS.keys() - {_UPGRADE}
    if unknown:
        print(f"{', '.join(sorted(unknown))}: no such step; there are {', '.join([*STEPS, _UPGRADE])}", file=sys.stderr)
        return 2
    try:
        failures = _failures_of(words or [*STEPS, _UPGRADE])
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line says so
        traceback.print_exc()
        failures = [f"cut off by {type(error).__name__}: {error}"]
    # CI shows only the end of a long output.
    print("\n".join(failures), end="\n" if failures else "")
    print(f"rehearsal: FAILED, {len(failures)} of the lines above" if failures else "rehearsal: nothing differs", flush=True)
    return int(bool(failures))


def _failures_of(steps: list[str]) -> list[str]:
    """Play these steps, and what they begin with; what went wrong, one line each.

    The upgrade has an account of its own, in a process beside the rest of the story, since most of both is waiting.
    """
    if os.environ.get(_PORT):
        return _played(partial(upgrade.play, plan_at(int(os.environ[_PORT]))))
    with new_plan() as plan:
        if steps == [_UPGRADE]:
            return _played(partial(upgrade.play, plan_at(plan.port_beside)))
        with _beside(plan, is_wanted=_UPGRADE in steps) as wait:
            failures = _played(partial(play, plan, steps=[FIRST_STEP, *steps]))
            return [*wait(), *failures]


def _played(story: Story) -> list[str]:
    """Play a story, and print the table of what was checked; what went wrong, one line each."""
    report, errors = Report(), list[str]()
    try:
        story(report)
    except DifferenceError as error:
        errors = [str(error)]
    except Exception as error:  # noqa: BLE001 - the last line says so
        traceback.print_exc()
        errors = [f"{type(error).__name__}: {' '.join(str(error).split())}"]
    finally:
        print(report.table(), flush=True)
    return [*report.of_differences(), *errors]


@contextmanager
def _beside(plan: Plan, *, is_wanted: bool) -> Iterator[Callable[[], list[str]]]:
    """Play the upgrade in another process. The function that this yields waits for it, prints its output, and returns its failures."""
    if not is_wanted:
        yield list
        return
    log = plan.logs / f"{_UPGRADE}.log"
    with log.open("w", encoding="utf-8") as output:
        environment = os.environ | {_PORT: str(plan.port_beside)}
        process = subprocess.Popen(_PLAY_UPGRADE, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:

        def wait() -> list[str]:
            status = process.wait()
            print(log.read_text(encoding="utf-8"), flush=True)
            return [f"{_UPGRADE}: it ended with status {status}; its table is above"] if status else []

        yield wait
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    with ended_by_signals():
        sys.exit(main(sys.argv[1:]))
