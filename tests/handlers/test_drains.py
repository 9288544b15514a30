"""`drain` against the real handlers: whom it is about, what becomes of the agents, and how to keep them."""

import pytest

from support.asked import command, served, told
from support.deployed import deployed_in_memory


@pytest.fixture
def here():
    with deployed_in_memory() as stood, served(stood, "scale_up", "scale_down", "operate"):
        yield stood


def submit(here, label, count=1):
    for number in range(count):
        here.world.controllers["main"].submit(f"job-{label}-{number}", label, 600.0)


def agents_of(here, pool):
    return sorted(node.name for node in here.world.controllers["main"].nodes.values() if node.name.startswith(f"{pool}-"))


def test_drain_says_what_becomes_of_agents_and_how_to_keep_them(here):
    command(here, "launch", "utility", "2", "--keep-minutes", "300")
    here.pass_minutes(8)
    submit(here, "utility")
    here.pass_minutes(1)
    drained = command(here, "drain", "utility", "--count", "2", "--reason", "old")
    assert drained.exit_code == 0, drained.output
    nodes = agents_of(here, "utility")
    *_, first, second, others, keep = drained.stdout.splitlines()
    said = {first.partition(" ")[0]: first, second.partition(" ")[0]: second}
    assert sorted(said) == nodes
    ends = {
        "takes no new builds; it is idle: within minutes it is terminated, with everything on its disk",
        "takes no new builds; once its 1 build (job-utility-0) has ended, it is terminated, with everything on its disk",
    }
    assert {line.partition(" ")[2] for line in said.values()} == ends
    assert others == "jobs that wait get other agents meanwhile; to prevent that: autoscaler hold"
    assert keep == f"to keep them: autoscaler resume --node {nodes[0]} --node {nodes[1]}"
    assert command(here, *keep.partition("autoscaler ")[2].split()).exit_code == 0
    assert {node.offline for name, node in here.world.controllers["main"].nodes.items() if name in nodes} == {False}


def test_drain_of_the_fleet_must_be_said_and_tells_how_to_bring_all_back(here):
    command(here, "launch", "utility", "1", "--keep-minutes", "300")
    here.pass_minutes(8)
    would = command(here, "drain", "--fleet", "--dry-run")
    assert would.stdout.splitlines()[-1] == "to keep it then: autoscaler resume --fleet"
    assert told(here, "drain", "--fleet")["plan"]["steps"][0]["outcome"] == "done"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give what to drain: nodes, --pool or --controller; or --fleet"),
        (["--count", "3"], "give --pool, too"),
        (["a", "b", "--count", "3"], "give --pool, too"),
        (["a", "--pool", "utility"], "nodes are given alone, without pool"),
        (["--fleet", "--pool", "utility"], "give it alone, without pool"),
    ],
)
def test_a_drain_that_makes_no_sense_is_wrong_usage_and_no_failed_call(here, words, said):
    refused = command(here, "drain", *words)
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.replace("│", "").split())


def test_a_pool_in_place_of_a_node_is_told_the_option(here):
    drained = command(here, "drain", "utility")
    assert (drained.exit_code, "utility is a pool: autoscaler drain --pool utility" in drained.stdout) == (1, True)
