"""The base class of rivals: a tick, settings as fields, and the main knob among them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from random import Random
from typing import Any, ClassVar, Self

from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet


@dataclass(kw_only=True)
class Rival:
    """A policy with memory: make a new one for each run."""

    seed: int = 1
    _done_at: float = 0.0

    NAME: ClassVar[str]
    KNOB: ClassVar[tuple[str, tuple[float, ...]]]  # the field that its users turn, and values worth trying
    tick_seconds: ClassVar[float] = 10.0

    def __post_init__(self) -> None:
        """Use its own randomness: the world must not change with the policy."""
        self.chance = Random(self.seed + 17)  # noqa: S311 - a simulation's chance

    def begin(self, fleet: RivalFleet) -> None:
        """Prepare once, before the first tick."""

    def tick(self, fleet: RivalFleet) -> None:
        """Look at the fleet, which has just looked at the world, and act."""
        raise NotImplementedError

    def is_due(self, now: float, seconds: float) -> bool:
        """Tell whether this interval has passed since it last returned true."""
        due = now - self._done_at >= seconds
        self._done_at = now if due else self._done_at
        return due

    @classmethod
    def of(cls, settings: Mapping[str, Any], seed: int) -> Self:
        """Make one with some settings changed; `ConfigError` names one that it does not have."""
        known = {field.name: type(field.default) for field in fields(cls) if field.name != "seed" and not field.name.startswith("_")}
        for key, value in settings.items():
            if key not in known:
                raise ConfigError(f"--set {key}: is no setting of {cls.NAME} ({', '.join(known)})")
            if isinstance(value, bool) is not (known[key] is bool) or not isinstance(value, int | float):
                raise ConfigError(f"--set {key}={value}: must be {'true or false' if known[key] is bool else 'a number'}")
        return cls(seed=seed, **settings)
