"""What passes note for the look that measures: counts of an hour, and when they were completed."""

from autoscaler.domain.report.datum import PassNotes, data_of_notes, noted, places_of_notes

T = 1_800_000_000.0


def after(*passes, notes=None):
    """Notes after passes: each seconds after the first, with its counts; counts of None: it was not completed."""
    notes = notes or PassNotes()
    for at, counts in passes:
        notes = noted(notes, T + at, counts or {}, {"BootFailures": [f"pool cpu ({at})"]}, completed=True) or notes
    return notes


def values(notes, at, function="scale_down"):
    data = data_of_notes("f", {function: notes}, T + at)
    return {datum.name: datum.values[0] for datum in data if dict(datum.dimensions).get("Function", function) == function}


def test_counts_are_summed_up_for_as_long_as_the_alarm_of_each_does():
    notes = after((0, {"BootFailures": 1, "Quarantines": 1}), (600, {"BootFailures": 2, "Launches": 9}))
    assert values(notes, 660)["BootFailures"] == 3
    assert values(notes, 660)["Quarantines"] == 0
    assert values(notes, 3700)["BootFailures"] == 2
    assert values(notes, 4300)["BootFailures"] == 0
    assert "Launches" not in {one.name for one in notes.counts}


def test_of_what_must_be_so_for_some_minutes_the_minutes_are_counted():
    notes = after((0, {"SweepsStopped": 4}), (10, {"SweepsStopped": 4}), (60, {"SweepsStopped": 1}))
    assert values(notes, 70)["SweepsStopped"] == 2
    assert values(notes, 400)["SweepsStopped"] == 0


def test_a_function_that_has_never_completed_a_pass_has_not_for_as_long_as_is_known():
    assert values(PassNotes(), 0)["SecondsSincePass"] == 900.0
    assert values(after((0, {})), 50)["SecondsSincePass"] == 50.0


def test_a_pass_that_is_missing_between_two_is_seen():
    regular = after(*((minute * 60, {}) for minute in range(10)))
    assert values(regular, 600)["PassesMissed"] == 0
    gaps = after(*((minute * 60, {}) for minute in range(10) if minute not in {3, 7}))
    assert values(gaps, 600)["PassesMissed"] == 2


def test_passes_within_the_minute_are_noted_once():
    notes = after((0, {}))
    assert noted(notes, T + 10, {}, {}, completed=True) is None
    assert noted(notes, T + 60, {}, {}, completed=True) is not None
    assert noted(notes, T + 60, {"Launches": 3}, {}, completed=False) is None


def test_notes_stay_small_however_bad_the_day():
    notes = after(*((minute * 60, {"BootFailures": 5, "Quarantines": 1, "LeaseHeld": 1}) for minute in range(600)))
    assert len(notes.completed) <= 15
    assert len(notes.counts) <= 3 * 61


def test_the_newest_places_come_first():
    notes = after((0, {"BootFailures": 1}), (60, {"BootFailures": 1}))
    assert places_of_notes({"scale_down": notes}, T + 60) == {"BootFailures": ["pool cpu (60)", "pool cpu (0)"]}


def test_only_places_of_what_is_counted_are_named():
    notes = PassNotes()
    for at, place in ((0, "cpu-1"), (3000, "cpu-2")):
        notes = noted(notes, T + at, {"Quarantines": 1}, {"Quarantines": [place]}, completed=True)
    assert values(notes, 3060)["Quarantines"] == 1
    assert places_of_notes({"scale_down": notes}, T + 3060) == {"Quarantines": ["cpu-2"]}
