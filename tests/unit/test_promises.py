"""Free executors that refuse: what proves that a job has begun, and what a look costs."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.decide import scale_down
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.memory import ControllerPast, FreeNode, Ration
from autoscaler.domain.learn import assess, watch
from autoscaler.domain.report.listing import list_queue
from autoscaler.domain.situation.distrust import Distrust, patience_of
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_session,
    a_snapshot,
    a_view,
    an_agent,
    an_item,
    with_beacons,
)
from support.remembered import tables

TWICE = {"cpu-7": False, "cpu-8": False}
RATION = Ration(
    failures=2,
    pauses=2,
    since_at=NOW - 600.0,
    failed_at=NOW - 60.0,
    until_at=NOW + 540.0,
    why="",
    outcomes=TWICE,
    is_closed=True,
    seen_at=NOW - 60.0,
    jobs=("release",),
    pools=("cpu",),
    most_at=NOW,
)


def watched(*nodes, records=(), busy=None, ration=RATION, free_nodes=None):
    session = a_session(since_at=NOW - 1e6, busy=busy or {})
    memory = a_memory(sessions={"main": session}, rations={"main/cpu": ration}, free_nodes=free_nodes or {})
    view = a_view(*nodes, items=(an_item(1, job="release", label="cpu", waiting_seconds=900.0),))
    return watch(assess(with_beacons(a_snapshot(view, records=records, memory=memory), a_fleet()), a_fleet())).memory


def test_the_step_of_a_pipeline_that_jenkins_shows_on_the_controller_itself_is_no_build_that_has_begun():
    """Each pipeline that runs, or waits for a node, has one there for as long as it lasts."""
    step = replace(a_build("release", run="job/release/7"), key="Built-In Node/one-off/-1/job/release/7")
    builtin = replace(a_node("Built-In Node", builds=(step,)), agent=False, executors=0)
    assert watched(builtin).controller("main").rations["cpu"].outcomes == TWICE


def test_a_step_that_takes_no_executor_of_an_agent_is_none_either():
    record, node = an_agent()
    step = replace(a_build("release", run="job/release/7"), key="cpu-1/one-off/-1/job/release/7")
    assert watched(replace(node, builds=(step,)), records=(record,)).controller("main").rations["cpu"].outcomes == TWICE


def test_more_builds_than_ever_ran_while_they_were_refused_let_more_agents_be_tried_at_once():
    record, node = an_agent()
    build = replace(a_build("release", run="job/release/7"), key="cpu-1/0/job/release/7")
    noted = watched(replace(node, builds=(build,)), records=(record,)).controller("main").rations["cpu"]
    assert (noted.until_at, noted.outcomes, noted.most) == (NOW, {**TWICE, "1 at once": True}, 1)
    again = watched(replace(node, builds=(build,)), records=(record,), ration=noted)
    assert again.controller("main").rations["cpu"].outcomes == noted.outcomes
    beside = watched(replace(node, builds=(build,)), records=(record,), ration=replace(RATION, most=1))
    assert beside.controller("main").rations["cpu"].outcomes == TWICE


def test_two_that_begin_in_one_look_are_one_win_and_after_it_only_what_begins_on_agents_that_had_not_refused_it_is_another():
    def noted(count, ration, *, has_refused=False):
        builds = tuple(replace(a_build("release", run=f"job/release/{n}"), key=f"cpu-1/{n}/job/release/{n}") for n in range(count))
        record, node = an_agent(executors=4, builds=builds)
        stood = FreeNode(since_at=NOW - 600.0, seen_at=NOW - 60.0, looks=8, session="s1", labels=("cpu",), refused={"release": NOW - 60.0})
        free_nodes = {"main/cpu-1": stood} if has_refused else {}
        return watched(node, records=(record,), ration=ration, free_nodes=free_nodes).controller("main").rations["cpu"]

    both = noted(2, RATION, has_refused=True)
    assert (both.outcomes, both.is_closed, both.wins, both.most) == ({**TWICE, "2 at once": True}, True, 1, 2)
    third = noted(3, both, has_refused=True)
    assert (third.outcomes, third.wins, third.most) == (both.outcomes, 1, 3)
    assert noted(4, third).wins == 2


@pytest.mark.parametrize(("ago", "runs", "won"), [(3600.0, 1, True), (3600.0, 0, True), (3540.0, 1, False)])
def test_what_has_not_run_at_once_for_an_hour_is_no_measure_of_what_refused_jobs_do(ago, runs, won):
    """Five had run at once before a throttle came: for hours agents were tried one by one that took builds only after six minutes."""

    def noted(count, ration):
        agents = [an_agent(number, builds=(a_build("release", run=f"job/release/{number}"),)) for number in range(1, count + 1)]
        nodes, records = [node for _, node in agents], [record for record, _ in agents]
        return watched(*nodes, records=records, ration=ration).controller("main").rations["cpu"]

    before = noted(runs, replace(RATION, most=5, most_at=NOW - ago))
    assert before.wins == 0
    assert (noted(runs + 1, before).wins == 1) is won


@pytest.mark.parametrize(("wins", "is_closed", "width"), [(0, True, 1), (1, True, 4), (2, True, 16), (0, False, inf), (2, False, inf)])
def test_so_many_agents_may_be_tried_at_once(wins, is_closed, width):
    want = watched_demand().wants[0]
    for until_at in (NOW - 60.0, NOW):
        ration = replace(RATION, wins=wins, is_closed=is_closed, until_at=until_at)
        assert Distrust(rations={"cpu": ration}, now=NOW).limit(want, "cpu")[0] == width


def watched_demand():
    view = a_view(items=(an_item(1, job="release", label="cpu", waiting_seconds=900.0),))
    return assess(with_beacons(a_snapshot(view), a_fleet()), a_fleet()).demands["main"]


@pytest.mark.parametrize(("rations", "scope"), [({"cpu": RATION}, "cpu"), ({}, ""), ({"cpu": replace(RATION, is_closed=False)}, "")])
def test_a_label_that_is_closed_keeps_its_jobs_though_no_build_has_begun_on_their_controller(rations, scope):
    """The controller's ration began anew: its first loss brings no pause, and a permission cost a fourth agent in an hour."""
    want = watched_demand().wants[0]
    stands = FreeNode(since_at=NOW - 600.0, seen_at=NOW, looks=8, session="s1", labels=("cpu",), refused={"release": NOW})
    distrust = Distrust(rations=rations, nodes={"cpu-1": stands}, began_at=NOW - 700.0, now=NOW)
    assert distrust.scope(want, ["cpu-1"]) == scope
    assert distrust.limit(want, "") == (1.0, RATION.until_at if scope else NOW)


def test_a_pause_says_nothing_of_how_many_are_tried_after_it():
    assert Distrust(rations={"cpu": RATION}, now=NOW).limit(watched_demand().wants[0], "cpu") == (1.0, RATION.until_at)


# RATION pauses after two tries in vain; here the third one is tried; and that was won, so that four may be tried at once.
TRIED = replace(RATION, until_at=NOW - 60.0)
WON = replace(TRIED, failures=0, wins=1, outcomes=dict(zip("1234", (False, False, False, True), strict=True)))


def fate(ration, waited, pool="cpu", runs="other"):
    """What becomes of a job for which an agent boots, while six others wait that free executors refused; ``runs``: a job, elsewhere."""
    items = [an_item(number, job="release", label="cpu", waiting_seconds=900.0) for number in range(6)]
    item = an_item(6, job="light", label=pool, waiting_seconds=waited)
    memory = a_memory(sessions={"main": a_session(since_at=NOW - 1e6)}, rations={"main/cpu": ration})
    boots = tuple(a_record(f"i-{name}", pool=name, launched_at=NOW - 120.0, changed_at=NOW - 120.0) for name in ("cpu", "gpu"))
    record, node = an_agent(7, builds=(a_build(runs),), pool="gpu")
    snapshot = a_snapshot(a_view(node, items=(*items, item)), records=(*boots, record), memory=memory)
    entries = list_queue(assess(snapshot, a_fleet(a_pool("cpu"), a_pool("gpu"))))
    return next((entry.state, entry.detail, entry.starts_in_seconds) for entry in entries if entry.job == "light")


def test_no_time_is_given_while_more_and_more_of_the_refused_jobs_before_it_are_let_in():
    """It said "in 3 min": the next looks let older ones in, and Jenkins gave them the agents that booted."""
    says = "2 jobs before it in the queue may take its executor first: free executors refused them, but some of their kind begin"
    assert fate(WON, 300.0) == ("after-others", says, None)


def test_no_time_is_given_while_some_of_the_refused_jobs_before_it_run():
    """It said "in 108 s": a throttle had let one of them begin, and the others took all that booted in the next four minutes."""
    state, detail, seconds = fate(TRIED, 300.0, runs="release")
    assert (state, seconds) == ("after-others", None)
    assert detail.startswith("5 jobs before it in the queue may take its executor first: ")


@pytest.mark.parametrize(
    ("ration", "waited", "pool"), [(RATION, 300.0, "cpu"), (TRIED, 300.0, "cpu"), (WON, 1200.0, "cpu"), (WON, 300.0, "gpu")]
)
def test_refused_jobs_take_no_time_from_it_while_no_try_is_won_or_where_they_do_not_come_before_it(ration, waited, pool):
    state, _, seconds = fate(ration, waited, pool)
    assert (state, seconds is not None) == ("placed", True)


def test_a_pause_ends_at_once_while_no_executor_is_free_beside_its_job():
    record, node = an_agent(builds=(a_build("other"),))
    assert watched(records=()).controller("main").rations["cpu"].until_at == NOW
    assert watched(node, records=(record,)).controller("main").rations["cpu"].until_at == NOW


def test_a_pause_goes_on_while_an_executor_is_free_beside_its_job():
    record, node = an_agent()
    assert watched(node, records=(record,)).controller("main").rations["cpu"] == replace(RATION, seen_at=NOW)


def test_a_second_pause_goes_on_whatever_is_free_unless_a_job_began_after_the_first():
    second = replace(RATION, is_cut_short=True)
    assert watched(ration=second).controller("main").rations["cpu"].until_at == RATION.until_at
    record, node = an_agent(builds=(replace(a_build("release", run="job/release/7"), key="cpu-1/0/job/release/7"),))
    assert not watched(node, records=(record,), ration=second).controller("main").rations["cpu"].is_cut_short


def test_a_job_that_weighs_more_than_any_machine_has_is_beside_a_machine_that_is_free_altogether():
    """Planning gives it the whole machine. Jenkins' Heavy Job plugin never starts it: without this nobody would notice."""
    fleet = replace(a_fleet(), weights=JobWeights(by_pattern=(("release", 4),)))
    record, node = an_agent()
    view = a_view(node, items=(an_item(1, job="release", label="cpu", waiting_seconds=900.0),))
    memory = watch(assess(with_beacons(a_snapshot(view, records=(record,)), fleet), fleet)).memory
    assert list(tables(memory).free_nodes) == ["main/cpu-1"]


def test_a_heavy_job_is_beside_a_machine_that_shows_no_more_executors_than_heavy_builds_fit():
    """Of four executors a build of two runs; the node shows two, and the one that is left is room for another such build."""
    fleet = replace(a_fleet(a_pool(executors=4)), weights=JobWeights(by_pattern=(("release", 2),)))
    record, node = an_agent(builds=(a_build("release", run="job/release/7"),), executors=2)
    view = a_view(node, items=(an_item(1, job="release", label="cpu", waiting_seconds=900.0),))
    memory = watch(assess(with_beacons(a_snapshot(view, records=(replace(record, labels=("cpu",)),)), fleet), fleet)).memory
    assert list(tables(memory).free_nodes) == ["main/cpu-1"]


def is_tried(free_for, *refusals, job="release", patience=180.0):
    """A node has stood free beside a job for so long; ``refusals``: how long ago agents refused the job."""
    node = FreeNode(since_at=NOW - free_for, seen_at=NOW, looks=5, session="s1", labels=("cpu",), refused={job: NOW})
    ration = replace(RATION, failures=len(refusals), failed_at=NOW - refusals[-1])
    return Distrust(nodes={"cpu-1": node}, rations={"cpu": ration}, now=NOW, patience_seconds=patience).is_tried("cpu-1")


@pytest.mark.parametrize(("refusals", "seconds"), [((900, 170), 360), ((1800, 900, 170), 720), ((3600, 1800, 900, 170), 720)])
def test_each_agent_that_is_tried_for_a_job_stays_for_longer_beside_it_than_the_one_before(refusals, seconds):
    assert is_tried(seconds - 10, *refusals)
    assert not is_tried(seconds, *refusals)


def test_no_agent_stays_beside_what_it_refuses_for_longer_than_a_slow_jenkins_needs():
    """Two builds that a lock had held said that Jenkins takes 23 minutes; an agent stood beside the third for an hour."""
    assert is_tried(890, 3600, 1800, 870, patience=600.0)
    assert not is_tried(900, 3600, 1800, 870, patience=600.0)


@pytest.mark.parametrize(
    ("free_for", "refusals"),
    [
        (190, (10,)),  # the first that refuses
        (5, (900, 10)),  # it stands there anew, and has refused before
    ],
)
def test_no_other_agent_that_refuses_a_job_stays_beside_it(free_for, refusals):
    assert not is_tried(free_for, *refusals)


@pytest.mark.parametrize(("began_ago", "is_replaced"), [(60.0, True), (900.0, False)])
def test_an_agent_that_is_useless_is_replaced_only_while_its_controller_starts_builds(began_ago, is_replaced):
    """0.3.0 called each node useless that refused jobs of two folders, also where nothing began anywhere."""
    record, node = an_agent()
    stands = FreeNode(since_at=NOW - 600.0, seen_at=NOW - 60.0, looks=9, session="s1", labels=tuple(sorted(node.labels)), is_useless=True)
    session = a_session(since_at=NOW - 1e6, began_at=NOW - began_ago)
    memory = a_memory(sessions={"main": session}, free_nodes={"main/cpu-1": stands})
    view = a_view(node, items=(an_item(1, job="a", label="cpu", waiting_seconds=900.0),))
    decided = scale_down(with_beacons(a_snapshot(view, records=(record,), memory=memory), a_fleet()), a_fleet()).steps
    assert ("refuses-all" in [step.reason for step in decided]) is is_replaced


def test_an_agent_that_refuses_another_job_does_not_stay_beside_it():
    assert not is_tried(190, 900, 10, job="lint")


def handed_out(*waited, free_for=300.0, names=("job",), left=()):
    """Builds have begun on a node that stood free beside them, and others of their names stand there still."""
    record, node = an_agent(
        executors=4, builds=tuple(replace(a_build(name, run=f"job/{name}/7"), key=f"cpu-1/0/job/{name}/7") for name in names)
    )
    stood = FreeNode(since_at=NOW - free_for, seen_at=NOW - 60.0, looks=5, session="s1", labels=("cpu",), refused={"other": NOW - 60.0})
    past = ControllerPast(free_nodes={"cpu-1": stood}, hand_outs=waited, beside=dict.fromkeys(("job", "other"), NOW - free_for))
    memory = replace(a_memory(sessions={"main": a_session(since_at=NOW - 1e6)}), controllers={"main": past})
    view = a_view(node, items=tuple(an_item(number, job=name, label="cpu", waiting_seconds=900.0) for number, name in enumerate(left)))
    return watch(assess(with_beacons(a_snapshot(view, records=(record,), memory=memory), a_fleet()), a_fleet())).memory.controller("main")


def test_a_job_that_began_beside_free_executors_says_how_slowly_jenkins_hands_them_out():
    assert handed_out().hand_outs == (300.0,)
    assert handed_out(names=("job", "new")).hand_outs == (300.0,)
    assert handed_out(names=("new",)).hand_outs == (0.0,)


def test_a_job_of_which_others_wait_on_beside_free_executors_is_throttled_and_says_nothing_of_jenkins():
    assert handed_out(left=("job",)).hand_outs == ()


def test_refusals_that_a_slow_jenkins_explains_are_withdrawn():
    assert handed_out(300.0, left=("other",)).free_nodes["cpu-1"].refused
    assert not handed_out(300.0, 300.0, left=("other",)).free_nodes["cpu-1"].refused


@pytest.mark.parametrize(
    ("hand_outs", "seconds"),
    [((), 180), ((600.0, 600.0), 180), ((0.0, 600.0, 600.0), 900), ((0.0, 0.0, 600.0), 180), ((200.0,) * 10, 300), ((3600.0,) * 10, 900)],
)
def test_an_executor_may_stand_free_for_half_as_long_again_as_jenkins_usually_takes(hand_outs, seconds):
    assert patience_of(hand_outs) == seconds
