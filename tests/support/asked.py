"""Commands of the command line that ask the real handlers, as Lambda invokes them."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

from typer.testing import CliRunner

from autoscaler_workbench.cli.main import app
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import as_json
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer


@contextmanager
def served(here, *functions):
    """Serve these functions, and what was published, to the command line."""
    with ApiServer() as server:
        server.functions = here.server.functions = LambdaApi(frozenset(functions))
        server.ec2 = Ec2Api(here.world.ec2)
        server.published = lambda: as_json(here.metrics)
        here.server.url = server.url
        yield


@contextmanager
def deployed_stack(here, *functions, denied=(), without=()):
    """Serve these functions as a stack of AWS does, whose caller IAM denies some; return the words that name it, and the variables.

    ``without``: outputs that the stack of an older version does not have.
    """
    with served(here, *functions):
        server, account = here.server, here.world.ec2.account
        name = f"ci-{uuid4().hex[:8]}"  # what a process knows of a stack, it keeps
        account.stacks = (name,)
        account.outputs = {word.title().replace("_", ""): word for word in functions if word not in without}
        server.functions.denied = set(denied)
        places = {f"AWS_ENDPOINT_URL_{service.upper()}": f"{server.url}/{service}" for service in ("lambda", "cloudformation")}
        keys = {"AWS_ACCESS_KEY_ID": "ben", "AWS_SECRET_ACCESS_KEY": "none"}
        yield ["--stack", name, "--region", "us-west-2"], places | keys


def asked_of(here, stack, *arguments, given=None):
    """Run a command against a stack, as in a pipe."""
    where, variables = stack
    runner = CliRunner()
    return answered(here, lambda: runner.invoke(app, [*arguments, *where], input=given, env=variables | {"TTY_COMPATIBLE": "0"}))


def answered(here, act):
    """Run what asks in a thread of its own, as a person is; the handlers run in this one, with the world."""
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(act)
        while not asking.done():
            here.server.functions.serve(here.invoke, 0.02)
    return asking.result()


def command(here, *arguments, given=None, columns=None):
    """Run a command as in a pipe; with ``columns`` as in a terminal of that width."""
    runner, where = CliRunner(), ["--local", here.server.url]
    terminal = {"TTY_COMPATIBLE": "1", "COLUMNS": str(columns)} if columns else {"TTY_COMPATIBLE": "0"}
    return answered(here, lambda: runner.invoke(app, [*arguments, *where], input=given, env=terminal))


def told(here, *arguments, code=0):
    ran = command(here, *arguments, "--json")
    assert ran.exit_code == code, ran.output
    return json.loads(ran.stdout)
