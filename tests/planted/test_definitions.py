"""A planted bug is found by the name of its function, wherever that stands."""

import pytest

from support.definitions import NotPlantableError, definition_of

LOOK = "def look(now):\n    return now > 1\n"
AGENT = """
SECONDS = 3
MOST: int = 4


class Agent:
    idle: bool

    @property
    def ends(self):
        return self.idle
"""


@pytest.fixture
def package(tmp_path):
    """Write a package of these files, and return its folder."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_function_is_found_by_its_name_and_changed_there_alone(package):
    above = "def see(now):\n    return now > 1\n\n\n"
    definition = definition_of("look", "now > 1", package(looks=above + LOOK))
    assert definition.place == "looks.py"
    changed = definition.planted("now > 1", "now < 1")
    assert changed == above + "def look(now):\n    return now < 1\n"


@pytest.mark.parametrize(
    ("name", "was"),
    [
        ("Agent", "idle: bool"),
        ("Agent.ends", "@property"),
        ("SECONDS", "= 3"),
        ("MOST", ": int = 4"),
    ],
)
def test_classes_methods_and_constants_have_names_too(name, was, package):
    assert was in definition_of(name, was, package(agents=AGENT)).text


def test_of_two_functions_with_one_name_the_text_tells_which(package):
    folder = package(looks=LOOK, passes="def look(now):\n    return now > 2\n")
    assert definition_of("look", "now > 2", folder).place == "passes.py"


@pytest.mark.parametrize(
    ("name", "was", "why"),
    [
        ("see", "now", "see: no function, class or constant of the layer"),
        ("look", "now > 3", "look (looks.py, passes.py) does not hold 'now > 3'"),
        ("look", "now > 1", "look: in looks.py, passes.py, and each holds 'now > 1'"),
        ("MOST", "4", "MOST (passes.py) holds '4' 2 times"),
    ],
)
def test_the_error_says_why_a_bug_cannot_be_planted(name, was, why, package):
    folder = package(looks=LOOK, passes=LOOK + "\n\nMOST = 4 + 4\n")
    with pytest.raises(NotPlantableError) as error:
        definition_of(name, was, folder)
    assert str(error.value) == why
