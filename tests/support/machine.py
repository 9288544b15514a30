"""A world in which anything happens, as a hypothesis state machine: the fleet's promises are checked at each step and in the end."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from autoscaler.adapters.jenkins.session import READ_SECONDS
from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.nodes import described_instance
from autoscaler_workbench.fakes.world.ec2.error_codes import LAUNCH_CODES
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import CURRENT_VERSION, DROPS_BUILDS
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.result import beyond_floor, dollars_an_hour, leaked_instances, leaked_nodes, rate_of
from support.machine_fleet import POOLS, SLOTS, SPOT, TEAMS, hosts, pool_of_hosts, pools
from support.machine_images import ImagesChange
from support.machine_jobs import JobStatisticsFail
from support.machine_people import PeopleAct
from support.machine_runs import RERUNS, RunsAreOrdered
from support.machine_shares import SHARES, MachinesAreShared
from support.machine_stops import WARM_POOLS, MachinesAreStopped
from support.worlds import in_memory

MINUTE = 60.0
# With no build beginning or ending for this long it must be at rest: the longest build, then what the repairs take. The longest of
# these is for an instance that ended while EC2 showed nothing, and that EC2 has forgotten since: it is given up two hours later.
PATIENCE_MINUTES = 240
ADOPTED_WITHIN_MINUTES = 30  # with calls that fail
MAX_USD_PER_HOUR = 20.0
HEAVY = JobWeights(by_pattern=(("job-*", 2), ("app/*", 50)))
JOBS = ("job-0", "größe", "a b/日本", "app/feature%2Fx", "c++", "#4?/5")
LABELS = st.sampled_from(["cpu", "gpu", "linux", "linux&&!gpu"])


class AnythingHappens(MachinesAreStopped, ImagesChange, MachinesAreShared, PeopleAct, JobStatisticsFail, RunsAreOrdered):
    """Each rule is something that the world, people or AWS do; a minute's passes follow, with calls that fail."""

    minutes_lived = 0
    happened: ClassVar[Counter[str]] = Counter()  # in all worlds of this process

    @initialize(
        seed=st.integers(0, 10**6),
        lag=st.sampled_from([0.0, 30.0]),
        slots=st.booleans(),
        resume=st.sampled_from([1.0, 180.0, 1200.0]),
        version=st.sampled_from([CURRENT_VERSION, DROPS_BUILDS]),
        warm=WARM_POOLS,
        teams=st.sampled_from([{}, TEAMS]),
        images=st.booleans(),
        lends=st.booleans(),
        shares=SHARES,
        has_hosts=st.booleans(),
        orders_runs=st.booleans(),
        rerun=RERUNS,
        heavy=st.booleans(),
    )
    def begin(
        self,
        *,
        seed,
        lag,
        slots,
        resume,
        version,
        warm,
        teams,
        images,
        lends,
        shares=None,
        has_hosts=False,
        orders_runs=False,
        rerun=None,
        heavy=False,
    ):
        self.chance = Random(seed)
        physics = Physics(resume_to_seconds=resume)
        attempts = self.chance.choice([1, 2])
        if slots and shares:
            shares = Share.NONE  # agents on static nodes stay where they are
        has_hosts = has_hosts and not slots
        self.fleet = in_memory(
            *pools(None if slots else warm, images=images, lends=lends, shares=shares),
            *([pool_of_hosts(shares)] if has_hosts else []),
            hosts=hosts() if has_hosts else (),
            seed=seed,
            slots=SLOTS if slots else None,
            physics=physics,
            sdk_attempts=attempts,
            max_agents=8,
            max_usd_per_hour=MAX_USD_PER_HOUR,
        )
        self.fleet.fleet = replace(self.fleet.fleet, teams=teams, weights=HEAVY if heavy else JobWeights())
        self.let_runs_be_ordered(orders_runs, rerun)
        self.world, self.jenkins = self.fleet.world, self.fleet.world.controllers["main"]
        self.other = self.world.controllers.get("other")
        self.share_machines(shares)
        self.world.ec2.lag_seconds = lag
        self.names_images = images
        if images:
            self.name_images()
        # The operator of slots keeps their labels: there a Jenkins that drops what it hands over has no other way out than an upgrade.
        self.jenkins.version = CURRENT_VERSION if slots else version
        self.fleet.faults.meanwhile = self._hands_over
        self.fail_job_statistics(seed)
        self.world.ec2.listing = Listing(page=self.chance.choice([2, 5, 1000]))
        self.forgets_tokens = self.chance.random() < 0.5
        self.share, self.whole_until, self.trickles_until = 0.0, 0.0, 0.0
        self.unseen = set[str]()
        self.by_hand, self.aborted = {}, []
        self.minutes(3)
        if orders_runs:
            self.order_some()

    @rule(label=LABELS, seconds=st.floats(20, 2400), kind=st.sampled_from(list(Kind)), count=st.integers(1, 4))
    def jobs_arrive(self, label, seconds, kind, count):
        for _ in range(count):
            self.jenkins.submit(self.chance.choice(JOBS), label, seconds, kind=kind)
        self.minutes(1)

    @rule(seconds=st.floats(20, 900))
    def a_pipeline_holds_one_executor_and_asks_for_another(self, seconds):
        outer = self.jenkins.submit("nested", "cpu", 2400.0, kind=Kind.PIPELINE)
        self.jenkins.submit("nested", "gpu", seconds, kind=Kind.PIPELINE, number=outer.number)
        self.minutes(1)

    @rule(minutes=st.integers(1, 12))
    def time_passes(self, minutes):
        self.minutes(minutes)

    @rule(share=st.sampled_from([0.0, 0.05, 0.2, 0.4]))
    def calls_begin_to_fail(self, share):
        self.share = share

    @rule(minutes=st.integers(1, 6))
    def the_controller_answers_a_byte_at_a_time(self, minutes):
        """Each read ends at its deadline, with nothing read; what was asked for may have been done."""
        self.trickles_until = self.world.timeline.now + minutes * MINUTE
        self.minutes(minutes)

    @rule(skew=st.floats(-20, 20))
    def the_functions_run_on_a_machine_with_another_clock(self, skew):
        self.fleet.skew_seconds = skew

    @precondition(lambda self: self.jenkins.up == "up")
    @rule()
    def the_controller_restarts(self):
        self.jenkins.restart()
        self.minutes(1)

    @precondition(lambda self: self.jenkins.up == "up")
    @rule()
    def configuration_as_code_is_reloaded(self):
        self.jenkins.reload_configuration_as_code()
        self.minutes(1)

    @rule(minutes=st.integers(1, 5))
    def the_controller_prepares_to_shut_down_and_does_not(self, minutes):
        self.jenkins.quiet_down("an upgrade")
        self.minutes(minutes)
        self.jenkins.cancel_quiet_down()

    @precondition(lambda self: self.world.alive())
    @rule(which=st.integers(0, 9), warned=st.booleans())
    def an_instance_is_taken_away(self, which, warned):
        alive = sorted(self.world.alive(), key=lambda instance: instance.id)
        instance = alive[which % len(alive)]
        instance.interrupted = True  # not our doing: what it takes with it is no build that we killed
        if warned:
            self.world.ec2.interrupt(instance)
        else:
            self.world.ec2.end(instance)
        self.minutes(1)

    @precondition(lambda self: self.world.alive())
    @rule(which=st.integers(0, 9))
    def a_connection_is_lost(self, which):
        alive = sorted(self.world.alive(), key=lambda instance: instance.id)
        instance = alive[which % len(alive)]
        node, controller = self.world.node_of(instance), self.world.controllers.get(instance.tags.get("autoscaler:controller"))
        waited_for = {build.node for build in controller.builds if build.ended is None}  # also by what has yet to resume
        if node is not None and node.connected and not node.builds and node.name not in waited_for:
            controller.disconnect(node.name)
            if self.chance.random() < 0.5:
                life = instance.life
                self.world.timeline.after(self.chance.uniform(5, 600), lambda: self._reconnect(controller, node.name, instance, life))
        self.minutes(1)

    @precondition(lambda self: self.world.timeline.now >= self.whole_until)
    @rule(minutes=st.integers(1, 30))
    def ec2_shows_nothing_for_a_while(self, minutes):
        self.world.ec2.listing = replace(self.world.ec2.listing, empty_until=self.world.timeline.now + minutes * MINUTE)
        self.minutes(minutes)

    @precondition(lambda self: self.world.timeline.now >= self.whole_until)
    @rule(missing=st.sampled_from([0.0, 0.2, 0.6]))
    def instances_are_missing_even_where_they_are_asked_for_by_id(self, missing):
        self.world.ec2.listing = replace(self.world.ec2.listing, missing=missing, missing_by_id=missing)

    # A machine that EC2 does not show, or whose record is lost, gets no identity for minutes; a pipeline is given up after five.
    @precondition(lambda self: self.world.alive() and self._is_known())
    @rule(which=st.integers(0, 9))
    def an_agents_process_restarts(self, which):
        alive = sorted(self.world.alive(), key=lambda instance: instance.id)
        instance = alive[which % len(alive)]
        node = self.world.node_of(instance)
        # A freestyle build dies with its agent's process, a pipeline's if its agent, whose record was lost, is taken in too late, or if its
        # `sh` is only about to begin.
        builds = [build for _, side in self.sides_of(node.name) for build in side.builds.values()] if node else []
        known = {record.machine for record in self.fleet.state.records.values()}
        now = self.world.timeline.now
        lasts = (build.kind is Kind.PIPELINE and (build.waits_for_input or build.sh_has_begun(now)) for build in builds)
        if node is not None and all(lasts) and (instance.id in known or not builds):
            self.fleet.agents.restarts(instance)
        share, self.share = self.share, 0.0  # until it is told again who it is
        self.minutes(2)
        self.share = share

    @precondition(lambda self: self.world.timeline.now >= self.whole_until)
    @rule(missing=st.sampled_from([0.0, 0.2, 0.6]))
    def instances_are_missing_from_some_lists(self, missing):
        self.world.ec2.listing = replace(self.world.ec2.listing, missing=missing)

    @rule(which=st.integers(0, 9), minutes=st.integers(1, 10))
    def a_record_cannot_be_read_for_a_while(self, which, minutes):
        known = sorted(self.fleet.state.records)
        if known:
            self.fleet.state.unreadable.add(f"record#{known[which % len(known)]}")
        self.minutes(minutes)
        self.fleet.state.unreadable.clear()

    @rule(which=st.integers(0, 9))
    def a_machine_begins_to_fail_whatever_it_builds(self, which):
        nodes = sorted(name for name, node in self.jenkins.nodes.items() if node.connected)
        if nodes:
            self.jenkins.nodes[nodes[which % len(nodes)]].fails_builds = True
        self.minutes(1)

    @rule(pool=st.sampled_from(POOLS))
    def a_launch_template_gets_a_new_version(self, pool):
        self.world.ec2.template_versions[pool] = self.world.ec2.version_of(pool) + 1

    @rule(pool=st.sampled_from(POOLS), left=st.integers(0, 2))
    def capacity_is_short_for_a_while(self, pool, left):
        keys = [offering.key for offering in self.fleet.fleet.pools[pool].offerings]
        self.world.ec2.capacity |= dict.fromkeys(keys, left)
        self.minutes(2)
        self.world.ec2.capacity.clear()

    @rule(minutes=st.integers(2, 40))
    def the_months_money_is_spent_for_a_while(self, minutes):
        fleet = self.fleet.fleet
        self.fleet.fleet = replace(fleet, limits=replace(fleet.limits, max_usd_per_month=1e-6))
        self.minutes(minutes)
        self.fleet.fleet = fleet

    @rule(usd=st.floats(0.5, 3.0))
    def the_spot_price_moves(self, usd):
        self.world.ec2.spot_usd_per_hour[SPOT.key] = usd
        self.minutes(1)

    @rule(pool=st.sampled_from(POOLS), code=st.sampled_from(LAUNCH_CODES), which=st.integers(0, 1), alone=st.booleans())
    def ec2_refuses_launches_for_a_while(self, pool, code, which, alone):
        offerings = self.fleet.fleet.pools[pool].offerings
        if alone:
            self.world.ec2.refuse = code, "refused"
        else:
            self.world.ec2.answers[offerings[which % len(offerings)].key] = code
        self.minutes(2)
        self.world.ec2.refuse = None
        self.world.ec2.answers.clear()

    @rule()
    def the_state_is_lost(self):
        self.is_state_lost = True
        # Until instances are adopted, EC2's list is all that is known of them: if that leaves some out too, no limit can count them.
        self.world.ec2.listing = replace(self.world.ec2.listing, missing=0.0, missing_by_id=0.0, empty_until=0.0)
        self.whole_until = self.world.timeline.now + ADOPTED_WITHIN_MINUTES * MINUTE
        state = self.fleet.state
        state.records.clear()
        state.intents.clear()
        state.memory = type(state.memory)(version=state.memory.version)
        self.minutes(1)

    @invariant()
    def money_has_a_ceiling(self):
        if hasattr(self, "world"):
            self._note_unseen()
            ours = [one for one in self.world.alive() if one.is_on() and not self._is_uncounted(one)]
            for pool in self.fleet.fleet.pools.values():
                assert sum(instance.tags["autoscaler:pool"] == pool.name for instance in ours) <= pool.max_agents
            assert len(ours) <= self.fleet.fleet.limits.max_agents
            for team in self.fleet.fleet.teams.values():
                mine = [instance for instance in ours if instance.tags["autoscaler:pool"] in team.pools]
                assert len(mine) <= team.ceilings.max_agents
                assert sum(rate_of(self.world, instance) for instance in mine) <= team.ceilings.max_usd_per_hour + 1e-9
            theirs_usd = sum(rate_of(self.world, one) for one in self.world.alive() if self._is_uncounted(one))
            assert dollars_an_hour(self.world) - theirs_usd <= MAX_USD_PER_HOUR + 1e-9

    def _note_unseen(self):
        """Note what a launch without an answer brought, and what most lists leave out for ten minutes: EC2 does so for seconds."""
        if self.world.ec2.listing.missing > 0.5:
            known, since = {record.machine for record in self.fleet.state.records.values()}, self.world.timeline.now - 600.0
            self.unseen |= {one.id for one in self.world.alive() if one.id not in known and one.launched_at < since}

    def _is_uncounted(self, instance):
        return self.started_by_hand(instance) or instance.id in self.unseen

    @invariant()
    def no_build_is_killed(self):
        if hasattr(self, "world"):
            ours = [b for b in self.builds() if not ("was interrupted" in b.killed_by or "lost its power" in b.killed_by)]
            assert [build for build in ours if build.killed_by or build.ended is Ended.KILLED] == []

    def _is_known(self):
        listing = self.world.ec2.listing
        return not listing.missing_by_id and self.world.timeline.now >= max(listing.empty_until, self.whole_until)

    def _lists_all(self):
        listing = self.world.ec2.listing
        return not listing.missing and self.world.timeline.now >= listing.empty_until

    def teardown(self):
        """The world behaves from now on, and no more jobs come: the fleet must come to rest."""
        if not hasattr(self, "world"):
            return
        self.share, self.fleet.skew_seconds = 0.0, 0.0
        self.world.ec2.listing = Listing()
        if self.names_images:
            self.every_pool_boots_again()
        self.powered_again()
        quiet = 0
        while quiet < PATIENCE_MINUTES and not self._at_rest():
            before = [(build.started_at, build.ended) for build in self.builds()]
            self.minutes(1)
            quiet = quiet + 1 if before == [(build.started_at, build.ended) for build in self.builds()] else 0
            if quiet == PATIENCE_MINUTES // 2:
                self._abort_what_waits_in_vain()
        self.no_build_is_killed()
        self.no_build_is_counted_twice()
        self.every_dollar_is_somebodys()
        for holds in self.about_runs():
            holds()
        self.count_what_was_done()
        self.count_what_was_ordered()
        assert self._at_rest(), self._left()

    def minutes(self, count):
        for _ in range(count):
            AnythingHappens.minutes_lived += 1
            trickles = self.world.timeline.now < self.trickles_until
            self.fleet.faults.dice = self._late if trickles else self._fault if self.share else None
            self.world.move_to(self.world.timeline.now + MINUTE)
            # A launch whose answer is lost, that no list shows and whose token EC2 has forgotten looks like one that EC2 never received.
            # If it is sent again, there are two instances, and no limit counts one that nobody knows of.
            self.world.ec2.forgets_tokens = self.forgets_tokens and self._lists_all()
            for function in (self.fleet.publish_metrics, self.fleet.scale_up, self.fleet.scale_down):
                self._run(function)

    def _run(self, function):
        # Lambda's own boundary: an error in the log, and the next tick comes.
        self.run_beside_failing_statistics(function)

    def _late(self, call):
        if not call.startswith("jenkins"):
            return None
        self.world.timeline.sleep(READ_SECONDS)
        return Fault(call, after=True)

    def _fault(self, call):
        if self.chance.random() >= self.share:
            return None
        return Fault(call, after=self.chance.random() < 0.5, status=self.chance.choice([0, 0, 503]), code="Unavailable")

    def _hands_over(self, call):
        """Jenkins hands out a build in the very instant in which a node is taken out of use."""
        if call in {"jenkins changeOfflineCause", "jenkins config.xml"} and self.chance.random() < 0.2:
            self.jenkins.submit("just-now", self.chance.choice(POOLS), 300.0, kind=self.chance.choice(list(Kind)))
            self.jenkins.schedule()
            if self.other and self.chance.random() < 0.5:
                self.other.submit("just-now", "gpu", 300.0, kind=self.chance.choice(list(Kind)))
                self.other.schedule()

    def _reconnect(self, controller, name, instance, life):
        if instance.is_on() and instance.life == life and instance.tags.get("autoscaler:controller") == controller.name:
            controller.connect(name)

    def _abort_what_waits_in_vain(self):
        """The runbook asks a person to abort a pipeline that waits for a machine which is gone, where its node is not deleted for it.

        A slot never is; nor, within a day, a node whose machine ended while EC2 showed nothing, and that EC2 has forgotten since; nor
        one whose machine a person has stopped, and may start again. So it is with an ordered run that waits for hosts elsewhere.
        """
        for build in self.builds():
            controller = self.world.controllers[build.controller]
            node = controller.nodes.get(build.node or "")
            of_a_slot = controller.name in self.fleet.fleet.slot_controllers
            machine = self.world.ec2.remembered.get(described_instance(self.fleet.fleet, node.name, node.description)) if node else None
            is_there = machine is not None and (not machine.alive() or machine.is_on())
            in_vain = "was interrupted" in build.killed_by and (of_a_slot or not is_there)
            if build.ended is None and (in_vain or self.waits_for_hosts_elsewhere(build)):
                controller.abort(build)
                self.aborted.append(build)

    def _left(self):
        held = [f"{held.reason}: {held.detail}" for report in self.fleet.reports[-3:] for held in report.plan.held]
        steps = [f"{result.step} {result.outcome} {result.detail}" for report in self.fleet.reports[-3:] for result in report.results]
        builds = [build for build in self.builds() if build.ended is None]
        nodes = [(one.name, node) for one in self.controllers for node in one.nodes.values() if "autoscaler-beacon" not in node.name]
        return "\n".join(map(str, (*held, *steps, *builds, *nodes, *self.world.alive(), *self.fleet.state.records.values())))

    def _at_rest(self):
        left = (leaked_instances(self.world), leaked_nodes(self.world), beyond_floor(self.world))
        quiet = left == ([], [], []) and self.orders_have_ended() and self.only_stopped_are_recorded() and self.hosts_serve()
        return quiet and all(build.ended for build in self.builds())
