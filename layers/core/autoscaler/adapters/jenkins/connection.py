"""One controller's connection: made at the first use, and again where the credentials are refused."""

from collections.abc import Callable
from typing import TypeVar

from autoscaler.adapters.jenkins.session import JenkinsSession, RefusedCredentialsError

T = TypeVar("T")


class Connection:
    """A session that is made when it is needed, and that several adapters of one controller share, one after another."""

    def __init__(self, connect: Callable[[], JenkinsSession]) -> None:
        """Keep how to connect."""
        self._connect = connect
        self._connected: JenkinsSession | None = None

    def ask(self, call: Callable[[JenkinsSession], T]) -> T:
        """Make a call; where the credentials are refused, read them again and make it once more.

        A warm container keeps credentials for hours; the secret may have been rotated meanwhile. What was refused so was not done.
        """
        try:
            return call(self._session())
        except RefusedCredentialsError:
            self._connected = None
            return call(self._session())

    def _session(self) -> JenkinsSession:
        if self._connected is None:
            self._connected = self._connect()
        return self._connected
