"""How many launches may be lost: planted losses are found in worlds in which all else is well, and worlds without them are not blamed."""

from dataclasses import replace
from functools import cache

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.judge import judge
from support.hostile.life import Launched, Life
from support.hostile.lost_launches import CLOSED_BY, Loss, hours_of
from support.worlds import a_world_node

_SEED = 1
_REFUSED, _TO_COME = "team-a/nowhere", "team-b/other"


class Planted:
    """A function that launches machines for nothing every so many minutes, of which we see nothing."""

    __name__ = "planted"

    def __init__(self, life: Life, *, every: int, connects: bool, agents: int) -> None:
        self.life, self.every, self.connects, self.agents, self.minute = life, every, connects, agents, 0
        self.pool = life.pools_of(life.drawn.jobs[0])[0]
        self.controller = life.world.controllers[self.pool.controllers[0]]
        life.ec2.hangs.append(lambda instance: "planted" in instance.tags)

    def __call__(self) -> None:
        self.minute += 1
        if self.minute % self.every == 0:
            for number in range(self.agents):
                self.launch(f"{self.pool.name}-{self.minute}-{number}")

    def launch(self, name: str) -> None:
        tags = {"autoscaler:pool": self.pool.name, "autoscaler:node": name, "planted": "yes"}
        template = {"LaunchTemplateName": self.pool.launch_template}
        request = {
            "ClientToken": name,
            "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": [{"InstanceType": "c5.planted"}]}],
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}],
            "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        }
        self.life.world.ec2.create_fleet(request)
        self.life.notes.launches["", self.pool.name, self.life.world.timeline.now] = Launched(agents=self.agents)
        if self.connects:
            self.controller.add_node(a_world_node(name, *sorted(self.pool.labels), connected=False))
            self.life.world.timeline.after(2 * MINUTE, lambda: self.controller.connect(name))


@cache
def lived(*, every: int, connects: bool, at_once: int = 0, agents: int = 1) -> Life:
    """Return a world that was lived with planted launches, and with four builds of a job that is refused."""
    life = Life(_SEED, ())
    planted = Planted(life, every=every, connects=connects, agents=agents)
    life.functions = (*life.functions, planted)
    controller = planted.controller

    def refuses(build: Build, _node: Node) -> str | None:
        running = sum(one.job == _REFUSED for node in controller.nodes.values() for one in node.builds.values())
        return "no" if build.job == _REFUSED and running >= at_once else None

    def submit() -> None:
        for _ in range(4):
            controller.submit(_REFUSED, planted.pool.name, 1500.0)

    life.jenkins[controller.name].refuses.append(refuses)
    life.world.timeline.after(MINUTE, submit)
    return life.live()


def broken_in(life: Life) -> str:
    return "\n".join(violation.text for violation in judge(life).broken if violation.property == "F")


@pytest.mark.parametrize(("connects", "whom"), [(False, "that did not connect"), (True, "jobs for")])
def test_a_lost_machine_every_four_minutes_is_found(connects, whom):
    assert whom in broken_in(lived(every=4, connects=connects))


def test_that_builds_begin_one_after_another_is_no_reason_to_launch_for_those_behind_them():
    assert "jobs for" in broken_in(lived(every=1, connects=True, at_once=1))


@pytest.mark.parametrize(("connects", "every"), [(False, 25), (True, 60)])  # beside the fleet's own tries for the job
def test_what_is_tried_again_now_and_then_is_allowed(connects, every):
    assert broken_in(lived(every=every, connects=connects)) == ""


@pytest.mark.parametrize(
    ("guesses", "is_counted"),
    [({_TO_COME: 2}, False), ({_REFUSED: 2}, True), ({_TO_COME: 1}, True), ({_TO_COME: 1, "another": 1}, False)],
    ids=["for another job", "for the one that is refused", "one of two for another job", "for two others"],
)
def test_what_was_launched_for_a_job_to_come_counts_if_that_job_is_the_one_refused(guesses, is_counted, monkeypatch):
    life = lived(every=4, connects=True, agents=2)
    noted = {key: replace(launch, guesses=guesses) for key, launch in life.notes.launches.items() if launch.agents == 2}
    with monkeypatch.context() as patched:
        patched.setattr(life.notes, "launches", life.notes.launches | noted)
        assert ("jobs for" in broken_in(life)) is is_counted


def test_in_a_world_without_trouble_no_launch_is_lost():
    verdict = judge(Life(_SEED, ()).live())
    assert "F" not in verdict.properties
    assert verdict.obligations["F"] > 10


def losses(*minutes: float, known_after: float = 10.0, offering: str = "a") -> list[Loss]:
    times = [minute * MINUTE for minute in minutes]
    return [
        Loss(scope=("cpu",), machine=f"i-{time}", launched_at=time, known_at=time + known_after * MINUTE, offering=offering)
        for time in times
    ]


def counted(hours) -> list[tuple[int, int, int]]:
    return [(hour.number, len(hour.losses), hour.allowed) for hour in hours]


# Minutes of launches that were lost, when an offering worked, how many losses make pauses due; hour, losses and how many it may have.
COUNTED = {
    "what was launched before the first loss was known is no matter": ([*[0.0] * 30, 5.0, 10.0, 12.0], {}, 1, []),
    "in the first hour six may be lost, and in each later one three": (
        [0, *range(13, 70, 2), *range(71, 130, 2)],
        {},
        1,
        [(0, 30, 6), (1, 29, 3)],
    ),
    "the first hour begins with the first try": ([0, 50, 62, 74, 86, 106, 126], {}, 1, [(0, 5, 6), (1, 1, 3)]),
    "two boots that fail show nothing of the six that follow": ([0, 1, *[13] * 6, 26, 45, 70, 90], {}, CLOSED_BY, [(0, 3, 6), (1, 1, 3)]),
    "once three boots have failed others count": ([0, 1, *[13] * 6, *range(26, 46, 2)], {}, CLOSED_BY, [(0, 10, 6)]),
    "three boots may fail together": ([0, 0, 0, *[13] * 7], {}, CLOSED_BY, [(0, 7, 6)]),
    "once it has worked the count begins anew": ([0, 15, 20, 40, 55], {"a": [30 * MINUTE]}, 1, [(0, 2, 6), (0, 1, 6)]),
    "that another offering works proves nothing": ([0, 15, 20, 40, 45], {"b": [30 * MINUTE]}, 1, [(0, 4, 6)]),
    "after an hour without a loss the count begins anew": ([0, 15, 90, 105], {}, 1, [(0, 1, 6), (0, 1, 6)]),
}


@pytest.mark.parametrize(("minutes", "wins", "closed_by", "hours"), COUNTED.values(), ids=COUNTED)
def test_losses_are_counted_by_the_hour(minutes, wins, closed_by, hours):
    assert counted(hours_of(losses(*minutes), wins, closed_by=closed_by)) == hours
