"""Actors where controllers share machines: one agent is to go to the other controller, one machine of both is about to end."""

from dataclasses import dataclass, replace

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Lending, Share
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Reserve
from support.builders import a_mark, a_pool
from support.busy import FIRM
from support.interleaving import PERSON, Scene, scale_down, scale_up
from support.worlds import in_memory

BOTH = ("main", "other")


@dataclass(slots=True)
class SharedScene(Scene):
    """A job of the other controller waits for an agent that is idle; a machine of both is drained on both, and was seen so once.

    A plain job waits, and an idle agent of a rare kind is to be lent to it.
    """

    def set_up(self) -> "SharedScene":
        self.run(until=3)
        self.queue(1, "turns", 60.0)
        self.queue(1, "both", 60.0)
        self.queue(1, "rare", 60.0)
        self.run(until=12)
        [self.retiring] = [one for one in self.world.alive() if one.tags["autoscaler:pool"] == "both"]
        for controller in self.world.controllers.values():
            controller.set_offline(self.retiring_node, a_mark(MarkClass.RETIRE, "earlier").text, "bot")
        self.tick()
        self.theirs("turns", 300.0)
        self.queue(1, "plain", 120.0)
        self.world.move_to(self.now() + 60.0)
        return self

    @property
    def other(self):
        return self.world.controllers["other"]

    def theirs(self, label: str, seconds: float) -> None:
        self.builds.append(self.other.submit(f"theirs-{label}-{len(self.builds)}", label, seconds))


def a_shared_scene() -> SharedScene:
    quick = {"idle_seconds": 1200.0, "boot_seconds": 60.0, "boot_timeout_seconds": 240.0, "queue_maturity_seconds": 0.0}
    quick |= {"offerings": (FIRM,), "max_agents": 1}
    rare = a_pool("rare", lent_labels=frozenset({"plain"}), lend=Lending.IDLE, **quick)
    plain = a_pool("plain", **(quick | {"boot_seconds": 1200.0, "boot_timeout_seconds": 1800.0}))
    quick |= {"controllers": BOTH}
    turns = a_pool("turns", share=Share.ROTATE, **quick)
    both = a_pool("both", share=Share.COOPERATIVE, executors=2, **quick)
    return SharedScene(in_memory(turns, both, rare, plain, seed=5), script={}, schedule=("scale_up", "scale_down")).set_up()


def register_a_side(scene: SharedScene) -> None:
    """The machine of both asks, as it does now and then."""
    scene.fleet.agents.register(scene.retiring)


def reserve_by_hand(scene: SharedScene) -> None:
    order = Reserve(target="turns", controller=None, seconds=600.0, person="a", by="ada", reason="a test", request_id="r-1")
    passes.carry_out(scene.fleet.ports, scene.fleet.fleet, replace(scene.fleet.invocation(), by_a_person=True), order)


def a_build_begins_where_the_agent_is(scene: SharedScene) -> None:
    scene.queue(1, "turns", 200.0)


def a_build_begins_on_the_other_side(scene: SharedScene) -> None:
    """Once a person has brought the node online there."""
    node = scene.other.nodes.get(scene.retiring_node)
    if node is not None and node.temporarily_offline:
        scene.other.toggle(node.name, "", "anna")
        scene.stage_log.append((PERSON, "toggle"))
    scene.theirs("both", 200.0)


def a_build_begins_on_what_is_to_be_lent(scene: SharedScene) -> None:
    scene.queue(1, "rare", 200.0)


SHARED_FUNCTIONS = (scale_up, scale_down, register_a_side, reserve_by_hand)
SHARED_MOMENTS = (a_build_begins_where_the_agent_is, a_build_begins_on_the_other_side)
# Of these, against the two that act.
LENDING_MOMENTS = (a_build_begins_on_what_is_to_be_lent,)
