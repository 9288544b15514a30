"""Jenkins' ``why`` in all its shapes."""

import pytest

from autoscaler.adapters.jenkins.parse import named_nodes, read_why
from autoscaler.domain.facts.snapshot import Wait

EXECUTOR = Wait(for_executor=True)


def label(text):
    return Wait(for_executor=True, label=text)


def nodes(*names, **facts):
    return Wait(for_executor=True, nodes=names, **facts)


@pytest.mark.parametrize(
    ("why", "wait"),
    [
        ("There are no nodes with the label ‘linux&&!gpu’", label("linux&&!gpu")),
        ("There are no nodes with the label ‘a ‘b’ c’", label("a ‘b’ c")),
        ("All nodes of label ‘win-offline’ are offline", label("win-offline")),
        ("All nodes of label 'win' are offline", label("win")),
        ("Waiting for next available executor", EXECUTOR),
        ("Waiting for next available executor on ‘a<->b’", Wait(for_executor=True, named="a<->b")),
        ("Waiting for next available executor on cislaveora-25", Wait(for_executor=True, named="cislaveora-25")),
        ("‘k-1’ is offline", nodes("k-1")),
        ("k-1 is offline", nodes("k-1")),
        ("‘k-1’ is not accepting tasks", nodes("k-1")),
        ("‘a’ is offline; ‘b’ is offline (3 times)", nodes("a", "b")),
        ("‘s-1’ is offline; ‘s-2’ doesn’t have label ‘s-1’; ‘s-3’ doesn’t have label ‘s-1’", nodes("s-1", label="s-1")),
        ("a doesn't have label linux", label("linux")),
        ("‘a’ is reserved for jobs with matching label expression; ‘b’ is reserved for jobs with matching label expression", EXECUTOR),
        ("a is reserved for jobs tied to it", EXECUTOR),
        ("‘Größe 1’ is offline", nodes("Größe 1")),
        ("‘" + "x" * 5000 + "’ is offline", nodes("x" * 5000)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_reads_what_waits_for_an_executor(why, wait):
    assert read_why(why) == wait


@pytest.mark.parametrize(
    "why",
    [
        "In the quiet period. Expires in 4.9 sec",
        "Finished waiting",
        "Build #1 is already in progress (ETA: N/A)",
        "Build #1,234 is already in progress (ETA: 3 min)",
        "Build 9589 is in progress",
        "A build is already in progress",
        "Blocked by ‘x’",
        "Jenkins is about to shut down",
        "Hudson is about to shut down",
        "Upstream project ‘x’ is already building",
        "???",
    ],
)
def test_knows_what_does_not_wait_for_an_executor(why):
    assert read_why(why) == Wait(for_executor=False)


@pytest.mark.parametrize(
    "why",
    [
        "",
        "‘x’ lacks permission to run on ‘y’",
        "Throttled by a plugin: too many builds on ‘cpu-1’",
        "Warte auf den nächsten freien Build-Prozessor",
    ],
)
def test_an_unknown_wording_is_no_demand(why):
    assert read_why(why) is None


def test_an_unknown_wording_still_names_its_nodes():
    assert named_nodes("Throttled: too many builds on ‘cpu-1’ (of cpu-10)", {"cpu-1", "cpu", "gpu-1"}) == ("cpu-1",)
