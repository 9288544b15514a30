"""Reads the fleet file, checks it, and translates it. Errors are one line: key, value, rule."""

import hashlib
import json
import re
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AnyHttpUrl, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from autoscaler.domain.facts.fleet import RESUME_TIMEOUT_SECONDS, AtMonthLimit, Fleet, Limits, Market, Offering, Platform, Pool, Quarantine
from autoscaler.errors import ConfigError

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\"]+$")]
Seconds = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]
Usd = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=100_000)]

_REMOTE_DIRS = {Platform.LINUX: "/home/jenkins/agent", Platform.WINDOWS: "C:\\jenkins"}


class _Settings(BaseModel):
    """Unknown keys and other types than written here are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def url_problem(url: str) -> str | None:
    """Say what is wrong with a controller's URL, never a password that stands in it; None: nothing is."""
    shown = re.sub(r"^([a-z]+://)?.*@", r"\1***@", url, flags=re.IGNORECASE | re.DOTALL)
    try:
        parsed = AnyHttpUrl(url)
    except ValidationError:
        return f"({shown}) must be an http or https URL"
    if parsed.username is not None or parsed.password is not None:
        return f"({shown}) must not hold credentials: agents and logs are told it; keep them in a secret (key secret)"
    if parsed.query is not None or parsed.fragment is not None:
        return f"({shown}) must not have a query or a fragment"
    return None


class LimitSettings(_Settings):
    """The hard ceilings."""

    max_agents: Annotated[int, Field(ge=1, le=100_000)]
    max_launches_per_hour: Annotated[int, Field(ge=1, le=100_000)]
    max_usd_per_hour: Usd
    max_usd_per_month: Usd
    at_month_limit: Annotated[AtMonthLimit, Field(strict=False)] = AtMonthLimit.STOP


class ControllerSettings(_Settings):
    """One controller. ``secret``: a Secrets Manager secret {"username": ..., "token": ...}; omitted: anonymous.

    ``resume_timeout_seconds``: for how long after a restart an agent is kept for a pipeline that was on it and has not resumed.
    """

    url: str
    secret: Annotated[str, StringConstraints(min_length=1)] | None = None
    nodes: Literal["dynamic", "slots"] = "dynamic"
    resume_timeout_seconds: Annotated[float, Field(ge=600, le=604_800, allow_inf_nan=False)] = RESUME_TIMEOUT_SECONDS

    @model_validator(mode="after")
    def _url_is_http(self) -> Self:
        if problem := url_problem(self.url):
            raise ValueError(f"url {problem}")
        return self


class Tuning(_Settings):
    """The keys that ``defaults`` and every pool may set; None: the default below stands."""

    queue_maturity_seconds: Seconds | None = None
    max_wait_seconds: Seconds | None = None
    wait_usd_per_hour: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None = None
    boot_seconds: Annotated[float, Field(ge=1, le=86_400)] | None = None
    boot_timeout_seconds: Annotated[float, Field(ge=60, le=86_400)] | None = None
    max_idle_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = None
    idle_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = None
    drain_settle_seconds: Annotated[float, Field(ge=1, le=30)] | None = None
    spot_patience_seconds: Seconds | None = None
    spot_discount: Annotated[float, Field(ge=0, lt=1)] | None = None
    spot_max_usd_per_hour: Usd | None = None
    volume_gib: Annotated[float, Field(ge=0, le=65_536)] | None = None
    volume_usd_per_gib_month: Annotated[float, Field(ge=0, le=100)] | None = None
    max_agent_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    drain_timeout_seconds: Seconds | None = None
    quarantine: Annotated[Quarantine, Field(strict=False)] | None = None


_DEFAULTS: dict[str, Any] = {
    "queue_maturity_seconds": 30.0,
    "max_wait_seconds": 1800.0,
    "wait_usd_per_hour": 20.0,
    "boot_seconds": 180.0,
    "boot_timeout_seconds": 900.0,
    "max_idle_seconds": 7200.0,
    "drain_settle_seconds": 5.0,
    "spot_patience_seconds": 180.0,
    "spot_discount": 0.65,
    "volume_usd_per_gib_month": 0.08,
    "quarantine": Quarantine.REPLACE,
}  # None for the others says something of its own
_PRICES = ("spot_discount", "spot_max_usd_per_hour", "volume_gib", "volume_usd_per_gib_month")
# As the stack's own launch templates have it; gp3 in us-east-1 is $0.08 a GiB and month. A month is 730 hours to AWS.
_VOLUME_GIB = {Platform.LINUX: 100.0, Platform.WINDOWS: 150.0}
_HOURS_A_MONTH = 730.0


class PoolSettings(Tuning):
    """One pool as the operator writes it."""

    labels: Annotated[list[Label], Field(min_length=1)] | None = None
    controllers: Annotated[list[str], Field(min_length=1)] | None = None
    executors: Annotated[int, Field(ge=1, le=1000)]
    launch_template: Annotated[str, StringConstraints(min_length=1)]
    launch_template_version: Annotated[str, StringConstraints(pattern=r"^(\$Default|\$Latest|[1-9][0-9]*)$")] | None = None
    instance_types: Annotated[list[Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")]], Field(min_length=1)]
    subnets: list[Annotated[str, StringConstraints(min_length=1)]] = []
    platform: Annotated[Platform, Field(strict=False)]
    market: Literal["on-demand", "spot", "spot-then-on-demand"] = "on-demand"
    max_agents: Annotated[int, Field(ge=1, le=100_000)]
    min_agents: Count = 0
    warm_executors: Count = 0
    usd_per_hour: Usd | None = None
    remote_dir: Annotated[str, StringConstraints(min_length=1)] | None = None
    exclusive: bool = True

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if self.min_agents > self.max_agents:
            raise ValueError(f"min_agents ({self.min_agents}) exceeds max_agents ({self.max_agents})")
        if self.warm_executors > self.max_agents * self.executors:
            most = self.max_agents * self.executors
            raise ValueError(f"warm_executors ({self.warm_executors}) exceeds max_agents x executors ({most})")
        for key in ("labels", "controllers", "instance_types", "subnets"):
            values = getattr(self, key) or []
            if len(set(values)) != len(values):
                raise ValueError(f"{key} ({', '.join(values)}) names something twice")
        return self


class FleetSettings(_Settings):
    """The whole fleet file."""

    fleet: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    limits: LimitSettings
    controllers: Annotated[dict[Name, ControllerSettings], Field(min_length=1)]
    defaults: Tuning = Tuning()
    pools: Annotated[dict[Name, PoolSettings], Field(min_length=1)]

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        overrides = [environment_name(name) for name in self.controllers]
        if len(set(overrides)) != len(overrides):
            raise ValueError(f"controllers ({', '.join(self.controllers)}) must differ when written as environment variables")
        for name, pool in self.pools.items():
            for controller in pool.controllers or []:
                if controller not in self.controllers:
                    known = ", ".join(self.controllers)
                    raise ValueError(f"pools.{name}.controllers ({controller}) is not one of the controllers ({known})")
            if pool.max_agents > self.limits.max_agents:
                limit = self.limits.max_agents
                raise ValueError(f"pools.{name}.max_agents ({pool.max_agents}) exceeds limits.max_agents ({limit})")
        least = sum(pool.min_agents for pool in self.pools.values())
        if least > self.limits.max_agents:
            raise ValueError(f"the pools' min_agents ({least}) together exceed limits.max_agents ({self.limits.max_agents})")
        return self

    def domain(self) -> Fleet:
        """Translate to the domain's values; prices that are not known are refused."""
        return Fleet(
            name=self.fleet,
            limits=Limits(**self.limits.model_dump()),
            controllers=tuple(self.controllers),
            pools={name: self._pool(name, pool) for name, pool in self.pools.items()},
            resume_timeouts={name: controller.resume_timeout_seconds for name, controller in self.controllers.items()},
            slot_controllers=frozenset(name for name, controller in self.controllers.items() if controller.nodes == "slots"),
        )

    def _pool(self, name: str, pool: PoolSettings) -> Pool:
        tuned = {key: self._tuned(key, pool) for key in Tuning.model_fields}
        prices = {key: tuned.pop(key) for key in _PRICES}
        timeout, boot = tuned["boot_timeout_seconds"], tuned["boot_seconds"]
        if timeout <= boot:
            raise ConfigError(f"pools.{name}.boot_timeout_seconds ({timeout:g}) must exceed boot_seconds ({boot:g})")
        return Pool(
            name=name,
            labels=frozenset(pool.labels or [name]),
            controllers=tuple(pool.controllers or self.controllers),
            executors=pool.executors,
            platform=pool.platform,
            launch_template=pool.launch_template,
            launch_template_version=pool.launch_template_version or self._version_of(pool.launch_template),
            offerings=_offerings(name, pool, prices),
            max_agents=pool.max_agents,
            min_agents=pool.min_agents,
            warm_executors=pool.warm_executors,
            exclusive=pool.exclusive,
            remote_dir=pool.remote_dir or _REMOTE_DIRS[pool.platform],
            **tuned,
        )

    def _version_of(self, template: str) -> str:
        """Return the version to launch: the latest of the stack's own templates, whose default a deployment never moves."""
        return "$Latest" if template in {f"autoscaler-{platform}-{self.fleet}" for platform in Platform} else "$Default"

    def _tuned(self, key: str, pool: PoolSettings) -> Any:
        values = (getattr(pool, key), getattr(self.defaults, key), _DEFAULTS.get(key))
        return next((value for value in values if value is not None), None)


def environment_name(controller: str) -> str:
    """Spell a controller as in environment variables: upper case, ``-`` as ``_``."""
    return re.sub(r"[^A-Z0-9]", "_", controller.upper())


def load_settings(path: Path) -> FleetSettings:
    """Read and check a fleet file; a JSON beside it that was checked from the same bytes spares parsing YAML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from error
    checked = path.with_suffix(".json")
    if checked.exists():
        known = json.loads(checked.read_text(encoding="utf-8"))
        if known.get("sha256") == hashlib.sha256(raw).hexdigest():
            return check(known["fleet"], str(path))
    return check(_parse_yaml(raw, path), str(path))


def load_fleet(path: Path) -> Fleet:
    """Read, check and translate a fleet file."""
    try:
        return load_settings(path).domain()
    except ConfigError as error:
        raise error if str(error).startswith(str(path)) else ConfigError(f"{path}: {error}") from error


def check(raw: object, where: str) -> FleetSettings:
    """Check what a fleet file holds; `ConfigError` with key, value and rule in one line."""
    try:
        return FleetSettings.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{where}: {one_line(error)}") from None


def one_line(error: ValidationError, tags: int = 0) -> str:
    """Say what pydantic found in one line: key (value): rule; ... ``tags``: how many a discriminated union puts before a key."""
    return "; ".join(_problem(dict(problem) | {"loc": problem["loc"][tags:]}) for problem in error.errors())


def _problem(problem: dict[str, Any]) -> str:
    if str(problem["type"]).startswith("union_tag"):
        return _tag_problem(**problem.get("ctx", {}))
    parts = (str(part) for part in problem["loc"] if part != "[key]")
    key = ".".join(part if part.isprintable() else repr(part) for part in parts)
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{key}: {message}" if key else message
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key"
    if problem["type"] == "missing":
        return f"{key}: missing"
    return f"{key} ({_shown(problem['input'])}): {message[:1].lower()}{message[1:]}"


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else type(value).__name__


def _tag_problem(discriminator: str, tag: str | None = None, expected_tags: str = "") -> str:
    key = discriminator.strip("'")
    return f"{key}: missing" if tag is None else f"{key} ({_shown(tag)}): input should be {' or '.join(expected_tags.rsplit(', ', 1))}"


def _offerings(name: str, pool: PoolSettings, prices: dict[str, float | None]) -> tuple[Offering, ...]:
    markets = {"on-demand": [Market.ON_DEMAND], "spot": [Market.SPOT], "spot-then-on-demand": [Market.SPOT, Market.ON_DEMAND]}
    gib = prices["volume_gib"]
    volume = (_VOLUME_GIB[pool.platform] if gib is None else gib) * (prices["volume_usd_per_gib_month"] or 0.0) / _HOURS_A_MONTH
    return tuple(
        Offering(
            instance_type=instance_type,
            subnet=subnet,
            market=market,
            volume_usd_per_hour=volume,
            **_machine_prices(name, pool, instance_type, market, prices),
        )
        for market in markets[pool.market]
        for instance_type in pool.instance_types
        for subnet in pool.subnets or [""]
    )


def _machine_prices(name: str, pool: PoolSettings, instance_type: str, market: Market, prices: dict[str, float | None]) -> dict[str, Any]:
    """Return the expected and the highest price. The highest of spot is the maximum that is sent, or the on-demand price."""
    if market is Market.ON_DEMAND:
        return {"usd_per_hour": pool.usd_per_hour or _price(name, pool, instance_type)}
    expected = pool.usd_per_hour or _price(name, pool, instance_type) * (1 - (prices["spot_discount"] or 0.0))
    most = prices["spot_max_usd_per_hour"]
    if most is None:
        listed = carried_prices().get(instance_type, {}).get(str(pool.platform), 0.0)
        return {"usd_per_hour": expected, "most_usd_per_hour": max(expected, listed)}
    return {"usd_per_hour": min(expected, most), "most_usd_per_hour": most, "spot_max_usd_per_hour": most}


def _price(name: str, pool: PoolSettings, instance_type: str) -> float:
    prices = carried_prices().get(instance_type)
    price = prices and prices.get(str(pool.platform))
    if not price:
        rule = f"no {pool.platform} price is carried for it; set usd_per_hour"
        raise ConfigError(f"pools.{name}.instance_types ({instance_type}): {rule}")
    return price


@cache
def carried_prices() -> dict[str, dict[str, float]]:
    """Return on-demand dollars per hour by instance type and platform (``make prices`` made the table)."""
    text = files("autoscaler").joinpath("prices.json").read_text(encoding="utf-8")
    prices: dict[str, dict[str, float]] = json.loads(text)["usd_per_hour"]
    return prices


def _parse_yaml(raw: bytes, path: Path) -> object:
    import yaml  # noqa: PLC0415 - not in the warm path: a checked JSON stands beside the deployed file

    class Loader(yaml.SafeLoader):
        """Refuses a key written twice; YAML would silently keep the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    raise ConfigError(f"{path}: line {node.start_mark.line + 1}: {key} is written twice")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(raw, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path}: is not YAML ({problem})") from None


def main() -> int:
    """Check FILE and write it with its checked JSON to DIRECTORY: what the fleet layer's build does."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        load_fleet(source)
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    raw = source.read_bytes()
    checked = {"sha256": hashlib.sha256(raw).hexdigest(), "fleet": _parse_yaml(raw, source)}
    (target / source.name).write_bytes(raw)
    (target / source.with_suffix(".json").name).write_text(json.dumps(checked), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
