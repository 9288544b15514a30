"""One planted bug."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """``was`` becomes ``becomes`` in ``function``; ``found_by``: tests of the suite that must notice.

    ``function``: the name of a function, or ``Class.method``, a class, a constant. Of several with this name one alone holds ``was``.
    """

    name: str
    function: str
    was: str
    becomes: str
    found_by: tuple[str, ...]
