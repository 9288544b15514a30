"""The volumes that EC2 makes for an agent of a pool, as its launch template and its image say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One volume. ``gib``: None if neither says its size; ``kind``: such as gp3, "" if neither says it."""

    device: str
    gib: float | None = None
    kind: str = ""

    def __str__(self) -> str:
        """Describe it to people."""
        size = "of unknown size" if self.gib is None else f"{self.gib:g} GiB"
        return f"{self.device} {size}{f' {self.kind}' if self.kind else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolVolumes:
    """All volumes of an agent. ``source``: the launch template, its version and the image that they were read from."""

    source: str
    volumes: tuple[Volume, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Tell whether every size is known, and there is any volume: an image that nobody may read has some, too."""
        return bool(self.volumes) and all(volume.gib is not None for volume in self.volumes)
