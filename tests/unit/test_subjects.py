"""What people paste is understood: a URL, a heading, a branch, another case. Several names that it may mean are listed."""

from datetime import UTC, datetime

import pytest

from autoscaler.adapters.jenkins.parse import QUEUE_TREE, read_queue
from autoscaler.domain.learn import assess
from autoscaler.domain.report.ordered import jobs_of_items, known_names, meant, several
from support.builders import a_build, a_fleet, a_pool, a_snapshot, a_view, an_agent, an_item

LOGIN, OTHER, PLAIN = "mx/web/feature%2Flogin", "api/feature%2Flogin", "nightly/Build all"
RECORD, NODE = an_agent(1, pool="cpu", builds=(a_build(job=OTHER), a_build(job=PLAIN, key="k", display="Every night")))
SITUATION = assess(
    a_snapshot(a_view(NODE, items=(an_item(7, job=LOGIN), an_item(8, job=LOGIN), an_item(9, job="mx/web/main"))), records=(RECORD,)),
    a_fleet(a_pool("cpu"), a_pool("mxnetLinux-GPU")),
)


def means(subject):
    return meant(subject, known_names(SITUATION), jobs_of_items(SITUATION))


@pytest.mark.parametrize(
    ("pasted", "name"),
    [
        (LOGIN, LOGIN),
        ("mx/web/feature/login", LOGIN),
        ("MX/Web/Feature/Login", LOGIN),
        ("mx » web » feature/login", LOGIN),
        ("mx » web » feature/login #12", LOGIN),
        ("part of mx » web » feature/login #12 (Unit: GPU)", LOGIN),
        ("mx/web/feature%252Flogin", LOGIN),
        (" 'web/feature/login' ", LOGIN),
        ("https://ci.example.org/job/mx/job/web/job/feature%252Flogin/", LOGIN),
        ("https://ci.example.org/jenkins/job/mx/job/web/job/feature%252Flogin/12/console#footer", LOGIN),
        ("https://ci.example.org/view/all/job/mx/view/mine/job/web/job/feature%252Flogin/12/?page=2", LOGIN),
        ("job/mx/job/web/job/feature%252Flogin/12", LOGIN),
        ("https://ci.example.org/blue/organizations/jenkins/mx%2Fweb/detail/feature%2Flogin/12/pipeline", LOGIN),
        ("https://ci.example.org/blue/organizations/jenkins/nightly%2FBuild%20all/detail/Build%20all/3/pipeline", PLAIN),
        ("https://ci.example.org/job/nightly/job/Build%20all/", PLAIN),
        ("nightly » Build all #4", PLAIN),
        ("Every night", PLAIN),
        ("every night #3", PLAIN),
        ("https://ci.example.org/computer/cpu-1/", "cpu-1"),
        ("CPU-1", "cpu-1"),
        ("https://ci.example.org/queue/item/9/", "mx/web/main"),
        ("mxnetlinux-gpu", "mxnetLinux-GPU"),
        ("linux-gp", "mxnetLinux-GPU"),
    ],
)
def test_what_people_paste_is_understood(pasted, name):
    assert means(pasted) == (name,)


@pytest.mark.parametrize("pasted", ["nobody", "", "https://ci.example.org/", "https://[", "job/", "#12", "a" * 500, "/", "%", "computer/"])
def test_what_means_nothing_stays_as_it_is(pasted):
    assert means(pasted) == (pasted,)


def test_several_names_are_listed_with_what_they_do():
    assert means("feature/login") == (OTHER, LOGIN)
    assert several("feature/login", means("feature/login"), SITUATION) == [
        "feature/login may be any of these 2; ask for one of them:",
        f"{OTHER} (1 running)",
        f"{LOGIN} (2 waiting)",
    ]


def test_a_folder_is_its_jobs():
    assert means("mx » web") == (LOGIN, "mx/web/main")
    assert means("https://ci.example.org/job/mx/") == (LOGIN, "mx/web/main")


def test_the_name_for_display_comes_with_the_queue_and_the_executors():
    assert "task[_class,name,displayName," in QUEUE_TREE
    tasks = (
        {"_class": "hudson.model.FreeStyleProject", "name": "all", "displayName": "Every night", "url": "job/nightly/job/all/"},
        {"_class": "a.b.PlaceholderTask", "name": "part of Nights » Every #3 (Unit)", "url": "job/nightly/job/all/3/"},
        {"_class": "a.b.PlaceholderTask", "name": "part of nightly » all #3", "url": "job/nightly/job/all/3/"},
        {"_class": "hudson.model.FreeStyleProject", "name": "all", "displayName": "all", "url": "job/nightly/job/all/"},
    )
    raw = [{"id": number, "buildable": True, "why": "", "task": task} for number, task in enumerate(tasks)]
    items, _ = read_queue({"items": raw}, datetime.now(UTC), ())
    assert [item.display for item in reversed(items)] == ["Every night", "Nights » Every", "", ""]
