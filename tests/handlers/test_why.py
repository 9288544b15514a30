"""`why` through the real handlers: the answer first, whatever a person pastes."""

import json

import pytest

from support.asked import command, served
from support.deployed import deployed_in_memory

JOB, GPU = "mx/web/feature%2Flogin", "mxnetlinux-gpu"


@pytest.fixture(scope="module")
def here():
    with deployed_in_memory() as stood, served(stood, "scale_up", "operate"):
        for _ in range(25):
            stood.world.controllers["main"].submit(JOB, GPU, 3600.0)
        stood.world.controllers["main"].submit("api/feature%2Flogin", GPU, 3600.0)
        stood.pass_minutes(12)
        yield stood


def asked(here, subject):
    return here.call("operate", {"action": "why", "subject": subject})["facts"]


@pytest.mark.parametrize(
    "pasted", [JOB, "mx/web/feature/login", "MX » web » feature/login #3", "https://ci/job/mx/job/web/job/feature%252Flogin/3/console"]
)
def test_a_job_is_explained_by_whatever_name_a_person_pastes(here, pasted):
    answer, *facts = asked(here, pasted)
    of = "" if pasted == JOB else f" of {JOB}"
    assert answer.startswith(f"5 builds{of} wait: {GPU} is full (20 of 20 agents, max_agents). ")
    assert len(facts) <= 10


def test_names_that_are_several_are_listed(here):
    shown = command(here, "why", "feature/login")
    assert (shown.exit_code, shown.stdout.splitlines()) == (
        0,
        [
            "feature/login may be any of these 2; ask for one of them:",
            "- api/feature%2Flogin (1 waiting)",
            f"- {JOB} (5 waiting, 20 running)",
        ],
    )


def test_the_command_prints_the_answer_as_a_sentence_and_facts_as_a_list(here):
    answer, *facts = command(here, "why", JOB).stdout.splitlines()
    assert answer.startswith("5 builds wait: ")
    assert facts
    assert all(fact.startswith("- ") for fact in facts)


def test_eta_understands_the_same_names(here):
    shown = json.loads(command(here, "eta", "api » feature/login", "--json").stdout)
    assert [build["job"] for build in shown["builds"]] == ["api/feature%2Flogin"]
