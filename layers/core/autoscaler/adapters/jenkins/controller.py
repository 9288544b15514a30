"""Implements the Controller port over HTTP: three GETs a look, and more only for a queue that is too large for one."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from html import escape, unescape
from typing import Any
from urllib.parse import quote

import jenkins
from pydantic import ValidationError

from autoscaler.adapters.jenkins.flow_graph import (
    GRAPH_TREE,
    HEALTH_TREE,
    RESULT_TREE,
    WHETHER_ENDED_TREE,
    read_graph,
    read_health,
    read_node_of_block,
    read_result,
    read_whether_ended,
)
from autoscaler.adapters.jenkins.parse import (
    COMPUTER_TREE,
    COMPUTER_TREE_WITH_PARAMETERS,
    ID_AND_WHY,
    NODE_FIELDS,
    NOTHING_TELLS_APART,
    QUEUE_TREE,
    QUEUE_TREE_WITH_PARAMETERS,
    ROOT_TREE,
    WITHOUT_WHY,
    entries_of,
    needs_why,
    read_computers,
    read_date,
    read_node,
    read_queue,
    read_version,
)
from autoscaler.adapters.jenkins.session import (
    QUEUE,
    Answer,
    Connection,
    JenkinsSession,
    Patience,
    RefusedRequestError,
    TooLargeError,
    if_there,
)
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import RunAnswer, RunEnd, RunGraph
from autoscaler.domain.facts.snapshot import ControllerView, Node
from autoscaler.domain.facts.started_builds import job_path
from autoscaler.errors import AutoscalerError, ConflictError, NoAnswerError, TransientError

# Edits labels, mode and executors in a node's ``config.xml``, and keeps every other byte as Jenkins wrote it.
#
# Not by an XML parser: Jenkins declares XML 1.1, which Python's does not read, and what it wrote must come back as it was.


# XStream writes the node's own fields with two blanks before them (recorded: c22); those of a property stand further in.
_LABEL = re.compile(rb"(?m)^  (?:<label>[^<]*</label>|<label/>)\r?$")
_MODE = re.compile(rb"(?m)^  <mode>(?:NORMAL|EXCLUSIVE)</mode>\r?$")
_EXECUTORS = re.compile(rb"(?m)^  <numExecutors>[0-9]+</numExecutors>\r?$")
_MARK = re.compile(rb"(?m)^  <temporaryOfflineCause\b")


def relabelled(
    document: bytes, labels: Collection[str], *, instead_of: Collection[str], exclusive: bool, executors: int | None = None
) -> bytes:
    """Replace labels, the mode and, unless None, the number of executors in a node's document.

    What else it is labelled with stays; labels that a plugin finds by itself do not stand here, and are not written down.

    `ConflictError` where it holds an offline mark, which a later one would erase; `TransientError` where it is not understood.
    """
    if _MARK.search(document):
        raise ConflictError("somebody marked the node offline meanwhile")
    found = _LABEL.search(document)
    written = unescape(re.sub(rb"<[^>]*>", b"", found[0]).decode()).split() if found else ()
    others = set(written) - set(instead_of)
    text = escape(" ".join(sorted({*labels, *others})), quote=False).encode()
    if executors is not None:
        document = _replaced(_EXECUTORS, f"  <numExecutors>{executors}</numExecutors>".encode(), document, "numExecutors")
    document = _replaced(_LABEL, b"  <label>" + text + b"</label>", document, "label")
    return _replaced(_MODE, b"  <mode>" + (b"EXCLUSIVE" if exclusive else b"NORMAL") + b"</mode>", document, "mode")


def _replaced(pattern: re.Pattern[bytes], line: bytes, document: bytes, what: str) -> bytes:
    found = pattern.findall(document)
    if len(found) != 1:
        raise TransientError(f"the node's config.xml has {len(found)} {what}s where one was expected")
    return pattern.sub(lambda _: line, document)


# Reads the queue: in one answer, or, if that is too large, without Jenkins' reasons first, and then the reasons in parts.
#
# While agents are idle that no job without a label may use, Jenkins names each of them in the reason of each such job: 5,000 jobs before
# 500 agents are 200 MB. Of most jobs the label is told beside the reason; only pipelines' parts need it.


# Read into memory it takes five times as much, and a function has 512 MB by default.
WHOLE_BYTES = 32 * 1024 * 1024
# A queue that has not been read by then is read in parts, if it is large; there is time left for that.
WHOLE_SECONDS = 5.0
_PART_BYTES, _MOST_PART_BYTES = 4 * 1024 * 1024, 16 * 1024 * 1024
# No item needs less, and none is expected to need less than where the whole was too large.
_LEAST_ITEM_BYTES = 100
# What nodes and state may take, of the time of a look.
_LEFT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queue as one answer, or several, told it. ``whys``: Jenkins' reasons by item, where they came apart from the items."""

    answer: Answer
    sessions: frozenset[str | None]
    body: object
    whys: dict[int, str] | None = None
    in_parts: str = ""  # why it was read in parts, and how much of it; "" where it came in one answer


def read_whole_or_in_parts(session: JenkinsSession, monotonic: Callable[[], float], until: float, *, with_parameters: bool) -> QueueAnswer:
    """Read the queue until then, by the session's clock. Parts are made of one list of the items: none is there twice, none is missing."""
    tree = QUEUE_TREE_WITH_PARAMETERS if with_parameters else QUEUE_TREE
    try:
        whole = session.get(QUEUE, tree, Patience(WHOLE_BYTES, WHOLE_SECONDS))
    except TooLargeError as error:
        return _in_parts(session, monotonic, until - _LEFT_SECONDS, tree, str(error))
    return QueueAnswer(whole, frozenset({whole.session}), whole.json())


def _in_parts(session: JenkinsSession, monotonic: Callable[[], float], until: float, tree: str, problem: str) -> QueueAnswer:
    items = session.get(QUEUE, tree.replace(*WITHOUT_WHY))
    body = items.json()
    entries = entries_of(body, "items")
    places = {entry["id"]: place for place, entry in enumerate(entries) if needs_why(entry)}
    parts = _Parts(session, monotonic, until, places, max(WHOLE_BYTES / max(1, len(entries)), _LEAST_ITEM_BYTES))
    parts.read()
    summary = f"{problem}; of {len(entries)} items {len(places)} do not tell their label, and of {len(parts.whys)} Jenkins' reason was read"
    return QueueAnswer(items, parts.sessions | {items.session}, body, parts.whys, summary)


@dataclass(slots=True)
class _Parts:
    """Reads the reasons of the items that need one, those first which are next: at the end of the list."""

    session: JenkinsSession
    monotonic: Callable[[], float]
    until: float
    places: dict[Any, int]  # in the list, by item
    item_bytes: float  # as far as is known by now
    whys: dict[int, str] = field(default_factory=dict)
    sessions: frozenset[str | None] = frozenset()
    _moved: int = 0  # how far the list has moved since it was read: new items come first

    def read(self) -> None:
        """Read part after part, until all reasons are there or the time is over. The next look reads the others."""
        needed = list(self.places.values())
        end: int | None = None  # open: whatever has come since moved the next ones beyond the end
        while needed and self.monotonic() < self.until:
            first = next(place for place in needed if place > needed[-1] - self._count)
            try:
                self._read_part(first, end)
            except TooLargeError:
                if self._count == 1:
                    return
                self.item_bytes *= 4
            except NoAnswerError:
                return
            else:
                needed = [place for place in needed if place < first]
                end = needed[-1] + 1 if needed else 0

    @property
    def _count(self) -> int:
        """How many items one part is likely to hold."""
        return max(1, int(_PART_BYTES / self.item_bytes))

    def _read_part(self, first: int, end: int | None) -> None:
        start, last = max(0, first + self._moved), "" if end is None else max(0, end + self._moved)
        tree = f"items[{ID_AND_WHY}]{{{start},{last}}}"
        self.session.allow_seconds(max(0.0, self.until - self.monotonic()))
        part = self.session.get(QUEUE, tree, Patience(_MOST_PART_BYTES))
        entries = [entry for entry in entries_of(part.json(), "items") if isinstance(entry, dict) and isinstance(entry.get("id"), int)]
        self.sessions |= {part.session}
        self.whys |= {entry["id"]: entry["why"] for entry in entries if isinstance(entry.get("why"), str)}
        # A few short reasons do not say that all are short.
        self.item_bytes = max(len(part.body) / max(1, len(entries)), self.item_bytes / 4, _LEAST_ITEM_BYTES)
        for place, entry in enumerate(entries):
            if (before := self.places.get(entry["id"])) is not None:
                self._moved = start + place - before
                return


# Implements the Controller port.


# All three GETs together; the rest of an invocation is for acting.
LOOK_SECONDS = 15.0
# The first argument is the secret: 64 hexadecimal digits.
_SECRET = re.compile(rb"<argument>([0-9a-f]{64})</argument>")
# hudson.plugins.heavy_job.HeavyJobProperty, as XStream writes it.
_HEAVY = re.compile(rb"<hudson\.plugins\.heavy__job\.HeavyJobProperty\b[^>]*>\s*<weight>(\d{1,6})</weight>")
_MOST_WEIGHT = 1000
# Characters that are kept of the reason for quiet mode.
MOST_REASON = 200
# io.jenkins.plugins.casc.core.CascKeepNode (configuration-as-code-plugin, pull request 2844), as a form spells it.
_KEEP_PROPERTY = "io-jenkins-plugins-casc-core-CascKeepNode"
# Only the paths of python-jenkins' URLs: their queries ask for whole trees by depth, ours for the fields that are needed.
_NODES, _NODE, _TOGGLE_OFFLINE, _CANCEL = (
    url.partition("?")[0] for url in (jenkins.NODE_LIST, jenkins.NODE_INFO, jenkins.TOGGLE_OFFLINE, jenkins.CANCEL_QUEUE)
)
_CHANGE_OFFLINE_CAUSE, _AGENT_FILE = "computer/%(name)s/changeOfflineCause", "computer/%(name)s/jenkins-agent.jnlp"


class JenkinsController:
    """One controller. ``connect`` is called at the first use, so that credentials are read only when needed.

    ``tell_apart``: the parameters that tell builds of a job apart; where there are any, a look asks for parameters.
    """

    def __init__(
        self,
        name: str,
        url: str,
        connect: Callable[[], JenkinsSession],
        monotonic: Callable[[], float],
        tell_apart: JobParameters = NOTHING_TELLS_APART,
    ) -> None:
        """Keep what is needed to connect."""
        self.name = name
        self.url = url  # where agents reach it
        self.connection = Connection(connect)
        self._monotonic = monotonic
        self.tell_apart = tell_apart

    def look(self) -> ControllerView:
        """Read queue, nodes and state; the state last, so that a shutdown that began in between is seen."""
        began = self._monotonic()

        def read(session: JenkinsSession) -> tuple[QueueAnswer, Answer, Answer]:
            until = began + LOOK_SECONDS
            session.allow_seconds(until - self._monotonic())
            try:
                queue = read_whole_or_in_parts(session, self._monotonic, until, with_parameters=bool(self.tell_apart))
                session.allow_seconds(until - self._monotonic())
                computers = session.get(_NODES, COMPUTER_TREE_WITH_PARAMETERS if self.tell_apart else COMPUTER_TREE)
                return queue, computers, session.get(jenkins.INFO, ROOT_TREE)
            finally:
                session.allow_seconds(None)

        try:
            return self._view(*self.connection.ask(read), began)
        except AutoscalerError as error:
            return ControllerView.of_nothing(self.name, f"{type(error).__name__}: {error}", self._monotonic() - began)

    def node(self, name: str) -> Node | None:
        """Read one node now."""
        answer = if_there(lambda: self.connection.get(_of(name, _NODE), NODE_FIELDS), None)
        try:
            return None if answer is None else read_node(answer.json(), read_date(answer.headers.get("Date")))
        except ValidationError as error:
            raise TransientError(f"node {name}: {error.error_count()} fields not understood") from error

    def set_offline(self, name: str, reason: str) -> None:
        """Mark it by the call that sets and never toggles."""
        self.connection.post(_of(name, _CHANGE_OFFLINE_CAUSE), {"offlineMessage": reason})

    def toggle_offline(self, name: str, reason: str) -> None:
        """Toggle, since no call only brings online. Jenkins reads the reason only where it marks offline."""
        self.connection.post(_of(name, _TOGGLE_OFFLINE), {"offlineMessage": reason})

    def set_labels(
        self, name: str, labels: Collection[str], *, instead_of: Collection[str], exclusive: bool, executors: int | None = None
    ) -> None:
        """Edit the node's config.xml. It holds the offline mark, too, so a marked node is left as it is."""
        path = _of(name, jenkins.CONFIG_NODE)
        before = self.connection.get(path).document()
        document = relabelled(before, labels, instead_of=instead_of, exclusive=exclusive, executors=executors)
        self.connection.ask(lambda session: session.post(path, data=document, with_text=True))

    def create_node(self, spec: NodeSpec) -> None:
        """Create a node that waits for an inbound agent over WebSocket."""
        form = {
            "name": spec.name,
            "nodeDescription": spec.description,
            "numExecutors": spec.executors,
            "remoteFS": spec.remote_dir,
            "labelString": " ".join(spec.labels),
            "mode": "EXCLUSIVE" if spec.exclusive else "NORMAL",
            "type": jenkins.NODE_TYPE,
            "retentionStrategy": {"stapler-class": "hudson.slaves.RetentionStrategy$Always"},
            # Reloading configuration as code deletes nodes under their builds; its property keeps them. Where no plugin knows the class,
            # Jenkins leaves it out (org.kohsuke.stapler.RequestImpl: "ignore unrecognized element").
            "nodeProperties": {"stapler-class-bag": "true", _KEEP_PROPERTY: {}},
            "launcher": {"stapler-class": jenkins.LAUNCHER_JNLP, "webSocket": True},
        }
        names = {"name": spec.name, "type": jenkins.NODE_TYPE}
        try:
            self.connection.ask(lambda session: session.post(jenkins.CREATE_NODE, names, {**names, "json": json.dumps(form)}))
        except RefusedRequestError as error:
            node = self.node(spec.name)
            if node is None or node.is_deleted:
                raise
            raise ConflictError(f"node {spec.name} exists already") from error

    def delete_node(self, name: str) -> None:
        """Delete a node."""
        if_there(partial(self.connection.post, _of(name, jenkins.DELETE_NODE), {}), None)

    def cancel_item(self, item: int) -> bool:
        """Cancel it. Jenkins answers 404 for an item it does not know (for one that left within minutes 500: that reads as a failure)."""
        return if_there(partial(self.connection.post, _CANCEL, {"id": str(item)}), None) is not None

    def result(self, run: str) -> RunEnd | None:
        """Ask the run itself: one small answer. A 404 proves nothing: it may be deleted, or hidden from this account."""
        return if_there(lambda: read_result(self.connection.get(f"{run}/{jenkins.INFO}", RESULT_TREE).json()), None)

    def graph(self, run: str, most_steps: int) -> RunGraph | None:
        """Ask the run itself: of a usual run some 2 to 4 KB."""
        answer = if_there(lambda: self.connection.get(f"{run}/{jenkins.INFO}", GRAPH_TREE % most_steps), None)
        return None if answer is None else read_graph(answer.json(), len(answer.body), most_steps)

    def node_of_block(self, run: str, step: int) -> str:
        """Read the log of the step that asked for the node: a line or a few. Nothing in the REST API names the node."""
        log = f"{run}/execution/node/{step}/log/logText/progressiveText"
        return if_there(lambda: read_node_of_block(self.connection.get(log).body), "")

    def whether_ended(self, run: str) -> RunAnswer:
        """Ask the run itself."""
        return if_there(
            lambda: read_whether_ended(self.connection.get(f"{run}/{jenkins.INFO}", WHETHER_ENDED_TREE).json()), RunAnswer.NOT_TOLD
        )

    def health(self) -> dict[str, Health]:
        """Read all nodes in one GET. Without Agent/Connect the monitors are empty."""
        return read_health(self.connection.get(_NODES, HEALTH_TREE).json())

    def heavy_weight(self, job: str) -> int:
        """Read the job's configuration: the plugin shows nothing in the REST API."""
        weight = if_there(lambda: _HEAVY.search(self.connection.get(f"{job_path(job)}/config.xml").document()), None)
        return max(1, min(int(weight[1]), _MOST_WEIGHT)) if weight else 1

    def agent_secret(self, name: str) -> str:
        """Read it from the file that a person would download; the REST API does not tell it."""
        secret = _SECRET.search(self.connection.get(_of(name, _AGENT_FILE)).document())
        if secret is None:
            raise TransientError(f"node {name}: its jenkins-agent.jnlp holds no secret")
        return secret[1].decode()

    def _view(self, queue: QueueAnswer, computers: Answer, root: Answer, began: float) -> ControllerView:
        in_turn = (*sorted(queue.sessions, key=str), *(answer.session for answer in (computers, root)))
        session, problem = in_turn[0], _problem_of(in_turn)
        nodes, unread = read_computers(computers.json(), read_date(computers.headers.get("Date")), self.tell_apart)
        names = frozenset(node.name for node in nodes) | unread.keys()
        if "" in unread:
            problem = problem or f"which node is not known: {unread['']}"
        date = read_date(queue.answer.headers.get("Date"))
        items, items_aside = read_queue(queue.body, date, names, self.tell_apart, queue.whys)
        state: Any = root.json()
        if not isinstance(state, dict) or not isinstance(state.get("quietingDown"), bool):
            raise TransientError("Jenkins' answer does not say whether it is quieting down")
        return ControllerView(
            name=self.name,
            problem=problem,
            session=session or "",
            sessions=tuple(map(str, in_turn)) if len({*in_turn}) > len(queue.sessions) == 1 else (),
            quieting_down=state["quietingDown"],
            quiet_reason=str(state.get("quietDownReason") or "")[:MOST_REASON],
            items=items,
            nodes=nodes,
            unread=frozenset(unread),
            set_aside=(*unread.values(), *items_aside),
            response_seconds=self._monotonic() - began,
            version=read_version(root.headers.get("X-Jenkins")),
            shows_jobs=state.get("jobs") != [],
            in_parts=queue.in_parts,
        )


def _of(node: str, path: str) -> str:
    """Make the path of one node, whatever its name holds: python-jenkins itself would let a slash in it lead elsewhere."""
    return path % {"name": quote(node, safe="")}


def _problem_of(sessions: Collection[str | None]) -> str | None:
    """Say what is wrong if the answers to one look are of several sessions, or of none."""
    if None in sessions:
        return "Jenkins tells no X-Jenkins-Session"
    if len({*sessions}) == 1:
        return None
    both = " and ".join(map(str, dict.fromkeys(sessions)))
    return f"answers to one look were of the sessions {both}: it restarted meanwhile, or two controllers are behind one address"
