"""A proposal as tables for a terminal."""

from workbench.cli.terminal import Table
from workbench.experiment.tune import Proposal


def tables_of(proposal: Proposal) -> tuple[Table, Table]:
    """What to change and what that saves, and what waiting less would cost."""
    before, after = proposal.before, proposal.after
    title = f"total ${before['total_usd']:,.0f} -> ${after['total_usd']:,.0f}, bill ${before['usd']:,.0f} -> ${after['usd']:,.0f}"
    changes = Table("pool", "setting", "now", "proposed", "saves there", title=title, title_justify="left")
    for change in proposal.changes:
        changes.add_row(change.pool, change.key, change.now, change.proposed, f"${change.saves_usd:,.2f}")
    if not proposal.changes:
        changes.add_row("", "nothing that was tried costs less together", "", "", "")
    frontier = Table("wait_usd_per_hour", "dollars", "p95 wait", title="what waiting less costs", title_justify="left")
    for row in proposal.frontier:
        frontier.add_row(
            row["setting"].rpartition("wait_usd_per_hour ")[2] if row is not after else "as it is",
            f"${row['usd']:,.0f}",
            f"{row['wait_p95_s']:,.0f} s",
        )
    return changes, frontier
