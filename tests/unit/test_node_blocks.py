"""Node blocks of pipelines: which block of a run's graph an executor showed, and what cannot be told."""

from dataclasses import dataclass, field, replace
from typing import Any

from autoscaler.domain.facts.runs import BlockEnd, BuildResult, Graphs, NodeBlock, RunEnd, RunGraph
from autoscaler.domain.facts.snapshot import OfflineCause
from autoscaler.domain.situation.builds import TOLD_WITHIN_SECONDS, gone_blocks, learn_blocks, runs_to_read
from support.builders import NOW, a_build, a_learned, a_sighting, a_view, an_agent

RUN, MINUTE = "job/ci/7", 60.0
GOOD, BAD = BlockEnd.SUCCEEDED, BlockEnd.FAILED


def a_block(*names, begun=1, end=None, ended=0):
    return NodeBlock(names=frozenset(names), begun_as=begun, end=end, ended_as=ended)


def a_graph(*blocks, **facts):
    last = max((max(block.begun_as, block.ended_as) for block in blocks), default=0)
    return RunGraph(**({"size": 3_000, "blocks": blocks, "last": last} | facts))


@dataclass
class Looked:
    """A controller that is looked at once a minute. ``ends``: of the last look."""

    learned: Any = field(default_factory=a_learned)
    now: float = NOW
    ends: list = field(default_factory=list)

    def look(self, *shown, graph=None, graphs=None, away=(), after=MINUTE):
        """See these blocks: node, executor, name; and read this graph of their run."""
        self.now += after
        nodes = []
        for number in (1, 2, 3):
            _, node = an_agent(number)
            builds = [
                a_build("ci", key=f"{node.name}/{executor}/{RUN}", run=RUN, signature=name, is_block=True)
                for on, executor, name in shown
                if on == number
            ]
            lost = {"offline": True, "cause": OfflineCause.LOST} if number in away else {}
            nodes.append(replace(node, builds=tuple(builds), idle=not builds, **lost))
        view = a_view(*nodes)
        found = graphs or Graphs(read={} if graph is None else {RUN: graph})
        keys = {build.key: node.name for node in nodes for build in node.builds}
        taught = learn_blocks(self.learned, view, keys, found, self.now)
        running = {key: a_sighting(job="ci", pool="cpu", since_at=self.now, node=node, run=RUN) for key, node in keys.items()}
        self.learned = replace(self.learned, blocks=taught.blocks, running=running, seen_at=self.now)
        self.ends = [(block.node, end) for block, end in taught.ends]
        return self

    @property
    def counts(self):
        return self.learned.blocks.counts

    @property
    def waiting(self):
        return len(self.learned.blocks.gone)


def test_what_runs_on_is_not_asked_about_and_what_left_is():
    looked = Looked().look((1, 0, "Test")).look((1, 0, "Test"))
    assert (looked.waiting, looked.ends) == (0, [])
    assert looked.look().waiting == 1
    assert runs_to_read(looked.learned.blocks.gone, looked.learned.blocks.runs, looked.now) == (RUN,)


def test_no_block_is_told_of_by_a_view_that_is_incomplete():
    looked = Looked().look((1, 0, "Test"))
    assert gone_blocks(looked.learned, a_view(problem="it broke"), NOW) == ()


def test_what_ended_while_an_executor_still_showed_the_name_is_another_block():
    looked = Looked().look((1, 0, "Test"), (2, 0, "Other"))
    first, second = a_block("Test", begun=4, end=BAD, ended=5), a_block("Test", begun=6, end=GOOD, ended=9)
    other = a_block("Other", begun=2, end=GOOD, ended=7)
    looked.look((1, 0, "Test"), graph=a_graph(first, replace(second, end=None, ended_as=0), other))
    looked.look((1, 0, "Test"))
    looked.look(graph=a_graph(first, second, other))
    assert looked.ends == [("cpu-1", GOOD)]


def test_what_has_one_block_alone_leaves_another_with_one():
    looked = Looked().look((1, 0, "All"), (2, 0, "Unit")).look((1, 0, "Unit"), (2, 0, "Unit"))
    outer, inner = a_block("All", "Unit", begun=2, end=GOOD, ended=9), a_block("Unit", begun=3, end=BAD, ended=7)
    looked.look(graph=a_graph(outer, inner))
    assert sorted(looked.ends) == [("cpu-1", GOOD), ("cpu-2", BAD)]


def test_two_that_have_the_same_block_alone_have_none():
    looked = Looked().look((1, 0, "Test"), (2, 0, "Test")).look(graph=a_graph(a_block("Test", end=BAD, ended=7)))
    assert (looked.ends, looked.counts.ambiguous, looked.waiting) == ([], 2, 0)


def test_a_block_that_no_executor_shows_and_that_goes_on_is_waited_for():
    """After a restart it waits for its node, in the queue."""
    running = a_block("Test", begun=6)
    attempt = a_block("Test", begun=2, end=BAD, ended=5)
    looked = Looked().look((1, 0, "Test")).look(graph=a_graph(attempt, running))
    assert (looked.ends, looked.waiting) == ([], 1)
    looked.look((1, 3, "Test"), graph=a_graph(running))
    assert (looked.ends, looked.waiting, looked.counts.unassigned) == ([], 0, 0)
    looked.look(graph=a_graph(replace(running, end=GOOD, ended_as=9)))
    assert looked.ends == [("cpu-1", GOOD)]


def test_what_nothing_tells_for_an_hour_is_given_up():
    looked = Looked().look((1, 0, "Test"))
    for _ in range(int(TOLD_WITHIN_SECONDS / MINUTE)):
        looked.look(graphs=Graphs(failed=frozenset({RUN})))
    assert (looked.waiting, looked.counts.unmatched) == (1, 0)
    looked.look()
    assert (looked.waiting, looked.counts.unmatched) == (0, 1)


def test_what_fails_to_be_read_does_not_keep_others_from_their_turn():
    looked = Looked().look((1, 0, "Test")).look(graphs=Graphs(failed=frozenset({RUN})))
    [stuck] = looked.learned.blocks.gone
    fresh = replace(stuck, run="job/other/1", tries=0, gone_at=NOW + 9_999.0)
    assert runs_to_read([stuck, fresh], {}, NOW) == ("job/other/1", RUN)


def test_a_large_graph_is_read_again_after_a_while():
    looked = Looked().look((1, 0, "a"), (2, 0, "b"))
    looked.look((2, 0, "b"), graph=a_graph(a_block("a", end=GOOD, ended=3), size=100_000))
    looked.look()
    gone, runs = looked.learned.blocks.gone, looked.learned.blocks.runs
    assert runs_to_read(gone, runs, looked.now) == ()
    assert runs_to_read(gone, runs, looked.now + 5 * MINUTE) == (RUN,)


def test_a_run_too_large_to_be_read_is_not_tried_again():
    looked = Looked().look((1, 0, "a"), (2, 0, "b"))
    looked.look((2, 0, "b"), graph=a_graph(cut=True, too_large=True))
    looked.look()
    assert (looked.counts.too_large, looked.waiting) == (2, 0)
    assert runs_to_read(gone_blocks(looked.learned, a_view(), NOW), looked.learned.blocks.runs, looked.now) == ()


def test_an_executor_that_shows_no_name_says_nothing_against_a_block():
    """Jenkins leaves the name out if it takes too long to find."""
    looked = Looked().look((1, 0, "")).look((1, 0, "Unit")).look((1, 0, ""))
    looked.look(graph=a_graph(a_block("Unit", end=BAD, ended=5), a_block("Lint", end=GOOD, ended=6)))
    assert looked.ends == [("cpu-1", BAD)]


def test_names_that_no_block_has_are_of_nobody():
    looked = Looked().look((1, 0, "Test")).look(graph=a_graph(a_block("Unit", end=BAD, ended=5)))
    assert (looked.ends, looked.counts.unmatched) == ([], 1)


def test_what_left_with_its_agent_is_lost():
    for end in (BAD, BlockEnd.ABORTED):
        looked = Looked().look((1, 0, "Test")).look(graph=a_graph(a_block("Test", end=end, ended=5)), away=(1,))
        assert looked.ends == [("cpu-1", BlockEnd.LOST)]


def test_without_a_graph_the_runs_end_is_that_of_what_ran_last():
    over = a_graph(shows_steps=False, end=RunEnd(result=BuildResult.FAILED))
    assert Looked().look((1, 0, "")).look(graph=over).ends == [("cpu-1", BAD)]
    going_on = Looked().look((1, 0, "")).look(graph=a_graph(shows_steps=False))
    assert (going_on.ends, going_on.counts.unmatched) == ([], 1)


def test_a_deleted_run_is_of_nobody():
    looked = Looked().look((1, 0, "Test")).look(graphs=Graphs(read={RUN: None}))
    assert (looked.ends, looked.counts.run_gone, looked.waiting) == ([], 1, 0)


def test_blocks_that_followed_each_other_on_one_executor_are_parted():
    looked = Looked().look((1, 0, "Build")).look((1, 0, "Test"))
    looked.look(graph=a_graph(a_block("Build", begun=1, end=GOOD, ended=3), a_block("Test", begun=4, end=BAD, ended=6)))
    assert looked.ends == [("cpu-1", GOOD), ("cpu-1", BAD)]


def test_a_block_that_ended_before_another_ones_graph_was_read_keeps_its_end():
    """The executor shows the next block of its run already, so that it is found out when that one leaves."""
    build, other = a_block("Build", begun=1, end=GOOD, ended=3), a_block("Other", begun=1, end=GOOD, ended=4)
    looked = Looked().look((1, 0, "Build"), (2, 0, "Other"))
    looked.look((1, 0, "Test"), graph=a_graph(build, other, a_block("Test", begun=5)))
    assert looked.ends == [("cpu-2", GOOD)]
    looked.look((1, 0, "Test"))
    looked.look(graph=a_graph(build, other, a_block("Test", begun=5, end=BAD, ended=8)))
    assert looked.ends == [("cpu-1", GOOD), ("cpu-1", BAD)]
