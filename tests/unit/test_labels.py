"""Label expressions, held to what a real Jenkins made of them."""

import json
from pathlib import Path

import pytest

from autoscaler.domain.labels import LabelSyntaxError, parse

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "label_expressions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", [c for c in RECORDED["cases"] if "name" in c], ids=lambda c: c["expr"])
def test_reads_an_expression_as_jenkins_does(case):
    expression = parse(case["expr"])
    assert expression.name == case["name"]
    assert [expression.matches(labels) for labels in RECORDED["label_sets"]] == case["matches"]


@pytest.mark.parametrize("case", [c for c in RECORDED["cases"] if "error" in c], ids=lambda c: c["expr"])
def test_refuses_what_jenkins_refuses(case):
    with pytest.raises(LabelSyntaxError, match=r"^column \d+: "):
        parse(case["expr"])


@pytest.mark.parametrize("text", ["", '""extra', '"open', "a\t\t!", "()", ")", "a)", '"bad \\q escape"', "a b"])
def test_refuses_what_the_grammar_does_not_know(text):
    with pytest.raises(LabelSyntaxError):
        parse(text)


def test_nesting_is_as_deep_as_the_text_is_long():
    depth = 20_000
    expression = parse("(" * depth + "a" + ")" * depth)
    assert expression.matches({"a"})


def test_implication_binds_looser_than_or_and_tighter_than_equivalence():
    assert parse("a||b->c<->d").matches({"a", "c", "d"})
    assert not parse("a||b->c<->d").matches({"a", "d"})


@pytest.mark.parametrize(
    ("label", "spelled"),
    [("a.", '"a."'), (".", '"."'), ("a b", '"a b"'), ('q"t', 'q"t'), ("a\\\\b", '"a\\\\b"'), ("x]", '"x]"')],
)
def test_quotes_inside_an_expression_what_could_not_be_a_name(label, spelled):
    literal = '"' + label.replace('"', '\\"') + '"'
    assert parse(f"!{literal}").name == f"!{spelled}"
