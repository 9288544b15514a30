"""The picture of the README: three functions between Jenkins and EC2."""

from collections.abc import Iterable

from autoscaler_workbench.maintenance.pictures.svg import INK, arrow, box, curve, document, text, titled

_VIOLET = "#6d28d9"


def draw() -> str:
    """Draw it."""
    return document(980, 450, [*_boxes(), *_arrows()])


def _boxes() -> Iterable[str]:
    yield titled(30, 150, 190, 110, "#fef3c7", "Jenkins", "queue, executors,", "running builds", "(one or several)")
    yield box(330, 20, 320, 360, "#f8fafc", dashed=True)
    yield text(490, 44, "Lambda functions, every minute", size=14, anchor="middle")
    yield titled(350, 60, 280, 84, "#e0f2fe", "publish_metrics", "measures, and learns durations;", "decides nothing")
    yield titled(350, 160, 280, 84, "#dcfce7", "scale_up", "uncordons what is needed again,", "launches what the queue needs")
    scales_down = "cordons what nothing needs, looks again,", "terminates what stayed idle,", "repairs leaks"
    yield titled(350, 260, 280, 102, "#fee2e2", "scale_down", *scales_down)
    yield titled(770, 30, 190, 70, "#f1f5f9", "CloudWatch", "metrics")
    yield titled(770, 120, 190, 84, "#f1f5f9", "DynamoDB", "lease, records, launches,", "what was learned")
    yield titled(770, 254, 190, 108, "#ede9fe", "EC2", "agents, found by tag:", "cpu, gpu, windows,", "utility")


def _arrows() -> Iterable[str]:
    yield arrow(220, 190, 348, 110)
    yield _word(262, 138, "3 GETs a look")
    yield arrow(220, 203, 348, 203)
    yield arrow(222, 235, 348, 300, both=True)
    yield _word(250, 292, "cordon, uncordon,")
    yield _word(250, 308, "delete a node")
    yield arrow(630, 90, 768, 68)
    yield arrow(652, 150, 768, 158, both=True)
    yield _word(710, 146, "state")
    yield arrow(630, 210, 768, 280)
    yield _word(712, 238, "launch")
    yield arrow(630, 320, 768, 320)
    yield _word(702, 338, "terminate")
    yield curve("M 865 362 C 865 440, 125 470, 125 262", _VIOLET)
    yield text(490, 402, "agents connect and run the builds", size=12.5, fill=_VIOLET, anchor="middle")


def _word(x: float, y: float, words: str) -> str:
    return text(x, y, words, size=12.5, fill=INK, anchor="middle")
