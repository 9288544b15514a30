"""Options of the commands that ask the deployed functions, or order something."""

from typing import Annotated

import typer

from autoscaler_workbench.cli import completion

Stack = Annotated[str, typer.Option(envvar="AUTOSCALER_STACK", help="The CloudFormation stack.")]
Local = Annotated[str | None, typer.Option(envvar="AUTOSCALER_LOCAL", help="The URL of a demo started with --keep.", show_default="AWS")]
Region = Annotated[str | None, typer.Option(help="The AWS region.", show_default="as AWS is configured")]
Profile = Annotated[str | None, typer.Option(help="The AWS profile.", show_default="as AWS is configured")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Ask again every 5 seconds, until Ctrl-C.")]
PoolArgument = Annotated[str, typer.Argument(help="The pool.", autocompletion=completion.pools)]
TeamOption = Annotated[str | None, typer.Option("--team", help="Instead of a pool: this team.", autocompletion=completion.teams)]
PoolOption = Annotated[str | None, typer.Option("--pool", help="Only this pool.", autocompletion=completion.pools)]
ControllerOption = Annotated[str | None, typer.Option("--controller", help="Only this controller.", autocompletion=completion.controllers)]
FleetOption = Annotated[bool, typer.Option("--fleet", help="The whole fleet.")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Only jobs that ask for this label.")]
Minutes = Annotated[float, typer.Option(min=0.1, max=10_080, help="Expires automatically after this time.")]
Why = Annotated[str, typer.Option("--reason", help="Shown to whoever finds it later.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]
