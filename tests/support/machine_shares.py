"""What happens where several controllers share machines, and to hosts: on the other controller, by their power, by the fleet file."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.domain.facts.fleet import HOST, Lending, Share
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.machine_fleet import HOST_POOL, SHARED

MINUTE = 60.0
# How the second controller has its part of the shared pool; None: there is no second controller.
SHARES = st.sampled_from([Share.ROTATE, Share.COOPERATIVE, None, Share.NONE])
_ASKS_WITHIN_SECONDS = 300.0


class AskedAboutNoHost:
    """EC2, as it is asked: what names a host is noted, since EC2 knows none."""

    def __init__(self, compute):
        self._compute, self.about_hosts = compute, []

    def __getattr__(self, name):
        call = getattr(self._compute, name)

        def noted(*args, **facts):
            if f"'{HOST}" in repr((args, facts)):
                self.about_hosts.append((name, args))
            return call(*args, **facts)

        return noted


class MachinesAreShared(RuleBasedStateMachine):
    """The rules about a second controller, shared machines and hosts, for a world that has the others."""

    def share_machines(self, shares):
        """Note what is shared, and watch what EC2 is asked."""
        self.shares = shares
        self.asked_of_ec2 = AskedAboutNoHost(self.fleet.ports.compute)
        self.fleet.ports = replace(self.fleet.ports, compute=self.asked_of_ec2)

    @property
    def controllers(self):
        return list(self.world.controllers.values())

    def sides_of(self, machine_name):
        """The controllers that have a node of this name, with it."""
        return [(one, one.nodes[machine_name]) for one in self.controllers if machine_name in one.nodes]

    def builds(self):
        return [build for controller in self.controllers for build in controller.builds]

    def powered_again(self):
        """Let each host have power, and be in the fleet file."""
        for host in self.world.hosts.values():
            if not host.on:
                self.fleet.agents.power_returns(host)

    def hosts_serve(self):
        """Tell whether each host is connected somewhere, and has no node where it is not."""
        pool = self.fleet.fleet.pools.get(HOST_POOL)
        for name in self.fleet.fleet.hosts:
            nodes = [node for _, node in self.sides_of(name)]
            wanted = len(pool.controllers) if pool.share is Share.COOPERATIVE else 1
            if len(nodes) != wanted or not all(node.connected for node in nodes):
                return False
        return True

    @precondition(lambda self: self.shares is not None)
    @rule(label=st.sampled_from(["gpu", "linux"]), seconds=st.floats(20, 2400), kind=st.sampled_from(list(Kind)), count=st.integers(1, 3))
    def jobs_arrive_on_the_other_controller(self, label, seconds, kind, count):
        for number in range(count):
            self.other.submit(f"theirs-{number}", label, seconds, kind=kind)
        self.happened["jobs on the other controller"] += 1
        self.minutes(1)

    @precondition(lambda self: self.shares is not None)
    @rule(minutes=st.integers(5, 25), seconds=st.floats(20, 900))
    def each_controller_has_jobs_by_turns(self, minutes, seconds):
        """What the one no longer needs the other one waits for."""
        for controller in self.controllers:
            for number in range(2):
                controller.submit(f"by-turns-{number}", "gpu", seconds)
            self.minutes(minutes)
        self.happened["jobs by turns"] += 1

    @precondition(lambda self: self.shares is not None)
    @rule()
    def the_other_controller_restarts(self):
        self.other.restart()
        self.happened["restarts of the other controller"] += 1
        self.minutes(1)

    @precondition(lambda self: self.shares is not None)
    @rule(minutes=st.integers(1, 12), login=st.booleans())
    def the_other_controller_cannot_be_read_for_a_while(self, minutes, login):
        """Either it answers 503, and no agent can connect; or a proxy asks whoever comes to log in."""
        api = self.fleet.apis["other"]
        if login:
            api.login_at = "https://sso.example.org/authorize?rd=%2Fcomputer%2F"
        else:
            self.other.up = "starting"
        self.minutes(minutes)
        api.login_at, self.other.up = "", "up"
        self.other.schedule()
        self.happened["the other controller cannot be read"] += 1

    @precondition(lambda self: self.shares not in {None, Share.NONE})
    @rule(share=st.sampled_from(list(Share)), minutes=st.integers(1, 20))
    def the_fleet_file_shares_the_pool_otherwise(self, share, minutes):
        """For good; machines that are connected ask within five minutes, as real ones do."""
        pool = replace(self.fleet.fleet.pools[SHARED], share=share)
        if share is Share.COOPERATIVE:
            pool = replace(pool, warm_pool=None, lent_labels=frozenset(), lend=Lending.NEVER, max_builds=None)
        fleet = self.fleet.fleet
        self.fleet.fleet = self.world.fleet = replace(fleet, pools={**fleet.pools, SHARED: pool})
        for instance in self.world.alive():
            if instance.is_on() and instance.tags["autoscaler:pool"] == SHARED and self.world.node_of(instance):
                self._asks_soon(instance)
        self.happened["another share"] += 1
        self.minutes(minutes)

    @rule(which=st.integers(0, 9), of_other=st.booleans())
    def a_person_deletes_a_node(self, which, of_other):
        """One that nothing runs on or waits for. Of a machine that serves two, the other side goes on."""
        controller = self.controllers[-1 if of_other else 0]
        bound = {build.node for build in controller.builds if build.ended is None}
        names = sorted(name for name, node in controller.nodes.items() if not node.builds and name not in bound)
        names = [name for name in names if not name.startswith("autoscaler-beacon")]
        if names and controller.name not in self.fleet.fleet.slot_controllers:
            controller.delete_node(names[which % len(names)])
            self.happened["a deleted node"] += 1
        self.minutes(1)

    @precondition(lambda self: self.fleet.fleet.hosts)
    @rule(which=st.integers(0, 1), minutes=st.integers(1, 40))
    def a_host_loses_its_power_for_a_while(self, which, minutes):
        """Whatever runs there is lost: no build that we killed."""
        host = self._host(which)
        if host.on:
            self.fleet.agents.power_fails(host)
            self.world.timeline.after(minutes * MINUTE, lambda: None if host.on else self.fleet.agents.power_returns(host))
            self.happened["a host without power"] += 1
        self.minutes(1)

    @precondition(lambda self: self.fleet.fleet.hosts)
    @rule(which=st.integers(0, 1), minutes=st.integers(1, 40))
    def a_host_leaves_the_fleet_file_and_comes_back(self, which, minutes):
        before, name = self.fleet.fleet, self._host(which).name
        self.fleet.fleet = replace(before, hosts={other: host for other, host in before.hosts.items() if other != name})
        self.minutes(minutes)
        self.fleet.fleet = before
        self.happened["a host out of the fleet file"] += 1

    @precondition(lambda self: self.fleet.fleet.hosts)
    @rule(which=st.integers(0, 1))
    def the_service_of_a_host_begins_anew(self, which):
        """It knows nothing of what it was connected to."""
        host = self._host(which)
        if all(not node.builds for _, node in self.sides_of(host.name)) and not self._bound(host.name):
            self.fleet.agents.restarts(host)
            self.happened["a host's service restarts"] += 1
        self.minutes(1)

    @invariant()
    def a_host_is_never_asked_about_in_ec2(self):
        if hasattr(self, "world"):
            assert self.asked_of_ec2.about_hosts == []

    def count_what_was_done(self):
        """Count what the functions did for shared machines, for whoever asks whether it was drawn often enough."""
        done = [type(result.step).__name__ for report in self.fleet.reports for result in report.results if result.outcome == "done"]
        self.happened.update({"a world with a rotation": 1} if "Rotate" in done else {})
        self.happened.update({"worlds": 1, f"a world with share {self.shares}": 1})
        if self.fleet.fleet.hosts:
            self.happened["a world with hosts"] += 1

    def _host(self, which):
        hosts = sorted(self.world.hosts.values(), key=lambda host: host.name)
        return hosts[which % len(hosts)]

    def _bound(self, name):
        return any(build.node == name and build.ended is None for build in self.builds())

    def _asks_soon(self, machine):
        life = machine.life
        after = self.chance.uniform(0.0, _ASKS_WITHIN_SECONDS)
        self.world.timeline.after(after, lambda: self.fleet.agents.booted(machine) if machine.life == life else None)
