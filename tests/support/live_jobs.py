"""What config.xml says of the jobs that live tests make: a freestyle job, a pipeline or a matrix, of which each build sleeps in a shell.

Pipelines, too: their own step ``sleep`` runs on the controller, and would go on without an agent.

As XStream writes them: hudson.model.Project, CpsFlowDefinition, hudson.matrix.MatrixProject and, of the plugin NodeLabel,
LabelParameterDefinition. A parameter of a class that Jenkins does not know is left out of the job that it makes.
"""

from pathlib import Path
from xml.sax.saxutils import escape

from autoscaler_workbench.fakes.world.jenkins.builds import Kind

MATRIX, LABEL_PARAMETER = "hudson.matrix.MatrixProject", "org.jvnet.jenkins.plugins.nodelabelparameter"
BEGUN = "+ sleep "  # in a build's console, once its shell runs: Jenkins starts it by `sh -xe`
_XML = "<?xml version='1.1' encoding='UTF-8'?>"
_SLEEPS = (
    "<builders><hudson.tasks.Shell><command>sleep {seconds:g}{until}</command></hudson.tasks.Shell></builders><publishers/><buildWrappers/>"
)
_FREESTYLE = (
    f"{_XML}<project><description/><keepDependencies>false</keepDependencies><properties>{{declared}}</properties>"
    "<scm class='hudson.scm.NullSCM'/>{where}<disabled>false</disabled>"
    f"<concurrentBuild>true</concurrentBuild>{_SLEEPS}</project>"
)
_PIPELINE = (
    f"{_XML}<flow-definition><properties>{{declared}}</properties><definition class='org.jenkinsci.plugins.workflow.cps.CpsFlowDefinition'>"
    "<script>{script}</script><sandbox>true</sandbox></definition><triggers/></flow-definition>"
)
# Where a configuration runs is what its axes of labels say; the whole itself takes no executor.
_MATRIX = (
    f"{_XML}<matrix-project><description/><keepDependencies>false</keepDependencies><properties>{{declared}}</properties>"
    "<scm class='hudson.scm.NullSCM'/><canRoam>true</canRoam><disabled>false</disabled><triggers/><concurrentBuild>true</concurrentBuild>"
    f"<axes>{{axes}}</axes>{_SLEEPS}"
    "<executionStrategy class='hudson.matrix.DefaultMatrixExecutionStrategyImpl'><runSequentially>false</runSequentially>"
    "</executionStrategy></matrix-project>"
)


def config(kind: Kind, label: str, seconds: float, declares: tuple[str, ...], ended_by: Path | None = None) -> str:
    """A job that runs on a label, or where one of its parameters says: ``params.NAME``."""
    by = label.removeprefix("params.") if label.startswith("params.") else ""
    if kind is Kind.PIPELINE:
        script = f"node({label if by else _quoted(label)}) {{ sh 'sleep {seconds:g}' }}"
        return _PIPELINE.format(script=escape(script), declared=_declared(declares))
    where = "<canRoam>true</canRoam>" if by else f"<assignedNode>{escape(label)}</assignedNode><canRoam>false</canRoam>"
    until = f" & while kill -0 $! && test ! -e '{ended_by}'; do sleep 1; done; kill $! || true" if ended_by else ""
    return _FREESTYLE.format(where=where, seconds=seconds, until=escape(until), declared=_declared(declares, by))


def _quoted(label: str) -> str:
    return f"'{label}'"


def matrix_config(label: str, seconds: float, values: tuple[str, ...], declares: tuple[str, ...]) -> str:
    """A matrix with a configuration for each value of the axis ``os``."""
    axes = _axis("LabelAxis", "label", (label,)) + _axis("TextAxis", "os", values)
    return _MATRIX.format(axes=axes, seconds=seconds, until="", declared=_declared(declares))


def _axis(kind: str, name: str, values: tuple[str, ...]) -> str:
    strings = "".join(f"<string>{escape(value)}</string>" for value in values)
    return f"<hudson.matrix.{kind}><name>{name}</name><values>{strings}</values></hudson.matrix.{kind}>"


def _declared(names: tuple[str, ...], label_parameter: str = "") -> str:
    if not names:
        return ""
    definitions = "".join(_label(name) if name == label_parameter else _plain(name) for name in names)
    inside = f"<parameterDefinitions>{definitions}</parameterDefinitions>"
    return f"<hudson.model.ParametersDefinitionProperty>{inside}</hudson.model.ParametersDefinitionProperty>"


def _plain(name: str) -> str:
    kind = f"hudson.model.{'Password' if 'PASSWORD' in name else 'String'}ParameterDefinition"
    return f"<{kind}><name>{name}</name><defaultValue/></{kind}>"


def _label(name: str) -> str:
    kind, eligible = f"{LABEL_PARAMETER}.LabelParameterDefinition", f"<nodeEligibility class='{LABEL_PARAMETER}.node.AllNodeEligibility'/>"
    all_of_them = "<allNodesMatchingLabel>false</allNodesMatchingLabel><triggerIfResult>allCases</triggerIfResult>"
    return f"<{kind}><name>{name}</name><defaultValue/>{all_of_them}{eligible}</{kind}>"
