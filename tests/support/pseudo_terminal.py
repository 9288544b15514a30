"""A person's terminal: a command runs in a pseudo-terminal, its screen is read, keys are pressed."""

import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time

import pyte

CTRL_C = b"\x03"


class PseudoTerminal:
    """One command on a terminal of so many columns and rows. Use as a context manager: it ends what it began."""

    def __init__(self, *words, cwd, env, columns=80, rows=24):
        self.began = time.monotonic()
        self.screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.ByteStream(self.screen)
        self.status = None
        self._process, self._file = pty.fork()
        if not self._process:
            os.chdir(cwd)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvpe(words[0], words, {**env, "TERM": "xterm-256color"})  # noqa: S606
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.killpg(self._process, signal.SIGKILL)  # a terminal's command leads a group of its own
        self._reader.join(30)
        os.close(self._file)

    @property
    def seconds(self):
        return time.monotonic() - self.began

    def lines(self):
        """What is on the screen."""
        with self._lock:
            return [line.rstrip() for line in self.screen.display]

    def all_lines(self):
        """Also what has scrolled away; without the empty ones."""
        gone = ["".join(line[column].data for column in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        return [line for line in (*gone, *self.lines()) if line]

    def press(self, keys):
        os.write(self._file, keys)

    def wait_for(self, pattern, seconds):
        """Wait until a line matches; return it."""
        found = self._wait(seconds, lambda: next((line for line in self.lines() if re.search(pattern, line)), None))
        assert found, f"no {pattern!r} within {seconds} s:\n" + "\n".join(self.all_lines())
        return found

    def wait_for_end(self, seconds):
        """Wait until the command has ended; return its exit code, or minus the signal that ended it."""
        self._wait(seconds, lambda: self.status is not None)
        assert self.status is not None, f"it has not ended within {seconds} s:\n" + "\n".join(self.all_lines())
        return os.waitstatus_to_exitcode(self.status)

    def _wait(self, seconds, until):
        deadline = time.monotonic() + seconds
        while not (found := until()) and self.status is None and time.monotonic() < deadline:
            time.sleep(0.05)
        return found or until()

    def _read(self):
        """Read all the time: a command whose output nobody takes stands still."""
        while True:
            try:
                read = os.read(self._file, 65_536)
            except OSError:  # the command closed its end
                read = b""
            if not read:
                self.status = os.waitpid(self._process, 0)[1]
                return
            with self._lock:
                self._stream.feed(read)
