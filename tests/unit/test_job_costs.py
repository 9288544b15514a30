"""What jobs cost: whose the dollars are that the meter counted between two looks, and that all of them are somebody's."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, JobWeights, MonthCosts, Used
from autoscaler.domain.facts.memory import SpotPrices
from autoscaler.domain.facts.metering import Spent, day_name, meter
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, Binding, RecordState
from autoscaler.domain.report.costs import (
    BATCH_SECONDS,
    By,
    CostLook,
    in_day,
    in_month,
    is_due,
    is_news,
    joined,
    list_costs,
    note_look,
    opened,
    share_out,
    spread_unused,
)
from support.builders import (
    LONG_AGO,
    MONTH,
    NOW,
    a_fleet,
    a_learned,
    a_memory,
    a_month,
    a_node,
    a_pool,
    a_record,
    a_reservation,
    a_sighting,
    a_snapshot,
    a_view,
)

MINUTE = 60.0
FLEET = a_fleet(a_pool("cpu", executors=2), a_pool("gpu"))


def an_agent(number=1, *, pool="cpu", executors=2, usd=6.0, **facts):
    name = f"{pool}-{number}"
    record = a_record(f"i-{name}", pool=pool, node=name, usd_per_hour=usd, **facts)
    return record, a_node(name, pool, executors=executors)


HEAVY = JobWeights(by_pattern=(("heavy", 3),))


def running(*builds):
    """Builds by (job, node), or (job, node, since)."""
    found = {}
    for number, (job, node, *since) in enumerate(builds):
        found[f"{number}/{job}"] = a_sighting(job=job, pool="cpu", since_at=since[0] if since else LONG_AGO, node=node)
    return found


@dataclass
class Account:
    """A fleet that is metered and looked at, with the costs that the looks leave. ``rates``: dollars an hour that the meter counts."""

    now: float = NOW
    metered: Any = field(default_factory=lambda: a_month(name=MONTH, metered_at=NOW))
    batch: CostBatch = field(default_factory=lambda: opened(a_month(name=MONTH, metered_at=NOW), NOW, 0))
    months: dict[str, MonthCosts] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    fleet: Fleet = FLEET

    def look(self, *agents, ran=None, rates=None, after=MINUTE, lost=False, **facts):
        """Meter, then look: what runs by controller. ``lost``: nothing of this look is kept."""
        self.now += after
        paid = {}
        for record, _ in agents:
            if record.is_instance:
                paid[record.pool] = paid.get(record.pool, 0.0) + record.usd_per_hour
        rates = paid if rates is None else rates
        seconds = self.now - self.metered.metered_at
        self.metered = meter(self.metered, Spent(by_pool={pool: rate * seconds / 3600.0 for pool, rate in rates.items()}), self.now)
        ran = {"main": {}} | (ran or {})
        views = [
            a_view(*(node for record, node in agents if record.controller == controller), name=controller) for controller in sorted(ran)
        ]
        learned = {controller: a_learned(running=builds, seen_at=self.now) for controller, builds in ran.items()}
        snapshot = a_snapshot(
            *views,
            records=tuple(record for record, _ in agents),
            instances=(),
            memory=a_memory(month=self.metered, spot_prices=facts.get("spot", SpotPrices())),
            learned={controller: self.before.get(controller, a_learned()) for controller in ran},
            taken_at=self.now,
        )
        look = CostLook(snapshot=snapshot, fleet=self.fleet, learned=learned | facts.get("learned", {}))
        self.before = learned
        if not lost:
            self.note(look)
        return look

    def note(self, look):
        if not is_news(self.batch, look):
            return
        new = opened(self.metered, self.now, self.batch.version)
        if look.metered.name != self.batch.month:
            self.book(self.batch, new)
            self.book(new, new)
            return
        after = note_look(self.batch, look)
        if is_due(after):
            self.book(after, new)
        else:
            self.batch = after

    def book(self, batch, new):
        self.months[batch.month] = share_out(self.months.get(batch.month, MonthCosts(name=batch.month)), batch)
        self.batch = new

    def told(self):
        name = self.metered.name
        return in_month(self.months.get(name, MonthCosts(name=name)), self.batch, self.metered)

    def usd(self, job, pool="cpu", controller="main"):
        return self.told().used.get(CostKey(controller, pool, job), Used()).usd

    def total(self):
        month = self.told()
        return sum(one.usd for one in month.used.values()) + sum(month.unused.values())


def test_an_agents_dollars_are_shared_by_its_executors_and_what_is_idle_is_nobodys_yet():
    account = Account()
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    assert account.usd("a") == pytest.approx(6.0 / 60 / 2)
    assert account.told().unused == {"cpu": pytest.approx(6.0 / 60 / 2)}
    assert account.told().used[CostKey("main", "cpu", "a")].hours == pytest.approx(1 / 60)


def test_days_have_the_same_shares_as_their_month_and_nothing_that_no_look_saw():
    account = Account()
    for minute in range(4):
        account.look(an_agent(), ran={"main": running(("a", "cpu-1"))}, lost=minute == 1)
    day = in_day(MonthCosts(name=day_name(NOW)), account.batch, account.metered)
    assert sum(one.usd for one in day.used.values()) + sum(day.unused.values()) == pytest.approx(day.metered_usd)
    assert day.used.keys() == account.told().used.keys()
    assert in_day(MonthCosts(name="2020-01-01"), account.batch, account.metered).used == {}
    both = joined([day, replace(day, name="2027-01-16")])
    assert both.name == f"{day.name} to 2027-01-16"
    assert both.metered_usd == pytest.approx(2 * day.metered_usd)
    assert both.used[CostKey("main", "cpu", "a")].usd == pytest.approx(2 * account.usd("a"))


def test_a_heavy_build_has_as_many_executors_as_it_weighs_of_those_in_the_fleet_file():
    account = Account(fleet=replace(a_fleet(a_pool("cpu", executors=8)), weights=HEAVY))
    record, node = an_agent(executors=6)  # as many as builds fit
    ran = running(("heavy", "cpu-1"), ("light", "cpu-1"))
    account.look((replace(record, labels=("cpu",)), node), ran={"main": ran})
    assert account.usd("heavy") == pytest.approx(6.0 / 60 * 3 / 8)
    assert account.usd("light") == pytest.approx(6.0 / 60 * 1 / 8)
    assert account.total() == pytest.approx(6.0 / 60)


def test_a_build_counts_from_when_it_began_and_one_that_ended_half_of_the_time_since_the_last_look():
    account = Account()
    account.look(an_agent(executors=1), ran={"main": running(("a", "cpu-1", NOW + 45.0))})
    assert account.usd("a") == pytest.approx(6.0 / 3600 * 15)
    account.look(an_agent(executors=1))
    assert account.usd("a") == pytest.approx(6.0 / 3600 * (15 + 30))
    account.look(an_agent(executors=1))
    assert account.usd("a") == pytest.approx(6.0 / 3600 * (15 + 30))


def test_a_build_whose_age_jenkins_does_not_tell_began_between_two_looks():
    account = Account()
    account.look(an_agent(executors=1), ran={"main": running(("a", "cpu-1", NOW + MINUTE))})
    assert account.usd("a") == pytest.approx(6.0 / 3600 * 30)


def test_what_the_meter_counts_is_shared_and_not_what_was_expected():
    account = Account()
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))}, rates={"cpu": 60.0})
    assert account.usd("a") == pytest.approx(0.5)
    assert account.total() == pytest.approx(1.0)


def test_in_one_pool_a_dearer_agent_has_the_larger_share():
    account = Account()
    builds = running(("a", "cpu-1"), ("b", "cpu-2"))
    account.look(an_agent(1, executors=1, usd=2.0), an_agent(2, executors=1, usd=6.0), ran={"main": builds})
    assert (account.usd("a"), account.usd("b")) == (pytest.approx(2 / 60), pytest.approx(6 / 60))


def test_spot_weighs_what_ec2_told_of_its_type_and_not_what_was_expected():
    account, told = (
        Account(),
        SpotPrices(asked_at=NOW, usd_per_hour={"c5.18xlarge/a/Linux": 1.0, "c5.18xlarge/b/Linux": 3.0, "m5/a/Linux": 9.0}),
    )
    spot = an_agent(1, executors=1, usd=5.0, most_usd_per_hour=8.0)
    builds = running(("a", "cpu-1"), ("b", "cpu-2"))
    account.look(spot, an_agent(2, executors=1, usd=6.0), ran={"main": builds}, rates={"cpu": 8.0}, spot=told)
    assert (account.usd("a"), account.usd("b")) == (pytest.approx(2 / 60), pytest.approx(6 / 60))


def test_a_stopped_agent_weighs_its_disk_alone():
    account = Account()
    stopped = a_record("i-9", usd_per_hour=6.0, volume_usd_per_hour=0.1, state=RecordState.STOPPED, launched_at=LONG_AGO)
    account.look(an_agent(executors=1, usd=5.9), (stopped, a_node("gone")), ran={"main": running(("a", "cpu-1"))}, rates={"cpu": 6.0})
    assert account.usd("a") == pytest.approx(5.9 / 60)
    assert account.told().unused == {"cpu": pytest.approx(0.1 / 60)}


def test_an_agent_weighs_nothing_before_it_was_launched():
    account = Account()
    young = a_record("i-9", usd_per_hour=6.0, launched_at=NOW + 30.0)
    account.look(an_agent(executors=1), (young, a_node("gone")), ran={"main": running(("a", "cpu-1"))}, rates={"cpu": 9.0})
    assert account.usd("a") == pytest.approx(6.0 / 60)


def test_hosts_cost_nothing():
    account = Account()
    host = a_record("host-1", pool="gpu", node="gpu-1", usd_per_hour=0.0)
    account.look((host, a_node("gpu-1")), ran={"main": running(("a", "gpu-1"))}, rates={})
    assert account.total() == 0.0
    assert not account.told().used


def test_a_machine_that_serves_two_controllers_counts_once_and_builds_of_both_share_it():
    account = Account()
    record, node = an_agent(executors=2)
    side = replace(record, instance_id=f"{record.instance_id}@other", bindings=(Binding(controller="other", node="cpu-1"),))
    ran = {"main": running(("a", "cpu-1"), ("b", "cpu-1")), "other": running(("c", "cpu-1"))}
    account.look((record, node), (side, node), ran=ran)
    each = 6.0 / 60 / 3
    assert (account.usd("a"), account.usd("b"), account.usd("c", controller="other")) == (pytest.approx(each),) * 3
    assert account.total() == pytest.approx(6.0 / 60)


def test_a_machine_that_serves_two_controllers_weighs_once():
    account = Account()
    record, node = an_agent(executors=1)
    side = replace(record, instance_id=f"{record.instance_id}@other", bindings=(Binding(controller="other", node="cpu-1"),))
    ran = {"main": running(("a", "cpu-1"), ("b", "cpu-2")), "other": {}}
    account.look((record, node), (side, node), an_agent(2, executors=1), ran=ran, rates={"cpu": 12.0})
    assert account.usd("a") == account.usd("b") == pytest.approx(0.1)


def test_what_no_look_saw_being_used_is_idle():
    account = Account()
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))}, rates={"cpu": 6.0, "gpu": 3.0})
    batch = share_out(MonthCosts(name=account.metered.name), replace(account.batch, metered={}))
    assert batch.unused == {"cpu": pytest.approx(0.05), "gpu": pytest.approx(0.05)}


def test_a_reserved_agent_is_the_persons_as_a_whole_and_has_no_part_of_what_is_idle():
    account = Account()
    reserved = an_agent(1, reservation=a_reservation("alice"))
    account.look(reserved, an_agent(2), ran={"main": running(("a", "cpu-1"), ("b", "cpu-2"))})
    assert account.usd("@alice") == pytest.approx(6.0 / 60)
    assert account.usd("a") == 0.0
    entries = {entry.name: entry.usd for entry in list_costs(account.told(), FLEET, By.JOB).entries}
    assert entries == {"(reserved for alice)": pytest.approx(0.1), "b": pytest.approx(0.1)}


def test_what_is_idle_is_shared_by_the_jobs_of_its_pool_by_their_dollars():
    month = MonthCosts(
        name="2026-11",
        used={CostKey("main", "cpu", "a"): Used(3.0), CostKey("main", "cpu", "b"): Used(1.0), CostKey("main", "gpu", "a"): Used(5.0)},
        unused={"cpu": 2.0, "win": 7.0},
    )
    shares = spread_unused(month)
    assert shares == {
        CostKey("main", "cpu", "a"): 1.5,
        CostKey("main", "cpu", "b"): 0.5,
        CostKey("main", "gpu", "a"): 0.0,
        CostKey("", "win", ""): 7.0,
    }


def test_dollars_of_before_the_first_look_are_idle_and_none_is_lost():
    account = Account(batch=CostBatch(), metered=a_month(name=MONTH, usd=90.0, metered_at=NOW, by_pool={"cpu": 90.0}))
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    assert account.usd("a") == 0.0
    assert account.told().unused == {"cpu": pytest.approx(90.1)}
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    assert account.usd("a") == pytest.approx(0.05)
    assert account.total() == pytest.approx(90.2)


def test_looks_that_were_lost_cost_nothing_of_the_sum():
    account = Account()
    for minute in range(30):
        account.look(an_agent(), ran={"main": running(("a", "cpu-1"), ("b", "cpu-1"))}, lost=minute % 3 > 0)
    assert account.total() == pytest.approx(30 * 0.1)
    assert account.usd("a") == pytest.approx(30 * 0.05)


def test_after_a_gap_a_build_that_runs_counts_from_its_beginning_and_one_that_is_gone_is_not_guessed_at():
    account = Account()
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    before = account.usd("a")
    account.look(an_agent(), ran={"main": {"x": a_sighting(job="b", pool="cpu", since_at=account.now + 600.0, node="cpu-1")}}, after=3600.0)
    assert LOOK_GAP_SECONDS < 3600.0
    assert account.usd("a") == pytest.approx(before)
    assert account.usd("b") == pytest.approx(6.0 / 2 * 3000 / 3600)


def test_a_controller_that_cannot_be_read_for_long_has_its_agents_counted_as_idle():
    account = Account()
    old = {"main": a_learned(running=running(("a", "cpu-1")), seen_at=NOW - 2 * LOOK_GAP_SECONDS)}
    account.look(an_agent(), ran={"main": {}}, learned=old)
    assert account.usd("a") == 0.0
    assert account.total() == pytest.approx(0.1)


def test_a_look_that_is_older_than_the_last_one_changes_nothing():
    account = Account()
    first = account.look(an_agent(), lost=True)
    account.look(an_agent())
    assert not is_news(account.batch, first)
    assert not is_news(account.batch, account.look(an_agent(), after=0.0, lost=True))


def test_a_meter_that_was_lost_begins_again_and_takes_nothing_back():
    account = Account()
    for _ in range(20):
        account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    account.metered = a_month(name=MONTH, metered_at=account.now)
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    assert account.total() == pytest.approx(21 * 0.1)


def test_a_new_month_begins_at_zero_and_the_old_one_has_all_that_was_counted_in_it():
    account = Account()
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))}, after=MINUTE)
    old, usd = account.metered.name, account.metered.usd
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))}, after=31 * 86_400.0)
    assert account.metered.name > old
    assert sum(one.usd for one in account.months[old].used.values()) + account.months[old].unused["cpu"] == pytest.approx(usd)
    assert account.months[old].metered_usd == pytest.approx(usd)
    assert account.total() == 0.0
    account.look(an_agent(), ran={"main": running(("a", "cpu-1"))})
    assert account.total() == pytest.approx(account.metered.usd) == pytest.approx(0.1)


def test_a_batch_is_added_to_its_month_once_the_meter_has_a_quarter_of_an_hour_more():
    account = Account()
    for _ in range(int(BATCH_SECONDS / MINUTE) - 1):
        account.look(an_agent())
    assert not account.months
    account.look(an_agent())
    assert account.months[account.metered.name].unused == {"cpu": pytest.approx(1.5)}
    assert account.total() == pytest.approx(1.5)


LOOKS = st.lists(
    st.tuples(
        st.sampled_from((10.0, 60.0, 60.0, 200.0, 5000.0)),
        st.dictionaries(st.integers(1, 3), st.tuples(st.sampled_from(("cpu", "gpu")), st.floats(0.01, 30.0)), max_size=3),
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), max_size=6),
        st.fixed_dictionaries({}, optional={"cpu": st.floats(0.0, 40.0), "gpu": st.floats(0.0, 40.0), "gone": st.floats(0.0, 5.0)}),
        st.booleans(),
    ),
    max_size=40,
)


@given(LOOKS)
def test_the_sum_of_all_is_the_meters_whatever_was_seen_and_lost(looks):
    account = Account()
    for after, agents, builds, rates, lost in looks:
        there = [an_agent(number, pool=pool, usd=usd) for number, (pool, usd) in agents.items()]
        ran = running(*((job, f"{agents[number][0]}-{number}") for job, number in builds if number in agents))
        account.look(*there, ran={"main": ran}, rates=rates, after=after, lost=lost)
        assert account.total() == pytest.approx(account.metered.usd, abs=1e-9)
        for by in By:
            listed = list_costs(account.told(), FLEET, by)
            assert listed.usd == pytest.approx(account.metered.usd, abs=1e-9)
            assert all(entry.usd >= 0.0 for entry in listed.entries)
