"""The picture of the README: three functions between Jenkins and EC2."""

from workbench.maintenance.pictures.svg import INK, arrow, box, curve, document, text, titled

_VIOLET = "#6d28d9"


def draw() -> str:
    """Draw it."""
    return document(
        980,
        450,
        [
            titled(30, 150, 190, 110, "#fef3c7", "Jenkins", "queue, executors,", "running builds", "(one or several)"),
            box(330, 20, 320, 360, "#f8fafc", dashed=True),
            text(490, 44, "Lambda functions, every minute", size=14, anchor="middle"),
            titled(350, 60, 280, 84, "#e0f2fe", "publish_metrics", "looks, measures, learns durations;", "decides nothing"),
            titled(350, 160, 280, 84, "#dcfce7", "scale_up", "brings back what is retiring,", "launches what the queue needs"),
            titled(
                *(350, 260, 280, 102, "#fee2e2", "scale_down"),
                *("cordons what nothing needs, looks again,", "terminates what stayed idle,", "repairs what leaks"),
            ),
            titled(770, 30, 190, 70, "#f1f5f9", "CloudWatch", "metrics"),
            titled(770, 120, 190, 84, "#f1f5f9", "DynamoDB", "lease, records, launches,", "windows, durations"),
            titled(770, 254, 190, 108, "#ede9fe", "EC2", "agents, found by tag:", "cpu, gpu, windows,", "utility"),
            arrow(220, 190, 348, 110),
            _word(262, 138, "3 GETs a look"),
            arrow(220, 203, 348, 203),
            arrow(222, 235, 348, 300, both=True),
            _word(250, 292, "cordon, uncordon,"),
            _word(250, 308, "delete a node"),
            arrow(630, 90, 768, 68),
            arrow(652, 150, 768, 158, both=True),
            _word(710, 146, "state"),
            arrow(630, 210, 768, 280),
            _word(712, 238, "launch"),
            arrow(630, 320, 768, 320),
            _word(702, 338, "terminate"),
            curve("M 865 362 C 865 440, 125 470, 125 262", _VIOLET),
            text(490, 402, "agents connect and run the builds", size=12.5, fill=_VIOLET, anchor="middle"),
        ],
    )


def _word(x: float, y: float, words: str) -> str:
    return text(x, y, words, size=12.5, fill=INK, anchor="middle")
