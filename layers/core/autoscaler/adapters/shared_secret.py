"""Keeps the secret that a webhook is called with, and reads it again where a caller knows another one."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autoscaler.adapters.aws import translated
from autoscaler.errors import ConfigError

# A wrong token has the secret read again at most this often; after a read that failed, any token at most every half minute.
_READ_AGAIN_SECONDS, _TRIED_AGAIN_SECONDS = 300.0, 30.0
_LEAST_CHARACTERS = 24


@dataclass(slots=True)
class SharedSecret:
    """One secret of Secrets Manager, of the form ``{"token": "..."}``. ``client`` makes the client at the first use."""

    client: Callable[[], Any]
    name: str
    clock: Callable[[], float]
    _token: str = ""
    _tried_at: float = float("-inf")
    _was_read: bool = False

    def is_known(self, given: str) -> bool | None:
        """Compare in constant time; None while the secret cannot be read. One that was replaced is read within five minutes."""
        if self._is(given):
            return True
        if self.clock() - self._tried_at >= (_READ_AGAIN_SECONDS if self._was_read else _TRIED_AGAIN_SECONDS):
            self._tried_at, self._was_read = self.clock(), False  # before the call: one that fails counts as well
            self._token, self._was_read = self._read(), True
        return self._is(given) if self._was_read else None

    def _is(self, given: str) -> bool:
        return bool(self._token) and hmac.compare_digest(given.encode(errors="surrogatepass"), self._token.encode(errors="surrogatepass"))

    def _read(self) -> str:
        with translated("GetSecretValue"):
            value = self.client().get_secret_value(SecretId=self.name).get("SecretString", "")
        try:
            token = json.loads(value)["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            token = None
        if not isinstance(token, str) or len(token) < _LEAST_CHARACTERS:
            raise ConfigError(f'secret {self.name}: must be JSON of the form {{"token": "..."}}, of {_LEAST_CHARACTERS} characters or more')
        return token
