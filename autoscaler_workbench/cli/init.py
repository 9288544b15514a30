"""Commands to write a fleet file with: a first one, and the schema for editors."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from autoscaler.adapters.jenkins.session import RefusedCredentialsError
from autoscaler.config.settings import FILE, FLEET, fleet_schema
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.cli.init_ask import interview
from autoscaler_workbench.cli.init_draft import draft_pools
from autoscaler_workbench.cli.init_pool import Draft
from autoscaler_workbench.cli.init_read import read_controller
from autoscaler_workbench.cli.init_text import FirstFile, decisions, text_of
from autoscaler_workbench.cli.terminal import plain, say
from autoscaler_workbench.experiment.history import session_of

_SECRET = "jenkins/main"
_ALWAYS_UNKNOWN = (
    "launch templates: those of the stack are written; docs/migrate.md says how to bring your images",
    "subnets: where none is written, the launch template's is used",
    "how builds share machines: executors are those of Jenkins today",
)


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(init)
    app.command()(schema)


def init(
    url: Annotated[str | None, typer.Argument(help="A Jenkins to read, such as https://jenkins.example.org/.")] = None,
    asks: Annotated[bool, typer.Option("--interview", help="Ask a few questions instead; no Jenkins is needed.")] = False,
    out: Annotated[Path, typer.Option(help="The fleet file to write.")] = Path("fleet.yaml"),
    name: Annotated[str | None, typer.Option(help="The fleet's name.", show_default="made from the Jenkins' address")] = None,
    user: Annotated[str | None, typer.Option(envvar="JENKINS_USER", show_default="anonymous")] = None,
    token: Annotated[str | None, typer.Option(envvar="JENKINS_TOKEN", help="That user's API token.", show_default=False)] = None,
    ca_bundle: Annotated[
        str | None, typer.Option(envvar="JENKINS_CA_BUNDLE", help="The only authorities to trust for TLS.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Overwrite an existing file without asking.")] = False,
) -> None:
    """Write a first fleet file from a Jenkins, which is only read, or from a few questions."""
    if asks == (url is not None):
        raise typer.BadParameter("name a Jenkins, or say --interview", param_hint="URL")
    if name is not None and not re.fullmatch(FLEET, name):
        raise ConfigError(f"--name ({name}): must be lower-case letters, digits and hyphens, at most 40")
    if out.exists() and not yes and not typer.confirm(f"{out} exists; overwrite it?", err=True):
        print("nothing was written", file=sys.stderr)
        raise typer.Exit(1)
    first = interview(name) if url is None else _read(url, name, user, token, ca_bundle)
    text = text_of(first)
    _write(out, text)
    pools = "1 pool" if len(first.pools) == 1 else f"{len(first.pools)} pools"
    guesses = text.count("TODO:")
    say(f"{out}: {pools}" + (f", guesses to check (TODO): {guesses}" if guesses else "") + f"; {FILE} beside it is for your editor")
    for line in decisions(first.pools):
        say(f"decided: {plain(line)}")
    for line in first.unknown:
        say(f"not known: {plain(line)}")
    say(f"next: autoscaler validate {out}")


def schema() -> None:
    """Print the JSON schema of the fleet file, for editors: autoscaler schema > fleet.schema.json."""
    print(json.dumps(fleet_schema(), indent=2))


def _read(url: str, name: str | None, user: str | None, token: str | None, ca_bundle: str | None) -> FirstFile:
    session = session_of(url, user, token, ca_bundle, time.monotonic)
    try:
        seen = read_controller(session)
    except RefusedCredentialsError as error:
        raise ConfigError(f"{url}: {error}; set JENKINS_USER and JENKINS_TOKEN, or --user and --token") from error
    except AutoscalerError as error:
        raise ConfigError(f"{url}: {error}") from error
    drafts = draft_pools(seen)
    head = [
        f"Written by `autoscaler init` from {url}" + (f" (Jenkins {seen.version})" if seen.version else ""),
        "Lines with TODO are guesses to check. All keys: docs/fleet-file.md",
    ]
    unknown = (*seen.unknown, *drafts.left_out, *_ALWAYS_UNKNOWN)
    pools = drafts.pools or [_example()]
    return FirstFile(fleet=name or _name_of(url), url=url, secret=_SECRET, pools=pools, head=head, unknown=unknown, caps=drafts.caps)


def _example() -> Draft:
    return Draft(
        name="linux",
        labels=["linux"],
        executors=2,
        instance_types=["m7i.xlarge", "m6i.xlarge"],
        max_agents=3,
        about=["An example: Jenkins has no agents of its own and shows no clouds"],
        todo={"labels": "what your jobs ask for", "instance_types": "what your builds need"},
    )


def _name_of(url: str) -> str:
    """Make a fleet's name of a host's; an address of digits is no name."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or re.fullmatch(r"[0-9.]+|.*:.*", host):
        return "my-ci"
    return re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[:40].strip("-") or "my-ci"


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
        (out.parent / FILE).write_text(json.dumps(fleet_schema(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out ({out}): {error.strerror or error}") from error
