"""Components of the images: documents that Image Builder takes, scripts that are well formed; and the runner of the tests in a Debian."""

import re
import subprocess

import pytest
import tree_sitter_powershell
from tree_sitter import Language, Parser

from autoscaler_workbench.maintenance.image_components import COMPONENTS, LONGEST_TEXT, text_of, version_of
from packaging_root import ROOT
from support.image_builder import ComponentError, read_component

TEXTS = {name: text_of(name) for name in COMPONENTS}
READ = {name: read_component(text) for name, text in TEXTS.items()}
STEPS = [(name, phase, step) for name, component in READ.items() for phase, steps in component.phases.items() for step in steps]
# A phase that says nothing of the machine it ran on proves nothing.
VALIDATED = {name for name, component in READ.items() if component.phases.get("validate")}


def of_action(action):
    chosen = [(name, step) for name, _, step in STEPS if step.action == action]
    return pytest.mark.parametrize(("name", "step"), chosen, ids=lambda value: getattr(value, "name", value))


def script_of(name, step):
    return step.with_values(READ[name].values({}))


def test_each_document_on_disk_is_a_component_and_the_other_way_round():
    assert sorted(COMPONENTS) == sorted(path.stem for path in (ROOT / "image").glob("*.yaml"))
    assert {component.name for component in READ.values()} == set(COMPONENTS)


def test_each_fits_into_what_cloudformation_may_give_image_builder():
    assert all(len(text) <= LONGEST_TEXT for text in TEXTS.values())


def test_each_looks_whether_its_work_was_done():
    assert set(COMPONENTS) == VALIDATED


def test_two_texts_never_share_a_version_and_one_text_keeps_its_own():
    versions = {version_of(text) for text in TEXTS.values()}
    assert len(versions) == len(TEXTS)
    assert version_of("a") == version_of("a") != version_of("a ")
    # https://docs.aws.amazon.com/imagebuilder/latest/userguide/ibhow-semantic-versioning.html
    assert all(int(version.rpartition(".")[2]) < 2**30 for version in versions)


@pytest.mark.needs("shellcheck")
@of_action("ExecuteBash")
def test_a_bash_step_passes_shellcheck_and_ends_where_a_command_fails(name, step):
    script = script_of(name, step)
    assert script.startswith("set -eu\n")
    # What a parameter is put into is a constant to it, and os-release lies on the machine.
    command = ["shellcheck", "--shell=bash", "--exclude=SC1091,SC2043,SC2050", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@of_action("ExecutePowerShell")
def test_a_powershell_step_is_well_formed_and_ends_where_a_command_fails(name, step):
    script = script_of(name, step)
    assert script.startswith("$ErrorActionPreference = 'Stop'\n")
    assert not Parser(Language(tree_sitter_powershell.language())).parse(script.encode()).root_node.has_error


def test_whatever_windows_downloads_and_runs_is_signed_by_whom_we_expect():
    """Read, not run: there is no Windows here."""
    for _, phase, step in (one for one in STEPS if one[0] == "windows" and one[1] == "build"):
        assert phase == "build"
        assert step.script.index("Invoke-WebRequest") < step.script.index("Get-AuthenticodeSignature") < step.script.index("Start-Process")


def test_no_component_holds_the_agent_or_a_secret():
    for text in TEXTS.values():
        assert not re.search(r"autoscaler-agent\.service|REGISTER_URL|password", text, re.IGNORECASE)


DOCUMENT = """
name: a
schemaVersion: 1.0
parameters: [{Word: {type: string, default: hello}}]
phases:
  - name: build
    steps:
      - {name: First, action: ExecuteBash, inputs: {commands: ["set -eu; echo {{ Word }}"]}}
      - {name: Second, action: ExecuteBash, inputs: {commands: ["set -eu; exit 3"]}}
      - {name: Third, action: ExecuteBash, inputs: {commands: ["set -eu; touch never"]}}
"""


def bash(script):
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


def test_the_runner_puts_parameters_in_and_ends_at_the_first_step_that_fails():
    said = []

    def shell(script):
        said.append(script)
        return bash(script)

    with pytest.raises(ComponentError, match="a, build: Second ended with 3"):
        read_component(DOCUMENT).run("build", shell, Word="goodbye")
    assert said == ["set -eu; echo goodbye", "set -eu; exit 3"]


@pytest.mark.parametrize(
    ("part", "instead", "error"),
    [
        ("action: ExecuteBash", "action: Reboot", "the action Reboot is not known"),
        ("schemaVersion: 1.0", "schemaVersion: 2.0", "schemaVersion 2.0 is not known"),
        ("name: build", "name: bake", "the phase bake is not known"),
        ("name: First,", "name: First, onFailure: Ignore,", "onFailure"),
        ("{{ Word }}", "{{ build.First.outputs.stdout }}", "is no parameter"),
        ("type: string", "type: integer", "only texts are known"),
        ("name: a", "title: a", "unknown \\['title'\\], missing \\['name'\\]"),
    ],
    ids=lambda value: value if " " not in value else None,
)
def test_the_runner_knows_nothing_that_it_was_not_taught(part, instead, error):
    with pytest.raises(ComponentError, match=error):
        read_component(DOCUMENT.replace(part, instead, 1)).run("build", bash)


def test_a_parameter_that_no_component_has_is_an_error():
    with pytest.raises(ComponentError, match="there is no parameter Other"):
        read_component(DOCUMENT).run("build", bash, Other="x")


def test_powershell_is_not_run_here():
    with pytest.raises(ComponentError, match="ExecutePowerShell cannot be run here"):
        READ["windows"].run("build", bash)
