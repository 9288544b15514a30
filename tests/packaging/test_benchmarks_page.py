"""The page of benchmarks: what is measured anew replaces its own tables there, and no others."""

from benchmarks.figures import Figures, replaced


def table(title, value):
    return Figures(title=title, text="What it means.", columns=("load", "usd"), rows=(("quiet", value),))


def page(*tables):
    return replaced("# Benchmarks\n\nMade by a command.\n", tables)


def test_a_table_that_is_measured_anew_takes_the_place_of_the_old_one():
    before = page(table("First", "$1"), table("Second", "$2"), table("Third", "$3"))
    assert replaced(before, [table("Second", "$4")]) == page(table("First", "$1"), table("Second", "$4"), table("Third", "$3"))


def test_a_table_that_the_page_lacks_goes_to_its_end():
    assert replaced(page(table("First", "$1")), [table("Second", "$2")]) == page(table("First", "$1"), table("Second", "$2"))


def test_a_page_holds_its_head_and_its_tables_with_an_empty_line_between():
    assert page(table("First", "$1")) == (
        "# Benchmarks\n\nMade by a command.\n\n## First\n\nWhat it means.\n\n| load | usd |\n| --- | ---: |\n| quiet | $1 |\n"
    )
