"""EC2's query protocol, by boto3's own model of the service: forms in, XML out. Its reader and writer are moto's, an extra."""

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from moto.core.model import OperationModel


def request_of(action: str, form: Mapping[str, str]) -> dict[str, Any]:
    """What was asked, in boto3's words."""
    from moto.core.parse import EC2QueryParser  # noqa: PLC0415

    asked: Any = {"values": form}  # of a whole request, all that the parser reads
    parsed: dict[str, Any] = EC2QueryParser(_operation(action)).parse(asked)
    return parsed


def answer_xml(action: str, answer: dict[str, Any]) -> bytes:
    """Write an answer in boto3's words as XML."""
    from moto.core.serialize import EC2Serializer  # noqa: PLC0415

    if action == "GetConsoleOutput":  # which boto3 decodes
        answer = answer | {"Output": b64encode(answer["Output"].encode()).decode()}
    body = EC2Serializer(_operation(action)).serialize(answer)["body"]
    return body.encode() if isinstance(body, str) else body


def error_xml(code: str, message: str) -> bytes:
    """EC2's error document."""
    error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
    return f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>".encode()


@cache
def _operation(action: str) -> "OperationModel":
    from moto.core.utils import get_service_model  # noqa: PLC0415

    operation: OperationModel = get_service_model("ec2").operation_model(action)
    return operation
