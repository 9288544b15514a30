"""What all sections of the fleet file share: how strict they are, and what counts and dollars are."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# The unique id of an IAM role.
ROLE_ID = r"^AROA[A-Z0-9]{8,60}$"


class Section(BaseModel):
    """Unknown keys and other types than written here are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Count = Annotated[int, Field(ge=0, le=100_000)]
Usd = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]
