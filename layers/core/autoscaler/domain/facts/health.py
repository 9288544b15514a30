"""What Jenkins' node monitors read of a node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Readings of Jenkins' node monitors; None: not told. ``disk``: the lower of the agent's and the temporary directory."""

    disk_bytes: float | None = None
    memory_bytes: float | None = None
    response_seconds: float | None = None
