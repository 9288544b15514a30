"""A file that nobody can read in one sitting is split: none of Python has more than 600 lines."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 600  # a bound, no goal: at 400, a hundred modules had but one importer
_INSTALLED = {"node_modules", ".venv", "__pycache__"}


def ours(folder):
    return [file for file in (ROOT / folder).rglob("*.py") if not _INSTALLED.intersection(file.parts)]


def test_no_file_of_the_program_or_of_the_tests_is_longer_than_600_lines():
    files = [file for folder in ("layers", "functions", "autoscaler_workbench", "agent", "tests") for file in ours(folder)]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert len(lengths) > 500  # or it would look in the wrong place
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
