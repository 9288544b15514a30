"""An operator at the real command line, against the deployed stack."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging_root import ROOT
from rehearsal.plan import Plan


@dataclass(frozen=True, slots=True)
class Operator:
    """``tree``: the source tree whose command line it is."""

    plan: Plan
    tree: Path = ROOT

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command; return what it printed. `RuntimeError` if it ends with another status than expected."""
        command = [ROOT / ".venv" / "bin" / "autoscaler", *words]
        done = subprocess.run(
            command, cwd=self.plan.folder, env=self.plan.environment(self.tree), capture_output=True, text=True, check=False, timeout=900
        )
        with (self.plan.logs / "operator.log").open("a", encoding="utf-8") as log:
            log.write(f"$ autoscaler {' '.join(words)}\n{done.stdout}{done.stderr}\n")
        if done.returncode != status:
            raise RuntimeError(f"autoscaler {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def ask(self, *words: str, status: int = 0) -> Any:
        """Run a command with ``--json``."""
        return json.loads(self.run(*words, "--json", status=status))
