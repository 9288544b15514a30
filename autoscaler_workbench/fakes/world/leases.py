"""Builds that take a card of their machine on their executor, as `gpu-lease run` does in a step; people for whom the agent takes one."""

from collections.abc import Callable, Collection, Iterable

from autoscaler_workbench.fakes.world.cards import Cards, Lease
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller

CardsOf = Callable[[str, str], Cards | None]


class Leases:
    """The leases of builds and people, on all machines."""

    def __init__(self, controllers: Iterable[Controller], cards_of: CardsOf) -> None:
        """Let builds of these controllers take cards. ``cards_of``: those of the machine that is connected as this node."""
        self._cards_of = cards_of
        self._leases: dict[Build, tuple[Cards, Lease]] = {}
        self._people: dict[Cards, dict[str, Lease]] = {}
        for controller in controllers:
            controller.begins, controller.has_ended = self._take, self._give_back

    def give(self, cards: Cards, people: Collection[str]) -> None:
        """Hold a card for exactly these people, as the agent does when it is told of them."""
        held = self._people.setdefault(cards, {})
        for person in [person for person in held if person not in people]:
            cards.end(held.pop(person))
        for person in people:
            if person not in held:
                held[person] = cards.ask(person, lambda: None)

    def forget_people(self, cards: Cards) -> None:
        """Hold nothing for anybody: the agent has ended with its machine."""
        self._people.pop(cards, None)

    def _take(self, build: Build, begin: Callable[[], None]) -> None:
        cards = self._cards_of(build.controller, build.node or "")
        if not build.takes_card or cards is None:
            build.leased_at = build.started_at
            begin()
            return

        def granted() -> None:
            build.leased_at = cards.now
            begin()

        self._leases[build] = cards, cards.ask(f"jenkins-{build.controller}", granted)

    def _give_back(self, build: Build) -> None:
        if build in self._leases:
            cards, lease = self._leases.pop(build)
            cards.end(lease)
