"""The actors that meet at one instant, two at a time: functions, people, restarts."""

from functools import partial
from itertools import combinations, product
from typing import Any

from support import interleaving
from support.interleaving import FUNCTIONS, MOMENTS, Meeting, a_scene, scale_down, scale_up
from support.interleaving_ordered import (
    PAIRS,
    a_worker_of_the_gang_passes,
    an_ordered_scene,
    cancel_the_gang,
    cancel_what_is_being_ordered,
)
from support.interleaving_shared import LENDING_MOMENTS, SHARED_FUNCTIONS, SHARED_MOMENTS, a_shared_scene
from support.sampling import some

ONE_CONTROLLER = (*combinations(FUNCTIONS, 2), *product(FUNCTIONS, MOMENTS))
# The agent that retires is stopped, not terminated.
STOPPING = tuple((scale_down, other) for other in (*FUNCTIONS, *MOMENTS) if other is not scale_down)
SHARED = (*combinations(SHARED_FUNCTIONS, 2), *product(SHARED_FUNCTIONS, SHARED_MOMENTS), *product((scale_up, scale_down), LENDING_MOMENTS))
MEETINGS = {
    "with one controller": Meeting(scene=a_scene, pairs=ONE_CONTROLLER, moments=MOMENTS, most=24),
    "where agents are stopped": Meeting(scene=partial(a_scene, warm=True), pairs=STOPPING, moments=MOMENTS, most=8),
    "where controllers share machines": Meeting(scene=a_shared_scene, pairs=SHARED, moments=(*SHARED_MOMENTS, *LENDING_MOMENTS), most=12),
    "where runs are ordered": Meeting(
        scene=an_ordered_scene,
        pairs=PAIRS,
        moments=(a_worker_of_the_gang_passes,),
        most=10,
        alike={cancel_what_is_being_ordered: cancel_the_gang},
    ),
}
SEEDS, SEEDS_OF_MAKE_TEST = 150, 8


def answer(name: str, part: int, parts: int) -> dict[str, Any]:
    """Try a part of a meeting's schedules, or random ones if no name is given, as a server of `support.forks`."""
    if name:
        return interleaving.try_out(MEETINGS[name], part, parts)
    mine = [str(seed) for seed in range(SEEDS)][part::parts]
    seeds = some(mine, most=SEEDS_OF_MAKE_TEST)
    broken = interleaving.try_random(MEETINGS["with one controller"], map(int, seeds))
    return {"cases": len(mine), "tried": len(seeds), "broken": broken}
