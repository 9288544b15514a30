"""One instance of the simulated EC2, and the times in which it was on."""

from dataclasses import dataclass, field

_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


@dataclass(slots=True)
class Spell:
    """A time in which an instance is on, and billed as a machine; ``ended_at``: None while it lasts."""

    began_at: float
    ended_at: float | None = None

    def seconds(self, now: float, since: float = 0.0) -> float:
        """How long it lasted until now, or from an instant on."""
        return max(0.0, (now if self.ended_at is None else self.ended_at) - max(self.began_at, since))


@dataclass(eq=False, slots=True, kw_only=True)
class Instance:
    """One instance, from its launch to its end."""

    id: str
    instance_type: str
    subnet: str
    market: str
    template: str
    tags: dict[str, str]
    launched_at: float
    visible_at: float
    state: str = "pending"
    state_reason: str = ""  # EC2's code for why it is in this state
    life: int = 0  # how often it was started again
    spells: list[Spell] = field(default_factory=list)  # in which it was on, the last of them perhaps still
    refuses_to_start: str = ""  # EC2's code: it answers each start with that
    fails_to_start: str = ""  # EC2's code: every start ends where it began, as without the key of its disk
    ended_at: float | None = None
    booted_at: float | None = None
    protected: bool = False  # against being terminated
    stop_protected: bool = False
    hangs_in: str = ""  # a state that EC2 never lets it leave, "stopping" or "shutting-down"
    interrupted: bool = False  # EC2 took it back
    profile: str = ""
    console: str = ""
    zone: str = ""
    platform: str = ""
    reserved: str = ""  # id of the capacity that it runs in
    image: str = ""

    @property
    def state_code(self) -> int:
        """EC2's number for its state."""
        return _CODES[self.state]

    @property
    def started_at(self) -> float:
        """When it was last launched or started: EC2's LaunchTime."""
        return self.spells[-1].began_at if self.spells else self.launched_at

    def alive(self) -> bool:
        """It may still cost money."""
        return self.state not in {"shutting-down", "terminated"}

    def is_on(self) -> bool:
        """It is a machine now, and no disk alone."""
        return self.state in {"pending", "running"}
