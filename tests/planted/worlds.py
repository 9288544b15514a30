"""What hostile worlds must find by themselves: without one of the defences, a property breaks in a world that is lived each time."""

from planted.bug import Bug


def undefended(world: str, name: str, *, function: str, was: str, becomes: str) -> Bug:
    """``world``: the one of `tests/properties/test_hostile.py` in which this is noticed."""
    test = f"tests/properties/test_hostile.py::test_the_properties_hold_where[{world}]"
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=(test,))


WORLDS = (
    undefended(
        "nothing is unkind, and jobs exclude labels",
        "there are no beacons",
        function="beacon_specs",
        was="for name, labels in beacons\n",
        becomes="for name, labels in beacons[:0]\n",
    ),
    undefended(
        "agents take nothing",
        "a free executor that takes nothing is never distrusted",
        function="is_broken",
        was="return now - free_node.since_at >= patience_seconds and free_node.looks >= BROKEN_LOOKS",
        becomes="return False",
    ),
    undefended(
        "stops hang",
        "stops have no deadline",
        function="STOPS_SECONDS",
        was="STOPS_SECONDS = 2 * FORCED_SECONDS",
        becomes="STOPS_SECONDS = 1e9",
    ),
    undefended(
        "two boots fail, and all that the jobs behind them need",
        "as many machines follow those that did not boot as jobs need",
        function="few_at_once",
        was="TrialOf.BOOT.scope(pool)",
        becomes='TrialOf.BOOT.scope("")',
    ),
    undefended(
        "a controller is in quiet mode",
        "messages are over while what they tell of lasts",
        function="_over",
        was="if n not in still and now - trouble.seen_at",
        becomes="if now - trouble.seen_at",
    ),
)
