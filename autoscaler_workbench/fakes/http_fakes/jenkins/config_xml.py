"""Writes a node's ``config.xml`` as Jenkins 2.504.3 does (recording c22), reads changes from a new one, and reads the form of a node."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from html import escape
from typing import Any

from autoscaler_workbench.fakes.world.jenkins.nodes import Node

_MARK = """  <temporaryOfflineCause class="{cause}">
    <timestamp>0</timestamp>
    <userId>{user}</userId>
    <message>{reason}</message>
  </temporaryOfflineCause>
"""
_SLAVE = """<?xml version="1.1" encoding="UTF-8"?>
<slave>
{mark}  <name>{name}</name>
  <description>{description}</description>
  <remoteFS>{remote_dir}</remoteFS>
  <numExecutors>{executors}</numExecutors>
  <mode>{mode}</mode>
  <retentionStrategy class="hudson.slaves.RetentionStrategy$Always"/>
  <launcher class="hudson.slaves.JNLPLauncher">
    <webSocket>true</webSocket>
  </launcher>
  <label>{labels}</label>
  <nodeProperties/>
</slave>
"""
_HEAVY = "hudson.plugins.heavy__job.HeavyJobProperty"


def job_config_xml(weight: int | None) -> str:
    """Write down of a job what anybody reads: the weight that the Heavy Job plugin gives it."""
    heavy = f'<{_HEAVY} plugin="heavy-job@1.1">\n      <weight>{weight}</weight>\n    </{_HEAVY}>' if weight else ""
    return f"<?xml version='1.1' encoding='UTF-8'?>\n<project>\n  <properties>\n    {heavy}\n  </properties>\n</project>"


def node_of_form(name: str, form: Mapping[str, Any]) -> Node:
    """Make the node that a form describes."""
    return Node(
        name=name,
        labels=tuple(str(form.get("labelString", "")).split()),
        executors=int(form.get("numExecutors", 1)),
        exclusive=form.get("mode") == "EXCLUSIVE",
        description=str(form.get("nodeDescription", "")),
        remote_dir=str(form.get("remoteFS", "")),
    )


def config_xml(node: Node) -> bytes:
    """Write a node down."""
    marked = node.temporarily_offline
    return _SLAVE.format(
        mark=_MARK.format(cause=node.cause, user=escape(node.user), reason=escape(node.reason)) if marked else "",
        name=escape(node.name),
        description=escape(node.description),
        remote_dir=escape(node.remote_dir),
        executors=node.executors,
        mode="EXCLUSIVE" if node.exclusive else "NORMAL",
        labels=escape(" ".join(node.labels)),
    ).encode()


def read_config_xml(body: bytes) -> tuple[tuple[str, ...], bool, int]:
    """Read the labels, whether the mode is exclusive, and the executors. Python's parser knows no XML 1.1, which Jenkins declares."""
    root = ET.fromstring(re.sub(rb"^<\?xml[^>]*\?>", b"", body))  # noqa: S314 - from our own client
    labels = tuple((root.findtext("label") or "").split())
    return labels, root.findtext("mode") == "EXCLUSIVE", int(root.findtext("numExecutors") or 1)
