"""The key of a pool that says how long its jobs may take."""

from typing import Annotated

from pydantic import Field

MaxJobSecondsKey = Annotated[
    Annotated[float, Field(ge=1, le=31_536_000, allow_inf_nan=False)] | None,
    Field(
        description="A job whose builds are predicted to take longer is no demand for the pool, and no agent of the pool counts for it. "
        "Jenkins may still start it on a free executor of the pool: keep exclusive: true, and give the pool a label of its own. "
        "Default: jobs may take any time.",
    ),
]
