"""What does not hold yet, and why. An entry goes as soon as its fix is there."""

from collections.abc import Collection

from support.hostile.judge import Violation

# By switch and property.
NOT_YET: dict[tuple[str, str], str] = {
    ("boots-hang", "C3"): "until three boots have failed no message says so",
    ("boots-hang", "E"): "a start is promised while the pool is broken",
    ("clock-skewed", "D"): "an agent that was idle while the clock was ahead counts as idle later",
    ("controller-flaps", "E"): "`why` says nothing of a job while its controller cannot be read",
    ("labels-edited", "C3"): "a job that no agent can take counts as served by one with the pool's old labels",
    ("late-listeners", "E"): "an agent that has connected and takes nothing yet counts as free at once",
    ("launches-refused", "C3"): "a refusal of every launch is told by nobody",
    ("login-outage", "E"): "`why` says nothing of a job while its controller cannot be read",
    ("login-page", "E"): "`why` says nothing of a job while its controller cannot be read",
    ("marked-by-disk-monitor", "D"): "the agent stays",
    ("marked-by-plugin", "C3"): "the mark counts as a person's",
    ("marked-by-plugin", "D"): "the mark counts as a person's",
    ("never-connects", "A"): "an item that names the only node counts as bound",
    ("never-connects", "B"): "an item that names the only node counts as bound",
    ("never-connects", "C1"): "an item that names the only node counts as bound",
    ("never-connects", "C2"): "an item that names the only node counts as bound",
    ("never-connects", "C3"): "an item that names the only node counts as bound",
    ("never-connects", "D"): "an item that names the only node counts as bound",
    ("never-connects", "E"): "an item that names the only node counts as bound",
    ("no-capacity", "C3"): "missing capacity is told by nobody",
    ("no-capacity", "E"): "a start is promised though EC2 has refused",
    ("offering-refused", "C3"): "the code is told by nobody",
    ("quiet-mode", "C3"): "quiet mode is told by nobody",
    ("refused-by-permission", "C3"): "a free executor that refuses is believed",
    ("refused-by-permission", "D"): "a free executor that refuses is believed",
    ("refused-by-permission", "E"): "a free executor that refuses is believed",
    ("restarts", "E"): "`why` says nothing of a job while its controller cannot be read",
    ("slow-answers", "E"): "`why` says nothing of a job while its controller cannot be read",
    ("starts-refused", "C3"): "until three starts are refused no message says so",
    ("starts-refused", "E"): "a stopped agent that EC2 does not start is promised within seconds",
    ("stops-hang", "B"): "what stops for ever is waited for",
    ("stops-hang", "E"): "what stops for ever is waited for",
    ("suspended", "C3"): "a free executor that refuses is believed",
    ("suspended", "E"): "a free executor that refuses is believed",
    ("throttled-by-node", "C3"): "a free executor that refuses is believed",
    ("throttled-by-node", "E"): "a free executor that refuses is believed",
    ("throttled-for-all", "C3"): "a free executor that refuses is believed",
    ("throttled-for-all", "E"): "a free executor that refuses is believed",
    ("waits-for-another-node", "D"): "agents are launched for a job that only another node can take",
    ("zombies", "D"): "an executor that shows a run which has ended counts as busy",
}
# By property and words of what is broken, whatever the switches are.
NOT_YET_SO: dict[tuple[str, str], str] = {
    ("D", "were launched for"): "agents that are foreseen, or worth keeping, are launched, end as surplus two minutes later, and so on",
    ("E", "it waits for a build that runs now"): "a running build of which nobody knows how long it takes is promised to end within 30 s",
}


def is_known(violation: Violation, switches: Collection[str]) -> bool:
    """Tell whether this is known not to hold."""
    if any((switch, violation.property) in NOT_YET for switch in switches):
        return True
    return any(name == violation.property and words in violation.text for name, words in NOT_YET_SO)
