"""Random worlds for as long as one likes: ``python -m support.soak MINUTES JOBS [SEED]``. Prints how many world-hours were lived."""

import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import count, islice
from random import SystemRandom

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from rich.progress import Progress

from support.machine import AnythingHappens

WORLDS_A_SEED = 10
_CHECKS = (
    "money_has_a_ceiling()",
    "no_build_is_killed()",
    "only_what_never_was_an_agent_is_kept_stopped_for_one_build()",
    "no_build_begins_on_what_was_launched_for_a_person()",
    "a_host_is_never_asked_about_in_ec2()",
    "nothing_is_started_twice()",
    "a_lost_build_runs_again_no_more_often_than_the_fleet_file_says()",
    "no_order_stops_what_is_not_its_own()",
    "nothing_of_an_order_that_has_ended_goes_on()",
)
_SETTINGS = settings(
    max_examples=WORLDS_A_SEED,
    stateful_step_count=40,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def live(number: int) -> tuple[float, str]:
    """Live the worlds of one seed: world-hours, and what broke."""
    AnythingHappens.minutes_lived = 0
    broken = ""
    try:
        run_state_machine_as_test(seed(number)(AnythingHappens), settings=_SETTINGS)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        place = traceback.extract_tb(error.__traceback__)[-1]
        happened = [line for note in getattr(error, "__notes__", ()) for line in note.splitlines() if line.startswith("state.")]
        lines = [line.removeprefix("state.") for line in happened if not line.endswith(_CHECKS)]
        broken = f"seed {number}: {place.name}: {str(error)[:3000]}\n  " + "\n  ".join(lines)
    return AnythingHappens.minutes_lived / 60.0, broken


def main(minutes: float, jobs: int, first: int) -> int:
    """Live until time is up; the exit code is 1 where anything broke."""
    until, numbers = time.monotonic() + minutes * 60.0, count(first)
    hours, seeds, broken = 0.0, 0, 0
    with ProcessPoolExecutor(jobs) as pool, Progress(transient=True) as progress:
        task = progress.add_task("worlds", total=minutes * 60.0)
        began = time.monotonic()
        while time.monotonic() < until:
            for done in as_completed(pool.submit(live, number) for number in islice(numbers, 2 * jobs)):
                lived, said = done.result()
                hours, seeds = hours + lived, seeds + 1
                if said:
                    broken += 1
                    print(said, flush=True)  # noqa: T201 - at once: an hour is long
                progress.update(task, completed=time.monotonic() - began)
    print(f"{hours:,.0f} world-hours in {seeds * WORLDS_A_SEED} worlds from seed {first} on, {broken} broke")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else SystemRandom().randrange(10**6)))
