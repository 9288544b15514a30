"""Schedules in the fleet file: what they are read as, and the one line in which the rest is refused."""

from zoneinfo import ZoneInfo

import pytest
import yaml

from autoscaler.config import check, load_fleet
from autoscaler.config.prices import average
from autoscaler.config.settings import fleet_schema
from autoscaler.domain.facts.fleet import PoolSchedule, WarmPool
from autoscaler.errors import ConfigError
from autoscaler_workbench.advice import warnings_of

FLEET = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 20, max_usd_per_month: 6000}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu:
    executors: 4
    launch_template: cpu
    instance_types: [c5.18xlarge]
    max_agents: 5
"""
OTHER = """
  gpu:
    executors: 1
    launch_template: gpu
    instance_types: [c5.18xlarge]
    max_agents: 5
"""
OFFICE = "{days: [mon, tue, wed, thu, fri], from: 08:00, to: 18:00, time_zone: Europe/Berlin, min_agents: 2}"


def with_schedules(*written):
    return "    schedules:\n" + "".join(f"      - {one}\n" for one in written)


def loaded(tmp_path, text):
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def refused(tmp_path, text):
    with pytest.raises(ConfigError) as found:
        loaded(tmp_path, text)
    assert "\n" not in str(found.value)
    return str(found.value).removeprefix(str(tmp_path / "fleet.yaml"))


def test_a_schedule_is_read_as_it_is_written_and_a_time_needs_no_quotes(tmp_path):
    night = '{from: "22:00", to: 06:00, time_zone: UTC, max_agents: 1, warm_executors: 0, warm_pool: {min_agents: 1}}'
    pool = loaded(tmp_path, FLEET + with_schedules(OFFICE, night)).pools["cpu"]
    assert pool.schedules == (
        PoolSchedule(days=frozenset(range(5)), from_minute=480, to_minute=1080, time_zone=ZoneInfo("Europe/Berlin"), min_agents=2),
        PoolSchedule(
            days=frozenset(range(7)),
            from_minute=1320,
            to_minute=1800,
            time_zone=ZoneInfo("UTC"),
            max_agents=1,
            warm_executors=0,
            warm_pool=WarmPool(min_agents=1, max_agents=1, max_age_seconds=168 * 3600.0),
        ),
    )


def test_a_schedule_switches_a_warm_pool_off_by_the_same_word_as_a_pool(tmp_path):
    off = "{from: 00:00, to: 24:00, time_zone: UTC, warm_pool: off}"
    [schedule] = loaded(tmp_path, FLEET + with_schedules(off)).pools["cpu"].schedules
    assert (schedule.warm_pool, schedule.from_minute, schedule.to_minute) == (False, 0, 1440)


def changed(old, new):
    return with_schedules(OFFICE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Europe/Berlin", "Europe/Berln", ":13:78: pools.cpu.schedules.0.time_zone: (Europe/Berln) is no time zone of the IANA database"),
        ("Europe/Berlin", "europe/berlin", "such as Europe/Berlin, did you mean Europe/Berlin?"),
        ("Europe/Berlin", "localtime", "(localtime) is no time zone"),
        ("Europe/Berlin", "../etc/passwd", "(../etc/passwd) is no time zone"),
        ("Europe/Berlin", "Europe", "(Europe) is no time zone"),
        ("Europe/Berlin", '""', "() is no time zone"),
        (", time_zone: Europe/Berlin", "", "pools.cpu.schedules.0.time_zone: missing"),
        ("time_zone", "timezone", "schedules.0.timezone: unknown key, did you mean time_zone?"),
        ("to: ", "until: ", "schedules.0.until: unknown key, did you mean to?"),
        ("from: ", "start: ", "schedules.0.start: unknown key, did you mean from?"),
        ("fri]", "Fri]", ":13:37: pools.cpu.schedules.0.days.4 ('Fri'): must be mon, tue, wed, thu, fri, sat or sun, did you mean fri?"),
        ("fri]", "mon]", "schedules.0: days (mon, tue, wed, thu, mon) names a day twice"),
        ("[mon, tue, wed, thu, fri]", "[]", "schedules.0.days ([]): must have 1 or more entries"),
        ("08:00", "8:00", "schedules.0.from ('8:00'): must be a time of day from 00:00 to 24:00, such as 08:00"),
        ("08:00", "24:01", "schedules.0.from ('24:01'): must be a time of day"),
        ("08:00", "24:00", "schedules.0: from (24:00): must be before 24:00, write 00:00 of the day after"),
        ("18:00", "08:00", "schedules.0: from and to (08:00) are the same: a whole day is from 00:00 to 24:00"),
        (", min_agents: 2", "", "schedules.0: changes nothing, give one or more of min_agents, max_agents, warm_executors, warm_pool"),
        ("min_agents: 2", "max_builds: 2", "schedules.0.max_builds: unknown key here, it belongs in defaults or a pool"),
        ("min_agents: 2", "min_agents: -1", "schedules.0.min_agents (-1): must be 0 or more"),
        ("min_agents: 2", "max_agents: 11", "pools.cpu.schedules.0.max_agents (11) exceeds limits.max_agents (10)"),
        ("min_agents: 2", "warm_pool: {min_agents: 6}", "schedules.0.warm_pool.min_agents (6) exceeds the most stopped agents (5)"),
        ("min_agents: 2", "warm_pool: of", "schedules.0.warm_pool ('of'): must be off, or keys and values"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said_in_one_line(tmp_path, old, new, line):
    assert line in refused(tmp_path, FLEET + changed(old, new))


def test_a_warm_pool_of_hours_is_refused_where_one_for_always_is(tmp_path):
    text = FLEET + changed("min_agents: 2", "warm_pool: {}")
    assert "schedules.0.warm_pool: agents of market spot cannot be stopped" in refused(tmp_path, text + "    market: spot\n")
    assert "schedules.0.warm_pool ({}): agents that have one build each" in refused(tmp_path, text + "    reuse: never\n")


def test_minima_of_a_schedule_fit_the_limits_of_their_hours(tmp_path):
    few = "{days: [sat], from: 00:00, to: 24:00, time_zone: Europe/Berlin, max_agents: 1}"
    friday_night = "{days: [fri], from: 20:00, to: 04:00, time_zone: Europe/Berlin, min_agents: 3}"
    assert ":12:5: pools.cpu.schedules: on Saturday at 00:00 Europe/Berlin min_agents (3) exceeds max_agents (1)" in refused(
        tmp_path, FLEET + with_schedules(friday_night, few)
    )
    loaded(tmp_path, FLEET + with_schedules(friday_night.replace("04:00", "24:00"), few))
    text = refused(tmp_path, FLEET + changed("min_agents: 2", "warm_executors: 21"))
    assert "pools.cpu.schedules: on Monday at 08:00 Europe/Berlin warm_executors (21) exceeds max_agents x executors (20)" in text


def test_a_schedule_that_raises_the_maximum_makes_room_for_a_minimum_of_the_same_hours(tmp_path):
    day = "{from: 06:00, to: 20:00, time_zone: UTC, max_agents: 6}"
    noon = "{from: 11:00, to: 13:00, time_zone: UTC, min_agents: 6}"
    loaded(tmp_path, FLEET + with_schedules(day, noon))
    assert "on Monday at 20:00 UTC min_agents (6)" in refused(tmp_path, FLEET + with_schedules(day, noon.replace("13:00", "21:00")))


def test_the_first_instant_of_a_week_is_looked_at_like_the_others(tmp_path):
    monday = "{days: [mon], from: 00:00, to: 24:00, time_zone: UTC, %s}"
    text = FLEET + with_schedules(monday % "min_agents: 3", monday % "max_agents: 1")
    assert "on Monday at 00:00 UTC min_agents (3) exceeds max_agents (1)" in refused(tmp_path, text)


def a_night(zone, min_agents=4):
    return f"{{from: 22:00, to: 06:00, time_zone: {zone}, min_agents: {min_agents}}}"


def test_minima_of_several_pools_count_together_only_where_their_hours_meet(tmp_path):
    apart = FLEET + with_schedules(a_night("Europe/Berlin")) + OTHER + with_schedules(a_night("America/Los_Angeles"))
    together = FLEET + with_schedules(a_night("Europe/Berlin")) + OTHER + with_schedules(a_night("Europe/London"))
    loaded(tmp_path, apart)  # nine hours, and eight while only one of the two has summer time
    assert "limits.max_usd_per_hour ($20.00): on " in refused(tmp_path, together)
    few = together.replace("max_agents: 10,", "max_agents: 7,").replace("max_usd_per_hour: 20", "max_usd_per_hour: 100")
    assert ":3:22: limits.max_agents (7): on " in refused(tmp_path, few)
    assert "the min_agents of cpu, gpu come to 8" in refused(tmp_path, few)


def test_the_month_counts_minima_by_their_hours(tmp_path):
    text = FLEET + with_schedules(OFFICE)
    pool = loaded(tmp_path, text).pools["cpu"]
    assert average(pool, lambda one: one.min_agents) == pytest.approx(2 * 50 / 168)
    assert warnings_of(check(yaml.safe_load(text.replace("08:00", "'08:00'").replace("18:00", "'18:00'")), "here")) == []


def test_the_schema_knows_schedules():
    schedule = fleet_schema()["$defs"]["ScheduleSettings"]
    assert schedule["required"] == ["from", "to", "time_zone"]
    assert schedule["properties"]["days"]["items"]["enum"] == ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
