"""Acts on one node and its record: reads it just before, acts only if it is as decided, reads it again after.

Marks overwrite each other without trace in Jenkins, and its toggle turns both ways; these reads are what keeps a person's
mark a person's, and a build alive.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from autoscaler.control.outcomes import Outcome, Result
from autoscaler.domain.facts.nodes import Mark, read_mark
from autoscaler.domain.facts.plan import Cordon, DeleteNode, Uncordon
from autoscaler.domain.facts.runs import RunAnswer
from autoscaler.domain.facts.snapshot import InstanceState, Node, OfflineCause, Record, RecordState
from autoscaler.domain.report.told import at_work
from autoscaler.errors import ConflictError, DoubtfulError, TransientError
from autoscaler.ports import Controller, Ports, StateStore


def first_of(*reasons: tuple[object, str]) -> str | None:
    """Return the text of the first reason that holds; None: none does."""
    return next((text for holds, text in reasons if holds), None)


def cordon(controller: Controller, step: Cordon) -> Result:
    """Mark a node offline in the class decided; never over a mark that a person set, or a monitor has taken back."""
    before = controller.node(step.node)
    if before is None:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="the node is not there any more")
    is_of_monitor = step.over_monitor and before.cause is not OfflineCause.PERSON
    may_be_replaced = carries(before, step.replaces) if step.replaces else is_of_monitor
    if why := first_of(
        (step.over_monitor and not before.temporarily_offline, "the monitor has taken its mark back: it is used again"),
        (before.temporarily_offline and not may_be_replaced, f"somebody marked it offline first: {before.reason!r}"),
    ):
        return Result(step=step, outcome=Outcome.SKIPPED, detail=why)
    doubt = _doubt_about(lambda: controller.set_offline(step.node, step.mark.text))
    after = controller.node(step.node)
    if after is None or not carries(after, step.mark):
        if doubt:
            raise doubt
        return Result(step=step, outcome=Outcome.FAILED, detail="the mark is not there after it was set")
    return Result(step=step, outcome=Outcome.DONE, detail=at_work(after))


def _doubt_about(change: Callable[[], None]) -> DoubtfulError | None:
    """Change a node; return the error if something that is not Jenkins answered, so that only a look tells whether it was changed."""
    try:
        change()
    except DoubtfulError as error:
        return error
    return None


def uncordon(controller: Controller, step: Uncordon) -> Result:
    """Bring a node back online, if it is offline by exactly the mark that was seen."""
    before = controller.node(step.node)
    if before is None or not carries(before, step.mark):
        return Result(step=step, outcome=Outcome.SKIPPED, detail="it does not carry that mark any more")
    # With the mark that it carries: should somebody bring it online in between, the toggle marks it offline, and this mark says
    # that it was us. It is then as it was decided from, wherever the rest of this is cut off.
    doubt = _doubt_about(lambda: controller.toggle_offline(step.node, step.mark.text))
    after = controller.node(step.node)
    if after is not None and carries(after, step.mark):
        if doubt:
            raise doubt  # the toggle may come late: a second one would turn it round
        controller.toggle_offline(step.node, step.mark.text)
        last = controller.node(step.node)
        if last is not None and carries(last, step.mark):
            # Twice our own toggle cannot have met somebody else's: it did nothing, whatever was answered.
            return Result(step=step, outcome=Outcome.FAILED, detail="it still carries our mark after it was brought online")
        return Result(step=step, outcome=Outcome.DONE, detail="somebody else brought it online at the same moment")
    return Result(step=step, outcome=Outcome.DONE)


def may_terminate(controller: Controller, node_name: str, mark: Mark | None, ended: Collection[str] = ()) -> str | None:
    """Say why the agent behind this node must be kept; None when it may go: still marked by us, offline, idle.

    ``ended``: keys of builds that have ended though their executors show them; their runs are asked once more.
    """
    node = controller.node(node_name)
    if node is None:
        return None
    has_work = any(build.key not in ended for build in node.builds) or not (node.idle or node.builds)
    # Jenkins is asked last, and only if nothing else keeps the agent.
    runs = (run for run in {build.run for build in node.builds} if controller.whether_ended(run) not in _HAS_ENDED)
    return first_of(
        (not node.offline, "its node is online"),
        (mark is not None and not carries(node, mark), f"its node does not carry our mark any more: {node.reason!r}"),
        (mark is None and node.temporarily_offline, f"somebody marked its node offline: {node.reason!r}"),
        (has_work, "a build slipped in"),
    ) or next((f"Jenkins does not say any more that {run} has ended" for run in runs), None)


_HAS_ENDED = (RunAnswer.ENDED, RunAnswer.MAY_HAVE_ENDED)


def may_delete(controller: Controller, step: DeleteNode) -> str | None:
    """Say why a node must be kept though its instance is gone; None when it may go.

    What EC2 says has terminated takes its builds with it: Jenkins ends them once their node is deleted. What EC2 merely does not
    know any more may still run them, for as long as that is to be believed.
    """
    node = controller.node(step.node)
    if node is None:
        return None
    is_at_work = not (node.idle or node.builds) or any(build.key not in step.ended for build in node.builds)
    may_run = step.fate is not InstanceState.TERMINATED and not step.though_busy
    return first_of(
        (not node.offline, "its node is connected"),
        (node.is_deleted and is_at_work, "Jenkins has deleted it, and lists it until it has ended what is on it"),
        (may_run and (not node.idle or node.builds), "a build is on it"),
    )


def carries(node: Node, mark: Mark) -> bool:
    """Tell whether a node is offline by exactly this mark of ours."""
    return node.offline and node.cause is OfflineCause.PERSON and read_mark(node.reason, mark.fleet) == mark


# Writes on a record what is a fact already, whoever changes the record in the same moment.


# Each function that may write the same record meanwhile does so a few times at most.
_TRIES = 4
Change = Callable[[Record], Record | None]  # None: nothing is to be written


def note(state: StateStore, record: Record, change: Change) -> Record | None:
    """Change a record; if somebody was quicker, read it again and decide anew. Return it as it is then; None: it is not there any more."""
    for _ in range(_TRIES):
        changed = change(record)
        if changed is None:
            return record
        try:
            return state.change_record(changed, expected=record.state)
        except ConflictError:
            read = state.record(record.instance_id)
        if read is None:
            return None
        record = read
    raise TransientError(f"the record of {record.instance_id} changes all the time")


def note_interruption(ports: Ports, record: Record) -> Record:
    """Note that EC2 takes an instance back, also if somebody changes its record at the same moment, as by registering.

    No later pass can ask EC2 whether it said so. It needs no lease.
    """
    now = ports.clock()

    def interrupted(read: Record) -> Record | None:
        return replace(read, interrupted_at=now) if read.state.is_there and not read.is_interrupted(now) else None

    noted = note(ports.state, record, interrupted)
    if noted is None:
        return replace(record, state=RecordState.GONE)
    if noted.interrupted_at == now:
        ports.log("interruption_noted", instance_id=record.instance_id, pool=record.pool, state=str(noted.state))
    return noted
