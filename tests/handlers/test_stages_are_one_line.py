"""Stages of one run are one line: in `queue`, on the page and in the message about jobs that wait too long."""

from starlette.testclient import TestClient

from autoscaler_workbench.cli.past import past_of
from autoscaler_workbench.cli.ui import DeployedSource
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.ui.app import Page
from support.asked import command, served, told
from support.scene import Scene, one_pool, scene
from support.visible import visible

FULL = one_pool("max_wait_seconds: 900")
STAGES = 29


def stages(here: Scene) -> None:
    """A run of many stages behind four builds that go on, three of them of one run; and two builds of another job."""
    for _ in range(4):
        here.submit("long", "cpu", 900, kind=Kind.PIPELINE)
    here.minutes(6)
    for _ in range(STAGES):
        here.submit("unix/PR-7", "cpu", 5, kind=Kind.PIPELINE)
    for _ in range(2):
        here.submit("docs", "cpu", 5)
    here.minutes(25)


def test_queue_shows_a_line_for_each_job_and_a_program_gets_every_item():
    with scene(FULL) as here:
        stages(here)
        with served(here.here, "operate"):
            drawn = command(here.here, "queue", columns=160).stdout
            assert drawn.count("unix/PR-7") == 1
            assert f"unix/PR-7 ({STAGES} stages)" in drawn
            assert "docs (2 builds)" in drawn
            assert len(told(here.here, "queue")["queue"]) == STAGES + 2
            assert command(here.here, "queue").stdout.count("unix/PR-7") >= STAGES


def test_the_page_has_a_row_for_each_job():
    with scene(FULL) as here:
        stages(here)
        source = DeployedSource(here.here, lambda: past_of(here.here.metrics), lambda: here.now)
        page = visible(TestClient(Page(source, "t", 1.0).app(), base_url="http://127.0.0.1:8765").get("/?token=t").text)
        queue = page[page.index("Queue") : page.index("Alarms")]
        assert sum(line.startswith("unix/PR-7") for line in queue) == 1


def test_the_message_names_a_job_once_with_its_stages():
    with scene(FULL) as here:
        stages(here)
        [text] = [text for subject, text in here.here.told() if "jobs on main wait" in subject]
        assert text.count("unix/PR-7") == 2, "in the sentence, and in the command"
        assert f"2 jobs on main wait for that too long (max_wait_seconds): unix/PR-7 ({STAGES} stages) for " in text
        assert "docs (2 builds) for " in text
