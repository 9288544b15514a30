"""Writes a node's ``config.xml`` as Jenkins 2.504.3 does (recording c22), and reads what may be changed from a new one."""

import re
import xml.etree.ElementTree as ET
from html import escape

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
