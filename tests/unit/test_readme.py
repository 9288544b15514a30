"""The README quotes figures of generated tables, and its first screen has the two commands that a new user needs."""

import re

import pytest

from packaging_root import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = "\n".join(README.splitlines()[:24])
# Each row of the README, and the row of docs/comparison.md that it quotes.
WEEKS = {
    "MXNet": "mxnet_stages",
    "linkerd, second": "linkerd_gha, week 2",
    "linkerd, third": "linkerd_gha, week 3",
    "linkerd, fourth": "linkerd_gha, week 4",
    "Jenkins of MXNet, third": "mxnet_jenkins, week 3",
}


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def rows(text, *first):
    """The cells of each row whose first cell is one of these."""
    table = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in table if row[0] in first}


def dollars(cell):
    """The first figure of a cell: "$6,278.19 buildkite-stack-warm"."""
    return float(cell.split()[0].strip("$").replace(",", ""))


@pytest.mark.parametrize("name", ["cost.md", "benchmarks.md"])
def test_a_month_costs_what_the_generated_table_says(name):
    quoted = {agents.replace(",", ""): usd for agents, (usd,) in rows(README, "10", "100", "1,000").items()}
    table = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in page(name).splitlines() if line.startswith("|")]
    together = {row[1]: row[-2] for row in table if row[0] == "essential" and len(row) > 9}
    assert quoted == together
    assert len(quoted) == 3


def test_a_month_at_a_hundred_agents_costs_at_most_fourteen_dollars():
    (usd,) = rows(README, "100")["100"]
    assert float(usd.strip("$")) <= 14


PARTS = ["week", "bill", "hours of waiting", "best rival", "its bill", "its hours of waiting", "saved, waiting at $20 an hour"]


def parts():
    """The table of docs/comparison.md that takes the totals of starts of 0.6 apart."""
    _, _, table = page("comparison.md").partition(f"| {' | '.join(PARTS)} |")
    return rows(table.partition("\n\n")[0], *WEEKS.values())


@pytest.mark.parametrize("week", WEEKS)
def test_the_bill_and_the_hours_of_waiting_of_a_recorded_week_are_those_that_the_command_wrote(week):
    bill, waited, _, their_bill, they_waited, saved = parts()[WEEKS[week]]
    quoted = rows(README, *WEEKS)[week]
    assert quoted[::2] == [f"${dollars(bill):,.0f}", f"${dollars(their_bill):,.0f}", saved]
    assert quoted[1::2] == [f"{float(hours):.{0 if float(hours) >= 100 else 1}f}" for hours in (waited, they_waited)]


@pytest.mark.parametrize("week", WEEKS.values())
def test_bill_and_waiting_at_the_price_that_the_readme_names_are_the_totals(week):
    [price] = re.findall(r"an hour that a job waits is taken to be worth \$(\d+)", " ".join(README.split()))
    text = page("comparison.md")
    assert "| week | as shipped, 0.33 | as shipped, 0.6 | as shipped, 1 | best rival, 0.33 | best rival, 0.6 |" in text
    _, after, _, _, before = map(dollars, rows(text.partition(f"| {PARTS[0]} | {PARTS[1]} ")[0], week)[week])
    bill, waited, _, their_bill, they_waited, saved = parts()[week]
    assert dollars(bill) + float(price) * float(waited) == pytest.approx(after, abs=0.2)
    assert dollars(their_bill) + float(price) * float(they_waited) == pytest.approx(before, abs=0.2)
    assert saved == f"{round(100 * (1 - after / before))} %"


def test_it_names_a_rival_whose_bill_is_smaller_as_the_comparison_does():
    [(rival, usd)] = re.findall(r"others are cheaper: (\w+)'s is \$([\d,]+)", README)
    assert f"{rival} ${usd}" in page("comparison.md")


@pytest.mark.parametrize(
    "words", ["make demo", "make test", "a minute and a half", "six minutes", "python3-venv", "ca-certificates", "no root"]
)
def test_the_first_screen_has_both_commands_their_durations_and_what_they_need(words):
    assert words in " ".join(FIRST_SCREEN.split())


@pytest.mark.parametrize(
    "words", ["Whom it suits", "one static agent", "Kubernetes", "no AWS account", "a real AWS account, Windows agents"]
)
def test_it_says_whom_it_suits_and_what_was_never_run(words):
    assert words in README
