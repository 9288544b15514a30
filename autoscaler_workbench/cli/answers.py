"""Shows the answers of the deployed functions to people: what is, what was done, what is now true and until when."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from autoscaler.domain.report.limits import told_entry
from autoscaler.domain.report.listing import Figures
from autoscaler.domain.wording import counted, dollars, duration
from autoscaler_workbench.cli.overrides import limits_now
from autoscaler_workbench.cli.plan_totals import totals
from autoscaler_workbench.cli.prices import say_price, usd_per_hour
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.cli.terminal import say
from autoscaler_workbench.ui.trouble import broken_pools, is_held, moment, overrides_in_force, problems, why_paused
from autoscaler_workbench.ui.view import QueueRow, queue_rows, zone_here

Answer = dict[str, Any]
LOST_BUILDS = {"run-again": "run again", "leave-lost": "left to you"}  # steps about builds that were lost with their agents
_DONE_BEFORE = "already-done"


def print_status(answer: Answer) -> None:
    """Print what people have ordered and what is wrong, then the pools, the limits and the schedules."""
    told = answer["status"]
    _say_all(overrides_in_force(answer))
    print_trouble(told)
    _print_pools(told["pools"])
    say(_limits(told))
    _print_own_limits(told)
    print_schedules(answer)
    _say_all(filter(None, [told.get("results")]), style="dim")


def print_trouble(told: dict[str, Any]) -> None:
    """Print the broken pools, and what else is wrong."""
    for first, *others in broken_pools(told):
        say(first, style="bold red")
        _say_all(f"  {line}" for line in others)
    _say_all(problems(told), style="red")


def _print_pools(pools: list[dict[str, Any]]) -> None:
    several = len({pool["controller"] for pool in pools}) > 1
    unused = list(filter(_is_unused, pools)) if for_people() else []
    rows = [_pool_row(pool, with_controller=several) for pool in pools if pool not in unused]
    _print_pool_rows(rows, with_stopped=any(pool["off"] for pool in pools))
    if unused:
        say(f"unused: {', '.join(_where(pool, several) for pool in unused)}", style="dim")
    for pool in pools:
        _say_all(f"{_where(pool, several)}: {line}" for line in _of_pool(pool))


def _of_pool(pool: dict[str, Any]) -> Iterator[str]:
    if pool["off"] and pool["off"]["count"]:
        yield _told_stopped(pool["off"])
    yield from filter(None, [why_paused(pool)])
    yield from pool.get("images", ())  # functions of 0.2.0 tell none
    yield from pool.get("short", ())


def _print_pool_rows(rows: list[tuple[str, ...]], *, with_stopped: bool) -> None:
    """Print the table; where no pool stops agents, a column of them would take its place from the others."""
    headers = ("pool", "waiting", "longest", "agents", "busy", "stopped", "$/h", "paused")
    shown = [place for place, header in enumerate(headers) if with_stopped or header != "stopped"]
    figures = ("waiting", "longest", "busy", "stopped", "$/h")
    print_rows([headers[place] for place in shown], [[row[place] for place in shown] for row in rows], prose=("agents",), figures=figures)


def _is_unused(pool: dict[str, Any]) -> bool:
    has_any = pool["starved"] or pool["agents"] or (pool["off"] and pool["off"]["count"])
    return not has_any and (not pool["paused"] or is_held(pool))


def _told_stopped(off: dict[str, Any]) -> str:
    """Say how many agents are stopped, since when, and what their disks cost."""
    first, disks = ("the first ", "their disks cost") if off["count"] > 1 else ("", "its disk costs")
    since = f"{first}{duration(off['longest_seconds'])} ago"
    return f"{off['count']} of at most {counted(off['at_most'], 'agent')} stopped, {since}; {disks} {dollars(off['usd_per_hour'])} an hour"


def _pool_row(pool: dict[str, Any], *, with_controller: bool) -> tuple[str, ...]:
    words = ", ".join(f"{count} {word}" for word, count in sorted(pool["agents"].items()))
    return (
        _where(pool, with_controller),
        str(pool["starved"]),
        duration(pool["longest_wait_seconds"]) if pool["longest_wait_seconds"] else "",
        f"{words or '0'} of {pool['max_agents']}",
        f"{pool['busy']}/{pool['executors']}",
        str(pool["off"]["count"]) if pool["off"] else "",
        dollars(pool["usd_per_hour"]).removeprefix("$"),
        pool["paused"].partition(":")[0],
    )


def _limits(told: dict[str, Any]) -> str:
    month = f"{dollars(told['usd_in_the_month'])} of {dollars(told['max_usd_per_month'])} this month"
    reserved = f"up to {dollars(told['reserved_usd_per_hour'])} of {dollars(told['max_usd_per_hour'])} with launches under way"
    queue = [
        f"{counted(told['unservable'], 'job')} that no pool serves" if told["unservable"] else "",
        f"{counted(told['unclear'], 'job')} for an unknown reason" if told["unclear"] else "",
    ]
    waiting = f"\nwaiting: {', '.join(filter(None, queue))} (autoscaler queue)" if any(queue) else ""
    return (
        f"{told['agents']} of {counted(told['max_agents'], 'agent')}; "
        f"{told['launches_in_the_hour']} of {counted(told['max_launches_per_hour'], 'launch', 'launches')} in the last hour\n"
        f"{dollars(told['usd_per_hour'])} an hour, {reserved}\n{month}{waiting}"
    )


def _print_own_limits(told: dict[str, Any]) -> None:
    """Print the limits of teams and pools, and which team goes first. Functions of 0.2.0 tell none."""
    headers = ("limits of", "agents", "launches", "$/h", "this month", "share")
    if rows := [_limits_row(one) for one in told.get("limits", ())]:
        print_rows(headers, rows, prose=("share",))
    if turns := told.get("turns"):
        say(f"where a limit keeps several teams waiting, they go first in this order: {', '.join(turns)}")


def _limits_row(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        one["whose"],
        _used(one["agents"], one["max_agents"], str),
        _used(one["launches_in_the_hour"], one["max_launches_per_hour"], str),
        _used(one["reserved_usd_per_hour"], one["max_usd_per_hour"], dollars),
        _used(one["usd_in_the_month"], one["max_usd_per_month"], dollars),
        one["share"],
    )


def _used(used: float, limit: float | None, write: Callable[[Any], str]) -> str:
    return write(used) if limit is None else f"{write(used)} of {write(limit)}"


def print_agents(answer: Answer) -> None:
    """Print every agent: what it does, and for how long. What is piped has all that is known."""
    _print_agents(answer["agents"], wide=False)


def print_agents_wide(answer: Answer) -> None:
    """Print every agent, with its age, type and price as well."""
    _print_agents(answer["agents"], wide=True)


def _print_agents(agents: list[dict[str, Any]], *, wide: bool) -> None:
    several = len({agent["controller"] for agent in agents}) > 1
    if for_people():
        rows = [_agent_row(agent, several) for agent in agents]
        headers, figures = ("agent", "state", *(("age", "type", "$/h") if wide else ()), "doing"), ("age", "$/h")
        widened = [(name, word, *(_worth(agent) if wide else ()), doing) for agent, (name, word, doing) in zip(agents, rows, strict=True)]
        print_rows(headers, widened, prose=("doing",), figures=figures)
        return
    headers = tuple(agents[0]) if agents else ("agent",)
    print_rows(headers, ([flat(agent[header]) for header in headers] for agent in agents))


def _worth(agent: dict[str, Any]) -> tuple[str, str, str]:
    """Say how old an agent is, of which type, and what it costs."""
    return duration(agent["age_seconds"]), agent["instance_type"], dollars(agent["usd_per_hour"]).removeprefix("$")


def flat(value: Any) -> str:
    """Write a value on one line, for a program."""
    if isinstance(value, float):
        return f"{value:.2f}".removesuffix(".00")
    if isinstance(value, dict):
        return " ".join(f"{name}={flat(one)}" for name, one in value.items() if one is not None)
    return " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def told_uses(agent: dict[str, Any]) -> str:
    """Say what is left on an agent's machine; "" of one that tells nothing, and of functions before 0.3.0."""
    return Figures(**agent["telemetry"]).text() if agent.get("telemetry") else ""


def _agent_row(agent: dict[str, Any], with_controller: bool) -> tuple[str, str, str]:  # noqa: FBT001 - as `_where` takes it
    idle = f"idle for {duration(agent['idle_seconds'])}" if agent["idle_seconds"] is not None else ""
    boots = "" if agent["node"] else f"{_where(agent, with_controller)}, launched {duration(agent['age_seconds'])} ago"
    doing = "\n".join(filter(None, [*agent["jobs"], idle, boots, agent["note"], agent.get("image"), told_uses(agent)]))
    return agent["node"] or agent["instance_id"], agent["word"], doing


def print_queue(answer: Answer) -> None:
    """Print what waits, the longest first, and what becomes of it. What is piped has all that is known."""
    items = answer["queue"]
    several = len({item["controller"] for item in items}) > 1
    if for_people():
        if not items:
            say("nothing waits")
            return
        rows = [(_whole_job(row), _asks(row, several), row.longest, row.brief) for row in queue_rows(items)]
        print_rows(("job", "for", "waits", "starts"), rows, prose=("starts",), figures=("waits",))
        return
    headers = tuple(items[0]) if items else ("job",)
    print_rows(headers, ([flat(item[header]) for header in headers] for item in items))


def _whole_job(row: QueueRow) -> str:
    return f"{row.job} ({counted(row.count, row.what)})" if row.count > 1 else row.job


def _asks(row: QueueRow, with_controller: bool) -> str:  # noqa: FBT001 - as `_where` takes it
    return f"{row.label} on {row.controller}".strip() if with_controller else row.label


def print_whole_plan(answer: Answer) -> None:
    """Print what both passes would do now, and the totals in the last line."""
    if not answer["plan"]["steps"]:
        say("nothing to do")
    print_plan(answer)
    say(totals(answer["plan"]))


def print_plan(answer: Answer) -> None:
    """Print steps, what was wanted and not done, and the holds and overrides in force."""
    told = answer.get("plan", {"steps": [], "held": []})
    entries = [*told["steps"], *told["held"]]
    several = len({entry["controller"] for entry in entries if entry["controller"]}) > 1
    if told["steps"]:
        headers = ("step", "where", "what", "reason", "outcome", "because")
        print_rows(headers, (_step_row(step, several) for step in told["steps"]), prose=("because",))
    if told["held"]:
        rows = ((_whose(entry), _where(entry, several), entry["detail"]) for entry in told["held"])
        print_rows(("not done", "where", "because"), rows, prose=("because",))
    print_schedules(answer)
    _say_all(overrides_in_force(answer))


def _whose(held: dict[str, Any]) -> str:
    """Name the reason, and whose limit it is where the reason does not say it."""
    of = f" of {held['limit_of']}" if "limit_of" in held and not held["reason"].endswith("max-agents") else ""
    return f"{held['reason']}{of}"


def _step_row(step: dict[str, Any], with_controller: bool) -> tuple[str, ...]:  # noqa: FBT001 - as `_where` takes it
    what = next((str(step[key]) for key in ("node", "instance_id", "job", "count") if key in step), "")
    if step["step"] == "start" and step["outcome"] == "done":
        what = f"{step['started']} of {step['count']}"
    because = step.get("result") or step["detail"] + _told_instead(step)
    return step["step"], _where(step, with_controller), what, step["reason"], step["outcome"], because


def _told_instead(step: dict[str, Any]) -> str:
    """Say of a start that is to be what is launched in place of agents that EC2 refuses to start."""
    if step["step"] != "start" or step["outcome"] != "planned":
        return ""
    return f"; what EC2 refuses to start is launched instead ({', '.join(step['instead'])})" if step["instead"] else ""


def _where(entry: dict[str, Any], with_controller: bool) -> str:  # noqa: FBT001 - one of two ways to name a place
    """Name a pool; its controller only where there are several, or no pool."""
    pool, controller = entry.get("pool") or "", entry.get("controller") or ""
    return "/".join(filter(None, (controller, pool))) if with_controller or not pool else pool


def print_events(answer: Answer) -> None:
    """Print what was done, oldest first, and by whom and why."""
    if not answer["events"] and for_people():
        say("nothing was done")
        return
    several = len({event["where"].partition("/")[0] for event in answer["events"] if "/" in event["where"]}) > 1
    headers = ("UTC", "by", "what", "where", "subject", "outcome", "because")
    print_rows(headers, [_event_row(event, several) for event in answer["events"]], prose=("because",))


def print_lost(answer: Answer) -> None:
    """Print which builds were lost, when, and what became of each."""
    if not answer["lost"] and for_people():
        say("no lost build is known (docs/rerun.md says in which pools builds are followed)")
        return
    rows = [
        (*_event_row(event, with_controller=True)[:1], event["subject"], LOST_BUILDS[event["what"]], event["detail"])
        for event in answer["lost"]
    ]
    print_rows(("UTC", "build", "then", "because"), rows, prose=("because",))


def _event_row(event: dict[str, Any], with_controller: bool) -> tuple[str, ...]:  # noqa: FBT001 - as `_where` takes it
    because = f"{event['reason']}: {event['detail']}" if event["reason"] else event["detail"]
    where = event["where"] if with_controller else event["where"].rpartition("/")[2]
    at = f"{datetime.fromtimestamp(event['at'], UTC):%m-%d %H:%M:%S}"
    return at, event["by"], event["what"], where, event["subject"], event["outcome"], because


def print_order(answer: Answer) -> None:
    """Print what became of an order beyond a launch, and what is now true."""
    if answer["dry_run"]:
        say("dry run: nothing was changed; this would be so")
    if "limits" in answer:
        say(limits_now(answer))
        answer = answer | {"numbers": [], "teams": []}
    if answer["action"] == "resume" and not answer.get("holds") and "holds" in answer:
        say("nothing is on hold")
    print_plan(answer)


def print_closed(before: dict[str, Any]) -> None:
    """Say what follows from closing the breaker of a pool that was so ``before``."""
    pool, booting = before["pool"], before["agents"].get("booting", 0)
    say(f"the breaker of {pool} is closed: within a minute agents are launched as the queue needs them")
    if booting:
        say(f"{counted(booting, 'agent')} launched before this may still fail, and {'counts' if booting == 1 else 'count'} until then")
    beside = min(booting, before["starved"], before["max_agents"] - sum(before["agents"].values()))
    if beside > 0:
        say(f"to have others beside: autoscaler launch {pool} {beside}")


def print_schedules(answer: Answer) -> None:
    """Say what pools have by their schedules now, and what begins next."""
    for entry in answer.get("schedules", []):  # functions of 0.2.0 tell none
        say(f"{entry['pool']}: {told_entry(entry, answer['now_at'], zone_here)}")


def print_launch(answer: Answer, pool: str, asked: int, keep_minutes: float) -> None:
    """Say how many agents were launched, for how long they are kept, and what kept others from being launched."""
    plan = answer["plan"]
    if any(held["reason"] == _DONE_BEFORE for held in plan["held"]):
        say("this request was carried out before; nothing was launched now")
        return
    began = datetime.fromisoformat(plan["taken_at"]).timestamp()
    kept = f"kept until {moment(began + keep_minutes * 60, began)} ({duration(keep_minutes * 60)}), needed or not"
    words = "would be launched" if plan["dry_run"] else "launched"
    got, again = launched(answer), _got(answer, "start")
    from_stopped = f", {'all' if again == got else again} of them started again" if again else ""
    then = f"; {kept if keep_minutes else 'kept only while needed'}" if got else ""
    say(f"{got} of {counted(asked, 'agent')} of {pool} {words}{from_stopped}{then}")
    say_price(usd_per_hour(plan), keep_minutes / 60)
    print_plan({"plan": {"steps": [step for step in plan["steps"] if step["outcome"] not in {"done", "planned"}], "held": plan["held"]}})


def launched(answer: Answer) -> int:
    """Count the agents that were launched or started again, or in a dry run would be."""
    return _got(answer, "launch") + _got(answer, "start")


def _got(answer: Answer, kind: str) -> int:
    plan, counted_as = answer["plan"], {"launch": "launched", "start": "started"}[kind]
    return sum(step["count"] if plan["dry_run"] else step[counted_as] for step in plan["steps"] if step["step"] == kind)


def refused(answer: Answer) -> bool:
    """Tell whether any part of an order was not carried out; what was carried out before counts as done."""
    plan = answer.get("plan", {"steps": [], "held": []})
    not_taken = any(step["outcome"] in {"failed", "skipped"} for step in plan["steps"])
    return not_taken or any(held["reason"] != _DONE_BEFORE for held in plan["held"])


def print_facts(answer: Answer) -> None:
    """Print the answer, then the facts behind it."""
    first, *facts = answer["facts"] or [""]
    say(first)
    _say_all(f"- {fact}" for fact in facts)


def print_findings(findings: list[dict[str, Any]]) -> None:
    """Print what the doctor found."""
    signs = {True: Text("ok", "green"), False: Text("no", "bold red"), None: Text("?")}
    rows = ((signs[one["fine"]], one["about"], one["what"], one["detail"]) for one in findings)
    print_rows(("fine", "of", "what", "detail"), rows, prose=("what", "detail"))


def _say_all(lines: Iterable[str], *, style: str = "") -> None:
    for line in lines:
        say(line, style=style)
