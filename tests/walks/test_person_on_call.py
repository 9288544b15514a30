"""The walk of the person on call: from the message at night to jobs that run, in four commands, each of which names the next."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from autoscaler_workbench.cli.demo import MEND
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.world import break_boots
from support.deployed import deployed

BROKEN = "mxnetlinux-gpu"
ASLEEP_MINUTES = 40


class Night:
    """A deployment of which one pool's image is broken, and a person at a terminal of 80 columns."""

    def __init__(self, here):
        self.here, self.broken, self.said = here, {BROKEN}, ""
        here.server.functions = LambdaApi(frozenset({"scale_up", "operate", MEND}))
        break_boots(here.world, self.broken)
        jenkins = here.world.controllers["main"]
        self.builds = [jenkins.submit(f"unix-gpu/master-{number}", BROKEN, 600.0) for number in range(3)]

    def types(self, line):
        """Run a command, and remember what was said; return the exit code."""
        with ThreadPoolExecutor(1) as pool:
            terminal = {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "80", "AUTOSCALER_LOCAL": self.here.server.url}
            asking = pool.submit(lambda: CliRunner().invoke(app, line.split(), env=terminal))
            while not asking.done():
                self.here.server.functions.serve(self._answer, 0.02)
        ran = asking.result()
        self.said = re.sub(r"\x1b\[[0-9;]*m", "", ran.output)
        return ran.exit_code

    def _answer(self, function, event):
        if function != MEND:
            return self.here.invoke(function, event)
        self.broken.remove(event["pool"])
        return {"pool": event["pool"], "broken": sorted(self.broken)}

    def finished(self):
        return [build.ended for build in self.builds] == [Ended.FINISHED] * 3


@pytest.fixture
def night():
    with deployed() as here:
        yield Night(here)


@pytest.mark.long
def test_from_the_message_to_mended_in_four_commands(night):
    night.here.pass_minutes(ASLEEP_MINUTES)

    # The message: which pool, why, and what to type.
    [(subject, text)] = night.here.told()
    assert subject == f"[mxnet-ci] agents of {BROKEN} do not boot"
    assert "dracut: FATAL: no root device found" in text
    assert f"autoscaler why {BROKEN}" in text

    # 1. What is broken, since when, why, what is tried next, and what to type once it is mended.
    assert night.types("status") == 0
    first, last, following, mended, *pools = night.said.splitlines()
    assert re.fullmatch(rf"{BROKEN} has been broken for \d+ min: its last 3 boots failed", first)
    assert re.fullmatch(
        r"  the last was i-\w+; it did not register within 15 min; its console ended: dracut: FATAL: no root device found", last
    )
    assert re.fullmatch(r"  next: i-\w+ boots, launched \d+ min ago; others follow once one connects", following)
    assert mended == f"  once it is mended: autoscaler resume --breaker {BROKEN}"
    [row] = [line for line in pools if line.startswith(f"{BROKEN} ")]
    assert row.rstrip().endswith("one-trial")
    assert len(row) <= 80

    # 2. The image is mended: here by a command of the demo, else by a new version of the launch template.
    assert night.types(f"demo mend {BROKEN}") == 0

    # 3. What the first command said.
    assert night.types(mended.partition("autoscaler ")[2]) == 0
    assert f"the breaker of {BROKEN} is closed: within a minute agents are launched as the queue needs them" in night.said

    # 4. It is as it should be: nobody waits for the half hour after which one agent would have been tried.
    night.here.pass_minutes(9)
    assert night.types("status") == 0
    assert "broken" not in night.said
    [row] = [line for line in night.said.splitlines() if line.startswith(f"{BROKEN} ")]
    assert "3 busy" in row
    night.here.pass_minutes(30)
    assert night.finished()


@pytest.mark.long
def test_a_person_who_looks_at_once_is_told_how_not_to_wait_for_agents_that_still_fail(night):
    while not night.here.told():
        night.here.pass_minutes(1)
    night.types(f"demo mend {BROKEN}")
    assert night.types(f"resume --breaker {BROKEN}") == 0
    assert "1 agent launched before this may still fail, and counts until then" in night.said
    said, _, beside = night.said.splitlines()[-1].partition("autoscaler ")
    assert (said, beside) == ("to have others beside: ", f"launch {BROKEN} 1")
    assert night.types(beside) == 0
    assert "1 of 1 agent of mxnetlinux-gpu launched; kept until" in night.said
    night.here.pass_minutes(26)
    assert night.finished()
