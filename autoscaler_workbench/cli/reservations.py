"""Shows reservations: who has which agent until when, and how to get in."""

from typing import Any

from autoscaler.domain.wording import duration
from autoscaler_workbench.cli.answers import flat, print_plan
from autoscaler_workbench.cli.prices import say_price, usd_per_hour
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.cli.terminal import say
from autoscaler_workbench.ui.trouble import moment

Answer = dict[str, Any]
_UNTOLD = {"done", "planned"}


def print_reservations(answer: Answer) -> None:
    """Print who has which agent, the first to end first. What is piped has all that is known."""
    entries = answer["reservations"]
    if not for_people():
        headers = tuple(entries[0]) if entries else ("person",)
        print_rows(headers, ([flat(entry[header]) for header in headers] for entry in entries))
        return
    if not entries:
        say("nothing is reserved")
        return
    rows = [(entry["person"], _agent(entry), _until(entry, answer), f"{entry['state']}; {entry['reason']}") for entry in entries]
    print_rows(("for", "agent", "until", "state"), rows, prose=("state",))
    for entry in entries:
        print_way_in(entry)


def print_reserved(answer: Answer) -> None:
    """Print what an order has reserved, how to get in, and what kept more from being done."""
    if answer["dry_run"]:
        say("dry run: nothing was changed; this would be so")
    for entry in answer["reservations"]:
        boots = {"boots": "; it boots", "starts": "; it starts", "is being launched": "; it is being launched"}.get(entry["state"], "")
        say(f"{entry['person']} has {_agent(entry)} until {_until(entry, answer)}{boots}: {entry['reason']}")
        print_way_in(entry)
    plan = answer["plan"]
    shown = plan["steps"] if answer["dry_run"] else [step for step in plan["steps"] if step["outcome"] not in _UNTOLD]
    busy = [step for step in plan["steps"] if step["step"] == "reserve" and step.get("result", "idle") != "idle" and step not in shown]
    for step in busy:
        say(f"{step['node']}: {step['result']}; no other one begins there")
    for entry in answer["reservations"]:
        say_price(usd_per_hour(plan | {"dry_run": answer["dry_run"]}), (entry["until_at"] - answer["now_at"]) / 3600)
    print_plan({"plan": {"steps": shown, "held": plan["held"]}})


def print_way_in(entry: dict[str, Any]) -> None:
    """Print how to get into a reserved agent."""
    if entry["get_in"]:
        say(f"  {entry['get_in']}")


def _agent(entry: dict[str, Any]) -> str:
    """Name an agent: its node and its instance, as far as there are any."""
    names = [name for name in (entry["node"], entry["instance_id"]) if name]
    return f"{names[0]} ({names[1]})" if len(names) == 2 else names[0] if names else f"an agent of {entry['pool']}"


def _until(entry: dict[str, Any], answer: Answer) -> str:
    left = entry["until_at"] - answer["now_at"]
    return f"{moment(entry['until_at'], answer['now_at'])} ({duration(left)})" if left > 0 else "now"
