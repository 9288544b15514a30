"""Reads the events of ``operate`` about runs that people order."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from autoscaler.config.sections import PARAMETER_NAME
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.started_builds import Until
from autoscaler.domain.labels import LabelExpression, LabelSyntaxError, parse
from autoscaler.domain.run_orders.choice import Asked, CancelRun, Choose, OrderRuns, Vary
from autoscaler.domain.run_orders.criteria import Condition, ConditionError, read_condition
from autoscaler.domain.wording import shortened
from autoscaler.entry.events import Text
from autoscaler.entry.operation import Operation
from autoscaler.errors import EventRefusedError

_Count = Annotated[int, Field(ge=0, le=100)]
_Name = Annotated[str, Field(pattern=PARAMETER_NAME)]


class Run(Operation):
    """Order builds of a job on machines that are chosen for them."""

    action: Literal["run"]
    job: Text
    parameters: Annotated[dict[_Name, Annotated[str, Field(max_length=10_000)]], Field(max_length=100, default_factory=dict)]
    on: Annotated[str, Field(max_length=1000)] | None = None
    where: Annotated[list[Text], Field(max_length=20, default_factory=list)]
    runs: Annotated[int, Field(ge=1, le=100)] = 1
    vary: Vary | None = Field(None, strict=False)
    same: bool = False
    strict: bool = False
    choose: Choose = Field(Choose.SOONEST, strict=False)
    until: Until = Field(Until.EACH, strict=False)
    resubmit: _Count = 1
    replace: _Count | None = None
    controller: Text | None = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.same and self.vary is not None:
            raise ValueError("only one of same and vary can be given")
        if self.strict and self.vary is None:
            raise ValueError("strict (true): needs vary, which says in what runs differ")
        if self.replace is not None and self.until is Until.EACH:
            raise ValueError("replace: is of gangs only, whose until is all or first-success")
        return self

    def order(self, fleet: Fleet, _now: float) -> OrderRuns:
        """Check what the fleet file must know, and translate."""
        if self.controller is not None and self.controller not in fleet.controllers:
            known = ", ".join(fleet.controllers)
            raise EventRefusedError(f"event refused: controller ({shortened(self.controller)}): is not one of the controllers ({known})")
        asked = Asked(
            job=self.job.strip("/"),
            runs=self.runs,
            expression=_expression(self.on),
            conditions=tuple(map(_condition, self.where)),
            vary=self.vary,
            same=self.same,
            strict=self.strict,
            choose=self.choose,
            controller=self.controller,
        )
        return OrderRuns(
            asked=asked,
            parameters=tuple(sorted(self.parameters.items())),
            until=self.until,
            resubmit=self.resubmit,
            replace=self.replace,
            by=self.by,
            reason=self.reason,
            request_id=self.request_id or "",
        )


class CancelsRun(Operation):
    """End an order."""

    action: Literal["cancel-run"]
    id: Text

    def order(self, _fleet: Fleet, _now: float) -> CancelRun:
        """Translate."""
        return CancelRun(id=self.id, by=self.by, reason=self.reason)


class Runs(Operation):
    """The question what has become of the runs that were ordered; of all, or of one."""

    action: Literal["runs"]
    id: Text | None = None
    most: Annotated[int, Field(ge=1, le=500)] = 50


def _expression(text: str | None) -> LabelExpression | None:
    if text is None or not text.strip():
        return None
    try:
        return parse(text)
    except LabelSyntaxError as error:
        raise EventRefusedError(f"event refused: on ({shortened(text)}): {error}") from error


def _condition(text: str) -> Condition:
    try:
        return read_condition(text)
    except ConditionError as error:
        raise EventRefusedError(f"event refused: where ({shortened(text)}): {error}") from error
