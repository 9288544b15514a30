"""Carries out a request once, however often it arrives (Powertools' idempotency, in the state table)."""

from collections.abc import Callable
from typing import Any

from autoscaler import bootstrap
from autoscaler.entry.context import Context
from autoscaler.errors import TransientError

_REMEMBERED_SECONDS = 86_400


def once(request_id: str, context: Context, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Act, and store the answer for a day, which the same request id then gets. A failed request may be repeated."""
    # Only who gives a request id needs these, and importing them costs a cold start time.
    from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function  # noqa: PLC0415
    from aws_lambda_powertools.utilities.idempotency.exceptions import (  # noqa: PLC0415
        IdempotencyAlreadyInProgressError,
        IdempotencyPersistenceLayerError,
    )

    config = IdempotencyConfig(event_key_jmespath="request_id", expires_after_seconds=_REMEMBERED_SECONDS)
    config.register_lambda_context(context)  # type: ignore[arg-type]  # of it only the time that is left is read

    @idempotent_function(data_keyword_argument="request", persistence_store=bootstrap.completed_requests(), config=config)  # type: ignore[untyped-decorator]
    def act_once(*, request: dict[str, str]) -> dict[str, Any]:  # noqa: ARG001 - Powertools reads it
        return act()

    try:
        answer: dict[str, Any] = act_once(request={"request_id": request_id})
    except IdempotencyAlreadyInProgressError as error:
        raise TransientError(f"request {request_id} is being done at this moment") from error
    except IdempotencyPersistenceLayerError as error:
        raise TransientError(f"whether request {request_id} was done could not be read or written") from error
    return answer
