"""HTTP requests and responses, as the fakes take and give them; no sockets here."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. ``user`` None: anonymous; ``password``: it may be a token or a password."""

    method: str
    path: str  # without the query, still percent-encoded
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    password: str | None = None
    crumb: str | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
