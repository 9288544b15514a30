"""Pages quote defaults, prices, counts and permissions as their one source has them."""

import json
import re

import pytest

from autoscaler_workbench.experiment.rivals import EVERY_RIVAL, WARM_RIVALS
from benchmarks.shipped import _RIVALS
from packaging_root import ROOT
from support.template import TEMPLATE

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PARAMETERS = TEMPLATE["Parameters"]
WORDS = dict(zip(("three", "four", "five", "six", "seven", "eight", "nine", "ten"), range(3, 11), strict=True))
WORDS |= dict(zip(("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"), range(11, 18), strict=True))
COUNT = "|".join(WORDS)
AGENTS = {"ten": "10", "a hundred": "100", "a thousand": "1000", "10": "10", "100": "100", "1,000": "1000"}
PERMISSION = r"\*\*((?:Overall|Job|Agent)/\w+)\*\*"

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def words_of(page):
    return " ".join(page.read_text(encoding="utf-8").split())


def table_of_months():
    """Dollars a month of the default level by the number of agents, from the generated table."""
    lines = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" *`$") for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `essential`")]
    return {row[1]: row[-2] for row in rows}


def permissions():
    """Those that everybody needs, and those that a feature needs: of the walk, which explains each."""
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    step = page.partition("## 1. ")[2].partition("## 2. ")[0].partition("2. Log in")[0]
    always, _, sometimes = step.partition("   - ")
    needed = set(re.findall(PERMISSION, always))
    return needed, set(re.findall(PERMISSION, sometimes)) - needed


@pages
def test_a_default_of_a_parameter_is_the_templates(page):
    """As in `FunctionMemoryMiB` (512), and `AgentPublicIp=true`, the default."""
    text = words_of(page)
    quoted = re.findall(r"`([A-Z]\w+)` \(`?([\w./-]+)[`;,)]", text) + re.findall(r"`([A-Z]\w+)=([^`]+)`, the default", text)
    known = [(name, value) for name, value in quoted if name in PARAMETERS]
    values = [(name, value) for name, value in known if value.isdigit() or value in map(str, PARAMETERS[name].get("AllowedValues", ()))]
    assert [(name, value) for name, value in values if str(PARAMETERS[name].get("Default")) != value] == []


def defaults_of_keys(node):
    """Each key of the fleet file that has a default, with it."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict):
        keys = node.get("properties", {})
        yield from ((name, str(facts["default"])) for name, facts in keys.items() if isinstance(facts, dict) and "default" in facts)
    for child in children:
        yield from defaults_of_keys(child)


@pages
def test_a_default_of_a_key_is_the_fleet_files(page):
    """As in `spot_discount` (0.65), and `volume_usd_per_gib_month: 0.08` by default."""
    schema = json.loads((ROOT / "autoscaler_workbench" / "data" / "fleet.schema.json").read_text(encoding="utf-8"))
    defaults = {}
    for name, value in defaults_of_keys(schema):
        defaults.setdefault(name, set()).add(value)
    text = words_of(page)
    quoted = re.findall(r"`([a-z_]+)` \((\d[\d.]*)[;,)]", text)
    quoted += re.findall(r"`([a-z_]+): ([\d.]+)`(?:, the default| \(the default| by default)", text)
    assert [(name, value) for name, value in quoted if name in defaults and value not in defaults[name]] == []


@pages
def test_how_often_scale_up_looks_by_default_is_the_templates(page):
    default = PARAMETERS["LookEverySeconds"]["Default"]
    quoted = re.findall(r"every (\d+) s(?:econds)? (?:by default|\(`LookEverySeconds`)", words_of(page))
    assert {int(seconds) for seconds in quoted} <= {default}


@pages
def test_a_month_of_the_autoscaler_costs_what_the_generated_table_says(page):
    months = table_of_months()
    assert len(months) == 3
    quoted = re.findall(rf"\$([\d.,]*\d)(?: a month)? for ({'|'.join(AGENTS)})(?= agents|,? and |, \$)", words_of(page))
    assert [(usd, agents) for usd, agents in quoted if months[AGENTS[agents]] != usd] == []


def test_the_questions_quote_a_month_of_each_size():
    assert all(f"${usd}" in words_of(ROOT / "docs" / "faq.md") for usd in table_of_months().values())


def test_looks_and_the_webhook_cost_everywhere_what_the_table_of_looks_says():
    table = set(re.findall(r"\*\*\$(\d+\.\d\d)\*\* \| \d+ \|", (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")))
    said = re.findall(r"costs (\d+\.\d\d)", PARAMETERS["LookEverySeconds"]["Description"])
    for page in ("network.md", "deploy.md"):
        text = words_of(ROOT / "docs" / page)
        said += [usd for near in re.findall(r"`LookEverySeconds=60`.{0,160}", text) for usd in re.findall(r"\$(\d+\.\d\d)", near)]
    assert len(said) >= 4
    assert set(said) <= table


@pages
def test_as_many_rivals_are_told_of_as_there_are(page):
    """A page may say how many of them do something; whoever says how many there are says all."""
    rivals = set(_RIVALS)
    assert rivals == {name for name in EVERY_RIVAL if not name.startswith("clairvoyant")}
    quoted = re.findall(rf"\b({COUNT}) rivals\b(?! that)", words_of(page))
    quoted += re.findall(rf"(?:cheapest of|rules of others:) ({COUNT})\b", words_of(page))
    assert {WORDS[word] for word in quoted} <= {len(rivals)}
    stop = re.findall(rf"\b({COUNT}) of them stop instances", words_of(page))
    assert {WORDS[word] for word in stop} <= {len(rivals & WARM_RIVALS.keys())}


@pages
def test_as_many_permissions_are_told_of_as_the_walk_names(page):
    always, sometimes = permissions()
    assert always == {"Overall/Read", "Job/Read", "Agent/Create", "Agent/Delete", "Agent/Connect", "Agent/Disconnect"}
    text = words_of(page)
    linked = re.findall(rf"\[({COUNT})([^\]]*)\]\(deploy\.md#1-jenkins", text, re.IGNORECASE)
    for first, rest in linked:
        more = re.findall(rf"up to ({COUNT}) more", rest)
        assert (WORDS[first.lower()], [WORDS[word] for word in more]) == (len(always), [len(sometimes)])


def test_every_permission_that_a_page_demands_is_in_the_walk():
    """Of the account that the functions use: what init, a trace and the tests need beside is theirs."""
    always, sometimes = permissions()
    demanded = set()
    for page in PAGES:
        if page.stem != "fidelity":
            demanded |= set(re.findall(r"\bneeds \**((?:Job|Agent)/\w+)", words_of(page), re.IGNORECASE))
    assert demanded <= always | sometimes
    assert demanded >= {"Job/Build", "Job/ExtendedRead", "Agent/Configure"}


@pages
def test_no_page_says_of_a_feature_that_there_is_none_yet(page):
    assert "none yet |" not in words_of(page)


def test_the_dashboard_counts_what_the_page_of_metrics_says():
    assert "each stage of a pipeline" in words_of(ROOT / "docs" / "metrics.md")
    assert "no stages" not in (ROOT / "template.yaml").read_text(encoding="utf-8")
