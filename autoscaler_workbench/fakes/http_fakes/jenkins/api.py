"""Jenkins' REST API: requests in, answers out, with the status codes and headers of the recordings; no sockets here."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import unquote

from autoscaler_workbench.fakes.http_fakes.jenkins import inbound
from autoscaler_workbench.fakes.http_fakes.jenkins.answers import builtin_json, computers_json, node_json, queue_json, root_json
from autoscaler_workbench.fakes.http_fakes.jenkins.config_xml import config_xml, node_of_form, read_config_xml
from autoscaler_workbench.fakes.http_fakes.jenkins.items import item_json, step_log
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import (
    UNSAFE_LETTERS,
    JobRefusedError,
    Jobs,
    RefusedBuildError,
    full_name_of,
)
from autoscaler_workbench.fakes.http_fakes.jenkins.pages import LONG_PAGE, STARTING, failure_page
from autoscaler_workbench.fakes.http_fakes.jenkins.tree import TreeSyntaxError, parse_tree, prune, without_executors
from autoscaler_workbench.fakes.http_fakes.messages import Request, Response
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Kind, Stopper
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.stop import stop

# io.jenkins.plugins.casc.core.CascKeepNode, as a form spells it.
KEEP_PROPERTY = "io-jenkins-plugins-casc-core-CascKeepNode"
CRUMB = "0faafd05f3cf51c429d61c10d061a61d649649d1b14a01e64e3d26630eccefdc"
_LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in to Example</title></head><body><form></form></body></html>"
LOGIN_PAGE = Response(200, {"Server": "nginx", "Content-Type": "text/html"}, _LOGIN_PAGE)
_BALANCERS_PAGE = b"<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body><center><h1>403 Forbidden</h1></center></body>\r\n</html>"
BALANCER_REFUSES = Response(403, {"Server": "awselb/2.0", "Content-Type": "text/html"}, _BALANCERS_PAGE)
_READ_BY_EVERYBODY = {"jnlpJars", "stand-in"}  # agents have no account
_READ_CONFIGURATION = "hudson.model.Item.ExtendedRead"
_CONNECT = "hudson.model.Computer.Connect"
_EXTENDED_READ = "hudson.model.Computer.ExtendedRead"
_SYSTEM_READ = "hudson.model.Hudson.SystemRead"
_CANCEL = "hudson.model.Item.Cancel"
# Who has the second one has the first one, too (hudson.model.Computer).
_IMPLIED_BY = {_CONNECT: "hudson.model.Computer.Disconnect", _EXTENDED_READ: "hudson.model.Computer.Configure"}
_PERMISSIONS = {
    "doCreateItem": "hudson.model.Computer.Create",
    "doDelete": "hudson.model.Computer.Delete",
    "toggleOffline": "hudson.model.Computer.Disconnect",
    "changeOfflineCause": "hudson.model.Computer.Disconnect",
    "config.xml": "hudson.model.Computer.Configure",
    "build": "hudson.model.Item.Build",
    "buildWithParameters": "hudson.model.Item.Build",
}


@dataclass(slots=True)
class JenkinsApi:
    """The API of one controller. ``accounts``: user -> token; empty: everybody may do everything. ``passwords`` need a crumb."""

    controller: Controller
    base: str
    faults: Faults = field(default_factory=Faults)
    accounts: dict[str, str] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    lacks: set[str] = field(default_factory=set)  # permissions that every account lacks
    keeps_nodes: bool = True  # the plugin Configuration as Code is new enough to know the property that keeps a node
    jobs: Jobs = field(init=False)
    casc_export: str | None = None  # what the plugin Configuration as Code exports; None: it is not installed
    login_at: str = ""  # where a login proxy in front of it sends every POST; GETs of the API pass
    on_tomcat: bool = False  # its container; else it is Jetty, which Jenkins brings
    login_page: bool = False  # a login service in front of it answers every GET with its own page, and 200
    in_front: dict[str, Response] = field(default_factory=dict)  # by method: what something in front of it answers in its place
    acted: int = 0  # calls that may have changed something

    def __post_init__(self) -> None:
        """Begin without jobs."""
        self.jobs = Jobs(self.controller, self.base)

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        name = f"{request.method} {request.path.strip('/').split('/')[-1] or 'root'}"
        part = request.path.strip("/").split("/")[0]
        call = f"jenkins {part if request.method == 'GET' else name.rsplit(maxsplit=1)[-1]}"
        with self.faults.around(call):
            if answer := self.in_front.get(request.method):
                return answer
            if (self.login_at or self.login_page) and request.method == "POST":
                return self._redirect(self.login_at or "/login")
            if self.login_page:
                return LOGIN_PAGE
            return self._answer(request)

    def _answer(self, request: Request) -> Response:
        if self.controller.up == "starting":
            return self._html(503, STARTING, mark=False)
        refused = self._refused(request)
        if refused:
            return refused
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        if request.method == "GET":
            return self._get(parts, request)
        if parts == ["configuration-as-code", "export"] and self.casc_export is not None:
            return self._export(self.casc_export)
        self.acted += 1
        return self._post(parts, request)

    def _refused(self, request: Request) -> Response | None:
        if request.path.strip("/").split("/")[0] in _READ_BY_EVERYBODY or not (self.accounts or self.passwords):
            return None
        if request.user is None:
            return self._html(403, "<html><head><meta http-equiv='refresh' content='1;url=/login'/></head></html>")
        known = {self.accounts.get(request.user), self.passwords.get(request.user)} - {None}
        if request.password not in known:
            return self._html(401, "<html><body><h2>HTTP ERROR 401 Unauthorized</h2></body></html>", mark=False)
        by_password = request.password == self.passwords.get(request.user)
        if request.method == "POST" and by_password and request.crumb != CRUMB:
            return self._html(403, "<html><title>Error 403 No valid crumb was included in the request</title></html>", mark=False)
        return None

    def _lacking(self, permission: str) -> Response | None:
        implied = {weaker for weaker, stronger in _IMPLIED_BY.items() if stronger == permission}
        if not ({permission} | implied) & self.lacks:
            return None
        return self._html(403, "<html>no permission</html>", {"X-Required-Permission": permission})

    def _get(self, parts: list[str], request: Request) -> Response:
        match parts:
            case ["jnlpJars", "agent.jar"]:
                return Response(200, self._headers(), inbound.AGENT_JAR)
            case ["job", *_, "itemCategories"] if not self._hides_jobs:
                return self._json(self.jobs.kinds(), request)
            case ["job", *place, "config.xml" | "consoleText" as what]:
                return self._file_of_job(["job", *place], what)
            case ["job", *_, "execution", "node", step, "log", "logText", "progressiveText"]:
                return self._text(step_log(self.jobs.run_at(full_name_of(parts[:-7]), parts[-7]), step))
            case [*place, "api", "json"]:
                body = self._body(place)
                return self._not_found() if body is None else self._json(body, request)
            case ["computer", name, what]:
                return self._file_of(name, what)
            case _:
                return self._not_found()

    def _file_of_job(self, place: list[str], what: str) -> Response:
        """Answer a job's config.xml, or the console of one of its runs."""
        if what == "config.xml":
            return self._lacking(_READ_CONFIGURATION) or self._text(self.jobs.config_xml(place), "application/xml")
        return self._text(self.jobs.console(place))

    def _text(self, text: str | None, kind: str = "text/plain") -> Response:
        """Answer a text to accounts that see jobs."""
        if text is None or self._hides_jobs:
            return self._not_found()
        return Response(200, self._headers() | {"Content-Type": kind}, text.encode())

    def _file_of(self, name: str, what: str) -> Response:
        """What of a node is no JSON."""
        if what in {"toggleOffline", "changeOfflineCause", "doDelete"}:
            return self._html(405, "<html>Method Not Allowed</html>")
        if name in self.controller.nodes and what == "jenkins-agent.jnlp":
            headers = self._headers() | {"Content-Type": "application/x-java-jnlp-file"}
            return self._lacking(_CONNECT) or Response(200, headers, inbound.jnlp(name))
        if self.controller.computer(name) and what == "config.xml":  # of a deleted node: 404 to those who may read it
            refused = self._lacking(_EXTENDED_READ)
            return refused or (self._config(name) if name in self.controller.nodes else self._not_found())
        return self._not_found()

    def _body(self, place: list[str]) -> dict[str, Any] | None:
        match place:
            case []:
                return root_json(self.controller, self.base) | {"jobs": [] if self._hides_jobs else self.jobs.at_the_top()}
            case ["job" | "queue", *_]:
                return self._of_jobs(place)
            case ["computer", *name]:
                return self._computers(name)
            case ["crumbIssuer"]:
                return {"crumb": CRUMB, "crumbRequestField": "Jenkins-Crumb"}
            case _:
                return None

    def _of_jobs(self, place: list[str]) -> dict[str, Any] | None:
        """Jobs, runs and queue items; without Job/Read the queue is empty, and nothing else is there."""
        if self._hides_jobs:
            return {"_class": "hudson.model.Queue", "items": []} if place == ["queue"] else None
        match place:
            case ["job", *_]:
                return self.jobs.at(place)
            case ["queue", "item", number] if number.isdecimal():
                return item_json(self.controller, int(number), self.base)
            case ["queue"]:
                return queue_json(self.controller, self.base)
            case _:
                return None

    def _computers(self, name: list[str]) -> dict[str, Any] | None:
        """One computer or all; without Agent/Connect no monitor tells anything (recording e03_reader_computer)."""
        match name:
            case []:
                body = self._hidden(computers_json(self.controller, self.base))
            case ["(built-in)" | "(master)"]:
                body = builtin_json(self.controller, self.base)
            case [known] if (computer := self.controller.computer(known)) is not None:
                body = node_json(computer, self.base, self.controller.timeline.now)
            case _:
                return None
        if _CONNECT in self.lacks:
            for computer in body.get("computer", [body]):
                computer["monitorData"] = {}
        return body

    @property
    def _hides_jobs(self) -> bool:
        return "hudson.model.Item.Read" in self.lacks

    def _hidden(self, computers: dict[str, Any]) -> dict[str, Any]:
        """Without Job/Read an executor is busy with nothing (recorded: e17)."""
        for executor in (e for computer in computers["computer"] for e in computer["executors"] if self._hides_jobs):
            executor["currentExecutable"] = None
        return computers

    def _post(self, parts: list[str], request: Request) -> Response:
        action = parts[-1]
        if refused := self._lacking(self._permission(parts)):
            return refused
        match parts:
            case ["computer", "doCreateItem"]:
                return self._create(request)
            case ["computer", "(built-in)", "doDelete"]:
                return self._done(400)
            case ["computer", name, _] if self.controller.computer(name):
                return self._change_node(name, action, request)
            case ["queue", "cancelItem"] if not self._hides_jobs:
                return self._cancel(request.query.get("id", ""))
            case ["stand-in", "connect" | "disconnect"]:
                return self._agent(action, request)
            case ["job", *_] | ["createItem"] if not self._hides_jobs:
                return self._job(action, parts[:-1], request)
            case _:
                return self._not_found()

    def _permission(self, parts: list[str]) -> str:
        """The permission that an action needs; bringing a node back online needs Connect, not Disconnect."""
        match parts:
            case ["computer", name, "toggleOffline"] if name in self.controller.nodes and self.controller.nodes[name].temporarily_offline:
                return _CONNECT
            case _:
                return _PERMISSIONS.get(parts[-1], "")

    def _change_node(self, name: str, action: str, request: Request) -> Response:
        if name not in self.controller.nodes:
            return self._change_computer(name, action)
        message, user = request.query.get("offlineMessage", ""), request.user or "anonymous"
        match action:
            case "changeOfflineCause":
                self.controller.set_offline(name, message, user)
            case "toggleOffline":
                self.controller.toggle(name, message, user)
            case "doDelete":
                self.controller.delete_node(name)
                return self._redirect("/computer/")
            case "config.xml":
                labels, exclusive, executors = read_config_xml(request.body)
                self.controller.configure(name, labels, exclusive=exclusive, executors=executors)
                return self._done(200, self._marks())
            case _:
                return self._not_found()
        return self._redirect(f"/{request.path.strip('/').rpartition('/')[0]}/")  # as it was asked for: encoded

    def _change_computer(self, name: str, action: str) -> Response:
        """Act on the computer that is left of a deleted node: it can be deleted, too; a mark would be kept by its node."""
        match action:
            case "doDelete":
                self.controller.delete_node(name)
                return self._redirect("/computer/")
            case "changeOfflineCause" | "toggleOffline":
                return self._redirect(f"/computer/{name}/")
            case _:
                return self._not_found()

    def _job(self, action: str, place: list[str], request: Request) -> Response:
        if action == "stop":
            return self._stop(full_name_of(place[:-1]), place[-1])
        full_name = full_name_of(place)
        known = self.jobs.knows(full_name) or full_name in self.jobs.folders or not full_name
        if not known or action not in {"build", "buildWithParameters", "doDelete", "createItem"}:
            return self._not_found()
        if action in {"build", "buildWithParameters"}:
            return self._build(full_name, None if action == "build" else {**request.query, **request.form}, request.user or "")
        if action == "doDelete":
            self.jobs.delete(full_name)
            return self._redirect("/")
        return self._create_job(full_name, request)

    def _build(self, full_name: str, given: Mapping[str, str] | None, user: str) -> Response:
        """Queue a build; 303 for an item that waits already, if it has parameters (recorded; JENKINS-66105)."""
        waiting = list(self.controller.queue)
        try:
            build = self.jobs.build(full_name, given, user)
        except RefusedBuildError as error:
            return self._html(error.status, LONG_PAGE)
        status = 303 if given is not None and build in waiting else 201
        return self._done(status, {"Location": f"{self.base}queue/item/{build.run_item or build.id}/"})

    def _create_job(self, folder: str, request: Request) -> Response:
        try:
            self.jobs.create(folder, request.query.get("name", ""), request.body)
        except JobRefusedError as error:
            return self._failure(str(error))
        return self._done()

    def _config(self, name: str) -> Response:
        return Response(200, self._headers() | self._marks() | {"Content-Type": "application/xml"}, config_xml(self.controller.nodes[name]))

    def _export(self, exported: str) -> Response:
        """Export the configuration; the plugin names no permission where it refuses (ConfigurationAsCode.doExport)."""
        if _SYSTEM_READ in self.lacks:
            return self._html(403, "<html><title>Error 403 Forbidden</title></html>")
        return Response(200, self._headers() | {"Content-Type": "application/x-yaml;charset=utf-8"}, exported.encode())

    def _stop(self, full_name: str, number: str) -> Response:
        """Stop a run (Executor.doStopBuild, WorkflowRun.doStop). Of a freestyle build that has ended nobody asks for the permission."""
        run = self.jobs.run_at(full_name, number)
        if not run:
            return self._not_found()
        going = [build for build in run if build.ended is None]
        if (going or run[0].kind is Kind.PIPELINE) and (refused := self._lacking(_CANCEL)):
            return refused
        for build in going:
            stop(self.controller, build)
        return self._redirect(f"/{run[0].run_path}")

    def _cancel(self, item: str) -> Response:
        """Cancel an item (Queue.doCancelItem): one that left is known for five minutes, and can no more be cancelled than a pending one."""
        known = item_json(self.controller, int(item), self.base) if item.isdecimal() else None
        if known is None:
            return self._not_found()
        if _CANCEL in self.lacks:
            return self._html(422, LONG_PAGE)
        build = next((build for build in self.controller.queue if str(build.id) == item), None)
        if build is None or build.is_pending:
            return self._html(500, LONG_PAGE)
        self.controller.abort(build, Stopper.CANCELLED_ITEM if build.kind is Kind.PIPELINE else Stopper.PERSON)
        return self._done(204)

    def _agent(self, action: str, request: Request) -> Response:
        """Connect or disconnect a stand-in for agent.jar, which has no WebSocket; real Jenkins has no such call."""
        name = request.query.get("name", "")
        if action == "disconnect":
            self.controller.disconnect(name)
        elif not inbound.connect(self.controller, name, request.query.get("secret", "")):
            return self._html(403, "<html>no such agent</html>")
        return self._done()

    def _failure(self, message: str) -> Response:
        """Refuse a form. Tomcat sends no header that is not Latin-1; Jetty writes blanks in place of what is not (recorded: e06)."""
        header = {} if self.on_tomcat else {"X-Error": re.sub("[‘’]", " ", message)}
        return self._html(400, failure_page(message), header)

    def _not_found(self) -> Response:
        return self._html(404, LONG_PAGE)

    def _create(self, request: Request) -> Response:
        name = request.query.get("name", "")
        try:
            form = json.loads(request.form.get("json", ""))
        except ValueError:
            return self._html(500, LONG_PAGE)
        if name in self.controller.nodes:
            return self._failure(f"Agent called ‘{name}’ already exists")
        if set(name) & UNSAFE_LETTERS:
            return self._failure("‘/’ is an unsafe character")
        node = node_of_form(name, form)
        node.survives_reload = KEEP_PROPERTY in dict(form.get("nodeProperties") or {}) and self.keeps_nodes
        self.controller.add_node(node)
        return self._redirect("/computer/")

    def _json(self, body: dict[str, Any], request: Request) -> Response:
        if "tree" in request.query:
            try:
                body = prune(body, parse_tree(request.query["tree"]))
            except TreeSyntaxError:
                return self._html(500, LONG_PAGE)
        elif request.query.get("depth", "0") == "0":
            body = without_executors(body)
        headers = self._headers() | {"Content-Type": "application/json;charset=utf-8"} | self._marks()
        return Response(200, headers, json.dumps(body, ensure_ascii=False).encode())

    def _html(self, status: int, text: str, headers: Mapping[str, str] | None = None, *, mark: bool = True) -> Response:
        marks = self._marks() if mark else {}
        return Response(status, self._headers() | {"Content-Type": "text/html;charset=utf-8"} | marks | dict(headers or {}), text.encode())

    def _done(self, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return Response(status, self._headers() | dict(headers or {}), b"")

    def _redirect(self, location: str) -> Response:
        return self._done(302, {"Location": location})

    def _headers(self) -> dict[str, str]:
        now = datetime.fromtimestamp(self.controller.timeline.now, UTC)
        server = {} if self.on_tomcat else {"Server": "Jetty(12.0.17)"}
        return server | {"Date": format_datetime(now, usegmt=True), "X-Content-Type-Options": "nosniff"}

    def _marks(self) -> dict[str, str]:
        return {"X-Jenkins": self.controller.version, "X-Jenkins-Session": self.controller.session}
