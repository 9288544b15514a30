"""What all sections of the fleet file share: how strict they are, and what counts and dollars are."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

# The unique id of an IAM role.
ROLE_ID = r"^AROA[A-Z0-9]{8,60}$"
DIGITS = 18  # of a whole number: no key takes more, and Python refuses to write very long ones


Given = TypeVar("Given")
Worked = TypeVar("Worked")


def of_the_last(work: Callable[[Given], Worked]) -> Callable[[Given], Worked]:
    """Keep what was worked out of the object that was given last: a file's rules ask the same for each pool."""
    kept: list[tuple[Given, Worked]] = []

    @wraps(work)
    def answer(given: Given) -> Worked:
        if not kept or kept[0][0] is not given:
            kept[:] = [(given, work(given))]
        return kept[0][1]

    return answer


class Section(BaseModel):
    """Unknown keys and other types than written here are errors. A section is written out as a file has it (from, not begins)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)


Count = Annotated[int, Field(ge=0, le=100_000)]
Usd = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]


class LongNumber(int):
    """A whole number of so many digits that nobody reads them: cut off, and shown as what it is."""

    digits: int

    def __new__(cls, text: str) -> Self:
        """Keep the sign and the size: such a number exceeds whatever a key takes."""
        number = super().__new__(cls, (-1 if text.startswith("-") else 1) * 10**DIGITS)
        number.digits = len(text.lstrip("+-"))
        return number

    def __repr__(self) -> str:
        """Say how long it is."""
        return f"a number of {self.digits:,} digits"

    def __deepcopy__(self, _memo: object) -> "LongNumber":
        """It never changes."""
        return self

    __str__ = __repr__
