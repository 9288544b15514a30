"""Leaves comments, docstrings and types of functions out of a program, where each byte counts. What it does stays the same."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def without_comments(name: str, text: str) -> str:
    """Shorten a file by the language that it is in: Python, or one whose comments begin with # on a line of their own."""
    if text.startswith("#!/usr/bin/python3") or name.endswith(".py"):
        return _python(_without_types(text))
    if name.endswith(".ps1"):
        text = re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE)  # the one text of several lines there is a script, too
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("#!") or not re.match(r"\s*#(\s|$)", line))
    return "".join(line for line in lines if line.strip())


def _without_types(text: str) -> str:
    """Leave out what functions say of the types of their arguments, results and variables, where that is on one line."""
    lines = text.splitlines(keepends=True)
    program = ast.parse(text)
    spans = [*_types_of_variables(program)]  # line, from, to; in bytes
    for node in ast.walk(program):
        if isinstance(node, ast.arg) and (kind := node.annotation) and kind.end_lineno == node.lineno:
            spans.append((node.lineno, node.col_offset + len(node.arg.encode()), kind.end_col_offset or 0))
        elif isinstance(node, ast.FunctionDef) and (result := node.returns) and result.end_lineno == result.lineno:
            begin = lines[result.lineno - 1].encode()[: result.col_offset].rindex(b"->")
            spans.append((result.lineno, begin, result.end_col_offset or 0))
    for number, begin, end in sorted(spans, reverse=True):
        raw = lines[number - 1].encode()
        lines[number - 1] = (raw[:begin].rstrip() + raw[end:]).decode()
    return "".join(lines)


def _types_of_variables(program: ast.Module) -> set[tuple[int, int, int]]:
    """Find the types of the variables of functions that have a value. Those of classes stay: they may be fields."""
    inner = (node for function in ast.walk(program) if isinstance(function, ast.FunctionDef) for node in ast.walk(function))
    typed = (node for node in inner if isinstance(node, ast.AnnAssign) and node.value and node.annotation.end_lineno == node.lineno)
    return {(node.lineno, node.target.end_col_offset or 0, node.annotation.end_col_offset or 0) for node in typed}


def _python(text: str) -> str:
    """Shorten a program, and indent it by one space a level instead of four."""
    documented = {line for begin, end in _docstrings(text) for line in range(begin, end + 1)}
    inside, comments = set[int](), dict[int, int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))  # lines that begin within a text stay as they are
        elif token.type == tokenize.COMMENT and token.start[0] > 1:
            comments[token.start[0]] = token.start[1]
    kept: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in inside and number not in documented:
            kept.append(line)
        elif number not in documented and (short := line[: comments.get(number)].rstrip()):
            margin = len(short) - len(short.lstrip())
            kept.append(" " * (margin // 4) + short[margin:])
    return "\n".join(kept) + "\n"


def _docstrings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each docstring that something follows."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and len(node.body) > 1 and ast.get_docstring(node) is not None:
            first = node.body[0]
            yield first.lineno, first.end_lineno or first.lineno
