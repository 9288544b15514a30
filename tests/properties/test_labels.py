"""Label expressions against a second reading of Jenkins' grammar, written the plain way: by recursive descent."""

import re

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.labels import LabelSyntaxError, parse

TOKENS = re.compile(r'[ \t]+|(&&|\|\||<->|->|!|\(|\))|("(?:\\[btnfr"\'\\]|[^\\"\r\n])*")|((?:-(?!>)|[^&|!<>() \t"\'-])+)')
PIECES = [
    "a",
    "b",
    "c",
    "a-b",
    "v1/2",
    '"a b"',
    '"!a"',
    "&&",
    "||",
    "->",
    "<->",
    "!",
    "(",
    ")",
    " ",
    "\t",
    "-",
    "&",
    "|",
    "<",
    ">",
    "'",
    '"',
    "ü",
]


class Oracle:
    """Truth of an expression for a set of labels; ValueError where the grammar does not allow it."""

    def __init__(self, text, labels):
        self.labels, self.tokens, at = labels, [], 0
        while at < len(text):
            found = TOKENS.match(text, at)
            if not found:
                raise ValueError(text)
            if found[1] or found[2] or found[3]:
                self.tokens.append(found[0])
            at = found.end()

    def truth(self):
        value = self.iff()
        if self.tokens:
            raise ValueError(self.tokens)
        return value

    def next_is(self, token):
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def iff(self):
        value = self.implies()
        while self.next_is("<->"):
            value = value == self.implies()
        return value

    def implies(self):
        value = self.either()
        if self.next_is("->"):
            then = self.either()
            return not value or then
        return value

    def either(self):
        value = self.both()
        while self.next_is("||"):
            other = self.both()
            value = value or other
        return value

    def both(self):
        value = self.negated()
        while self.next_is("&&"):
            other = self.negated()
            value = value and other
        return value

    def negated(self):
        return not self.one() if self.next_is("!") else self.one()

    def one(self):
        if self.next_is("("):
            value = self.iff()
            if not self.next_is(")"):
                raise ValueError("')' is missing")
            return value
        if not self.tokens or self.tokens[0] in {"&&", "||", "->", "<->", "!", "(", ")"}:
            raise ValueError("a label belongs here")
        token = self.tokens.pop(0)
        return (token[1:-1] if token.startswith('"') else token) in self.labels


def spelled(draw_from):
    return st.lists(st.sampled_from(draw_from), max_size=12).map("".join)


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "c", "a-b", "v1/2", '"a b"', '"!a"', "ü"]),
    lambda inner: st.one_of(
        inner.map(lambda e: f"!{e}"),
        inner.map(lambda e: f"({e})"),
        st.tuples(inner, st.sampled_from(["&&", "||", "->", "<->", " && ", "  -> ", "\t<->\t"]), inner).map("".join),
    ),
    max_leaves=12,
)


@given(st.one_of(spelled(PIECES), EXPRESSIONS), st.frozensets(st.sampled_from(["a", "b", "c", "a-b", "v1/2", "a b", "!a", "ü", "-"])))
def test_reads_and_refuses_as_the_grammar_says(text, labels):
    try:
        expected = Oracle(text, labels).truth()
    except ValueError:
        expected = None
    try:
        got = parse(text).matches(labels)
    except LabelSyntaxError:
        got = None
    assert got is expected


@given(EXPRESSIONS, st.frozensets(st.sampled_from(["a", "b", "c", "a-b"])))
def test_the_normalised_text_of_plain_labels_means_the_same(text, labels):
    try:
        expression = parse(text)
    except LabelSyntaxError:
        return
    if not expression.atoms & {"!a", "a b"}:  # a lone label is spelled bare, whatever it contains
        assert parse(expression.name).matches(labels) == expression.matches(labels)
        assert parse(expression.name).name == expression.name


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        assert isinstance(parse(text).matches({"a"}), bool)
    except LabelSyntaxError as error:
        assert str(error).startswith("column ")
