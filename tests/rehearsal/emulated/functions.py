"""What AWS gives to functions and MiniStack does not: who signed a request to a function URL, ``/opt/fleet.yaml``, events of EC2.

And what AWS denies: a function makes its log group anew only where its role may.
"""

import inspect
import io
import os
import re
import zipfile
from functools import wraps
from pathlib import Path

from ministack.core import iam_evaluator, lambda_runtime
from ministack.services import cloudwatch_logs, eventbridge, lambda_svc

from rehearsal.plan import ACCOUNT, REGION

OPT = "/opt/"


def install() -> None:
    lambda_svc._build_function_url_event = _with_caller(lambda_svc._build_function_url_event)
    lambda_svc._emit_lambda_logs = _as_its_role_may(lambda_svc._emit_lambda_logs)
    lambda_runtime.Worker._spawn = _with_fleet_layer(lambda_runtime.Worker._spawn)
    # MiniStack does not let callers send events as aws.ec2; the rehearsal's machines do so in EC2's place.
    for name, function in list(vars(eventbridge).items()):
        if inspect.isfunction(function) and "allow_aws_source" in inspect.signature(function).parameters:
            setattr(eventbridge, name, _as_aws(function))


def _with_caller(build_event):
    @wraps(build_event)
    def build(url_id, account_id, region, method, path, headers, body, query_params, *rest, **options):
        event = build_event(url_id, account_id, region, method, path, headers, body, query_params, *rest, **options)
        signature = next((value for name, value in headers.items() if name.lower() == "authorization"), "")
        key = re.search(r"Credential=([^/]+)/", signature)
        caller = iam_evaluator.resolve_caller_identity(key[1]) if key else None
        if caller:
            event["requestContext"]["authorizer"] = {
                "iam": {
                    "accessKey": caller["accessKey"],
                    "accountId": caller["accountId"],
                    "callerId": caller["userId"],
                    "cognitoIdentity": None,
                    "principalOrgId": None,
                    "userArn": caller["userArn"],
                    "userId": caller["userId"],
                }
            }
        return event

    return build


def _as_its_role_may(emit):
    """Lose what a function logs after its log group was deleted, unless its role may make it anew."""

    @wraps(emit)
    def emit_as_its_role_may(function, *rest, **options):
        config = function.get("config") or function
        group = config.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
        if group in cloudwatch_logs._log_groups or _may_make(group, config["Role"]):
            emit(function, *rest, **options)

    return emit_as_its_role_may


def _may_make(group, role):
    asked = iam_evaluator.EvalContext(
        principal_arn=role,
        principal_type="AssumedRole",
        principal_account=ACCOUNT,
        action="logs:CreateLogGroup",
        resource_arn=f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}",
        region=REGION,
    )
    policies = iam_evaluator._gather_role_policies(role.rpartition("/")[2], ACCOUNT)
    return iam_evaluator.evaluate(asked, policies).decision == "Allow"


def _with_fleet_layer(spawn):
    """Let a function find its layer's files where it was unpacked: without root nothing can be put into ``/opt``."""

    @wraps(spawn)
    def spawn_with_layer(worker):
        variables = dict(worker.config.get("Environment", {}).get("Variables", {}))
        place = variables.get("FLEET_CONFIG", "")
        if place.startswith(OPT):
            variables["FLEET_CONFIG"] = str(_unpacked(worker.config.get("Layers", []), place.removeprefix(OPT)))
            worker.config = worker.config | {"Environment": {"Variables": variables}}
        return spawn(worker)

    return spawn_with_layer


def _unpacked(layers, name):
    """The path of a file that one of these layers holds. Workers of several functions may ask at once, so it is moved into place."""
    for layer in layers:
        content = lambda_svc._resolve_layer_zip(layer)
        archive = zipfile.ZipFile(io.BytesIO(content)) if content else None
        if archive and name in archive.namelist():
            arn = layer if isinstance(layer, str) else layer["Arn"]
            folder = Path(os.environ["REHEARSAL_FOLDER"]) / "opt" / arn.replace(":", "-")
            half = folder.with_name(f"{folder.name}.{os.urandom(4).hex()}")
            if not folder.is_dir():
                archive.extractall(half)
                half.rename(folder)
            return folder / name
    raise ValueError(f"no layer holds {name}")


def _as_aws(function):
    signature = inspect.signature(function)

    @wraps(function)
    def allowed(*values, **options):
        bound = signature.bind_partial(*values, **options)
        bound.arguments["allow_aws_source"] = True
        return function(*bound.args, **bound.kwargs)

    return allowed
