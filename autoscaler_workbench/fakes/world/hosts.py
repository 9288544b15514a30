"""A machine of the operator's own: nobody launches or ends it; its power may fail."""

from dataclasses import dataclass

from autoscaler_workbench.fakes.world.cards import Cards


@dataclass(eq=False, slots=True, kw_only=True)
class Host:
    """One host. ``life``: how often it was switched on again."""

    name: str
    pool: str
    role_id: str
    on: bool = True
    life: int = 0
    started_at: float = 0.0
    cards: Cards | None = None  # that builds take by a lease

    @property
    def id(self) -> str:
        """What it is called where instances have ids."""
        return f"host-{self.name}"

    def is_on(self) -> bool:
        """It has power."""
        return self.on
