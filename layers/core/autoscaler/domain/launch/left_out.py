"""Teams that are left out: their jobs wait, and none of their agents has run for half an hour.

Dollars alone cannot share what cannot be divided: with room for one agent, nobody is ever level. So these teams go first, and each keeps
its turn for half an hour at least, longer by its weight.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Team
from autoscaler.domain.facts.metering import SHARE_SECONDS, last_spent_at, missing_of, spent_lately, team_of_each
from autoscaler.domain.situation.situation import Situation

# A team waits for so long beside what others run, then they hand over; and they keep what they have for so long.
TURN_SECONDS = 1800.0


@dataclass(slots=True, kw_only=True)
class Order:
    """The order of teams, while room is handed out. ``left_out``: when the teams that are left out last spent anything, by name."""

    spent: dict[str, float]  # dollars of the last hours for their weights, by team
    left_out: dict[str, float]

    def key(self, team: str) -> tuple[bool, float, float]:
        """Sort teams: those that are left out, for the longest first; then by what they spent."""
        return team not in self.left_out, self.left_out.get(team, 0.0), self.spent[team]

    def launch(self, team: Team, usd_per_hour: float) -> None:
        """Count an agent that a team gets as an hour of its price; it is left out no more."""
        self.spent[team.name] += usd_per_hour / team.weight
        self.left_out.pop(team.name, None)


def order_of(situation: Situation, teams: Iterable[Team]) -> Order:
    """Work out who goes first of several teams."""
    return Order(spent={team.name: spent_for_weight(situation, team) for team in teams}, left_out=_left_out(situation))


def spent_for_weight(situation: Situation, team: Team) -> float:
    """Return the dollars that a team has spent in the last hours, for its weight: the lowest goes first."""
    return spent_lately(situation.memory.lately, team.pools) / team.weight


def turn_seconds(holder: Team, waiting: Team) -> float:
    """Return for how long a team keeps an agent that another one waits for: never longer than dollars are remembered."""
    return min(TURN_SECONDS * max(1.0, holder.weight / waiting.weight), SHARE_SECONDS)


def has_waited(situation: Situation, pool: str) -> bool:
    """Tell whether a job that a pool may serve has waited for as long as a turn takes."""
    return any(seconds >= TURN_SECONDS for demand in situation.demands.values() for seconds in demand.waits_for(pool))


def _left_out(situation: Situation) -> dict[str, float]:
    """Find the teams that have nothing, have spent nothing for the time of a turn, and whose jobs have waited for that long."""
    team_of, there = team_of_each(situation.fleet), _pools_that_are_there(situation)
    found: dict[str, float] = {}
    for demand in situation.demands.values():
        for want in demand.wants:
            teams = {team_of[pool.name].name: team_of[pool.name] for pool in want.pools}
            if want.item.waiting_seconds < TURN_SECONDS or found.keys() >= teams.keys():
                continue
            if any(not team.pools.isdisjoint(there) for team in teams.values()):
                continue  # who has an agent may serve it
            last = {name: last_spent_at(situation.memory.lately, team.pools) for name, team in teams.items()}
            found |= {name: at for name, at in last.items() if situation.now - at >= TURN_SECONDS}
    return found


def _pools_that_are_there(situation: Situation) -> set[str]:
    """Name the pools of which an agent runs, whatever it does, or is on its way."""
    snapshot = situation.snapshot
    running = {record.pool for record in snapshot.living if not snapshot.is_off(record)}
    return running | {intent.pool for intent in snapshot.intents if missing_of(intent)}
