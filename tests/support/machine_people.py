"""What people do to a fleet: they mark nodes, launch, drain, reserve and hold, and change what Jenkins lets us do."""

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from autoscaler.control import passes
from autoscaler.domain.facts.orders import DrainSome, Hold, LaunchSome, Release, Reserve, Scope, hold
from autoscaler.errors import AutoscalerError
from support.machine_fleet import POOLS

THEIR_WORDS = "disk swap, ask Anna"
MINUTE = 60.0


class PeopleAct(RuleBasedStateMachine):
    """The rules about people, for a world that has the others."""

    @rule(which=st.integers(0, 9), minutes=st.integers(1, 30))
    def a_person_takes_a_node_offline_and_gives_it_back(self, which, minutes):
        names = sorted(name for name in self.jenkins.nodes if not name.startswith("autoscaler-beacon"))
        if names and not self.jenkins.nodes[names[which % len(names)]].temporarily_offline:
            name = names[which % len(names)]
            self.world.move_to(self.world.timeline.now + 1.0)  # what Jenkins drops in the instant of a person's mark is not our doing
            if name in self.jenkins.nodes:
                self.jenkins.set_offline(name, THEIR_WORDS, "anna")
            self.world.timeline.after(minutes * MINUTE, lambda: self._give_back(name))
        self.minutes(1)

    @rule(pool=st.sampled_from(POOLS), count=st.integers(1, 3), more=st.booleans())
    def a_person_launches_or_drains(self, pool, count, more):
        asked = {"pool": pool, "count": count, "reason": "by hand", "request_id": f"r-{self.chance.getrandbits(40)}"}
        order = LaunchSome(controller="main", keep_seconds=0.0, **asked) if more else DrainSome(controller=None, **asked)
        self._run(lambda: passes.carry_out(self.fleet.ports, self.fleet.fleet, self.fleet.invocation(), order))

    @rule(pool=st.sampled_from(POOLS), which=st.integers(0, 9), minutes=st.integers(1, 90), named=st.booleans())
    def a_person_reserves_an_agent(self, pool, which, minutes, named):
        nodes = sorted(record.node for record in self.fleet.state.records.values() if record.node)
        order = Reserve(
            target=nodes[which % len(nodes)] if named and nodes else pool,
            controller=None,
            seconds=minutes * MINUTE,
            person="alice",
            by="ada",
            reason="by hand",
            request_id=f"r-{self.chance.getrandbits(40)}",
        )
        self._run(lambda: passes.carry_out(self.fleet.ports, self.fleet.fleet, self.fleet.invocation(), order))
        self.minutes(1)

    @rule(which=st.integers(0, 9))
    def a_person_releases_an_agent(self, which):
        mine = sorted(record.instance_id for record in self.fleet.state.records.values() if record.reservation)
        if mine:
            order = Release(target=mine[which % len(mine)], reason="by hand")
            self._run(lambda: passes.carry_out(self.fleet.ports, self.fleet.fleet, self.fleet.invocation(), order))
        self.minutes(1)

    @rule(pool=st.sampled_from(POOLS), minutes=st.integers(1, 60), freeze=st.booleans())
    def a_person_holds_a_pool(self, pool, minutes, freeze):
        now = self.world.timeline.now
        new = Hold(scope=Scope.POOL, name=pool, since_at=now, until_at=now + minutes * MINUTE, by="ada", reason="r", freeze=freeze)
        with suppress(AutoscalerError):
            self.fleet.state.save_overrides(hold(self.fleet.state.read().overrides.at(now), new))
        self.minutes(1)

    @rule()
    def the_token_is_rotated(self):
        self.fleet.rotate_token()
        self.minutes(1)

    @rule(minutes=st.integers(1, 20))
    def a_login_proxy_takes_what_is_posted(self, minutes):
        self.fleet.apis["main"].login_at = "https://sso.example.org/authorize?rd=%2Fcomputer%2F"
        self.minutes(minutes)
        self.fleet.apis["main"].login_at = ""

    @rule(right=st.sampled_from(["Create", "Delete", "Connect", "Disconnect"]), minutes=st.integers(1, 20))
    def a_right_is_taken_away_for_a_while(self, right, minutes):
        self.fleet.apis["main"].lacks.add(f"hudson.model.Computer.{right}")
        self.minutes(minutes)
        self.fleet.apis["main"].lacks.clear()

    @rule(which=st.integers(0, 5), minutes=st.integers(1, 60))
    def a_plugin_keeps_a_job_from_all_nodes(self, which, minutes):
        words = "Already running 1 builds across all nodes"
        self.jenkins.veto = lambda build, _node: words if build.job == f"job-{which}" else None
        self.minutes(minutes)
        self._nobody_vetoes()

    @invariant()
    def no_build_begins_on_what_was_launched_for_a_person(self):
        """Its node is marked before the agent knows how to connect."""
        for record in self.fleet.state.records.values() if hasattr(self, "world") else ():
            node = self.jenkins.nodes.get(record.node or "")
            if record.reservation and record.cordon.endswith(":registration") and node is not None:
                assert node.builds == {}

    def _nobody_vetoes(self):
        self.jenkins.veto = None
        self.jenkins.schedule()

    def _give_back(self, name):
        if name in self.jenkins.nodes and self.jenkins.nodes[name].reason == THEIR_WORDS:
            self.jenkins.toggle(name, "", "anna")
