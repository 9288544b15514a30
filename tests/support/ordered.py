"""Orders of builds as `operate` tells of them, and somebody who answers for it."""

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from autoscaler.domain.facts.started_builds import Part, RunOrder, Target, Try, TryState
from autoscaler.domain.report.ordered import entry_of
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer

NOW = 1_800_000_000.0


def a_part(verdict=None, *, value="A10G", state=None, tries=1, controller="main", why=""):
    """One run on a pool; ended with a verdict, or in a state, or not started yet."""
    state = TryState.ENDED if verdict else state
    times = {"began_at": NOW - 500} if state in {TryState.RUNNING, TryState.ENDED} else {}
    last = Try(id="run-1.1.1", state=state, at=NOW - 600, verdict=verdict, why=why, **times) if state else None
    if last and times:
        last = Try(**asdict(last) | {"run": "job/kernel/7", "node": "gpu-0ab1", "ended_at": NOW - 60 if verdict else None})
    target = Target(controller=controller, pool=f"gpu-{value.lower()}", label=f"gpu-{value.lower()}", value=value)
    return Part(target=target, tries=(last,) * tries if last else ())


def an_order(*parts, id_="run-1", **facts):
    """An order as the function tells of it; it has ended where all its runs have, unless it says otherwise."""
    ended_at = NOW - 60 if all(part.verdict for part in parts) else None
    given = {"job": "nightly/kernel", "parameters": (("K", "V"),), "label_parameter": "AGENT_LABEL", "run_parameter": "AUTOSCALER_RUN_ID"}
    given |= {"by": "alice", "reason": "flaky?", "created_at": NOW - 600, "ended_at": ended_at, "ranking": ("gpu-a10g: starts at once",)}
    return asdict(entry_of(RunOrder(id=id_, parts=parts, **given | facts), NOW))


def told(*orders, action="run", dry_run=False):
    """The answer of the function."""
    return {"action": action, "dry_run": dry_run, "now_at": NOW, "runs": list(orders)}


@dataclass
class Canned:
    """Stands in for `operate`: gives one answer after the other, the last one again and again, and keeps what it was asked."""

    server: ApiServer
    answers: list
    asked: list = field(default_factory=list)

    def invoke(self, _function, event):
        self.asked.append(event)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return json.loads(json.dumps(answer))


@contextmanager
def answering(*answers):
    """Answer for the function."""
    with ApiServer() as server:
        server.functions = LambdaApi(frozenset({"operate"}))
        yield Canned(server, list(answers))


def refused(line):
    """What the function says where it refuses."""
    return {"refused": f"event refused: {line}"}
