"""Jenkins' label expressions: the grammar in full, Jenkins' normalised text, and its refusals."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from operator import and_, eq, le, or_

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t]+)
    | (?P<string>"(?:\\[btnfr"'\\]|[^\\"\r\n])*")
    | (?P<operator>&&|\|\||<->|->|!|\(|\))
    | (?P<atom>(?:-(?!>)|[^&|!<>()\ \t"'\-])+)
    """,
    re.VERBOSE,
)
# Tightest last; an expression may hold one "->" at each level only, since (a->b)->c and a->(b->c) differ.
_PRECEDENCE = {"<->": 1, "->": 2, "||": 3, "&&": 4, "!": 5}
# Of two truth values: one implies the other where it is not the greater one.
_COMBINED: dict[str, Callable[[bool, bool], bool]] = {"&&": and_, "||": or_, "->": le, "<->": eq}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_JAVA_BLANKS = "".join(map(chr, range(33)))
_UNSAFE = frozenset("?*/\\%!@#$^&|<>[]:; ()")


class LabelSyntaxError(ValueError):
    """Jenkins refuses this expression; the text names the place and what is wrong there."""


@dataclass(frozen=True, slots=True)
class _Atom:
    label: str


@dataclass(frozen=True, slots=True)
class LabelExpression:
    """A parsed expression. ``name`` is Jenkins' normalised text, as it stands in ``why``."""

    name: str
    # Postfix, so that neither parsing nor matching recurses: nesting is as deep as the text is long.
    _program: tuple[_Atom | str, ...]

    @property
    def atoms(self) -> frozenset[str]:
        """Every label that the expression mentions."""
        return frozenset(part.label for part in self._program if isinstance(part, _Atom))

    def matches(self, labels: Collection[str]) -> bool:
        """Tell whether a node with these labels satisfies the expression."""
        stack: list[bool] = []
        for part in self._program:
            if isinstance(part, _Atom):
                stack.append(part.label in labels)
            elif part == "!":
                stack.append(not stack.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_COMBINED[part](left, right))
        return stack.pop()


def parse(text: str) -> LabelExpression:
    """Parse ``text`` as Jenkins does; raise `LabelSyntaxError` where Jenkins refuses."""
    reader = _Reader(text)
    for kind, token, at in _tokens(text):
        reader.take(kind, token, at)
    return reader.finish()


def one_label(label: str) -> LabelExpression:
    """Read ``label`` as a single label, whatever it contains: what Jenkins does with a text that does not parse."""
    return LabelExpression(label, (_Atom(label),))


def as_told(text: str, known_labels: Collection[str] = ()) -> LabelExpression:
    """Read what an item asks for as Jenkins tells it: a lone label is not quoted, whatever characters it contains."""
    if text in known_labels:
        return one_label(text)
    try:
        return parse(text)
    except LabelSyntaxError:
        return one_label(text)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise LabelSyntaxError(f"column {at + 1}: cannot read {text[at : at + 2]!r}")
        if found.lastgroup != "space":
            yield str(found.lastgroup), found[0], at
        at = found.end()


class _Reader:
    """Shunting-yard over the tokens: operands go out at once, operators wait for those that bind tighter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._program: list[_Atom | str] = []
        self._waiting: list[str] = []
        self._spelled: list[str] = []
        self._wants_operand = True

    def take(self, kind: str, token: str, at: int) -> None:
        if kind == "operator":
            self._operator(token, at)
        elif self._wants_operand:
            label = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1]) if kind == "string" else token
            self._program.append(_Atom(label))
            self._spelled.append(quoted(label))
            self._operand_done()
        else:
            raise LabelSyntaxError(f"column {at + 1}: {token!r} where an operator or the end belongs")

    def finish(self) -> LabelExpression:
        if self._wants_operand:
            raise LabelSyntaxError(f"column {len(self._text) + 1}: ends where a label belongs")
        while self._waiting:
            operator = self._waiting.pop()
            if operator == "(":
                raise LabelSyntaxError(f"column {len(self._text) + 1}: ')' is missing")
            self._program.append(operator)
        # Jenkins spells a lone label bare, and quotes it only inside an expression.
        first = self._program[0]
        alone = len(self._spelled) == 1 and isinstance(first, _Atom)
        name = first.label if alone and isinstance(first, _Atom) else "".join(self._spelled)
        return LabelExpression(name, tuple(self._program))

    def _operator(self, token: str, at: int) -> None:
        prefix = token in {"!", "("}
        if prefix != self._wants_operand:
            raise LabelSyntaxError(f"column {at + 1}: {token!r} where {'a label' if not prefix else 'an operator'} belongs")
        if token == "!" and self._spelled and self._spelled[-1] == "!":
            raise LabelSyntaxError(f"column {at + 1}: '!' cannot follow '!'")
        self._spelled.append(token)
        if prefix:
            self._waiting.append(token)
        elif token == ")":
            self._close(at)
        else:
            self._binary(token, at)

    def _binary(self, token: str, at: int) -> None:
        while self._waiting and self._waiting[-1] != "(" and _PRECEDENCE[self._waiting[-1]] >= _PRECEDENCE[token]:
            if token == "->" == self._waiting[-1]:
                raise LabelSyntaxError(f"column {at + 1}: '->' cannot be chained; use parentheses")
            self._program.append(self._waiting.pop())
        self._waiting.append(token)
        self._wants_operand = True

    def _close(self, at: int) -> None:
        while self._waiting and self._waiting[-1] != "(":
            self._program.append(self._waiting.pop())
        if not self._waiting:
            raise LabelSyntaxError(f"column {at + 1}: ')' without '('")
        self._waiting.pop()
        self._operand_done()

    def _operand_done(self) -> None:
        self._wants_operand = False
        if self._waiting and self._waiting[-1] == "!":
            self._program.append(self._waiting.pop())


def quoted(label: str) -> str:
    """Spell a label as Jenkins does inside an expression: in quotation marks where it could not be an item's name."""
    # Jenkins quotes what could not be an item's name: blanks, controls, its unsafe signs, a dot at the end.
    trimmed = label.strip(_JAVA_BLANKS)
    if trimmed and not trimmed.endswith(".") and not any(c in _UNSAFE or c <= "\x1f" or "\x7f" <= c <= "\x9f" for c in label):
        return label
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    for letter, char in _ESCAPES.items():
        escaped = escaped.replace(char, f"\\{letter}")
    return f'"{escaped}"'
