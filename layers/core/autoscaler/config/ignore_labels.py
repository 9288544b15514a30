"""The key that says which labels another cloud serves."""

from typing import Annotated

from pydantic import Field, StringConstraints

IgnoreLabelsKey = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=500)]],
    Field(
        max_length=100,
        description="Labels that another cloud serves, as jobs ask for them; * stands for any letters: [windows, mac-*]. Jobs with these "
        "labels are no demand here, and no message or metric reports them, even if a pool has the label. Use it while you migrate.",
    ),
]
