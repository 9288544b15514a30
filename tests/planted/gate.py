"""Planted bugs in the gate: what each of its guards prevents comes back."""

from planted.bug import Bug

_GATE = "tests/properties/test_gate.py::test_with_all_guards_no_harm_is_done_where"


def guards(name: str, world: str, *, function: str, was: str, becomes: str) -> Bug:
    found_by = (f"{_GATE}[{world}]",)
    return Bug(name=name, function=function, was=was, becomes=becomes, found_by=found_by)


GATE = (
    guards(
        "a machine is started for a controller that left the fleet file",
        "a controller leaves the file while an agent of it starts",
        function="_is_left_out",
        was="if is_controller_left(situation, step.controller) and (agent is None or",
        becomes="if False and (agent is None or",
    ),
    guards(
        "two rules end one machine in one pass",
        "two rules want one stopped machine to end",
        function="_is_left_out",
        was="return agent is not None and agent.record.instance_id in ended",
        becomes="return False",
    ),
    guards(
        "an agent ends since a wrong fleet file lacks its pool for some minutes",
        "a wrong fleet file lacks the pool for some minutes",
        function="_why_not_ended",
        was="if kept := why_in_doubt(situation, agent) if agent.pool.has_left and not isinstance(step, Rotate) else None:",
        becomes="if kept := None:",
    ),
    guards(
        "a node is marked though what its controller shows cannot be believed",
        "a slot that was given up is online while its controller restarts",
        function="_why_not",
        was="return _unbelieved(situation, step) if needs_sight else None",
        becomes="return None",
    ),
    guards(
        "an agent of which its operator wants to see why builds fail is ended",
        "an operator wants to look at a suspect agent",
        function="Situation.is_kept",
        was="return self.past(agent).is_kept and",
        becomes="return agent.record.is_host and",
    ),
    guards(
        "what a person brings online after it was given up stays for ever",
        "a person brings an agent online that was given up",
        function="_online_again",
        was="    if not node.offline:\n",
        becomes="    if False:\n",
    ),
    guards(
        "a drained agent is looked at twice each minute for as long as a build runs on it",
        "a long build runs on a drained agent",
        function="_busy",
        was="    if agent.idle:\n",
        becomes="    if agent.idle or not is_drain_overdue(situation, agent):\n",
    ),
)
