"""What is remembered has two writers: `learn` makes and changes a memory, `lessons` what was learned; no other module does."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "layers" / "core" / "autoscaler"
# The state's adapter reads it, and counts its versions; who saves it several times in a pass counts on.
WRITERS = {"domain/learn.py", "domain/lessons.py", "domain/facts/memory.py", "adapters/dynamodb.py", "ports.py", "control/apply.py"}
MAKES_MEMORY = re.compile(r"\b(Memory|Learned)\((?!\))|replace\(\s*(situation\.)?(memory|learned)\b")


def test_only_learn_writes_what_is_remembered():
    writers = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if MAKES_MEMORY.search(file.read_text(encoding="utf-8"))}
    assert "domain/learn.py" in writers
    assert writers <= WRITERS
