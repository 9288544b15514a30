"""Reads from Secrets Manager: a controller's credentials, and the secret that a webhook is called with."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from autoscaler.adapters.aws import secret_value
from autoscaler.errors import ConfigError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


# Reads the credentials of a controller from Secrets Manager.


class Credentials(BaseModel):
    """The content of the secret."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    username: str
    token: str


def read_credentials(client: Callable[[], SecretsManagerClient], secret: str) -> Credentials:
    """Read one secret; its value appears in no error."""
    try:
        return Credentials.model_validate_json(secret_value(client, secret))
    except ValidationError:
        raise ConfigError(f'secret {secret}: must be JSON of the form {{"username": "...", "token": "..."}}') from None


# Keeps the secret that a webhook is called with, and reads it again every five minutes.


# Whoever asks, it is read again after this long; after a read that failed, every half minute.
_READ_AGAIN_SECONDS, _TRIED_AGAIN_SECONDS = 300.0, 30.0
# So long an outage of Secrets Manager does not take the webhook down; after that, the token may have been replaced long ago.
_KEPT_SECONDS = 900.0
_LEAST_CHARACTERS = 24


@dataclass(slots=True)
class SharedSecret:
    """One secret of Secrets Manager, of the form ``{"token": "..."}``. ``client`` makes the client at the first use."""

    client: Callable[[], Any]
    name: str
    clock: Callable[[], float]
    _token: str = ""
    _read_at: float = float("-inf")
    _tried_at: float = float("-inf")

    def is_known(self, given: str) -> bool | None:
        """Compare in constant time with what was read at most five minutes ago; None where it cannot be told.

        A read that fails is an error for whoever asks first. Asked again, the token that was read before counts for ten minutes more,
        unless Secrets Manager says that there is no such token any more.
        """
        now = self.clock()
        if now - self._read_at >= _READ_AGAIN_SECONDS and now - self._tried_at >= _TRIED_AGAIN_SECONDS:
            self._tried_at = now  # before the call: one that fails counts as well
            try:
                self._token, self._read_at = self._read(), now
            except ConfigError:
                self._read_at = float("-inf")
                raise
        age = now - self._read_at
        if age < _KEPT_SECONDS and hmac.compare_digest(given.encode(errors="surrogatepass"), self._token.encode(errors="surrogatepass")):
            return True
        return False if age < _READ_AGAIN_SECONDS else None

    def _read(self) -> str:
        try:
            token = json.loads(secret_value(self.client, self.name))["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            token = None
        if not isinstance(token, str) or len(token) < _LEAST_CHARACTERS:
            raise ConfigError(f'secret {self.name}: must be JSON of the form {{"token": "..."}}, of {_LEAST_CHARACTERS} characters or more')
        return token
