"""Other labels in a node's config.xml, of a real Jenkins 2.504.3."""

import json
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.controller import relabelled
from autoscaler.adapters.jenkins.parse import read_version
from autoscaler.errors import ConflictError, TransientError
from autoscaler_workbench.fakes.http_fakes.jenkins.config_xml import config_xml, read_config_xml
from autoscaler_workbench.fakes.world.jenkins.nodes import Node

OURS = ["mxnetlinux-cpu", "linux"]
RECORDINGS = Path(__file__).parents[1] / "recordings"


def document(name):
    return json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))["body"].encode()


def test_labels_and_mode_change_and_every_other_byte_stays():
    before = document("c22_node_config_xml")
    after = relabelled(before, ["b", "a"], instead_of=OURS, exclusive=False)
    assert after == before.replace(b"<label>mxnetlinux-cpu linux</label>", b"<label>a b</label>").replace(b"EXCLUSIVE", b"NORMAL")
    back = relabelled(after, OURS, instead_of=["a", "b"], exclusive=True)
    assert back == before.replace(b"mxnetlinux-cpu linux", b"linux mxnetlinux-cpu")


def test_a_label_that_is_not_ours_stays():
    after = relabelled(document("c22_node_config_xml"), ["a&b"], instead_of=["mxnetlinux-cpu"], exclusive=True)
    assert b"<label>a&amp;b linux</label>" in after
    assert b"<label>c linux</label>" in relabelled(after, ["c"], instead_of=["a&b"], exclusive=True)


def test_a_node_that_is_marked_offline_is_left_alone():
    with pytest.raises(ConflictError):
        relabelled(document("c22_node_config_xml_tempoffline"), ["a"], instead_of=OURS, exclusive=True)


def test_a_node_without_labels_gets_some_and_signs_are_escaped():
    bare = document("c22_node_config_xml").replace(b"<label>mxnetlinux-cpu linux</label>", b"<label></label>")
    assert b"  <label>a&amp;b</label>\n" in relabelled(bare, ["a&b"], instead_of=OURS, exclusive=True)


def test_the_number_of_executors_changes_and_every_other_byte_stays():
    before = document("c22_node_config_xml")
    after = relabelled(before, ["a"], instead_of=OURS, exclusive=True, executors=5)
    assert after == relabelled(before, ["a"], instead_of=OURS, exclusive=True).replace(
        b"  <numExecutors>1</numExecutors>", b"  <numExecutors>5</numExecutors>"
    )


def test_a_document_without_a_number_of_executors_is_not_sent_back():
    with pytest.raises(TransientError, match="0 numExecutors"):
        relabelled(b"<slave>\n</slave>", ["a"], instead_of=OURS, exclusive=True, executors=5)


def test_the_labels_of_a_property_are_not_the_node_s_own():
    inner = b"  <nodeProperties>\n    <some>\n      <label>inner</label>\n    </some>\n  </nodeProperties>"
    before = document("c22_node_config_xml").replace(b"  <nodeProperties/>", inner)
    assert b"<label>inner</label>" in relabelled(before, ["a"], instead_of=OURS, exclusive=True)


@pytest.mark.parametrize("broken", [b"", b"<html>proxy</html>", b"<slave>\n  <label>a</label>\n  <label>b</label>\n</slave>"])
def test_what_is_not_understood_is_not_sent_back(broken):
    with pytest.raises(TransientError):
        relabelled(broken, ["a"], instead_of=OURS, exclusive=True)


def test_the_stand_in_writes_what_a_real_one_does():
    node = Node(name="n-cpu-1", labels=("a", "b"), executors=1, exclusive=True, description="", remote_dir="/home/jenkins/agents/n-cpu-1")
    shown = config_xml(node)
    assert relabelled(shown, ["a", "b"], instead_of=["a", "b"], exclusive=True) == shown
    assert read_config_xml(document("c22_node_config_xml")) == (("mxnetlinux-cpu", "linux"), True, 1)
    ours, theirs = shown.decode().splitlines(), document("c22_node_config_xml").decode().splitlines()
    assert ours[:6] == theirs[:6]


@pytest.mark.parametrize(
    ("header", "version"), [("2.504.3", (2, 504, 3)), ("2.528", (2, 528)), ("2.541-SNAPSHOT (private)", (2, 541)), ("?", ()), (None, ())]
)
def test_a_version_is_read(header, version):
    assert read_version(header) == version
