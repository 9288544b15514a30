"""The table of deadlines: one row fits each state of record, instance and node; every row is met, and says what it should."""

from itertools import product

import pytest

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState
from autoscaler.domain.situation.agents import Phase
from autoscaler.domain.situation.deadlines import AGENT_ROWS
from autoscaler.domain.situation.other_deadlines import OTHER_ROWS
from autoscaler.domain.situation.rows import Circumstances, row_of
