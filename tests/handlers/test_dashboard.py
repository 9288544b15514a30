"""The template's dashboard shows what the handlers really publish, and follows the fleet file."""

import json

import pytest
from typer.testing import CliRunner

from autoscaler_workbench.cli.main import app
from autoscaler_workbench.fakes.world.usage import Usage
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from autoscaler_workbench.report.dashboard.widgets import dashboard_body, read_widgets
from packaging_root import ROOT
from support.asked import served
from support.deployed import deployed_in_memory, event

TEMPLATE = ROOT / "template.yaml"


def test_every_widget_of_ours_has_data_but_those_of_what_should_not_be_has_data_after_some_work(tmp_path):
    with deployed_in_memory() as here:
        here.world.usage = Usage(here.world.timeline, here.world.controllers)
        here.call("scale_up", event("tick"))
        jenkins = here.world.controllers["main"]
        for number in range(6):
            jenkins.submit(f"job-{number}", "mxnetlinux-gpu", 400.0)
        jenkins.submit("windows", "mxnetwindows-cpu", 400.0)
        here.pass_minutes(40)
        widgets = read_widgets(TEMPLATE, "mxnet-ci", here.metrics, **FULL)
        silent = {widget.title for widget in widgets if not (widget.series or widget.elsewhere)}
        of_warm_pools = {"How long starts of stopped agents took", "Stopped agents by pool"}
        assert silent == {"Failures in a row on one agent, by pool", "By hand, and in each other's way", *of_warm_pools}
        [pools] = [widget for widget in widgets if widget.title == "Agents online by pool"]
        assert {series.label for series in pools.series} >= {"mxnetlinux-gpu", "mxnetwindows-cpu", "utility"}
        with served(here):
            ran = CliRunner().invoke(app, ["dashboard", "--local", here.server.url, "--out", str(tmp_path / "d")])
        assert ran.exit_code == 0, ran.output
        assert "Agents online by pool" in (tmp_path / "d" / "dashboard.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("level", ["essential", "full"])
def test_the_body_is_what_cloudwatch_takes(level):
    board = json.loads(dashboard_body(TEMPLATE, "mxnet-ci", MetricsLevel=level))
    assert all(widget["x"] + widget["width"] <= 24 for widget in board["widgets"])
    places = {(widget["x"], widget["y"]) for widget in board["widgets"]}
    assert len(places) == len(board["widgets"])
    assert {widget["type"] for widget in board["widgets"]} == {"alarm", "metric", "log"}
    text = json.dumps(board)
    assert "mxnetlinux" not in text  # pools are searched for
    assert "${" not in text.replace("${PROP('Dim.", "")
