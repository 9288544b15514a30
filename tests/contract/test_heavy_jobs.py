"""The Heavy Job plugin, as far as the stand-in knows it: where a weight stands, and that builds take so many executors."""

import pytest

from autoscaler.errors import ConfigError
from support.worlds import a_world_node, stand


@pytest.fixture(params=["http", "memory"])
def here(request):
    with stand(request.param) as opened:
        opened.jenkins.heavy = {"nightly/größe 1": 3}
        yield opened


def begin(here):
    here.world.move_to(here.world.timeline.now + 1.0)


def test_the_weight_is_read_from_the_jobs_configuration(here):
    here.jenkins.submit("nightly/größe 1", "cpu", 60.0)
    assert here.controller.heavy_weight("nightly/größe 1") == 3


def test_who_may_not_read_configurations_is_told_so(here):
    here.jenkins.submit("nightly/größe 1", "cpu", 60.0)
    here.api.lacks = frozenset({"hudson.model.Item.ExtendedRead"})
    with pytest.raises(ConfigError):
        here.controller.heavy_weight("nightly/größe 1")


def test_its_build_takes_so_many_executors_of_one_node_and_gives_them_back(here):
    here.jenkins.add_node(a_world_node("n-1", "cpu", executors=4))
    heavy = here.jenkins.submit("nightly/größe 1", "cpu", 60.0)
    light = [here.jenkins.submit("light", "cpu", 60.0) for _ in range(2)]
    begin(here)
    node = here.controller.node("n-1")
    assert (heavy.node, [build.node for build in light]) == ("n-1", ["n-1", None])
    assert sorted(build.job for build in node.builds) == ["", "", "light", "nightly/größe 1"]
    here.world.move_to(here.world.timeline.now + 90.0)
    assert here.controller.node("n-1").builds[0].job == "light"


def test_it_waits_until_as_many_are_free_at_once_and_light_ones_pass_it(here):
    here.jenkins.add_node(a_world_node("n-1", "cpu", executors=3))
    first = here.jenkins.submit("light", "cpu", 600.0)
    heavy = here.jenkins.submit("nightly/größe 1", "cpu", 60.0)
    later = here.jenkins.submit("light", "cpu", 60.0)
    begin(here)
    assert (first.node, heavy.node, later.node) == ("n-1", None, "n-1")
