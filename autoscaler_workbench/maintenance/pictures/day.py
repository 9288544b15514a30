"""The README's picture of a day: the example fleet on the MXNet CI, simulated."""

from struct import pack
from zlib import crc32

from autoscaler.config import load_fleet
from autoscaler_workbench.report.run.page import figures_of, headline, picture_of, png_of
from autoscaler_workbench.report.run.rows import coloured
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace

_HOURS = 24.0
_HEAD_BYTES = 33  # a PNG's signature and first chunk


def draw() -> bytes:
    """Run the day, and draw it."""
    run = prepare(load_trace(MXNET, hours=_HOURS, start_at=MXNET_DAY), load_fleet(EXAMPLE_FLEET), hours=_HOURS, seed=1)
    last = list(in_memory(run))[-1]
    figures = list(figures_of(run, coloured(run)))
    words = headline(run, run.result(last))
    return _titled(png_of(picture_of(figures, [], words), scale=1.0), words)


def _titled(png: bytes, words: str) -> bytes:
    """Write its headline into a picture as text, so that a test can read the figures that it shows."""
    text = b"tEXtTitle\0" + words.encode("latin-1")
    return png[:_HEAD_BYTES] + pack(">I", len(text) - 4) + text + pack(">I", crc32(text)) + png[_HEAD_BYTES:]
