"""The model of a build that is spread over instances, against what Baserock measured and against the world."""

import pytest

from benchmarks.baserock import BASEROCK, INSTANCES, as_played, as_trace, cache_share, fit


@pytest.mark.parametrize("scenario", BASEROCK, ids=lambda scenario: scenario.name)
def test_a_fit_is_exact_where_it_was_fitted(scenario):
    model = fit(scenario, cache_share())
    assert model.miss(scenario) == pytest.approx(0.0)
    assert model.seconds(scenario, 1) == pytest.approx(scenario.single)


def test_the_result_is_ready_before_it_is_stored():
    assert cache_share() * 1173.0 == pytest.approx(516.0 - 428.0)


@pytest.mark.parametrize(("instances", "seconds"), [(1, "single"), (INSTANCES, "six")])
def test_played_in_the_world_it_takes_what_was_measured_and_a_boot(instances, seconds):
    scenario = BASEROCK[1]
    played = as_played(scenario, instances, "static")
    assert played["finished"] == played["jobs"]
    assert 0.0 < played["done_after_s"] - getattr(scenario, seconds) < 300.0


def test_on_one_instance_nothing_goes_through_the_cache():
    stages = {row.stage for row in as_trace(BASEROCK[0], fit(BASEROCK[0], cache_share()), spread=False).rows}
    assert stages == {"head", "tasks"}
