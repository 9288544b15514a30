"""What a person orders of ``operate``: every sample of ``events/``, what stands afterwards, and what is refused."""

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.world.world import break_boots
from support.deployed import NOON, deployed_in_memory, event

QUESTIONS = ("plan", "status", "agents", "queue", "names", "overview", "why", "doctor", "reservations")
DAY, HOUR = 86_400.0, 3600.0
SAMPLES = (
    "hold",
    "budget",
    "hold_label",
    "freeze",
    "resume",
    "resume_breaker",
    "resume_budget",
    "set",
    "drain",
    "drain_fleet",
    "purge",
    "reserve",
    "release",
    *QUESTIONS,
)


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


def submit(here, label, count=1):
    for number in range(count):
        here.world.controllers["main"].submit(f"job-{label}-{number}", label, 600.0)


def pools(here):
    return sorted({instance.tags["autoscaler:pool"] for instance in here.world.alive()})


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_event_is_understood(here, name):
    here.call("scale_up", event("tick"))
    assert here.call("operate", event(name))["action"] == event(name).get("action", "hold")


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in {"budget", *QUESTIONS}])
def test_a_dry_run_changes_nothing(here, name):
    here.call("scale_up", event("tick"))
    before = bootstrap.runtime().ports.state.read().overrides
    assert here.call("operate", event(name) | {"dry_run": True})["dry_run"] is True
    assert bootstrap.runtime().ports.state.read().overrides == before


def test_a_pool_is_held_and_resumed(here):
    submit(here, "mxnetlinux-gpu")
    submit(here, "mxnetlinux-cpu")
    told = here.call("operate", event("hold"))
    assert [(hold["pool"], hold["by"], hold["until_at"]) for hold in told["holds"]] == [("mxnetlinux-gpu", "ada", NOON + 3600)]
    here.pass_minutes(4)
    assert pools(here) == ["mxnetlinux-cpu", "utility"]
    assert here.call("operate", event("resume"))["holds"] == []
    here.pass_minutes(2)
    assert pools(here) == ["mxnetlinux-cpu", "mxnetlinux-gpu", "utility"]


def test_what_stands_is_counted(here):
    here.call("operate", event("hold"))
    here.call("operate", event("set"))
    here.call("publish_metrics", event("tick"))
    fleet = (("Fleet", "mxnet-ci"),)
    sent = {datum.name: datum.values for _, datum in here.metrics if datum.dimensions == fleet}
    assert (sent["HoldsActive"], sent["OverridesActive"]) == ((1.0,), (1.0,))


def test_a_hold_ends_by_itself(here):
    submit(here, "mxnetlinux-gpu")
    here.call("operate", event("hold") | {"minutes": 5})
    here.pass_minutes(4)
    assert "mxnetlinux-gpu" not in pools(here)
    here.pass_minutes(3)
    assert "mxnetlinux-gpu" in pools(here)


def test_jobs_of_a_held_label_wait_and_the_plan_says_why_and_eta(here):
    submit(here, "mxnetwindows-gpu", count=2)
    here.call("operate", event("hold_label"))
    here.pass_minutes(4)
    assert "mxnetwindows-gpu" not in pools(here)
    told = here.call("operate", event("plan"))
    assert [hold["label"] for hold in told["holds"]] == ["mxnetwindows-gpu"]
    [why] = [held["detail"] for held in told["plan"]["held"] if held["reason"] == "held"]
    assert why.startswith("2 items: label mxnetwindows-gpu is on hold for another 1 h 56 min by ada: licence server is down")
    [waits, _] = here.call("operate", event("eta") | {"subject": "job"})["builds"]
    assert why.removeprefix("2 items: ").startswith(waits["detail"])


def test_a_frozen_fleet_does_nothing_at_all(here):
    submit(here, "mxnetlinux-gpu")
    here.call("operate", event("freeze"))
    here.pass_minutes(5)
    assert (here.world.alive(), here.world.controllers["main"].nodes) == ([], {})
    here.pass_minutes(13)
    assert "mxnetlinux-gpu" in pools(here)


def test_other_numbers_stand_for_a_while(here):
    here.call("operate", event("set"))
    here.pass_minutes(3)
    gpu = [instance for instance in here.world.alive() if instance.tags["autoscaler:pool"] == "mxnetlinux-gpu"]
    assert len(gpu) == 4  # of one executor each: four warm ones
    told = here.call("operate", event("plan"))
    assert [(numbers["pool"], numbers["min_agents"], numbers["warm_executors"]) for numbers in told["numbers"]] == [
        ("mxnetlinux-gpu", 2, 4)
    ]


def test_a_pool_of_no_agents_at_all_is_measured_all_the_same(here):
    here.call("operate", {"action": "set", "pool": "mxnetlinux-gpu", "max_agents": 0})
    assert here.call("publish_metrics", event("tick"))["metrics"] > 10


def test_bringing_one_node_back_lifts_no_hold(here):
    here.call("operate", event("freeze"))
    told = here.call("operate", {"action": "resume", "nodes": ["mxnetlinux-gpu-0ab1"]})
    assert [hold["freeze"] for hold in told["holds"]] == [True]


def test_what_a_person_drained_comes_back_when_a_person_says_so(here):
    here.call("scale_up", event("scale_up") | {"keep_minutes": 600, "count": 1})
    here.pass_minutes(8)
    [node] = [node for node in here.world.controllers["main"].nodes.values() if node.name.startswith("mxnetlinux-gpu")]
    here.world.controllers["main"].submit("long", "mxnetlinux-gpu", 3600.0)
    drained = here.call("operate", event("drain") | {"nodes": [node.name]})
    assert [step["step"] for step in drained["plan"]["steps"]] == ["cordon"]
    assert node.offline
    back = here.call("operate", {"action": "resume", "nodes": [node.name]})
    assert [step["step"] for step in back["plan"]["steps"]] == ["uncordon"]
    assert not node.offline


def test_a_whole_pool_or_the_whole_fleet_is_drained_and_comes_back(here):
    here.call("scale_up", event("scale_up") | {"keep_minutes": 600, "count": 2})
    here.call("scale_up", {"pool": "utility", "count": 1, "keep_minutes": 600, "reason": "r"})
    here.pass_minutes(8)
    ours = [node for node in here.world.controllers["main"].nodes.values() if node.name.startswith(("mxnetlinux-gpu-", "utility-"))]
    assert len(ours) == 3
    drained = here.call("operate", {"action": "drain", "pool": "mxnetlinux-gpu", "by": "ada"})
    assert {step["node"] for step in drained["plan"]["steps"]} == {node.name for node in ours if node.name.startswith("mxnet")}
    drained = here.call("operate", event("drain_fleet"))
    assert [(step["step"], step["pool"]) for step in drained["plan"]["steps"]] == [("cordon", "utility")]
    assert all(node.offline for node in ours)
    assert here.call("operate", event("drain_fleet"))["plan"]["held"][0]["detail"] == "no agent takes builds there now"
    here.call("operate", {"action": "resume", "by": "ada"})
    assert not any(node.offline for node in ours)


def test_only_the_items_that_ask_for_a_label_are_purged(here):
    submit(here, "mxnetwindows-gpu", count=2)
    submit(here, "mxnetlinux-gpu")
    queue = here.world.controllers["main"].queue
    here.call("scale_up", event("tick"))
    planned = here.call("operate", event("purge") | {"dry_run": True})
    assert ([step["outcome"] for step in planned["plan"]["steps"]], len(queue)) == (["planned"] * 2, 3)
    purged = here.call("operate", event("purge"))
    assert [(step["step"], step["job"], step["outcome"]) for step in purged["plan"]["steps"]] == [
        ("cancel-item", "job-mxnetwindows-gpu-0", "done"),
        ("cancel-item", "job-mxnetwindows-gpu-1", "done"),
    ]
    assert [build.label for build in queue] == ["mxnetlinux-gpu"]


def test_the_status_shows_queue_agents_limits_and_what_is_held(here):
    submit(here, "mxnetlinux-gpu", count=2)
    here.pass_minutes(4)
    here.call("operate", event("hold"))
    told = here.call("operate", event("status"))["status"]
    pool = next(pool for pool in told["pools"] if pool["pool"] == "mxnetlinux-gpu")
    assert (pool["starved"], pool["agents"], pool["longest_wait_seconds"]) == (2, {"booting": 2}, 240.0)
    assert pool["paused"].startswith("held: pool mxnetlinux-gpu is on hold")
    assert (told["agents"], told["max_agents"], told["launches_in_the_hour"], told["problems"]) == (3, 60, 3, {})
    assert told["usd_per_hour"] == pytest.approx(sum(pool["usd_per_hour"] for pool in told["pools"]))


def gpu_of(told):
    return next(pool for pool in told["status"]["pools"] if pool["pool"] == "mxnetlinux-gpu")


def break_the_image(here, jobs=3):
    """Jobs wait for a pool whose agents hang, until its breaker opens."""
    break_boots(here.world, frozenset({"mxnetlinux-gpu"}))
    submit(here, "mxnetlinux-gpu", count=jobs)
    for _ in range(40):
        here.pass_minutes(1)
        if gpu_of(here.call("operate", event("status")))["broken"]:
            return
    raise AssertionError("the breaker did not open")


def test_the_status_says_what_is_broken_since_when_why_and_what_is_tried_next(here):
    break_the_image(here)
    here.pass_minutes(2)
    pool = gpu_of(here.call("operate", event("status")))
    broken = pool["broken"]
    assert (broken["failures"], broken["since_seconds"], broken["why"]) == (
        3,
        120.0,
        "it did not register within 15 min; its console ended: dracut: FATAL: no root device found",
    )
    assert broken["instance_id"] in here.world.ec2.instances
    assert broken["next"].endswith("others follow once one connects")  # one was launched when the first of the others had failed
    assert pool["paused"] == f"one-trial: its last 3 boots failed ({broken['why']}); {broken['next']}"
    here.pass_minutes(4)
    trying = gpu_of(here.call("operate", event("status")))
    assert trying["paused"] == f"one-trial: its last 3 boots failed ({broken['why']}); {trying['broken']['next']}"
    assert trying["broken"]["next"].endswith("others follow once one connects")


def orders(here):
    """The orders of people in the history."""
    return [
        one["what"] for one in here.call("operate", {"action": "events"})["events"] if one["what"] in {"resume", "drain", "purge", "hold"}
    ]


@pytest.mark.parametrize(
    ("order", "is_one"),
    [
        ({"action": "resume", "pool": "utility"}, False),
        ({"action": "resume", "nodes": ["nobody"]}, False),
        ({"action": "drain", "nodes": ["nobody"]}, False),
        ({"action": "purge", "label": "nobody"}, False),
        ({"action": "hold", "pool": "utility", "reason": "driver"}, True),
    ],
    ids=str,
)
def test_an_order_that_finds_nothing_to_do_is_no_event(here, order, is_one):
    here.pass_minutes(1)
    here.call("operate", order | {"by": "root"})
    assert orders(here) == [order["action"]] * is_one


def test_a_person_closes_a_breaker_and_the_next_pass_launches_what_the_queue_needs(here):
    break_the_image(here)
    assert [held["detail"] for held in here.call("operate", event("resume_breaker") | {"breaker": "utility"})["plan"]["held"]] == [
        "the breaker of utility is not open"
    ]
    assert not orders(here)  # what found nothing to do is no event
    here.call("operate", event("resume_breaker") | {"dry_run": True})
    assert gpu_of(here.call("operate", event("status")))["broken"]
    assert here.call("operate", event("resume_breaker"))["plan"]["held"] == []
    assert orders(here) == ["resume"]
    assert gpu_of(here.call("operate", event("status")))["paused"] == ""
    here.pass_minutes(1)
    pool = gpu_of(here.call("operate", event("status")))
    assert (pool["broken"], pool["agents"]["booting"]) == (None, 3)
    here.pass_minutes(5)
    assert gpu_of(here.call("operate", event("status")))["broken"] is None  # those that failed before do not count again


def test_agents_and_queue_are_listed(here):
    submit(here, "mxnetlinux-gpu")
    submit(here, "sparc")
    here.pass_minutes(8)
    submit(here, "mxnetlinux-gpu", count=2)
    running = next(entry for entry in here.call("operate", event("agents"))["agents"] if entry["jobs"])
    assert (running["pool"], running["word"], running["busy"], running["jobs"]) == (
        "mxnetlinux-gpu",
        "busy",
        1,
        ("job-mxnetlinux-gpu-0",),
    )
    listed = here.call("operate", event("queue"))["queue"]
    assert [(entry["job"], entry["state"], entry["pools"]) for entry in listed] == [
        ("job-sparc-0", "unservable", ()),
        ("job-mxnetlinux-gpu-0", "young", ("mxnetlinux-gpu",)),
        ("job-mxnetlinux-gpu-1", "young", ("mxnetlinux-gpu",)),
    ]
    assert listed[0]["waiting_seconds"] == 480.0


def test_names_are_told_without_asking_anybody(here):
    submit(here, "mxnetlinux-gpu")
    here.pass_minutes(8)
    before = len(here.server.requests)
    names = here.call("operate", event("names"))["names"]
    assert len(here.server.requests) == before
    assert (names["controllers"], names["pools"][0]) == (["main"], "mxnetlinux-cpu")
    assert {node.partition("-gpu")[0] for node in names["nodes"]} >= {"mxnetlinux"}


def test_set_tells_the_limits_in_force_and_those_of_the_fleet_file(here):
    told = here.call("operate", event("set") | {"pool": "utility", "min_agents": 2})["limits"]
    assert (told["now"]["min_agents"], told["fleet_file"]["min_agents"]) == (2, 1)


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({}, r"action: missing"),
        (
            {"action": "explode"},
            r"action \('explode'\): must be hold, resume, set, drain, purge, reserve, release, plan, status, .* or cancel-run",
        ),
        ({"action": "hold", "pool": "nope"}, r"pool \(nope\): is not one of the pools \(mxnetlinux-cpu"),
        ({"action": "hold", "controller": "nope"}, r"controller \(nope\): is not one of the controllers \(main\)"),
        ({"action": "hold", "pool": "utility", "label": "gpu"}, r"only one of pool, controller and label can be given"),
        ({"action": "hold", "minutes": 0}, r"minutes \(0\): must be more than 0"),
        ({"action": "hold", "minutes": 20_000}, r"minutes \(20000\): must be 10,080 or less"),
        ({"action": "hold", "label": "gpu", "freeze": True}, r"freeze \(true\): a label can be held, not frozen"),
        ({"action": "hold", "for": 5}, r"for: unknown key"),
        ({"action": "set", "pool": "utility", "min_agents": 99}, r"min_agents \(99\): must be at most max_agents"),
        ({"action": "set", "min_agents": 1}, r"pool: missing, and so is team"),
        ({"action": "set", "pool": "utility", "team": "web"}, r"only one of pool and team can be given"),
        ({"action": "set", "pool": "utility", "max_usd_per_hour": 1}, r"max_usd_per_hour: can be set of a team only"),
        ({"action": "set", "team": "web", "min_agents": 1}, r"min_agents: can be set of a pool only"),
        ({"action": "set", "team": "web", "max_usd_per_hour": 0}, r"max_usd_per_hour \(0\): must be more than 0"),
        ({"action": "set", "team": "web", "max_agents": 1}, r"team \(web\): is not a team, the fleet file has none"),
        ({"action": "resume", "breaker": "nope"}, r"breaker \(nope\): is not one of the pools"),
        ({"action": "resume", "breaker": "utility", "pool": "utility"}, r"breaker names a pool, and is given alone"),
        ({"action": "reserve", "target": "utility"}, r"person: missing"),
        ({"action": "reserve", "target": "utility", "person": "a\nb"}, r"person .*: "),
        ({"action": "reserve", "target": "utility", "person": "alice", "hours": 0}, r"hours \(0\): must be more than 0"),
        ({"action": "reserve", "target": "utility", "person": "alice", "hours": 200}, r"hours \(200\): must be 168 or less"),
        (
            {"action": "reserve", "target": "utility", "person": "alice", "controller": "nope"},
            r"controller \(nope\): pool utility serves main",
        ),
        ({"action": "release"}, r"target: missing"),
        ({"action": "drain"}, r"nodes: missing, and so are pool, controller and fleet"),
        ({"action": "drain", "fleet": True, "pool": "utility"}, r"fleet \(true\): is the whole fleet, and is given alone"),
        ({"action": "drain", "fleet": True, "nodes": ["utility-1"]}, r"fleet \(true\): is the whole fleet, and is given alone"),
        ({"action": "drain", "pool": "nosuch"}, r"pool \(nosuch\): is not one of the pools"),
        ({"action": "drain", "controller": "nope"}, r"controller \(nope\): is not one of the controllers"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_in_one_line_and_changes_nothing(here, asked, line):
    before = bootstrap.runtime().ports.state.read()
    with pytest.raises(ConfigError, match=line):
        here.call("operate", asked)
    assert bootstrap.runtime().ports.state.read() == before


def test_a_message_of_the_budget_holds_launches_until_the_month_ends_or_somebody_resumes_it(here):
    here.call("scale_up", event("tick"))
    [held] = here.call("operate", event("budget"))["holds"]
    assert (held["by"], held["until_at"], held["freeze"]) == ("aws-budget", NOON + 16 * DAY + 16 * HOUR, False)
    submit(here, "mxnetlinux-gpu", 2)
    here.pass_minutes(20)
    assert "mxnetlinux-gpu" not in pools(here)
    [said] = [held for held in here.call("operate", event("plan"))["plan"]["held"] if held["reason"] == "held"]
    assert said["detail"].startswith(
        "fleet is on hold until the month ends, for another 16 d 15 h, by aws-budget: AWS Budgets: autoscaler-mxnet-ci has exceeded"
    )
    here.call("operate", event("resume_budget"))
    assert here.call("operate", event("budget"))["holds"] == [held]  # the same message again: the answer of then, and nothing is done
    assert here.call("operate", event("status"))["holds"] == []
    here.pass_minutes(5)
    assert "mxnetlinux-gpu" in pools(here)


def test_the_same_request_is_done_once_and_answered_alike(here):
    here.call("scale_up", event("tick"))
    once = event("set") | {"request_id": "release-1"}
    first = here.call("operate", once)
    here.call("operate", event("set") | {"pool": once["pool"], "min_agents": 1})
    again = here.call("operate", once)
    assert again["numbers"] == first["numbers"]
    assert [numbers["min_agents"] for numbers in here.call("operate", event("plan"))["numbers"]] == [1]
    assert here.call("operate", once | {"request_id": "release-2"})["numbers"][0]["min_agents"] == once["min_agents"]


def test_a_request_that_failed_may_be_asked_for_again(here, monkeypatch):
    here.call("scale_up", event("tick"))
    order = event("purge") | {"request_id": "purge-1"}
    monkeypatch.setattr("autoscaler.control.operate.purge", fails)
    with pytest.raises(TransientError):
        here.call("operate", order)
    monkeypatch.undo()
    assert here.call("operate", order)["plan"]["steps"] == []


def fails(*_arguments):
    raise TransientError("Jenkins does not answer")
