"""People order runs and cancel them, and lost builds run again: what our account starts and stops in Jenkins is what was asked for."""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy, Until, Verdict
from autoscaler.domain.report.ordered import outcome_of
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.machine_fleet import HOST_POOL
from support.ordering import LABEL, RUN_ID, asked, cancel, order
from support.timeline import Day

RERUNS = st.sampled_from([None, RerunPolicy(times=1), RerunPolicy(times=2, then_on_demand=True)])
KINDS = st.sampled_from(list(Kind))
_US = "autoscaler"


def parameter_of(build):
    """What a build was given by us, by which it is found; "": nothing. A person who rebuilds it copies that."""
    is_copy = build.started_with.repeats and _US not in build.started_with.users
    return "" if is_copy else dict(build.started_with.parameters).get(RUN_ID) or ""


class RunsAreOrdered(RuleBasedStateMachine):
    """The rules about ordered runs and about builds that run again, for a world that has the others."""

    orders_runs, rerun = False, None

    def let_runs_be_ordered(self, orders_runs, rerun):
        """Write both into the fleet file."""
        self.orders_runs, self.rerun = orders_runs, rerun
        fleet = self.fleet.fleet
        pools = {name: replace(pool, rerun=rerun) if pool.offerings else pool for name, pool in fleet.pools.items()}
        runs = RunPolicy(label_parameter=LABEL, max_open=3) if orders_runs else None
        self.fleet.fleet = replace(fleet, pools=pools, runs=runs)

    def ordered(self):
        return self.fleet.run_orders.orders

    def started_for(self, name):
        """The runs of a job in all controllers, each by its first stage."""
        runs = (controller.runs.get(build.run_path) for controller in self.controllers for build in controller.builds_of.get(name, ()))
        return list({stages[0].run_path + stages[0].controller: stages for stages in runs if stages}.values())

    @precondition(lambda self: self.orders_runs)
    @rule(
        kind=KINDS,
        runs=st.integers(1, 3),
        on=st.sampled_from([None, "cpu", "gpu", "linux"]),
        vary=st.sampled_from([None, "pool", "controller"]),
        until=st.sampled_from(list(Until)),
        resubmit=st.integers(0, 2),
        replacing=st.integers(0, 2),
        seconds=st.sampled_from([60.0, 600.0, 1500.0]),
        minutes=st.integers(2, 14),
        then=st.sampled_from(["", "cancelled", "failing", "passing", "lost"]),
    )
    def a_person_orders_runs(self, *, kind, runs, on, vary, until, resubmit, replacing, seconds, minutes, then):
        """Of a job that takes as long on each controller; ``then``: what happens to them some minutes later."""
        if then == "failing":  # so that somebody takes its place
            until, replacing = Until.ALL if until is Until.EACH else until, 2
        job, before = f"ordered-{kind}", len(self.ordered())
        for api in self.fleet.apis.values():
            api.jobs.jobs[job] = Job(kind, None, seconds, declares=dict.fromkeys((LABEL, RUN_ID), ""), label_parameter=LABEL)
        request = {"until": until, "resubmit": resubmit, "replacing": replacing, "request_id": f"r-{self.chance.getrandbits(40)}"}
        for _ in range(self.chance.choice([1, 2])):  # the same request may come twice
            self._run(lambda: order(Day(self.fleet, by_adapters=True), asked(runs, on=on, vary=vary, job=job), **request))
        self.happened["an order"] += len(self.ordered()) - before
        self.minutes(minutes)
        if then == "cancelled":
            self._cancel(-1)
        elif then == "lost":
            self._is_lost(0)
        elif then:
            self._ends_early(0, fails=then == "failing")
        self.minutes(1)

    def order_some(self):
        """Order as a rule would, in each world in which runs may be ordered: which rules a world draws is chance."""
        self.a_person_orders_runs(
            kind=self.chance.choice(list(Kind)),
            runs=self.chance.choice([1, 2, 3]),
            on=self.chance.choice([None, "cpu", "linux"]),
            vary=None,
            until=self.chance.choice(list(Until)),
            resubmit=self.chance.choice([0, 1]),
            replacing=0,
            seconds=self.chance.choice([60.0, 600.0]),
            minutes=self.chance.choice([6, 12]),
            then=self.chance.choice(["", "cancelled", "failing", "passing", "lost"]),
        )

    @precondition(lambda self: self.orders_runs)
    @rule(which=st.integers(0, 9))
    def a_person_cancels_an_order(self, which):
        self._cancel(which)
        self.minutes(1)

    @precondition(lambda self: self.orders_runs)
    @rule(kind=KINDS, label=st.sampled_from(["cpu", "gpu"]))
    def somebody_builds_the_job_that_is_ordered_by_themselves(self, kind, label):
        jobs = self.fleet.apis["main"].jobs
        if f"ordered-{kind}" in jobs.jobs:
            jobs.build(f"ordered-{kind}", {LABEL: label}, "somebody")
            self.happened["a build beside an order"] += 1
        self.minutes(1)

    @precondition(lambda self: self.rerun)
    @rule(kind=KINDS, label=st.sampled_from(["cpu", "gpu"]), minutes=st.integers(3, 12))
    def a_build_begins_that_must_never_run_twice(self, kind, label, minutes):
        """Its job declares our parameter. Its machine may be taken from it before long."""
        jobs = self.fleet.apis["main"].jobs
        jobs.jobs[f"once-{kind}-{label}"] = Job(kind, label, 900.0, declares={RUN_ID: ""})
        jobs.build(f"once-{kind}-{label}", {}, "somebody")
        self.minutes(minutes)
        self._is_lost(-1)
        self.minutes(1)

    @precondition(lambda self: self.orders_runs or self.rerun)
    @rule(which=st.integers(0, 9), minutes=st.integers(0, 4))
    def a_machine_is_taken_from_a_build(self, which, minutes):
        """Of one that may run again, as far as there are any."""
        self._is_lost(which)
        self.minutes(minutes)

    @precondition(lambda self: self.orders_runs or self.rerun)
    @rule(which=st.integers(0, 9), is_lost=st.booleans(), minutes=st.integers(0, 6))
    def a_person_rebuilds_a_build(self, which, is_lost, minutes):
        """Perhaps one that was lost right now, of which the autoscaler does not know yet; with its parameters, ours among them."""
        if is_lost:
            self._is_lost(which)
        ours = [stages[0] for job in self._jobs() for stages in self.started_for(job) if stages[0].ended or not is_lost]
        if ours:
            build = ours[-1 - which % len(ours)]
            api = self.fleet.apis[build.controller]
            if build.job in api.jobs.jobs:
                api.jobs.rebuild(build, "somebody")
                api.acted += 1  # a person's call, too, changes what a look shows
                self.happened["a person rebuilds a build"] += 1
        self.minutes(minutes)

    @invariant()
    def nothing_is_started_twice(self):
        """What has a name of ours is one build in all of Jenkins, and an order's are as many as it may have."""
        if not hasattr(self, "world"):
            return
        names = Counter(parameter_of(stages[0]) for job in self._jobs() for stages in self.started_for(job))
        assert [name for name, times in names.items() if name and times > 1] == []
        for one in self.ordered().values():
            tries = {each.id for each in one.all_tries()}
            assert {name for name in names if name.startswith(f"{one.id}.")} <= tries
            assert len(tries) <= len(one.parts) * (1 + one.resubmit) + one.replace

    @invariant()
    def a_lost_build_runs_again_no_more_often_than_the_fleet_file_says(self):
        if not hasattr(self, "world"):
            return
        answers = [one for one in self.fleet.state.reruns.values() if one.times]
        most = self.rerun.most if self.rerun else 0
        assert [one for one in answers if one.times > most] == []
        by_us = {build.run_path for build in self.builds() if _US in build.started_with.users and not self._is_ordered(build)}
        assert len(by_us) <= len(answers)

    @invariant()
    def no_order_stops_what_is_not_its_own(self):
        if not hasattr(self, "world"):
            return
        over = {each.id for one in self.ordered().values() if one.is_over for each in one.all_tries()}
        stopped = [build for build in self.builds() if build.ended is Ended.ABORTED and build not in self.aborted]
        assert [build for build in stopped if parameter_of(build) not in over] == []

    @invariant()
    def nothing_of_an_order_that_has_ended_goes_on(self):
        """But for what nobody can tell of, which a person must look for."""
        if not hasattr(self, "world"):
            return
        tries = {each.id: each for one in self.ordered().values() if not one.is_open for each in one.all_tries()}
        going_on = {parameter_of(build) for build in self._of_orders() if build.ended is None} & set(tries)
        assert [tries[name] for name in going_on if tries[name].verdict is not Verdict.IN_DOUBT] == []

    def about_runs(self):
        """What must be true of runs, always."""
        yield self.nothing_is_started_twice
        yield self.a_lost_build_runs_again_no_more_often_than_the_fleet_file_says
        yield self.no_order_stops_what_is_not_its_own
        yield self.nothing_of_an_order_that_has_ended_goes_on

    def orders_have_ended(self):
        return not any(one.is_open for one in self.ordered().values())

    def waits_for_hosts_elsewhere(self, build):
        """Tell whether a build of an order, or a person's copy of one, waits for hosts that may all be elsewhere: then it does for ever."""
        tries = [each for one in self.ordered().values() for part in one.parts if part.target.pool == HOST_POOL for each in part.tries]
        return build.ended is None and not build.node and dict(build.started_with.parameters).get(RUN_ID) in {each.id for each in tries}

    def count_what_was_ordered(self):
        """Count, for whoever asks whether it was drawn often enough."""
        self.happened["a world in which runs are ordered"] += self.orders_runs
        self.happened["a world in which lost builds run again"] += self.rerun is not None
        for one in self.ordered().values():
            self.happened[f"an order that {outcome_of(one)}"] += 1
            for part in one.parts:
                verdicts = [each.verdict for each in part.tries[:-1]]
                self.happened["an ordered build that was lost and started again"] += verdicts.count(Verdict.LOST)
                self.happened["a failing worker that was replaced"] += len(verdicts) - verdicts.count(Verdict.LOST)
        self.happened.update(f"a lost build {one.state}" for one in self.fleet.state.reruns.values())

    def _cancel(self, which):
        open_ones = [one for one in self.ordered().values() if one.is_open]
        if open_ones:
            self._run(lambda: cancel(Day(self.fleet, by_adapters=True), open_ones[which % len(open_ones)].id))
            self.happened["a person cancels an order"] += 1

    def _ends_early(self, which, *, fails):
        running = [build for build in self._of_orders() if build.node and build.ended is None and build.resumes_on is None]
        running = [build for build in running if self.world.controllers[build.controller].up == "up"]
        if running:
            build = running[which % len(running)]
            self.world.controllers[build.controller].end(build, succeeded=not fails)
            self.happened["an ordered build ends early"] += 1

    def _is_lost(self, which):
        nodes = {self.world.node_of(one).name: one for one in self.world.alive() if self.world.node_of(one)}
        ours = [build for build in self.builds() if build.job.startswith(("ordered-", "once-"))]
        running = [build for build in ours if build.node in nodes and build.ended is None]
        if running:
            instance = nodes[running[which % len(running)].node]
            instance.interrupted = True  # not our doing
            self.world.timeline.after(0.0, lambda: self.world.ec2.end(instance))
            self.world.timeline.sleep(0.0)  # an event of the world, as in the simulator: who keeps a look counts those
            self.happened["a machine taken from a build"] += 1

    def _jobs(self):
        return sorted({job for controller in self.controllers for job in controller.builds_of if job.startswith(("ordered-", "once-"))})

    def _of_orders(self):
        return [build for build in self.builds() if self._is_ordered(build)]

    def _is_ordered(self, build):
        return parameter_of(build).startswith("run-")
