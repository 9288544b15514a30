"""What is packed without comments does what it did with them."""

import ast

import pytest

from autoscaler_workbench.maintenance.comments import without_comments
from packaging_root import ROOT

PROGRAMS = [
    ROOT / "agent/linux/autoscaler-agent",
    *sorted(ROOT.glob("agent/**/*.py")),
    *sorted(ROOT.glob("layers/core/autoscaler/control/**/*.py")),
]


class WithoutTypes(ast.NodeTransformer):
    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return ast.Assign(targets=[node.target], value=node.value) if node.value else node


def meaning(text):
    """The program as Python reads it, but for its docstrings and the types of its functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and len(node.body) > 1 and ast.get_docstring(node) is not None:
            del node.body[0]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        WithoutTypes().visit(function)
    return ast.dump(tree)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_means_the_same_and_is_shorter(path):
    text = path.read_text(encoding="utf-8")
    short = without_comments("", text) if text.startswith("#!/usr/bin/python3") else without_comments(path.name, text)
    assert meaning(short) == meaning(text)
    assert len(short) <= len(text)


def test_a_text_of_several_lines_stays_as_it_is():
    text = 'def f() -> str:\n    """Say."""\n    x = """a\n    # b\n\n        c"""\n    return x  # why\n'
    assert without_comments("a.py", text) == 'def f():\n x = """a\n    # b\n\n        c"""\n return x\n'


def test_a_shell_script_keeps_its_first_line_and_what_is_no_comment():
    assert without_comments("install", "#!/bin/sh\n# why\n\n  # why\necho '#x' # there\n") == "#!/bin/sh\necho '#x' # there\n"
