"""Whatever stands in a fleet file: it is read, or each thing that is wrong is told in one line, quickly, and nothing else happens."""

import re
import time
from copy import deepcopy

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autoscaler.config import FleetFileError, check, load_fleet
from autoscaler.config.yaml_file import parse
from autoscaler_workbench.advice import warnings_in, warnings_of
from seams.keys import keys
from support.every_key import TEXT

WHOLE = parse(TEXT)
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["", "off", "=", "<<", "a\nb", "\x1b[31m", "\u2028", "\x00", "x" * 5000, "~", "${x}", "é" * 300]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**19, -(10**25), 10**4000, 1e308, 5e-324, float("nan"), float("inf")])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3), max_leaves=6)


def places(node, way=()):
    """Yield the way to each value within a file."""
    yield way
    for part, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(inner, (*way, part))


PLACES = sorted(places(WHOLE), key=repr)


def changed(way, change):
    """A file in which the value at a place is another one."""
    whole = {"root": deepcopy(WHOLE)}
    node, last = whole, "root"
    for part in way:
        node, last = node[last], part
    node[last] = change(node[last])
    return whole["root"]


def within(key, value):
    return lambda node: {**node, key: value} if isinstance(node, dict) else [*node, value] if isinstance(node, list) else value


FILES = st.builds(
    lambda way, value, key, add: changed(way, within(key, value) if add else lambda _old: value),
    st.sampled_from(PLACES),
    VALUES,
    SCALARS | st.sampled_from(sorted({key.rpartition(".")[2] for key in keys()})),
    st.booleans(),
)


def read(tmp_path_factory, raw):
    """Return the lines of what is wrong: none, or each one line of bounded length with its place."""
    path = tmp_path_factory.getbasetemp() / "fleet.yaml"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    begun = time.process_time()
    try:
        load_fleet(path)
        lines = warnings_in(path, now=2e9)
        wrong = []
    except FleetFileError as error:
        lines = wrong = list(error.lines)
        assert str(error).isprintable()
    assert time.process_time() - begun < 10
    for line in lines:
        assert line.isprintable()
        assert len(line) <= 1100
        assert line.startswith((f"{path}:", "and more than"))
    return [line.removeprefix(f"{path}:") for line in wrong]


def test_the_file_that_is_changed_has_every_key_and_is_right(tmp_path_factory):
    written = {re.sub(r"^(controllers|kinds|pools|hosts|teams)\.[^.]+", r"\1.*", ".".join(map(str, way))) for way in PLACES if way}
    written = {re.sub(r"schedules\.\d", "schedules[]", key) for key in written}
    assert keys().keys() - written == set()
    assert read(tmp_path_factory, TEXT) == []


@settings(max_examples=min(50, settings().max_examples) if settings().max_examples < 1000 else 1000)
@given(whole=FILES)
def test_any_value_and_any_key_anywhere_is_read_or_told(tmp_path_factory, whole):
    try:
        text = yaml.safe_dump(whole, allow_unicode=True, default_flow_style=None, width=1000)
    except ValueError:  # Python writes no number of so many digits
        text = TEXT.replace("executors: 4", f"executors: 1{'0' * 4999}")
    read(tmp_path_factory, text)


LINES = TEXT.splitlines()


@settings(max_examples=min(40, settings().max_examples) if settings().max_examples < 1000 else 1000)
@given(
    number=st.integers(0, len(LINES) - 1),
    line=st.sampled_from(LINES) | st.text(max_size=20),
    cut=st.integers(0, 60),
    tail=st.text(max_size=6)
    | st.sampled_from(["[" * 60, "{a: " * 60, "&x [*x]", "*x", "!!set {a}", "!!int x", "!!timestamp y", "? [a]", "'", "---"]),
)
def test_any_line_anywhere_is_read_or_told(tmp_path_factory, number, line, cut, tail):
    text = "\n".join([*LINES[:number], line[:cut] + tail, *LINES[number:]])
    read(tmp_path_factory, text.encode("utf-8", "surrogatepass"))


@settings(max_examples=min(60, settings().max_examples))
@given(raw=st.binary(max_size=60))
@example(raw=TEXT.encode("utf-16"))
@example(raw=b"\xff\xfe\x00")
def test_any_bytes_are_read_or_told(tmp_path_factory, raw):
    read(tmp_path_factory, raw)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "x0: &x0 [1]\n" + "".join(f"x{number}: &x{number} [*x{number - 1}]\n" for number in range(1, 2000))
LEVELS = 2000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT + f"x: {'[' * LEVELS}{']' * LEVELS}\n", "is nested more than 50 levels deep"),
        (TEXT + f"x: {'{a: ' * LEVELS}1{'}' * LEVELS}\n", "is nested more than 50 levels deep"),
        (TEXT + "".join(f"{' ' * level}x{level}:\n" for level in range(LEVELS)), "is nested more than 50 levels deep"),
        (TEXT + "".join(f"{'- ' * LEVELS}x\n"), ""),
        (TEXT + CHAIN, "is nested more than 50 levels deep"),
        (TEXT + BOMB, "aliases (*) repeat more than 200,000 values"),
        (BOMB + f"fleet: *{'f'}\n", "aliases (*) repeat more than 200,000 values"),
        (TEXT + "x: &x [*x]\n", "an alias (*) stands within what it repeats"),
        (TEXT + "x: &x {y: *x}\n", "an alias (*) stands within what it repeats"),
        (
            TEXT.replace("max_agents: 20", f"max_agents: {'9' * 5000}"),
            "pools.cpu.max_agents (a number of 5,000 digits): must be 100,000 or less",
        ),
        (TEXT.replace("wait_usd_per_hour: 12.5", f"wait_usd_per_hour: -{'9' * 5000}"), "(a number of 5,000 digits): must be 0 or more"),
        (TEXT.replace("wait_usd_per_hour: 12.5", f"wait_usd_per_hour: {'9' * 5000}.0"), "wait_usd_per_hour (inf): must be"),
        (TEXT.replace("owner: anna", f"owner: {'9' * 5000}"), "hosts.box-1.owner (a number of 5,000 digits): must be text"),
        (TEXT + f"? {'9' * 5000}\n: 1\n", "(a number of 5,000 digits): a key must be text"),
        (TEXT + f"? {'k' * 100_000}\n: 1\n", "unknown key"),
        (TEXT.replace("owner: anna", f"owner: {'x' * 100_000}"), "must have 200 or fewer characters"),
        (
            TEXT.replace("controllers: [main, other]", f"controllers: [main, {'x' * 100_000}]"),
            "is not one of the controllers (main, other)",
        ),
        (TEXT.replace("controllers: [main, other]", 'controllers: [main, "a\\nb\\e[31m"]'), "controllers (a\\nb\\x1b[31m) is not one"),
        (TEXT.replace("runs: {", "runs: {x: 1, "), "runs.x: unknown key, known here: label_parameter, max_open"),
        (TEXT.replace("runs: {", "runs: {schedules: 1, "), "runs.schedules: unknown key here, it belongs in a pool"),
        (TEXT.replace("weights: {", "weights: {x: {y: {z: 1}}, "), "weights.x"),
        (TEXT + "fleet: again\n", "fleet is written twice"),
        (TEXT + "<<: {x: 1}\n", "<< is not read here"),
        (TEXT.replace("owner: anna", "owner: !!set {a}"), "the tag tag:yaml.org,2002:set is not read here"),
        (TEXT.replace("owner: anna", "owner: !!int anna"), "is no int, as its tag says"),
        (TEXT.replace("owner: anna", "owner: !!bool anna"), "is no bool, as its tag says"),
        (TEXT.replace("owner: anna", "owner: 2026-07-01 00:00:00"), ""),
    ],
    ids=lambda value: repr(value[-40:])[:30],
)
def test_what_has_no_end_or_makes_no_sense_is_told_in_one_line(tmp_path_factory, text, told):
    lines = read(tmp_path_factory, text)
    if told:
        assert [line for line in lines if told in line]
        assert re.match(r"\d+:\d+: ", lines[0])


@pytest.mark.parametrize(
    "beside", ["[]", "null", "1", "not JSON", "{}", '{"sha256": 1}', '{"fleet": 1}', "[" * 100_000, '"\\ud800"', "\ud800"]
)
def test_a_json_beside_it_that_is_no_checked_fleet_file_does_not_count(tmp_path, beside):
    path = tmp_path / "fleet.yaml"
    path.write_text(TEXT, encoding="utf-8")
    path.with_suffix(".json").write_bytes(beside.encode("utf-8", "surrogatepass"))
    assert load_fleet(path).name == "every-key"


LIMITS = {"max_agents": 100_000, "max_launches_per_hour": 9, "max_usd_per_hour": 100, "max_usd_per_month": 9000}
POOL = {"executors": 4, "launch_template": "x", "instance_types": ["c5.18xlarge"], "max_agents": 5}
MANY = 1500
KINDS = {"a": {}, **{f"a+m{number}": {} for number in range(MANY // 3)}}
TEAMS = {f"t{number}": {"pools": [f"p{number}"]} for number in range(MANY // 5)}
STRANGERS = {f"t{number}": {"pools": [f"q{number}"]} for number in range(MANY)}
HOSTS = {f"h{number}": {"pool": f"q{number}", "role_id": f"AROA{number:012}"} for number in range(MANY)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "rest"),
    [
        ({}, {}),
        ({"labels": ["same"]}, {}),
        ({"max_agnets": 5}, {}),
        ({"controllers": ["mian"]}, {}),
        ({"instance_types": ["c5.17xlarge"]}, {}),
        ({"kind": "a"}, {"kinds": KINDS}),
        ({}, {"teams": TEAMS}),
        ({}, {"teams": STRANGERS}),
        ({}, {"hosts": HOSTS}),
    ],
    ids=["right", "same labels", "unknown key", "unknown controller", "unknown type", "kinds", "teams", "unknown pools", "hosts"],
)
def test_the_rules_take_time_as_the_file_is_long(more, rest):
    spent = {}
    for pools in (MANY // 5, MANY):
        named = {f"p{number}": POOL | more for number in range(pools)}
        whole = {"fleet": "f", "limits": LIMITS, "controllers": {"main": {"url": "https://a.example.org/"}}, "pools": named, **rest}
        begun = time.process_time()
        try:
            assert len(FleetFileError("", warnings_of(check(whole, ""))).lines) <= 101
        except FleetFileError as error:
            assert len(error.lines) <= 101
        spent[pools] = time.process_time() - begun
    assert spent[MANY] < 8 * spent[MANY // 5] + 0.5  # five times the pools, and noise
