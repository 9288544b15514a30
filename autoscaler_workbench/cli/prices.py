"""Says what an order costs an hour and for how long, and asks before a dear one."""

import sys
from typing import Annotated, Any

import typer

from autoscaler.domain.wording import dollars, duration
from autoscaler_workbench.cli.terminal import say

# An order of fewer dollars an hour is carried out without a question.
ASK_ABOVE_USD_PER_HOUR = 10.0
Yes = Annotated[bool, typer.Option("--yes", help=f"Do not ask, though it costs more than {dollars(ASK_ABOVE_USD_PER_HOUR)} an hour.")]
Answer = dict[str, Any]


def usd_per_hour(plan: Answer) -> float:
    """Add up what the agents cost that a plan launches; functions before 0.4.0 do not tell."""
    launches = (step for step in plan["steps"] if step["step"] == "launch")
    return sum(_count(step, plan) * float(step.get("usd_per_hour", 0.0)) for step in launches)


def _count(step: Answer, plan: Answer) -> int:
    return int(step["count"] if plan["dry_run"] else step["launched"])


def say_price(usd: float, hours: float) -> None:
    """Print what an order costs; nothing if that is nothing."""
    if usd:
        say(_price(usd, hours))


def _price(usd: float, hours: float) -> str:
    return f"{dollars(usd)} an hour" + (f"; {dollars(usd * hours)} for {duration(hours * 3600)}" if hours else ", while they are needed")


def confirm(usd: float, hours: float, what: str) -> None:
    """Ask before a dear order; exit code 1 if the answer is no."""
    if usd > ASK_ABOVE_USD_PER_HOUR and not typer.confirm(f"{what}: {_price(usd, hours)}. Go on?", err=True):
        print("nothing was ordered", file=sys.stderr)
        raise typer.Exit(1)
