"""What happens to machines that are stopped and started again: by us, by people, and where EC2 refuses or fails."""

from contextlib import suppress
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.ec2.error_codes import Ec2Error
from autoscaler_workbench.fakes.world.ec2.stopping import NO_CAPACITY

WARM_POOLS = st.sampled_from(
    [
        None,
        WarmPool(min_agents=0, max_agents=3, max_age_seconds=168 * 3600.0),
        WarmPool(min_agents=1, max_agents=2, max_age_seconds=7200.0),
    ]
)
_NO_KEY = "Client.InternalError"  # for its disk: every start fails a few seconds after EC2 has granted it


class MachinesAreStopped(RuleBasedStateMachine):
    """The rules about stopped machines, for a world that has the others."""

    def started_by_hand(self, instance):
        """Tell whether a person started it in its present life: no limit of ours holds them."""
        return instance.is_on() and self.by_hand.get(instance.id) == instance.life

    def only_stopped_are_recorded(self):
        """Tell whether the records are those of the stopped machines, and say so; and whether as many are stopped as are wanted."""
        off = {instance.id: instance for instance in self.world.alive() if not instance.is_on()}
        records = {key: record for key, record in self.fleet.state.records.items() if not record.is_host}
        if set(records) != set(off) or any(record.state is not RecordState.STOPPED for record in records.values()):
            return False
        # Where EC2 refused an offering, or did not let us stop an agent, none may be booted to be stopped for a day.
        refused = {scope.split("/")[1] for scope in self.fleet.state.memory.trials if "/" in scope}
        pools = [pool for pool in self.fleet.fleet.pools.values() if pool.warm_pool and pool.name not in refused]
        stopped = [instance.tags["autoscaler:pool"] for instance in off.values()]
        return all(stopped.count(pool.name) >= pool.warm_pool.min_agents for pool in pools)

    def _one(self, which, wanted):
        found = sorted((instance for instance in self.world.alive() if wanted(instance)), key=lambda instance: instance.id)
        return found[which % len(found)] if found else None

    @rule(which=st.integers(0, 9), minutes=st.integers(1, 5))
    def a_person_stops_a_machine(self, which, minutes):
        """What runs on it is theirs to answer for: no build that we killed."""
        instance = self._one(which, lambda one: one.state == "running" and one.market != "spot" and not one.stop_protected)
        if instance:
            instance.interrupted = True
            self.world.ec2.stop(instance.id)
            instance.interrupted = False
        self.minutes(minutes)

    @rule(which=st.integers(0, 9), minutes=st.integers(1, 5))
    def a_person_starts_a_stopped_machine(self, which, minutes):
        instance = self._one(which, lambda one: one.state == "stopped")
        if instance:
            with suppress(Ec2Error):
                self.world.ec2.start(instance.id)
                self.by_hand[instance.id] = instance.life
        self.minutes(minutes)

    @rule(which=st.integers(0, 9))
    def a_person_terminates_a_stopped_machine(self, which):
        instance = self._one(which, lambda one: one.state == "stopped")
        if instance:
            self.world.ec2.end(instance)
        self.minutes(1)

    @rule(which=st.integers(0, 9))
    def a_machine_may_not_be_stopped_any_more(self, which):
        if instance := self._one(which, lambda one: one.is_on()):
            instance.stop_protected = True

    @rule(which=st.integers(0, 9))
    def a_stopped_machine_does_not_start_any_more(self, which):
        if instance := self._one(which, lambda one: not one.is_on()):
            instance.fails_to_start = _NO_KEY
        self.minutes(1)

    @rule(minutes=st.integers(1, 10))
    def ec2_has_no_machine_for_any_start(self, minutes):
        short = [instance for instance in self.world.alive() if not instance.fails_to_start]
        for instance in short:
            instance.fails_to_start = NO_CAPACITY
        self.minutes(minutes)
        for instance in short:
            instance.fails_to_start = ""

    @precondition(lambda self: any(pool.warm_pool for pool in self.fleet.fleet.pools.values()))
    @rule(minutes=st.integers(1, 20))
    def the_fleet_file_wants_no_stopped_machines_for_a_while(self, minutes):
        before = self.fleet.fleet
        pools = {name: replace(pool, warm_pool=None) for name, pool in before.pools.items()}
        self.fleet.fleet = replace(before, pools=pools)
        self.minutes(minutes)
        self.fleet.fleet = before
