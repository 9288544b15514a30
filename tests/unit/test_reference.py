"""The schema and the reference pages are up to date, every key and reason says what it means, and the schema refuses what we refuse."""

import json
import re

import jsonschema
import pytest
import yaml

from autoscaler.config import check
from autoscaler.config.problems import FleetFileError
from autoscaler.config.settings import POINTER, fleet_schema
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.advice import warnings_of
from autoscaler_workbench.maintenance.reference import written
from packaging_root import ROOT
from support.cli import autoscaler

EXAMPLES = [ROOT / "autoscaler_workbench" / "data" / "mxnet_fleet.yaml", *sorted((ROOT / "tests" / "oracle" / "fleets").glob("*.yaml"))]
SCHEMA = fleet_schema()
GOOD = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu: {executors: 4, launch_template: cpu, instance_types: [c5.18xlarge], platform: linux, max_agents: 5}
"""


def refusals(text):
    return list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text)))


def keys():
    for section in (SCHEMA, *(part for part in SCHEMA["$defs"].values() if "properties" in part)):
        for key, about in section["properties"].items():
            yield key, SCHEMA["$defs"][about["$ref"].rpartition("/")[2]] | about if "$ref" in about else about


@pytest.mark.parametrize("path", written(ROOT), ids=lambda path: path.name)
def test_what_is_made_from_the_code_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == written(ROOT)[path], "make reference"


def test_every_key_and_every_reason_is_described_in_a_sentence():
    assert [key for key, about in keys() if not about.get("description", "").endswith(".")] == []
    assert [reason for reason in Reason if not (reason.meaning[0].isupper() and reason.meaning.endswith("."))] == []
    assert len({reason.meaning for reason in Reason}) == len(Reason)


def test_every_key_stands_on_the_page_of_keys_and_every_reason_on_that_of_reasons():
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("fleet-file", "reasons")}
    assert [key for key, _ in keys() if f"- **`{key}`** (" not in pages["fleet-file"]] == []
    assert [reason for reason in Reason if f"- **`{reason}`** " not in pages["reasons"]] == []


def test_the_command_prints_the_schema_and_the_example_points_editors_to_it():
    assert json.loads(autoscaler("schema").stdout) == SCHEMA
    assert EXAMPLES[0].read_text(encoding="utf-8").startswith(POINTER + "\n")
    assert (EXAMPLES[0].parent / POINTER.rpartition("=")[2]).exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schema_accepts_every_fleet_file_that_we_carry(path):
    assert refusals(path.read_text(encoding="utf-8")) == []


def fleet_files_of(page):
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if re.search(r"^fleet:", block, re.MULTILINE)]


@pytest.mark.parametrize("page", ["docs/fleet-file.md", "docs/deploy.md", "README.md"])
def test_fleet_files_on_pages_are_valid_and_nothing_is_odd_about_them(page):
    for text in fleet_files_of(page):
        assert refusals(text) == []
        assert warnings_of(check(yaml.safe_load(text), page)) == []


def test_the_page_of_keys_shows_a_whole_fleet_file():
    assert fleet_files_of("docs/fleet-file.md")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fleet: f", "fleet: F"),
        ("fleet: f", "speed: 3"),
        ("executors: 4", "executers: 4"),
        ("executors: 4", "executors: '4'"),
        ("executors: 4", "executors: 0"),
        ("platform: linux", "platform: sunos"),
        ("platform: linux", "market: cheap"),
        ("platform: linux", "quarantine: 'never'"),
        ("platform: linux", "labels: [a b]"),
        ("platform: linux", "spot_discount: 1"),
        ("platform: linux", "launch_template_version: 3"),
        ("max_usd_per_hour: 100", "max_usd_per_hour: 0"),
        ("[c5.18xlarge]", "[]"),
        ("  cpu:", "  a cpu:"),
    ],
)
def test_the_schema_refuses_what_we_refuse(old, new):
    text = GOOD.replace(old, new)
    assert refusals(text)
    with pytest.raises(FleetFileError):
        check(yaml.safe_load(text), "here")
    assert refusals(GOOD) == []
