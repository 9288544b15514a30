"""Completes names of pools, nodes and controllers, as the deployed fleet has them; silent where it cannot be asked."""

from collections.abc import Iterable
from typing import Any

import typer

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.cli.remote import Deployed

_WITHIN_SECONDS = 3.0


def pools(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a pool."""
    return _names(ctx, incomplete, ("pools",))


def teams(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a team."""
    return _names(ctx, incomplete, ("teams",))


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a node."""
    return _names(ctx, incomplete, ("nodes",))


def controllers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a controller."""
    return _names(ctx, incomplete, ("controllers",))


def subjects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete what `why` may be asked about."""
    return _names(ctx, incomplete, ("pools", "nodes"))


def run_orders(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the id of an order of builds; open ones stand first."""
    told = _asked(ctx, {"action": "runs"}).get("runs", ())
    return [entry["id"] for entry in told if entry["id"].startswith(incomplete)]


def _names(ctx: typer.Context, incomplete: str, kinds: Iterable[str]) -> list[str]:
    known = _asked(ctx, {"action": "names"}).get("names", {})
    return [name for kind in kinds for name in known.get(kind, ()) if name.startswith(incomplete)]


def _asked(ctx: typer.Context, question: dict[str, Any]) -> dict[str, Any]:
    """Ask, for a moment only; return nothing where nobody answers."""
    where = {name: ctx.params[name] for name in ("stack", "local", "region", "profile") if ctx.params.get(name)}
    deployed = Deployed(**({"stack": "jenkins-autoscaler"} | where), patience_seconds=_WITHIN_SECONDS, silent=True)
    try:
        return deployed.call("operate", question)
    except AutoscalerError:
        return {}
