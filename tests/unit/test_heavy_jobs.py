"""Weights of the Heavy Job plugin are read a few a look, and one that cannot be read keeps no other from it."""

from dataclasses import replace
from types import SimpleNamespace

from autoscaler.control.measure import READ_A_LOOK, READ_AGAIN_SECONDS, heavy_jobs
from autoscaler.domain.facts.job_settings import JobWeights, PluginWeight, Source
from autoscaler.errors import ConfigError, TransientError
from support.builders import NOW, a_fleet, a_view, an_item

FLEET = replace(a_fleet(), weights=JobWeights(by_pattern=(("*", Source.PLUGIN),)))


class Plugin:
    """Gives each job a weight of 2; ``errors``: by job."""

    name = "main"

    def __init__(self, **errors):
        self.errors, self.asked = errors, []

    def heavy_weight(self, job):
        self.asked.append(job)
        if job in self.errors:
            raise self.errors[job]
        return 2


def looks(plugin, jobs, *, times=1, before=None):
    known = before or {}
    view = a_view(items=tuple(an_item(number, job=job) for number, job in enumerate(jobs)))
    for minute in range(times):
        ports = SimpleNamespace(clock=lambda at=NOW + 60.0 * minute: at, log=lambda *_, **__: None)
        known = heavy_jobs(ports, FLEET, plugin, view, known)
    return known


def test_a_few_are_read_a_look_and_each_once_a_day():
    plugin, jobs = Plugin(), [f"job-{number}" for number in range(READ_A_LOOK + 2)]
    assert len(looks(plugin, jobs)) == READ_A_LOOK
    assert set(looks(plugin, jobs, times=5)) == set(jobs)
    known = {"job-0": PluginWeight(weight=3, read_at=NOW - READ_AGAIN_SECONDS + 1)}
    assert looks(Plugin(), ["job-0"], before=known)["job-0"].weight == 3
    assert looks(Plugin(), ["job-0"], times=2, before=known)["job-0"].weight == 2


def test_jobs_whose_configuration_may_not_be_read_keep_no_other_from_being_read():
    hidden = {f"hidden_{number}": ConfigError("no Job/ExtendedRead there") for number in range(READ_A_LOOK + 1)}
    assert set(looks(Plugin(**hidden), [*hidden, "shown"], times=7)) == {"shown"}


def test_where_the_controller_does_not_answer_nothing_more_is_asked_in_this_look():
    plugin = Plugin(first=TransientError("503"), second=TransientError("503"))
    assert looks(plugin, ["first", "second"]) == {}
    assert len(plugin.asked) == 1
