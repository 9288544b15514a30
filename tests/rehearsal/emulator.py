"""The emulated AWS as a process on loopback, without root and without Docker."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from packaging_root import ROOT
from rehearsal.plan import ACCOUNT, REGION, Plan


@contextmanager
def emulator(plan: Plan) -> Iterator[None]:
    """Run it; everything that it holds is in memory, and gone in the end."""
    if not plan.emulator_python.exists():
        raise RuntimeError("the emulated AWS is not installed; `make rehearse` installs it")
    (plan.logs / "ec2.log").write_text("", encoding="utf-8")
    plan.trouble_file.unlink(missing_ok=True)
    temporary = plan.folder / "tmp"
    for leftover in (temporary, plan.folder / "opt"):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary.mkdir()
    environment = {
        "PATH": f"{plan.emulator_python.parent}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT / "tests"),
        "TMPDIR": str(temporary),
        "REHEARSAL_FOLDER": str(plan.folder),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(plan.port),
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_AUTOCREATE_AWS_MANAGED": "1",
        "IOT_MTLS_ENABLED": "0",  # it would listen on all addresses
        "LOG_LEVEL": "INFO",
    }
    log = plan.logs / "emulator.log"
    with log.open("wb") as output:
        command = [plan.emulator_python, "-m", "rehearsal.emulated"]
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        _wait_until_ready(plan, process)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its functions, too
        process.wait()


def _wait_until_ready(plan: Plan, process: subprocess.Popen[bytes], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{plan.aws_url}/_ministack/health", timeout=60).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    log = (plan.logs / "emulator.log").read_text(encoding="utf-8", errors="replace")[-1500:]
    raise RuntimeError(f"the emulator does not answer at {plan.aws_url}\n{log}")
