"""What a machine is, whoever owns it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of a machine, as EC2's table has them or its operator wrote them; None: nobody says. ``gpu``: model; "" where it has none."""

    arch: str | None = None
    vcpu: int | None = None
    memory_gib: float | None = None
    gpus: int | None = None
    gpu: str | None = None
