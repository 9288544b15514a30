"""Lives a scene of keys through the real handlers, by one fleet file, in the world of another; tells minute by minute what was seen."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

import yaml

from autoscaler import bootstrap
from autoscaler.config import load_settings
from autoscaler.config import prices as price_list
from autoscaler_workbench.fakes.world.ec2.region import Ec2
from seams.doors import _text
from seams.key_scenes import SCENES, changed
from seams.keys import GONE, Change
from support.deployed import InMemory, deployed_in_memory, event

MINUTE = 60.0
_QUESTIONS = ("overview", "costs", "jobs", "reservations", "names")


Seen = dict[str, list[str]]
# What a key must change, from the strongest on: what is done, what is told, what people see if they ask.
DONE, TOLD, ASKED = "done", "told", "asked"


def first_difference(change: Change, before: list[Seen] | None = None) -> tuple[int, str] | None:
    """The first minute in which a change of the fleet file is seen where it must be, and what differs; None where it never is."""
    before = before or list(lived(change.scene))
    for minute, (with_it, without_it) in enumerate(zip(lived(change.scene, change), before, strict=False), start=1):
        for new, old in zip(with_it[change.seen], without_it[change.seen], strict=False):
            if new != old:
                return minute, f"{old}\n-> {new}"
        if len(with_it[change.seen]) != len(without_it[change.seen]):
            return minute, "more or fewer lines"
    return None


def lived(scene: str, change: Change | None = None) -> Iterator[Seen]:
    """What is seen of each minute of a scene."""
    script = SCENES[scene]
    file = script.fleet_file()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(yaml.safe_dump(file), encoding="utf-8")
        with _prices_of_more_places(), deployed_in_memory(path) as here, _same_names_each_time(), _kept_requests() as asked_for:
            if change is not None:
                path.write_text(yaml.safe_dump(changed(file, {**change.besides, change.path: change.value}, GONE)), encoding="utf-8")
                load_settings(path).domain()  # a file that is refused is no change
            for minute in range(1, script.minutes + 1):
                here.world.move_to(here.world.timeline.now + MINUTE)
                said = [_text(happen(here)) for happen in script.happens.get(minute, ())]
                seen = _seen(here)
                seen[DONE] += [*said, *asked_for]
                yield seen


@contextmanager
def _prices_of_more_places() -> Iterator[None]:
    """Carry prices as `make prices REGIONS=...` does: of a second region, and of a second system."""
    read, table = price_list._table, price_list._table()
    home = {kind: prices | {"rhel": 3 * prices.get("linux", 0.0)} for kind, prices in table["usd_per_hour"][price_list.HOME].items()}
    abroad = {kind: {system: 4 * usd for system, usd in prices.items()} for kind, prices in home.items()}
    more = {**table, "usd_per_hour": {**table["usd_per_hour"], price_list.HOME: home, "eu-west-1": abroad}}
    with mock.patch.object(price_list, "_table", lambda name="prices.json": more if name == "prices.json" else read(name)):
        yield


@contextmanager
def _same_names_each_time() -> Iterator[None]:
    """Name launches in turn, and choose among nodes in the same order: two runs of a scene are then alike."""
    names = count()
    with (
        mock.patch.object(bootstrap, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(names):032x}"))),
        mock.patch.object(bootstrap, "Random", partial(Random, 1)),
    ):
        yield


def _seen(here: InMemory) -> Seen:
    """What one minute's functions do, tell, and answer."""
    sent, published = len(here.told()), len(here.metrics)
    metrics = _answer(here, "publish_metrics", {})
    passes = [_answer(here, function, {}) for function in ("scale_up", "scale_down")]
    told = [metrics, *map(_text, here.told()[sent:]), *map(_text, here.metrics[published:])]
    done = [*passes, *_instances(here), *_nodes(here), *_builds(here), *map(_text, here.told()[sent:])]
    return {DONE: done, TOLD: told, ASKED: [_answer(here, "operate", event(question)) for question in _QUESTIONS]}


@contextmanager
def _kept_requests() -> Iterator[list[str]]:
    """Keep what EC2 is asked to launch."""
    kept: list[str] = []
    create = Ec2.create_fleet

    def create_fleet(ec2: Ec2, request: dict[str, Any]) -> dict[str, Any]:
        kept.append(json.dumps(request, sort_keys=True))
        return create(ec2, request)

    with mock.patch.object(Ec2, "create_fleet", create_fleet):
        yield kept


def _instances(here: InMemory) -> Iterator[str]:
    for one in here.world.ec2.instances.values():
        bought = f"{one.instance_type} {one.subnet} {one.market} {one.template} {one.image} {one.reserved}"
        yield f"{bought} {one.state} {sorted(one.tags.items())}"


def _nodes(here: InMemory) -> Iterator[str]:
    for name, controller in here.world.controllers.items():
        for node in controller.nodes.values():
            yield f"{name} {node.name} {sorted(node.labels)} {node.executors} {node.exclusive} {node.remote_dir} {node.reason}"


def _builds(here: InMemory) -> Iterator[str]:
    for controller in here.world.controllers.values():
        for build in controller.builds:
            yield f"{build.job} {build.number} {build.node} {build.started_with}"


def _answer(here: InMemory, function: str, asked: Any) -> str:
    try:
        return json.dumps(here.call(function, asked), default=str)
    except Exception as error:  # noqa: BLE001 - what a function refuses is seen, too
        return f"{type(error).__name__}: {error}"
