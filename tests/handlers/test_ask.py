"""The function that answers and refuses orders: the code of `operate`, told by its environment, as the template gives it."""

from copy import deepcopy

import pytest

from autoscaler.errors import ConfigError, EventRefusedError
from support.deployed import deployed_in_memory, event
from support.samples import samples_of

# What changes nothing. Every other sample of operate is an order, also those that are added.
QUESTIONS = {"agents", "costs", "costs_days", "doctor", "eta", "events", "jobs", "names", "needs", "overview", "plan", "queue"}
QUESTIONS |= {"reservations", "runs", "status", "why"}
ORDERS = sorted(set(samples_of("operate")) - QUESTIONS - {"budget"})


@pytest.fixture
def here():
    """A fleet at work: an agent runs, another boots, a job waits, and a pool is on hold."""
    with deployed_in_memory() as stood:
        stood.call("scale_up", {"pool": "utility", "count": 1, "keep_minutes": 600})
        stood.pass_minutes(6)
        stood.call("operate", {"action": "hold", "pool": "mxnetlinux-cpu", "minutes": 600})
        stood.world.controllers["main"].submit("folder/job", "mxnetlinux-gpu", 600.0)
        stood.pass_minutes(1)
        yield stood


def all_there_is(here):
    """What stands in Jenkins, in EC2 and in the state table."""
    jenkins = here.world.controllers["main"]
    nodes = {name: (node.offline, node.reason, node.labels) for name, node in jenkins.nodes.items()}
    instances = {instance.id: (instance.state, dict(instance.tags)) for instance in here.world.ec2.instances.values()}
    stored = here.stored
    kept = [stored.state.read(), stored.history.since(0.0, 2e12), stored.run_orders.open_orders(), dict(stored.completed.records)]
    return deepcopy([nodes, [item.job for item in jenkins.queue], instances, kept])


def refused(here, asked):
    """Ask what is refused; return the line, after nothing has changed."""
    before, requests = all_there_is(here), len(here.server.requests)
    with pytest.raises(ConfigError) as refusal:
        here.call("ask", asked)
    assert all_there_is(here) == before
    assert here.server.requests[requests:] == []
    return str(refusal.value)


@pytest.mark.parametrize("dry_run", [False, True], ids=["", "dry run"])
@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_refused_in_one_line_and_changes_nothing(here, name, dry_run):
    asked = event(name) | {"dry_run": dry_run}
    line = f"event refused: action ({asked['action']}): is an order, and you may only ask: orders need the stack's OperatorPolicy"
    assert refused(here, asked) == line


def test_the_budgets_message_holds_nothing_here_and_is_an_error(here):
    before = all_there_is(here)
    with pytest.raises(EventRefusedError, match="is an order"):
        here.invoke("ask", event("budget"))
    assert all_there_is(here) == before


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"action": "launch", "pool": "utility", "count": 1}, "action ('launch'): must be hold"),
        ({"pool": "utility", "count": 1}, "action"),
        ({"nodes": ["utility-1"]}, "action"),
        ({"action": "why"}, "subject: missing"),
        (None, "action"),
    ],
    ids=str,
)
def test_what_it_does_not_know_is_refused_as_by_operate(here, asked, line):
    assert refused(here, asked).startswith(f"event refused: {line}")


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_question_is_answered_as_by_operate_and_changes_nothing(here, name):
    asked = event(name) | {"dry_run": True}
    before, posts = all_there_is(here), len(here.server.posts)
    assert here.call("ask", asked) == here.call("operate", asked)
    assert (all_there_is(here), here.server.posts[posts:]) == (before, [])


def test_its_doctor_tries_no_permission_in_jenkins_and_says_that_it_was_a_dry_run(here):
    before, posts = all_there_is(here), len(here.server.posts)
    answer = here.call("ask", event("doctor"))
    assert (answer["dry_run"], all_there_is(here), here.server.posts[posts:]) == (True, before, [])
    assert [finding for finding in answer["findings"] if finding["what"].startswith("Agent/")] == []
    here.call("operate", event("doctor"))
    assert len(here.server.posts) > posts  # as an operator's does


def test_a_word_that_is_neither_yes_nor_no_refuses_everything(monkeypatch):
    with deployed_in_memory() as here:
        monkeypatch.setenv("REFUSES_ORDERS", "true")
        with pytest.raises(ConfigError, match=r"REFUSES_ORDERS \(true\): must be yes or no"):
            here.call("operate", event("drain"))
