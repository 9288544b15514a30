"""`why JOB` begins with one sentence that says why the job waits; the facts behind it follow, each once."""

import pytest

from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_memory,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_item,
    beacons,
)
from support.told import explain


def stages(number=13, job="mx/login", **facts):
    about = {"label": "gpu", "run": f"job/{job.replace('/', '/job/')}/4"} | facts
    return [an_item(n, job=job, waiting_seconds=90.0 + 60 * n, signature=f"Stage {n}", **about) for n in range(number)]


def busy(number, job="other", **facts):
    return an_agent(number, pool="gpu", builds=(a_build(job=job, elapsed_seconds=120.0, **facts),))


def asked(items, *agents, pool=None, overrides=None, limits=None, job="mx/login", named=None, **view):
    fleet = a_fleet(pool or a_pool("gpu", max_agents=2), a_pool("cpu"), **limits or {})
    snapshot = a_snapshot(
        a_view(*(node for _, node in agents), *beacons(fleet)[1:], items=tuple(items), **view),
        records=tuple(record for record, _ in agents),
        memory=a_memory(windows=an_empty_window()),
        overrides=overrides or Overrides(),
    )
    return explain(snapshot, fleet, job, named)


def test_a_full_pool_is_the_answer_with_its_limit_and_the_time_of_the_next_executor():
    agents = busy(1, estimate_seconds=600.0), busy(2, estimate_seconds=900.0)
    answer, *facts = asked(stages(), *agents)
    assert answer == (
        "13 stages wait: gpu is full (2 of 2 agents, max_agents). The next executor is expected in about 8 min, at 08:08 UTC."
    )
    assert len(facts) <= 6
    assert len(set(facts)) == len(facts)
    assert facts[0] == "they wait for gpu on main, for 90 s to 14 min so far; gpu may serve them"
    assert not any("max-agents" in fact for fact in facts)


def test_a_time_that_nobody_knows_is_not_promised():
    assert asked(stages(2), busy(1), busy(2))[0] == (
        "2 stages wait: gpu is full (2 of 2 agents, max_agents). Nobody knows when the next executor is free."
    )


def test_a_single_build_is_one_build_and_a_name_that_was_not_typed_is_said():
    build = an_item(1, job="mx/login", label="gpu", waiting_seconds=90.0)
    assert asked([build], busy(1), busy(2), named="login")[0].startswith("1 build of mx/login waits: gpu is full (2 of 2 agents")


@pytest.mark.parametrize(
    ("limits", "because"),
    [
        ({"max_agents": 2}, "the fleet is full (2 of 2 agents, limits.max_agents)"),
        ({"max_usd_per_hour": 6.5}, "another agent of gpu would cost more than the fleet may, $6.50 an hour (max_usd_per_hour)"),
        ({"max_launches_per_hour": 0}, "the fleet has launched 0 agents within the hour (max_launches_per_hour)"),
    ],
)
def test_a_limit_of_the_fleet_is_the_answer(limits, because):
    answer, *_ = asked(stages(2), busy(1), busy(2), pool=a_pool("gpu", max_agents=20), limits=limits)
    assert answer.startswith(f"2 stages wait: {because}. ")


def test_a_person_who_holds_the_pool_is_the_answer_before_any_limit():
    hold = Hold(scope=Scope.POOL, name="gpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="driver")
    facts = asked(stages(2), busy(1), busy(2), overrides=Overrides(holds=(hold,)))
    assert facts[0].startswith("2 stages wait: pool gpu is on hold for another 10 min by ada: driver.")
    assert sum("ada" in fact for fact in facts) == 1


def test_agents_that_are_launched_for_it_are_the_answer():
    answer, *_ = asked(stages(2), pool=a_pool("gpu", max_agents=20))
    assert answer == "2 stages wait: 2 agents of gpu are launched now. The next executor is expected in about 3 min, at 08:03 UTC."


def test_a_free_executor_is_the_answer():
    answer, *_ = asked(stages(1), an_agent(1, pool="gpu"))
    assert answer == "1 stage waits: an executor of gpu is free, and Jenkins starts it within seconds."


def test_several_causes_are_each_said_with_their_number():
    answer, *_ = asked([*stages(3), an_item(9, job="mx/login", run="job/mx/4", label="sparc", waiting_seconds=60.0)], busy(1), busy(2))
    assert answer.startswith("4 stages wait: 3 because gpu is full (2 of 2 agents, max_agents); 1 because no pool of main serves sparc.")


def test_builds_that_run_beside_those_that_wait_are_counted():
    answer, *facts = asked(stages(2), busy(1, job="mx/login"), busy(2))
    assert answer.endswith(" 1 other runs.")
    assert "mx/login (for 2 min so far) runs on gpu-1 of gpu" in facts


def test_quiet_mode_is_the_answer():
    item = an_item(1, job="mx/login", label="gpu", in_quiet_mode=True, buildable=False)
    answer, *_ = asked([item], quieting_down=True, quiet_reason="backup")
    assert answer == "1 build waits: main is in quiet mode (backup)."
