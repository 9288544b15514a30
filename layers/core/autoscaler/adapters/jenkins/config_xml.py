"""Edits labels, mode and executors in a node's ``config.xml``, and keeps every other byte as Jenkins wrote it.

Not by an XML parser: Jenkins declares XML 1.1, which Python's does not read, and what it wrote must come back as it was.
"""

import re
from collections.abc import Collection
from html import escape, unescape

from autoscaler.errors import ConflictError, TransientError

# XStream writes the node's own fields with two blanks before them (recorded: c22); those of a property stand further in.
_LABEL = re.compile(rb"(?m)^  (?:<label>[^<]*</label>|<label/>)\r?$")
_MODE = re.compile(rb"(?m)^  <mode>(?:NORMAL|EXCLUSIVE)</mode>\r?$")
_EXECUTORS = re.compile(rb"(?m)^  <numExecutors>[0-9]+</numExecutors>\r?$")
_MARK = re.compile(rb"(?m)^  <temporaryOfflineCause\b")


def relabelled(document: bytes, labels: Collection[str], *, instead_of: Collection[str], exclusive: bool) -> bytes:
    """Replace labels and the mode in a node's document.

    What else it is labelled with stays; labels that a plugin finds by itself do not stand here, and are not written down.

    `ConflictError` where it holds an offline mark, which a later one would erase; `TransientError` where it is not understood.
    """
    if _MARK.search(document):
        raise ConflictError("somebody marked the node offline meanwhile")
    others = set(_labels_in(document)) - set(instead_of)
    text = escape(" ".join(sorted({*labels, *others})), quote=False).encode()
    document = _replaced(_LABEL, b"  <label>" + text + b"</label>", document, "label")
    return _replaced(_MODE, b"  <mode>" + (b"EXCLUSIVE" if exclusive else b"NORMAL") + b"</mode>", document, "mode")


def with_executors(document: bytes, executors: int) -> bytes:
    """Replace the number of executors in a node's document; `TransientError` where it is not understood."""
    return _replaced(_EXECUTORS, f"  <numExecutors>{executors}</numExecutors>".encode(), document, "numExecutors")


def _labels_in(document: bytes) -> list[str]:
    found = _LABEL.search(document)
    return unescape(re.sub(rb"<[^>]*>", b"", found[0]).decode()).split() if found else []


def _replaced(pattern: re.Pattern[bytes], line: bytes, document: bytes, what: str) -> bytes:
    found = pattern.findall(document)
    if len(found) != 1:
        raise TransientError(f"the node's config.xml has {len(found)} {what}s where one was expected")
    return pattern.sub(lambda _: line, document)
