"""What all sections of the fleet file share: how strict they are, and what a count is."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Unknown keys and other types than written here are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Count = Annotated[int, Field(ge=0, le=100_000)]
