"""Reads a YAML file with a list of orders. Each error is one line: where in the file, the key, the value, the rule."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from autoscaler.config import FleetFileError, Problem
from autoscaler.config.findings import place_of, sentence
from autoscaler.config.problems import meant
from autoscaler.config.yaml_file import located, parse
from autoscaler.domain.facts.started_builds import Until
from autoscaler.domain.run_orders.choice import Choose, Vary
from autoscaler.errors import ConfigError

_Text = Annotated[str, Field(min_length=1)]
_SAID_BEFORE = "event refused: "


class _Order(BaseModel):
    """One order, with the keys of its event; what a key may hold beyond this, the deployed functions check."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    job: _Text
    parameters: dict[_Text, str] | None = None
    on: _Text | None = None
    where: list[_Text] | None = None
    runs: Annotated[int, Field(ge=1)] | None = None
    vary: Annotated[Vary | None, Field(strict=False)] = None
    strict: bool | None = None
    same: bool | None = None
    choose: Annotated[Choose | None, Field(strict=False)] = None
    until: Annotated[Until | None, Field(strict=False)] = None
    resubmit: Annotated[int, Field(ge=0)] | None = None
    replace: Annotated[int, Field(ge=0)] | None = None
    controller: _Text | None = None
    reason: _Text | None = None


_ORDERS = TypeAdapter(Annotated[list[_Order], Field(min_length=1)])


def read_orders(path: Path) -> list[dict[str, Any]]:
    """Return the fields of the events that a file orders."""
    raw = _bytes(path)
    try:
        orders = _ORDERS.validate_python(parse(raw))
    except ValidationError as error:
        raise FleetFileError(str(path), located(map(_problem, map(dict, error.errors())), raw)) from None
    except FleetFileError as error:
        raise FleetFileError(str(path), error.problems) from None
    return [order.model_dump(exclude_none=True) for order in orders]


def refusal(path: Path, refused: dict[int, str]) -> FleetFileError:
    """Make one error of what the deployed functions said to orders of a file, by their places in it."""
    told = (Problem(place=(place,), text=f"{_named(place)}: {said.removeprefix(_SAID_BEFORE)}") for place, said in refused.items())
    return FleetFileError(str(path), located(told, _bytes(path)))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--file ({path}): cannot be read ({error.strerror or error})") from error


def _problem(problem: dict[str, Any]) -> Problem:
    place = place_of(problem)
    if not place:
        return Problem(place=(), text="must be a list of orders, such as [{job: nightly}]")
    said = sentence(problem | {"loc": place[1:]}) if place[1:] else "must be keys and values, such as {job: nightly}"
    unknown = problem["type"] == "extra_forbidden"
    hint = meant(str(place[-1]), _Order.model_fields) if unknown else ""
    return Problem(place=place, text=f"{_named(place[0])}: {said}{hint}", on_key=unknown)


def _named(place: str | int) -> str:
    return f"order {int(place) + 1}"
