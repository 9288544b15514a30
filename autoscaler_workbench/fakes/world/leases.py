"""Builds that take a card of the machine on which they run, as `gpu-lease run` does in a step: they have an executor while they wait."""

from collections.abc import Callable, Iterable

from autoscaler_workbench.fakes.world.cards import Cards, Lease
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller

CardsOf = Callable[[str, str], Cards | None]


class Leases:
    """The leases of builds, on all machines."""

    def __init__(self, controllers: Iterable[Controller], cards_of: CardsOf) -> None:
        """Let builds of these controllers take cards. ``cards_of``: those of the machine that is connected as this node."""
        self._cards_of = cards_of
        self._leases: dict[Build, tuple[Cards, Lease]] = {}
        for controller in controllers:
            controller.begins, controller.has_ended = self._take, self._give_back

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
