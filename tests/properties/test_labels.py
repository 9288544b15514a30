"""Label expressions against a second reading of Jenkins' grammar, written the plain way: by recursive descent."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.labels import LabelSyntaxError, parse
from support.label_truth import Oracle

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
