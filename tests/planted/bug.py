"""One planted bug."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """``was`` stands once in ``file`` (below the package) and becomes ``becomes``; ``found_by``: tests of the suite that must notice."""

    name: str
    file: str
    was: str
    becomes: str
    found_by: tuple[str, ...]
