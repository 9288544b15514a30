"""Mutants of domain and control, against the tests that run in memory: ``python -m support.mutation MODULES ONE_IN JOBS``.

What mutmut expects - one ``src`` beside the tests - is set up in ``out/mutate``. Of all mutants every ``ONE_IN``-th is tried, the same
ones on every machine. A mutant counts as found when a test fails, when the types do not fit any more or when it never comes to an end.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
STAGE = ROOT / "out" / "mutate"
MUTMUT = Path(sys.executable).parent / "mutmut"
# These start processes, read docs/, live whole days or have names that cannot be asked for one by one.
LEFT_OUT = (
    "properties/test_worlds.py",
    "properties/test_in_process.py",
    "unit/test_cli.py",
    "unit/test_pictures.py",
    "unit/test_quoted_facts.py",
    "unit/test_baserock.py",
    "unit/test_labels.py",
    "scenarios/test_days.py",
)
LAID_OUT = ("tests", "autoscaler_workbench", "functions", "events", "agent")
FIRST = "autoscaler.domain.situation.canary"
MUTANT = re.compile(r"^\s*(?P<name>(?P<module>autoscaler[\w.]*?)\.x[_ǁ]\S*__mutmut_(?P<number>\d+)): (?P<state>.+)$", re.MULTILINE)
_WORDS = re.compile(r'f?"[^"]*"')
FOUND = ("killed", "caught by type check", "timeout")
# Where a build is killed or an agent leaks when a line is wrong.
DECISION_AND_DRAIN = re.compile(r"autoscaler\.(domain\.(decide|situation|repair|launch|scale_in)|control\.nodes)\b")
CONFIG = f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/autoscaler/domain/*.py", "src/autoscaler/control/*.py"]
do_not_mutate_patterns = ["raise \\\\w+Error\\\\("]
also_copy = ["tests", "autoscaler_workbench", "functions", "events", "layers", "template.yaml", "agent"]
track_dependencies = false
pytest_add_cli_args_test_selection = ["tests/unit", "tests/properties", "tests/scenarios"]
pytest_add_cli_args = ["--hypothesis-seed=1", "-p", "no:cacheprovider", "-k", "not any_call_may_fail",
  {", ".join(f'"--ignore=tests/{name}"' for name in LEFT_OUT)}]
type_check_command = ["{sys.executable}", "-m", "mypy", "--output", "json", "src/autoscaler/domain", "src/autoscaler/control"]

[tool.mypy]
strict = true
warn_unused_ignores = false
mypy_path = ["src"]
explicit_package_bases = true
plugins = ["pydantic.mypy"]

[[tool.mypy.overrides]]
module = ["jenkins"]
ignore_missing_imports = true
"""


def stage() -> None:
    """Lay out what mutmut works on."""
    shutil.rmtree(STAGE, ignore_errors=True)
    junk = shutil.ignore_patterns("__pycache__", "node_modules", "*.egg-info")
    for here, there in (("layers/core/autoscaler", "src/autoscaler"), ("layers/fleet", "layers/fleet")):
        shutil.copytree(ROOT / here, STAGE / there, ignore=junk)
    for name in LAID_OUT:
        shutil.copytree(ROOT / name, STAGE / name, ignore=junk)
    shutil.copy(ROOT / "template.yaml", STAGE)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pytest = settings[settings.index("[tool.pytest.ini_options]") : settings.index("[tool.importlinter]")]
    (STAGE / "pyproject.toml").write_text(pytest + CONFIG, encoding="utf-8")


def mutmut(*arguments: str, shown: bool = False) -> str:
    """What mutmut prints; on the terminal where it is to be watched."""
    done = subprocess.run([MUTMUT, *arguments], cwd=STAGE, check=True, text=True, stdout=None if shown else subprocess.PIPE)
    return done.stdout or ""


def chosen(modules: str, one_in: int) -> list[str]:
    """Every ``one_in``-th mutant of the modules whose name matches ``modules``."""
    every = [match["name"] for match in MUTANT.finditer(mutmut("results", "--all", "true")) if re.search(modules, match["module"])]
    return every[:: max(one_in, 1)]


def report(console: Console) -> None:
    """The score of every module, and the survivors."""
    states: dict[str, Counter[bool]] = defaultdict(Counter)
    survivors = []
    for match in MUTANT.finditer(mutmut("results", "--all", "true")):
        if match["state"] == "not checked":
            continue
        found = match["state"] in FOUND
        states[match["module"]][found] += 1
        survivors += [] if found else [match["name"]]
    table = Table("module", "mutants", "found", "score")
    rooms = {"decision and drain": [name for name in states if DECISION_AND_DRAIN.match(name)], "all": list(states)}
    for name, within in ({name: [name] for name in sorted(states)} | rooms).items():
        tried, found = sum(sum(states[one].values()) for one in within), sum(states[one][True] for one in within)
        table.add_row(name, str(tried), str(found), f"{found / tried:.0%}" if tried else "-")
    only_words = 0
    for name in survivors:
        changed = [line for line in mutmut("show", name).splitlines()[3:] if line[:1] in "+-"]
        words = len({_WORDS.sub("", line[1:]) for line in changed}) == 1
        only_words += words
        if not words:
            console.print(name, *changed, sep="\n", markup=False, highlight=False)
    console.print(table)
    console.print(f"{len(survivors)} survived; {only_words} of them change nothing but words that a person reads")


def main(modules: str, one_in: int, jobs: int) -> int:
    """Try the mutants, print the score."""
    stage()
    mutmut("run", "--max-children", str(jobs), f"{FIRST}*", shown=True)
    mutmut("run", "--max-children", str(jobs), *chosen(modules, one_in), shown=True)
    report(Console())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
