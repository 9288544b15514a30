"""What IAM would say: requests, and the evaluator that decides them; deny by default."""

import json
import subprocess
from typing import Any

from packaging_root import ROOT

_HERE = ROOT / "tests" / "environment" / "iam"
Asked = tuple[str, str, str]  # action, resource, context as JSON: hashable


def asked(action: str, resource: str, **context: Any) -> Asked:
    return action, resource, json.dumps(context, sort_keys=True)


def decided(policies: list[Any], requests: list[Asked]) -> dict[Asked, str]:
    """Ask the evaluator many things at once."""
    assert (_HERE / "node_modules" / ".ready").exists(), "run `make test-all`, which installs the evaluator"
    document = [{"policies": policies, "action": a, "resource": r, "context": json.loads(c)} for a, r, c in requests]
    done = subprocess.run(["node", "decide.mjs"], cwd=_HERE, input=json.dumps(document), capture_output=True, text=True, check=True)
    return dict(zip(requests, json.loads(done.stdout), strict=True))
