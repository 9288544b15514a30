"""Reads the credentials of a controller from Secrets Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from autoscaler.adapters.aws import secret_value
from autoscaler.errors import ConfigError

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
        return Credentials.model_validate_json(secret_value(client, secret))
    except ValidationError:
        raise ConfigError(f'secret {secret}: must be JSON of the form {{"username": "...", "token": "..."}}') from None
