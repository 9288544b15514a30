"""Reads from Secrets Manager: a controller's credentials, and the secret that a webhook is called with."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from autoscaler.adapters.aws import code_of
from autoscaler.errors import ConfigError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

# Secrets Manager answers so until somebody changes something: the secret, a permission, or a key.
_UNTIL_CHANGED = frozenset({"ResourceNotFoundException", "AccessDeniedException", "DecryptionFailure", "InvalidRequestException"})
_LEAST_CHARACTERS = 24


class Secret(BaseModel):
    """The content of a secret, which appears in no error."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def read(cls, client: Callable[[], SecretsManagerClient], name: str, rule: str = "") -> Self:
        """Read one; `ConfigError` or `TransientError`. ``rule``: what it must be beside its form."""
        try:
            return cls.model_validate_json(client().get_secret_value(SecretId=name).get("SecretString", ""))
        except ClientError as error:
            kind = ConfigError if code_of(error) in _UNTIL_CHANGED else TransientError
            raise kind(f"secret {name}: {code_of(error)}") from error
        except BotoCoreError as error:
            raise TransientError(f"secret {name}: Secrets Manager did not answer ({type(error).__name__})") from error
        except ValidationError:
            form = json.dumps(dict.fromkeys(cls.model_fields, "..."))
            raise ConfigError(f"secret {name}: must be JSON of the form {form}{rule}") from None


class Credentials(Secret):
    """The user and API token for a controller."""

    username: str
    token: str


class _Shared(Secret):
    """The token that callers of the webhook must send."""

    token: Annotated[str, StringConstraints(min_length=_LEAST_CHARACTERS)]


# Keeps the secret that a webhook is called with, and reads it again every five minutes.


# Whoever asks, it is read again after this long; after a read that failed, every half minute.
_READ_AGAIN_SECONDS, _TRIED_AGAIN_SECONDS = 300.0, 30.0
# So long an outage of Secrets Manager does not take the webhook down; after that, the token may have been replaced long ago.
_KEPT_SECONDS = 900.0


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
                self._token, self._read_at = _Shared.read(self.client, self.name, f", of {_LEAST_CHARACTERS} characters or more").token, now
            except ConfigError:
                self._read_at = float("-inf")
                raise
        age = now - self._read_at
        if age < _KEPT_SECONDS and hmac.compare_digest(given.encode(errors="surrogatepass"), self._token.encode(errors="surrogatepass")):
            return True
        return False if age < _READ_AGAIN_SECONDS else None
