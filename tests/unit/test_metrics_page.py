"""The page of metrics lists what is sent by default, and nothing else."""

import re

from autoscaler.domain.report.datum import ESSENTIAL
from packaging_root import ROOT


def test_the_page_lists_each_metric_that_is_sent_by_default():
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == ESSENTIAL
