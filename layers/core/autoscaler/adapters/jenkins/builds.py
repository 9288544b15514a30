"""Implements the Builds port over HTTP: small requests for one run, one job or one queue item, and the POST that starts a build."""

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import jenkins
import requests

from autoscaler.adapters.jenkins.connection import Connection
from autoscaler.adapters.jenkins.runs import (
    BUILDS_LISTED,
    ITEM_TREE,
    JOB_TREE,
    MORE_BUILDS_TREE,
    QUEUED_TREE,
    RUN_TREE,
    next_builds,
    read_item,
    read_job,
    read_run,
)
from autoscaler.adapters.jenkins.session import (
    Answer,
    FailedRequestError,
    InTheWayError,
    LackingPermissionError,
    NotThereError,
    RedirectedError,
    RefusedRequestError,
)
from autoscaler.domain.facts.runs import Item, ItemState, Job, Run
from autoscaler.domain.wording import shortened
from autoscaler.errors import DoubtfulError, NoAnswerError, RefusedBuildError, TransientError, UnansweredError

# Each is sure to have done nothing: Jenkins refused it, or was not reached.
_NOT_DONE = (RefusedRequestError, NotThereError, InTheWayError, NoAnswerError)
_CANCEL = "queue/cancelItem"
_QUEUE = jenkins.Q_INFO.partition("?")[0]
_ITEM = re.compile(r"(?:^|/)queue/item/(\d+)/?$")


class JenkinsBuilds:
    """The builds of one controller."""

    def __init__(self, connection: Connection) -> None:
        """Share the controller's connection."""
        self._connection = connection

    def run(self, path: str) -> Run | None:
        """Ask the run itself. A 404 says no more than that this account is not shown it."""
        try:
            answer = self._get(f"{path}/{jenkins.INFO}", RUN_TREE)
        except NotThereError:
            return None
        return read_run(answer.json(), path)

    def job(self, path: str, since: float) -> Job | None:
        """Ask the queue first: what leaves it in between is among the builds then. Four requests at most."""
        try:
            queue = self._get(_QUEUE, QUEUED_TREE)
            shown = self._get(f"{path}/{jenkins.INFO}", JOB_TREE % BUILDS_LISTED[0]).json()
            more: list[object] = []
            while builds := next_builds(shown, more, since):
                more.append(self._get(f"{path}/{jenkins.INFO}", MORE_BUILDS_TREE % builds).json())
        except NotThereError:
            return None
        return read_job(shown, queue.json(), path, since, self._connection.ask(lambda session: session.username), more)

    def item(self, item: int) -> Item:
        """Ask for the item itself, which Jenkins knows until five minutes after it left the queue."""
        try:
            answer = self._get(f"queue/item/{item}/{jenkins.INFO}", ITEM_TREE)
        except NotThereError:
            return Item(state=ItemState.UNKNOWN)
        return read_item(answer.json())

    def start(self, job: str, parameters: Mapping[str, str] | None) -> int:
        """Ask for a build at once, without the job's quiet period."""
        path = f"{job}/build" if parameters is None else f"{job}/buildWithParameters"
        try:
            answer = self._connection.ask(lambda session: session.post(path, {"delay": "0sec"}, dict(parameters or {})))
        except (RefusedRequestError, NotThereError) as error:
            raise RefusedBuildError(f"Jenkins does not start {job}: {error}") from error
        except (*_NOT_DONE, DoubtfulError):
            raise
        except TransientError as error:
            # An error page may be a proxy's that gave up waiting, or Jenkins' own after the item was queued.
            raise UnansweredError(str(error)) from error
        found = _ITEM.search(urlsplit(answer.headers.get("Location", "")).path)
        if found is None:
            _refuse_other_page(answer, job, "starting")
            raise RefusedBuildError(f"Jenkins put no build of {job} into its queue: a plugin refused it")
        return int(found[1])

    def stop(self, path: str) -> None:
        """Ask as a person does who presses the red button: a build ends some seconds after the answer, which is the way to its page."""
        try:
            answer = self._post(f"{path}/stop", {})
        except NotThereError:
            return
        except LackingPermissionError as error:
            raise RefusedBuildError(f"Jenkins does not stop {path}: {error}") from error
        _refuse_other_page(answer, path, "stopping")

    def cancel(self, item: int) -> bool:
        """Take it out of the queue. Jenkins fails (500) for one that left within five minutes, and for one that begins right now."""
        try:
            self._post(_CANCEL, {"id": str(item)})
        except NotThereError:
            return False
        except RefusedRequestError as error:
            if error.status != requests.codes.unprocessable_entity:
                raise
            raise RefusedBuildError(f"Jenkins does not cancel queue item {item} (422): the account lacks Job/Cancel") from error
        except FailedRequestError as error:
            if error.status != requests.codes.internal_server_error or (state := self.item(item).state) is ItemState.WAITING:
                raise
            return state is ItemState.CANCELLED
        return True

    def _post(self, path: str, query: Mapping[str, str]) -> Answer:
        return self._connection.ask(lambda session: session.post(path, query))

    def _get(self, path: str, tree: str) -> Answer:
        return self._connection.ask(lambda session: session.get(path, tree))


def _refuse_other_page(answer: Answer, path: str, doing: str) -> None:
    """Raise `RedirectedError` for a redirect to another page than that of a job or a run, which is where Jenkins sends us back to."""
    location = urlsplit(answer.headers.get("Location", ""))
    led = unquote(location.path)
    if led not in {"", "."} and not f"/{led.strip('/')}".endswith(f"/{unquote(path)}"):
        place = shortened(location.netloc + led)
        raise RedirectedError(f"{doing} {path} was answered with a redirect to {place}: a login page or a proxy is in the way")
