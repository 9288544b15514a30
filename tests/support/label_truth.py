"""Label expressions, read a second time in the plain way: by recursive descent, as Jenkins does.

Nothing of the product stands in here, so that its reader of labels can be judged by it.
"""

import re
from collections.abc import Collection

TOKENS = re.compile(
    r"[ \t]+|(&&|\|\||<->|->|!|\(|\))"
    r'|("(?:\\[btnfr"\'\\]|[^\\"\r\n])*")'
    r"|((?:-(?!>)|[^&|!<>() \t\"'-])+)"
)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


class Oracle:
    """Truth of an expression for a set of labels; ValueError where Jenkins would refuse it."""

    def __init__(self, text: str, labels: Collection[str]) -> None:
        self.labels, self.tokens, at = labels, list[str](), 0
        while at < len(text):
            found = TOKENS.match(text, at)
            if not found:
                raise ValueError(text)
            if found[1] or found[2] or found[3]:
                self.tokens.append(found[0])
            at = found.end()

    def truth(self) -> bool:
        value = self.iff()
        if self.tokens:
            raise ValueError(self.tokens)
        return value

    def next_is(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def iff(self) -> bool:
        value = self.implies()
        while self.next_is("<->"):
            value = value == self.implies()
        return value

    def implies(self) -> bool:
        value = self.either()
        if self.next_is("->"):
            then = self.either()
            return not value or then
        return value

    def either(self) -> bool:
        value = self.both()
        while self.next_is("||"):
            other = self.both()
            value = value or other
        return value

    def both(self) -> bool:
        value = self.negated()
        while self.next_is("&&"):
            other = self.negated()
            value = value and other
        return value

    def negated(self) -> bool:
        return not self.one() if self.next_is("!") else self.one()

    def one(self) -> bool:
        if self.next_is("("):
            value = self.iff()
            if not self.next_is(")"):
                raise ValueError("')' is missing")
            return value
        if not self.tokens or self.tokens[0] in {"&&", "||", "->", "<->", "!", "(", ")"}:
            raise ValueError("a label belongs here")
        token = self.tokens.pop(0)
        return (_unquoted(token) if token.startswith('"') else token) in self.labels


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1])


def satisfies(text: str, labels: Collection[str]) -> bool:
    """Tell whether labels satisfy what a job asks for; a text that Jenkins refuses is one label."""
    try:
        return Oracle(text, labels).truth()
    except ValueError:
        return text in labels
