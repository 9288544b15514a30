"""AWS as `ministack` emulates it: a package that others wrote, in a virtual environment of its own (`make everything`)."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.registries import free_port, wait_for
from support.tools import MINISTACK


@contextmanager
def emulated_aws(folder: Path) -> Iterator[str]:
    """Run the emulator on a free port of loopback, and yield its URL. What it holds is in memory, and is gone in the end.

    Its MQTT port would listen on all addresses; it is switched off.
    """
    place = f"127.0.0.1:{free_port()}"
    host, _, port = place.partition(":")
    settings = {"BIND_HOST": host, "GATEWAY_PORT": port, "TMPDIR": str(folder), "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "WARNING"}
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    log = folder / "log"
    with log.open("wb") as output, subprocess.Popen([MINISTACK], stdout=output, stderr=output, env=plain | settings) as process:
        try:
            wait_for(place, process, log)
            yield f"http://{place}"
        finally:
            process.kill()
