"""Reads the credentials of a controller from Secrets Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, ValidationError

from autoscaler.errors import ConfigError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_secretsmanager import SecretsManagerClient


class Credentials(BaseModel):
    """The content of the secret."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    username: str
    token: str


def read_credentials(client: Callable[[], SecretsManagerClient], secret: str) -> Credentials:
    """Read one secret; its value appears in no error."""
    try:
        value = client().get_secret_value(SecretId=secret).get("SecretString", "")
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "Unknown")
        permanent = code in {"ResourceNotFoundException", "AccessDeniedException", "DecryptionFailure", "InvalidRequestException"}
        kind = ConfigError if permanent else TransientError
        raise kind(f"secret {secret}: {code}") from error
    except BotoCoreError as error:
        raise TransientError(f"secret {secret}: Secrets Manager did not answer ({type(error).__name__})") from error
    try:
        return Credentials.model_validate_json(value)
    except ValidationError:
        raise ConfigError(f'secret {secret}: must be JSON of the form {{"username": "...", "token": "..."}}') from None
