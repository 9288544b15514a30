"""What the page shows, and to whom its orders go."""

from typing import Any, Protocol


class Source(Protocol):
    """A deployment, or a demo that takes commands. Errors are those of `autoscaler.errors`, one line each."""

    def overview(self) -> dict[str, Any]:
        """Answer with ``status``, ``agents``, ``queue``, ``events``, ``holds`` and ``numbers`` of one look, as `operate` writes them."""

    def alarms(self) -> list[dict[str, Any]]:
        """List the alarms: ``alarm``, ``state``, ``since_at``, ``says``, ``runbook``."""

    def why(self, subject: str) -> list[str]:
        """Explain a job, a node, an instance or a pool, a fact a line."""

    def order(self, verb: str, facts: dict[str, Any]) -> str:
        """Carry out ``hold``, ``resume``, ``launch`` or ``drain``; say in one line what is true now."""
