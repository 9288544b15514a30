"""What the doctor says of pools that decline long jobs: where Jenkins starts them all the same."""

import pytest

from support.deployed import deployed_in_memory

FILE = """
fleet: f
limits: {max_agents: 20, max_launches_per_hour: 50, max_usd_per_hour: 100, max_usd_per_month: 10000}
controllers: {main: {url: "http://main/", secret: jenkins/main, nodes: NODES}}
pools:
  utility: {UTILITY, executors: 1, launch_template: t, instance_types: [c5.xlarge], max_agents: 2}
  cpu: {labels: [linux], executors: 1, launch_template: t, instance_types: [c5.xlarge], max_agents: 2}
"""
WITHOUT_LABEL, OWN_LABELS = "takes no jobs without a label (max_job_seconds)", "has labels of its own (max_job_seconds)"


def findings(utility, nodes="dynamic"):
    with deployed_in_memory(FILE.replace("UTILITY", utility).replace("NODES", nodes)) as here:
        found = here.call("operate", {"action": "doctor", "by": "ada"})["findings"]
    return {one["what"]: (one["fine"], one["detail"]) for one in found if one["about"] == "utility" and "max_job_seconds" in one["what"]}


@pytest.mark.parametrize(
    ("utility", "nodes", "fine", "says"),
    [
        ("labels: [short], max_job_seconds: 60", "dynamic", True, ""),
        ("labels: [short], max_job_seconds: 60, exclusive: false", "dynamic", False, "set exclusive: true"),
        ("labels: [short], max_job_seconds: 60", "slots", None, "Only build jobs with label expressions"),
    ],
)
def test_the_doctor_warns_if_jobs_without_a_label_may_start_on_a_pool_for_short_jobs(utility, nodes, fine, says):
    found = findings(utility, nodes)
    assert (found[WITHOUT_LABEL][0], says in found[WITHOUT_LABEL][1], OWN_LABELS in found) == (fine, True, False)


def test_the_doctor_names_the_labels_that_other_pools_have_too():
    fine, detail = findings("labels: [short, linux], max_job_seconds: 60")[OWN_LABELS]
    assert fine is None
    assert detail.startswith("linux is of cpu, too: Jenkins starts long jobs that ask for it on either")


def test_a_pool_without_the_key_has_no_such_finding():
    assert findings("labels: [short, linux], exclusive: false") == {}
