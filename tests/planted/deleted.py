"""The same for nodes that are deleted under pipelines: a second deletion leaves what is there for ever."""

from planted.bug import Bug

_ONCE = "tests/handlers/test_deleted_under_pipelines.py::test_"
_STRANDED = "tests/scenarios/test_stranded_pipelines.py::test_"
_COMPUTERS = "tests/unit/test_deleted_computers.py::test_"

DELETED = (
    Bug(
        name="a node that is there is no conflict where no header says so",
        function="JenkinsController.create_node",
        was="            if node is None or node.is_deleted:\n",
        becomes='            if "already exists" not in str(error):\n',
        found_by=("tests/contract/test_refused_forms.py::test_a_node_that_is_there_is_a_conflict",),
    ),
    Bug(
        name="what is left of a deleted node counts as a node that is there",
        function="JenkinsController.create_node",
        was="            if node is None or node.is_deleted:\n",
        becomes="            if node is None:\n",
        found_by=("tests/contract/test_refused_forms.py::test_what_is_left_of_a_deleted_node_is_no_node",),
    ),
    Bug(
        name="what the record notes as deleted is deleted again",
        function="Agent.is_node_deleted",
        was="(self.node.is_deleted or self.record.bindings[0].deleted_at > 0.0)",
        becomes="self.node.is_deleted",
        found_by=(f"{_ONCE}what_the_record_notes_is_not_deleted_again_though_jenkins_shows_executors",),
    ),
    Bug(
        name="a computer without executors is not known to be deleted",
        function="read_node",
        was="is_deleted=not (builtin or computer.numExecutors or computer.assignedLabels or computer.idle) and computer.offline,",
        becomes="is_deleted=False,",
        found_by=(f"{_ONCE}a_deletion_of_which_nothing_was_learned_is_not_repeated_while_the_pipeline_is_listed",),
    ),
    Bug(
        name="a node that somebody else has just deleted is deleted again",
        function="may_delete",
        was="(node.is_deleted and is_at_work,",
        becomes="(False,",
        found_by=(f"{_COMPUTERS}what_somebody_has_deleted_since_the_look_is_not_deleted_again",),
    ),
    Bug(
        name="a block that a person cancelled counts as lost whenever its agent has gone",
        function="_was_stranded",
        was="    return run.ended_at is None or run.ended_at >= lost.node_gone_at",
        becomes="    return True",
        found_by=("tests/unit/test_judging_runs.py",),
    ),
    Bug(
        name="a block that Jenkins cancelled after a deletion is never run again",
        function="is_lost",
        was="Interruption.AGENT_GONE in stops or (",
        becomes="Interruption.AGENT_GONE in stops or False and (",
        found_by=(f"{_STRANDED}what_jenkins_cancels_after_its_node_was_deleted_is_lost_and_is_run_again",),
    ),
)
