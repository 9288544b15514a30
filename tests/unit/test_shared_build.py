"""A build over one cache, piece by piece: tasks, cache, claims, one builder, and the prediction."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest

from autoscaler_workbench.shared_build.builder import LOOK_SECONDS, Builder
from autoscaler_workbench.shared_build.cache import ArtifactDiffersError, Cache, Link
from autoscaler_workbench.shared_build.claims import Claims
from autoscaler_workbench.shared_build.graph import SHAPES, TASKS, Task, artifacts, draw
from autoscaler_workbench.shared_build.predict import Pace, predict

MANY = 16


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now, self.slept = 100.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def cache(tmp_path, time):
    return Cache(tmp_path, Link(tmp_path / "link", 1000.0, time, time.sleep))


def at_once(acts):
    """Let all begin at the same moment; return what they return."""
    barrier = Barrier(len(acts))

    def one(act):
        barrier.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_seed_draws_the_same_tasks_each_time_and_each_comes_after_what_it_needs(shape):
    tasks = draw(SHAPES[shape], 1, TASKS, 1.0)
    assert tasks == draw(SHAPES[shape], 1, TASKS, 1.0) != draw(SHAPES[shape], 2, TASKS, 1.0)
    assert len({task.name for task in tasks}) == TASKS
    before = set()
    for task in tasks:
        assert before.issuperset(task.needs)
        before.add(task.name)
    longest = longest_paths(tasks, lambda _: 1)
    assert max(longest.values()) == SHAPES[shape].head + SHAPES[shape].layers
    assert sum(len(task.needs) > 1 for task in tasks) > TASKS // 4


def test_an_artifact_depends_on_every_input_and_on_their_order():
    task = draw(SHAPES["wide"], 1, 120, 1.0)[-1]
    one = task.artifact([b"a", b"b"])
    assert one == task.artifact([b"a", b"b"])
    assert len({one, task.artifact([b"b", b"a"]), task.artifact([b"ab"]), task.artifact([b"a"])}) == 4


def test_the_first_to_publish_wins_and_a_late_one_is_told(cache):
    assert cache.publish("glibc", b"whole")
    assert not cache.publish("glibc", b"whole")
    assert cache.contents() == {"glibc": b"whole"}


def test_of_many_who_publish_at_once_one_is_first(cache):
    assert sorted(at_once([lambda: cache.publish("glibc", b"whole")] * MANY)) == [False] * (MANY - 1) + [True]


def test_a_task_that_comes_to_other_bytes_is_refused_and_the_first_stay(cache):
    cache.publish("glibc", b"whole")
    with pytest.raises(ArtifactDiffersError, match="glibc: built twice, with different bytes"):
        cache.publish("glibc", b"other")
    assert cache.read("glibc") == b"whole"


def test_what_a_killed_writer_left_is_no_artifact(cache, tmp_path):
    (tmp_path / "partial" / "glibc").write_bytes(b"who")
    assert not cache.has("glibc")
    assert cache.published() == set()
    assert cache.publish("glibc", b"whole")


def test_transfers_come_one_after_the_other_whoever_asks(tmp_path, time):
    slept = []
    links = [Link(tmp_path / "link", 1000.0, time, slept.append) for _ in range(2)]
    for link in (*links, links[0]):
        link.carry(500)
    assert slept == pytest.approx([0.5, 1.0, 1.5])
    time.now += 10.0
    links[1].carry(500)
    assert slept[-1] == pytest.approx(0.5)


def test_a_claim_keeps_others_away_until_it_has_run_out(tmp_path, time):
    ours, theirs = (Claims(tmp_path, name, 2.0, time) for name in ("ours", "theirs"))
    assert ours.take("glibc").taken_over_from is None
    assert theirs.take("glibc") is None
    assert theirs.take("gcc") is not None
    time.now += 1.9
    assert theirs.take("glibc") is None
    time.now += 0.1
    assert theirs.take("glibc").taken_over_from == "ours"
    assert ours.take("glibc") is None


def test_of_many_who_see_a_claim_run_out_one_takes_it_over(tmp_path, time):
    Claims(tmp_path, "killed", 2.0, time).take("glibc")
    time.now += 2.0
    others = [Claims(tmp_path, f"builder-{number}", 2.0, time) for number in range(MANY)]
    taken = at_once([lambda claims=claims: claims.take("glibc") for claims in others])
    assert [claim.taken_over_from for claim in taken if claim] == ["killed"]


def test_a_builder_that_was_only_slow_finds_itself_second(tmp_path, time, cache):
    slow, quick = (Claims(tmp_path, name, 2.0, time) for name in ("slow", "quick"))
    slow.take("glibc")
    time.now += 3.0
    assert quick.take("glibc").taken_over_from == "slow"
    assert cache.publish("glibc", b"whole")
    assert not cache.publish("glibc", b"whole")


def test_without_claims_everybody_may_build_everything(tmp_path, time):
    assert all(Claims(tmp_path, name, 0.0, time).take("glibc") for name in ("ours", "theirs"))


def a_builder(tmp_path, time, cache, tasks, built):
    return Builder(
        name="ours", tasks=tasks, cache=cache, claims=Claims(tmp_path, "ours", 2.0, time), log=built.append, clock=time, sleep=time.sleep
    )


def test_a_builder_alone_builds_each_task_once_and_fetches_nothing(tmp_path, time, cache):
    tasks, built = draw(SHAPES["wide"], 1, 120, 0.0), []
    a_builder(tmp_path, time, cache, tasks, built).run(1, Random(1))
    assert sorted(one.task for one in built) == sorted(task.name for task in tasks)
    assert all(one.first and not one.fetch_seconds for one in built)
    assert cache.contents() == artifacts(tasks)


def test_a_builder_fetches_what_another_one_built_and_builds_the_rest(tmp_path, time, cache):
    tasks, built = draw(SHAPES["wide"], 1, 120, 0.0), []
    for name, content in artifacts(tasks[:50]).items():
        cache.publish(name, content)
    a_builder(tmp_path, time, cache, tasks, built).run(1, Random(1))
    assert len(built) == len(tasks) - 50
    assert any(one.fetch_seconds for one in built)
    assert cache.contents() == artifacts(tasks)


def test_a_builder_ends_with_what_a_task_raised_though_other_slots_wait_for_it(tmp_path, time, cache):
    class Broken(Task):
        def artifact(self, inputs):
            raise OSError("no space left")

    first = Broken(name="head", needs=(), wait_seconds=0.0, rounds=1, size=1)
    last = Task(name="last", needs=("head",), wait_seconds=0.0, rounds=1, size=1)
    with pytest.raises(OSError, match="no space left"):
        a_builder(tmp_path, time, cache, (first, last), []).run(3, Random(1))


def pace(tasks, bytes_per_second):
    return Pace(
        build_seconds={task.name: task.wait_seconds for task in tasks},
        more_seconds=0.001,
        builder_seconds=0.5,
        link_bytes_per_second=bytes_per_second,
    )


def longest_paths(tasks, seconds):
    """How long the longest path is that ends in each task."""
    longest = {}
    for task in tasks:
        longest[task.name] = seconds(task) + max((longest[name] for name in task.needs), default=0)
    return longest


def predicted(tasks, bytes_per_second, instances, jobs):
    return predict(tasks, pace(tasks, bytes_per_second), instances=instances, jobs=jobs, random=Random(1))


def test_on_one_slot_the_prediction_is_the_sum():
    tasks = draw(SHAPES["mixed"], 1, TASKS, 1.0)
    expected = 0.5 + sum(task.wait_seconds + 0.001 + task.size / 1e6 for task in tasks)
    assert predicted(tasks, 1e6, 1, 1) == pytest.approx(expected, abs=LOOK_SECONDS)


def test_on_more_slots_than_are_ever_ready_the_prediction_is_the_longest_path():
    tasks = draw(SHAPES["deep"], 1, TASKS, 1.0)
    longest = max(longest_paths(tasks, lambda task: task.wait_seconds + 0.001).values())
    steps = SHAPES["deep"].head + SHAPES["deep"].layers
    assert 0.5 + longest <= predicted(tasks, 1e12, 1, 60) <= 0.5 + longest + (steps + 2) * LOOK_SECONDS


def test_where_the_wire_is_narrow_more_instances_take_longer():
    tasks = draw(SHAPES["wide"], 1, TASKS, 1.0)
    assert predicted(tasks, 5e6, 2, 8) < predicted(tasks, 5e6, 8, 8)
    assert predicted(tasks, 5e6, 2, 8) > sum(task.size for task in tasks) / 5e6
