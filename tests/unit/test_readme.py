"""The README quotes figures of generated tables, and its first screen has the two commands that a new user needs."""

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


@pytest.mark.parametrize("week", WEEKS)
def test_a_recorded_week_cost_what_the_comparison_says_of_starts_of_0_6(week):
    rival, ours, saved = rows(README, *WEEKS)[week]
    text = page("comparison.md")
    assert "| week | as shipped, 0.33 | as shipped, 0.6 | as shipped, 1 | best rival, 0.33 | best rival, 0.6 |" in text
    _, after, _, _, before = map(dollars, rows(text, WEEKS[week])[WEEKS[week]])
    assert (dollars(rival), dollars(ours)) == (round(before), round(after))
    assert saved == f"{round(100 * (1 - after / before))} %"


@pytest.mark.parametrize(
    "words", ["make demo", "make test", "a minute and a half", "ten minutes", "python3-venv", "ca-certificates", "no root"]
)
def test_the_first_screen_has_both_commands_their_durations_and_what_they_need(words):
    assert words in " ".join(FIRST_SCREEN.split())


@pytest.mark.parametrize(
    "words", ["Whom it suits", "one static agent", "Kubernetes", "no AWS account", "a real AWS account, Windows agents"]
)
def test_it_says_whom_it_suits_and_what_was_never_run(words):
    assert words in README
