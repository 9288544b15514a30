"""Which commands of the pages are only checked, never run, and why."""

from pathlib import Path

from support.page_commands import Command, commands_of, spoken_of

# Why a command is only checked, never run. The first words decide.
NOT_RUN = {
    "autoscaler ui": "serves a page until it is interrupted; tests/environment/browser opens it",
    "autoscaler validate fleet.yaml --live": "reads an AWS account; its checks: tests/unit/test_template_findings.py",
    "python -m autoscaler_workbench.shared_build": "tests/faults/test_shared_build.py runs it",
    "python -m autoscaler_workbench.shared_build.join": "waits for a build; tests/faults/test_shared_build.py has one",
    "autoscaler run nightly/kernel --wait": "waits for builds; tests/unit/test_run_orders_cli.py waits, and for its exit code",
    "make setup": "installs from the network; every test runs in what it installed",
    "make demo": "tests/environment/test_new_user.py runs it in a fresh clone",
    "make build": "tests/environment runs it",
    "make check": "is run before each commit",
    "make check-template": "make test-all runs it",
    "make test": "runs this",
    "make test-all": "runs this, too",
    "make test-fast": "runs a part of the same",
    "make slow": "takes half an hour",
    "make corpus": "takes a minute",
    "make same": "takes minutes",
    "make walk": "takes a minute",
    "make soak": "takes minutes",
    "make rehearse": "takes minutes",
    "make mutate": "takes hours",
    "make bench": "takes minutes",
    "make compare": "takes hours; autoscaler compare is run for a short while",
    "autoscaler compare --fleet first.yaml": "takes a quarter of an hour, and needs what init wrote; docs/demo.md's init is run",
    "make live": "needs a real Jenkins",
    "sudo agent/gpu-lease/install": "installs on this machine; tests/packaging/test_gpu_lease.py runs it in a folder",
    "agent/linux/install-host": "needs a host, with a role of its own; tests/agent/test_hosts.py runs what it installs",
    "autoscaler reserve rocm": "needs a host with cards; tests/scenarios/test_cards.py reserves one",
    "autoscaler release rocm-1": "needs a host with cards; tests/unit/test_device_reservations.py ends one",
    ". /run/autoscaler-agent/people/alice": "reads what an agent wrote on a host; tests/agent/test_hosts.py writes it",
    "sam": "deploys into an AWS account; its parameters are checked against template.yaml and image.yaml",
    "$EDITOR": "is a person's work; the parameters that it shows are checked against template.yaml",
    "aws configure": "keeps settings on a person's machine",
    "aws ssm start-session": "opens a shell on a real instance",
    "aws dynamodb": "needs the stack's table; make rehearse runs them",
    "aws kms": "makes a key in an AWS account, which costs money; docs/warm-pool-trial.md is walked by people with one",
    "aws imagebuilder": "needs Image Builder, which no stand-in has; tests/packaging/test_image.py looks at what the template makes",
    "aws cloudformation": "needs a stack; tests/packaging/test_network.py looks at what the template makes",
}
PLACEHOLDERS = {"N": "1", "...": "x", "EXPRESSION": "a", "ARN-OF-ReaderPolicy": "arn:aws:iam::123456789012:policy/reader"}


def starts(command: Command, with_what: str) -> bool:
    """Whether a command begins with these words."""
    return f"{command.program} {' '.join(command.words)} ".startswith(f"{with_what} ")


def reason_not_to_run(command: Command) -> str | None:
    """Why it is not run; None where it is."""
    return next((reason for start, reason in NOT_RUN.items() if starts(command, start)), None)


def of_program(page: Path, *programs: str, spoken: bool = False) -> list[Command]:
    """A page's commands of some programs; those in sentences too where they are asked for."""
    found = [*commands_of(page), *(spoken_of(page) if spoken else [])]
    return [command for command in found if command.program in programs]
